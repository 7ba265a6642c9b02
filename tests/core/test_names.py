"""Names, free text, labels and handles at the border."""

import base64
from itertools import count

import pytest

from relet.core import border, limits
from relet.core.errors import Invalid
from relet.core.model import Handle

LONGEST = "n" * limits.NAME_CHARS_MAX


class NoWords:
    def __repr__(self):
        raise RuntimeError("no words")


@pytest.mark.parametrize("given", ["a", "reports/2027", "Ünïcödé ✓", " spaces stay ", "no\u00a0break", LONGEST])
def test_a_name_is_any_clean_text(given):
    assert border.name("queue", given) == given


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("", "has 0 characters; give 1 to 200"),
        (LONGEST + "n", "has 201 characters; give 1 to 200"),
        (7, "7 is not text"),
        (None, "None is not text"),
        (b"reports", "is not text"),
        (NoWords(), "a NoWords that cannot be shown is not text"),
        ("a\x00b", r"holds the character '\\x00'"),
        ("a\nb", r"holds the character '\\n'"),
        ("a\x7fb", r"holds the character '\\x7f'"),
        ("a\ud800b", r"holds the character '\\ud800'"),
    ],
)
def test_a_name_that_a_store_could_not_keep_is_refused(given, problem):
    with pytest.raises(Invalid, match=f"^queue: .*{problem}") as refused:
        border.name("queue", given)
    assert refused.value.detail == {"field": "queue"}
    assert str(refused.value).isascii()


def test_a_name_may_have_a_limit_of_its_own():
    assert border.name("id", "abc", most=3) == "abc"
    with pytest.raises(Invalid, match="has 4 characters; give 1 to 3"):
        border.name("id", "abcd", most=3)


def test_a_name_that_was_not_given_stays_none():
    assert border.maybe_name("kind", None) is None
    assert border.maybe_name("kind", "x") == "x"


def test_a_long_value_is_shown_by_its_beginning():
    assert border.shown("x" * 100) == "'" + "x" * 56 + "..."
    assert border.shown("short") == "'short'"


def test_free_text_is_cleaned_and_cut_rather_than_refused():
    assert border.text("tab\tand\nline stay") == "tab\tand\nline stay"
    assert border.text("a\x00b\udfffc") == "a\ufffdb\ufffdc"
    assert border.text(ValueError("as said")) == "as said"
    cut = border.text("x" * (limits.TEXT_CHARS_MAX + 1))
    assert len(cut) == limits.TEXT_CHARS_MAX
    assert cut.endswith("x…")


def test_labels_are_text_to_text():
    assert border.labels(None) is None
    assert border.labels({}) == {}
    assert border.labels({"team": "a", "run": "7"}) == {"team": "a", "run": "7"}


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ([("team", "a")], "labels: .* is not a mapping"),
        ({str(n): "x" for n in range(limits.LABELS_MAX + 1)}, "labels: has 33 entries; give at most 32"),
        ({1: "a"}, "labels: 1 is not text"),
        ({"": "a"}, "labels: has 0 characters"),
        ({"team": 7}, r"labels\['team'\]: 7 is not text"),
        ({"team": "a\nb"}, r"labels\['team'\]: .* holds the character"),
    ],
)
def test_labels_of_another_shape_are_refused(given, problem):
    with pytest.raises(Invalid, match=f"^{problem}"):
        border.labels(given)


@pytest.mark.parametrize("task_id", ["t", "a.b.c", "Ünï✓", "x" * limits.ID_CHARS_MAX, "✓" * limits.ID_CHARS_MAX])
@pytest.mark.parametrize("token", [1, limits.TOKEN_MAX])
def test_a_handle_comes_back_from_its_text_as_it_went(task_id, token):
    handle = Handle(task_id, token, "0123456789abcdef" * 2)
    text = border.handle_text(handle)
    assert text.isascii()
    assert len(text) <= limits.HANDLE_CHARS_MAX
    assert border.handle(text) == handle
    assert border.handle(f"  {text}\n") == handle


GOOD = border.handle_text(Handle("task-1", 5, "s3cret"))
MALFORMED = [
    None,
    7,
    b"r1.5.s3cret.dGFzay0x",
    "",
    "r1.5.s3cret",
    GOOD + ".more",
    GOOD.replace("r1", "r2"),
    GOOD.replace(".5.", ".-5."),
    GOOD.replace(".5.", ".."),
    GOOD.replace(".5.", ".5x."),
    GOOD.replace(".5.", f".{limits.TOKEN_MAX + 1}."),
    GOOD.replace(".5.", f".{'9' * 17}."),
    GOOD.replace("s3cret", ""),
    GOOD.rpartition(".")[0] + ".",
    GOOD.rpartition(".")[0] + ".!!!!",
    GOOD.rpartition(".")[0] + ".A",
    GOOD.rpartition(".")[0] + "." + base64.urlsafe_b64encode(b"\xff\xfe").decode().rstrip("="),
    GOOD + "é",
    GOOD + "x" * limits.HANDLE_CHARS_MAX,
    border.handle_text(Handle("t" * (limits.ID_CHARS_MAX + 1), 5, "s3cret")),
    border.handle_text(Handle("task\x00", 5, "s3cret")),
    border.handle_text(Handle("task-1", 5, "s3cret" * 50)),
]


@pytest.mark.parametrize("given", MALFORMED, ids=count())
def test_what_is_no_handle_is_refused_without_being_shown(given):
    with pytest.raises(Invalid, match=r"^handle: is not a handle; pass on `lease.handle`") as refused:
        border.handle(given)
    assert "s3cret" not in str(refused.value), "a secret has no place in a message"
