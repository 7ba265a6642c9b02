"""`relet submit` stores what it was given, or says why it did not."""

import pytest


def test_it_prints_the_id_and_nothing_else_to_stdout(relet, db):
    done = relet("submit", "q", '{"a": 1}', "--id", "t-1")
    assert (done.code, done.out, done.err) == (0, "t-1\n", "")
    assert db.task("t-1").input == {"a": 1}


def test_without_an_id_it_prints_the_one_it_made(relet, db):
    assert db.task(relet("submit", "q").out.strip()).input is None


def test_a_repeated_submit_answers_the_task_that_is_there(relet):
    relet("submit", "q", "1", "--id", "t-1")
    done = relet("submit", "q", "1", "--id", "t-1")
    assert (done.code, done.out) == (0, "t-1\n")
    assert "there already" in done.err


def test_the_same_id_with_other_content_is_a_conflict_and_changes_nothing(relet, db):
    relet("submit", "q", "1", "--id", "t-1")
    done = relet("submit", "q", "2", "--id", "t-1")
    assert (done.code, done.out) == (11, "")
    assert "relet show t-1" in done.err
    assert db.task("t-1").input == 1


def test_every_option_reaches_the_store(relet, db):
    task = relet(
        "submit", "q", "1", "--id", "t-1", "--kind", "k", "--priority", "7", "--at", "2099-01-01T00:00:00Z",
        "--deadline", "2099-02-01T00:00:00+02:00", "--ttl", "2m", "--timeout", "1h", "--max-hold", "2h",
        "--max-attempts", "9", "--max-losses", "4", "--exclusive", "x", "--label", "team=a", "--label", "b=c=d",
        "--json",
    ).json  # fmt: skip
    assert (task["kind"], task["priority"], task["exclusive"]) == ("k", 7, "x")
    assert task["labels"] == {"team": "a", "b": "c=d"}
    assert (task["due_at"], task["deadline"]) == ("2099-01-01T00:00:00Z", "2099-01-31T22:00:00Z")
    assert task["created"] is True


@pytest.mark.parametrize(
    ("source", "stdin"), [("@input.json", None), ("-", '{"a": [1]}'), ('{"a": [1]}', None)]
)  # fmt: skip
def test_the_input_is_text_a_file_or_stdin(relet, folder, source, stdin):
    (folder / "input.json").write_text('{"a": [1]}')
    assert relet("submit", "q", source, "--json", stdin=stdin).json["input"] == {"a": [1]}


def test_each_line_becomes_a_task(relet, db):
    done = relet("submit", "q", "--lines", "--priority", "2", stdin='1\n\n{"a": 2}\n')
    assert [db.task(name).input for name in done.out.split()] == [1, {"a": 2}]


def test_lines_in_json_are_one_object(relet):
    done = relet("submit", "q", "--lines", "--json", stdin="1\n2\n")
    assert [task["input"] for task in done.json["tasks"]] == [1, 2]


def test_one_bad_line_stores_none_and_is_named(relet, db):
    done = relet("submit", "q", "--lines", stdin="1\nnope\n")
    assert done.code == 2
    assert "line 2" in done.err
    assert db.tasks() == []


def test_no_lines_at_all_make_no_task_and_say_so(relet, folder):
    done = relet("submit", "q", "--lines", stdin="\n")
    assert (done.code, done.out) == (0, "")
    assert f"{folder}/relet.db" in done.err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["q", "plain text"], "text needs quotes"),
        (["q", "@absent.json"], "absent.json"),
        (["q", "1", "--ttl", "soon"], "ttl"),
        (["q", "1", "--at", "2099-01-01T00:00:00"], "naive"),
        (["q", "1", "--at", "tomorrow"], "2027-01-31T18:00:00Z"),
        (["q", "1", "--at", "2099-01-01T00:00:00Z", "--delay", "1s"], "delay"),
        (["q", "1", "--label", "team"], "KEY=VALUE"),
        (["q", "--lines", "--id", "t-1"], "--lines"),
        (["q", "1", "--lines"], "@file"),
        (["", "1"], "queue"),
        ([], "QUEUE"),
        (["q", "1", "--share", ""], "share"),
        (["q", "[" * 100_000], "JSON"),
    ],
)
def test_what_does_not_fit_is_refused_as_usage(relet, db, args, words):
    done = relet("submit", *args, stdin="1\n")
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert db.tasks() == []
