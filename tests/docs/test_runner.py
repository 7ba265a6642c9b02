"""The runner of the docs' code accepts what is true and refuses what is not."""

import pytest

from tests.docs.runner import BlockError, matches, read_blocks


@pytest.fixture
def run(session, tmp_path):
    """Run a page."""

    def run(text):
        page = tmp_path / "page.md"
        page.write_text(text, encoding="utf-8")
        for block in read_blocks(page):
            if block.acts:
                session.run(block)
        return session

    return run


TRUE = {
    "python blocks share a namespace": "~~~python\nx = 1\n~~~\nthen\n~~~python\nassert x == 1\n~~~",
    "await works": "~~~python\nimport asyncio\nx = await asyncio.sleep(0, 7)\nassert x == 7\n~~~",
    "a command exits 0 and prints": "~~~console\n$ printf 'a\\nb\\n'\na\nb\n~~~",
    "a command runs over two lines": "~~~console\n$ printf '%s\\n' one \\\n>     two\none\ntwo\n~~~",
    "output that is not shown is not compared": "~~~console\n$ echo anything\n~~~",
    "variables stay": "~~~console\n$ NAME=$(echo a b)\n$ echo $NAME\na b\n~~~",
    "an umask stays": "~~~console\n$ umask 077\n$ umask\n0077\n~~~",
    "a folder stays": "~~~console\n$ mkdir sub && cd sub\n$ echo in > file\n$ cat ../sub/file\nin\n~~~",
    "an exit code that is read may be another": "~~~console\n$ python -c 'exit(3)'\n$ echo $?\n3\n~~~",
    "a file is written": "<!-- file: a.py -->\n~~~python\nX = 2\n~~~\n~~~python\nimport a\n~~~",
    "a skipped block is not run": "<!-- skip: needs a network -->\n\n~~~console\n$ pip install relet\n~~~",
    "a block that is not code is not run": "~~~json\n{\n~~~\n~~~~text\n~~~python\n1/0\n~~~\n~~~~",
    "a command may be left running": "~~~console\n$ sleep 50 &\n$ echo on\non\n~~~",
}
FALSE = {
    "python raises": ("\n\n~~~python\n\nassert 1 == 2\n~~~", "page.md:4: AssertionError"),
    "python does not parse": ("~~~python\nif\n~~~", "SyntaxError"),
    "python awaits what raises": ("~~~python\nasync def f(): 1 / 0\nawait f()\n~~~", "ZeroDivisionError"),
    "an exit code is not 0": (
        "~~~console\n$ echo x\n$ python -c 1/0\n~~~",
        "page.md:3: `python -c 1/0` ended with",
    ),
    "the output is another": ("~~~console\n$ echo b\na\n~~~", "the page says\na"),
    "the output goes on": ("~~~console\n$ printf 'a\\nb\\n'\na\n~~~", "the page says\na"),
    "an exit code that is read is another": (
        "~~~console\n$ python -c 1/0\n$ echo $?\n0\n~~~",
        "the page says\n0",
    ),
    "a program runs elsewhere": ("~~~console\n$ X=1 pip install relet\n~~~", "`pip` is not run here"),
    "a console block has no command": ("~~~console\nrelet demo\n~~~", "starts with"),
    "a skip has no reason": ("<!-- skip -->\n~~~python\n1 / 0\n~~~", "page.md:1: `skip` says nothing"),
    "a mark has no block": ("<!-- skip: later -->\nwords\n", "page.md:2: the `skip` comment stands over no"),
    "a shell block looks as if it ran": ("~~~bash\nrelet demo\n~~~", "`bash` is not run"),
}


@pytest.mark.parametrize("page", TRUE.values(), ids=TRUE.keys())
def test_a_page_is_true_when(page, run):
    run(page)


@pytest.mark.parametrize(("page", "message"), FALSE.values(), ids=FALSE.keys())
def test_a_page_is_false_when(page, message, run):
    with pytest.raises(BlockError) as caught:
        run(page)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("expected", "output", "answer"),
    [
        (["token ..."], "token 17\n", True),
        (["token ..."], "other 17\n", False),
        (["a ... c"], "a\nc\n", False),
        (["a", "...", "c"], "a\nb\nb\nc\n", True),
        (["a", "...", "c"], "a\nc\n", True),
        (["a", "...", "c"], "a\nb\n", False),
        (["a.c"], "abc\n", False),
        (["a"], "a  \n\n", True),
    ],
)
def test_dots_stand_for_anything_and_nothing_else_does(expected, output, answer):
    assert matches(expected, output) is answer
