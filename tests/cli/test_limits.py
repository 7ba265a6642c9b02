"""Limits of queues from the shell: shown, set, lifted, refused, and told wherever a ready task waits for them."""

import re

import pytest

from relet.cli.bounds import rate_text
from tests.waiting import eventually


@pytest.fixture
def busy(relet):
    """A queue with a limit of one, a task that is held and one that waits."""
    relet("submit", "reports", "--id", "r-1")
    relet("submit", "reports", "--id", "r-2", "--share", "customer-7")
    relet("limits", "reports", "--concurrency", "1", "--share-concurrency", "1", "--rate", "100/m")
    relet("claim", "reports", "--handle-file", "r-1.handle")


def test_limits_are_shown_and_set(relet, busy):
    done = relet("limits", "reports")
    assert done.code == 0
    assert [" ".join(line.split()) for line in done.out.splitlines()] == [
        "queue reports", "concurrency 1", "share concurrency 1", "rate 100/m", "retention none", "live 1",
        "last share -",
        "held back its queue is at its limit, 1 live at once → relet limits reports",
    ]  # fmt: skip
    state = relet("limits", "reports", "--json").json
    assert (state["concurrency"], state["rate"], state["rate_ms"], state["held_back"]) == (
        1,
        100,
        60_000,
        "concurrency",
    )


@pytest.mark.parametrize(("given", "told"), [("30d", "30d"), ("36h", "36h"), ("90s", "90s"), ("none", "none")])
def test_how_long_finished_tasks_are_kept_is_shown_too(relet, busy, given, told):
    relet("prune", "--queue", "reports", "--retention", given)
    assert f"retention {told}" in [" ".join(line.split()) for line in relet("limits", "reports").out.splitlines()]
    kept = relet("limits", "reports", "--json").json["retention_ms"]
    assert (kept is None) == (given == "none")


def test_one_that_is_not_given_stays_and_none_lifts_one(relet, busy):
    assert relet("limits", "reports", "--concurrency", "none", "--json").json["concurrency"] is None
    state = relet("limits", "reports", "--json").json
    assert (state["share_concurrency"], state["rate"], state["held_back"]) == (1, 100, None)
    assert relet("limits", "reports", "--rate", "none", "--json").json["rate_ms"] is None


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--concurrency", "0", "concurrency: 0 is no limit; give a whole number of 1 to 100000"),
        ("--concurrency", "many", "relet pause QUEUE"),
        ("--share-concurrency", "-1", "share_concurrency: '-1' is no limit"),
        ("--rate", "100", "rate: '100' is no rate; give 1 to 1000000 in up to 1d, such as \"100/m\""),
        ("--rate", "5/2d", "is no rate"),
        ("--rate", "0/s", "is no rate"),
    ],
)
def test_a_value_that_is_none_names_field_limit_and_way_out(relet, busy, option, value, said):
    before = relet("limits", "reports", "--json").json
    done = relet("limits", "reports", option, value)
    assert (done.code, said in done.err) == (2, True), done.err
    assert relet("limits", "reports", "--json").json == before


def test_all_queues_are_listed_with_what_holds_them_back(relet, busy):
    relet("submit", "other")
    relet("pause", "idle")
    rows = [line.split() for line in relet("limits").out.splitlines()]
    assert rows[1:] == [
        ["idle", "yes", "none", "none", "none", "0", "paused"],
        ["other", "no", "none", "none", "none", "0", "-"],
        ["reports", "no", "1", "1", "100/m", "1", "concurrency"],
    ]
    assert [one["name"] for one in relet("limits", "--json").json["queues"]] == ["idle", "other", "reports"]


def test_without_a_queue_nothing_is_set(relet, busy):
    done = relet("limits", "--rate", "5/s")
    assert (done.code, "Name the queue" in done.err) == (2, True)


def test_where_there_is_no_queue_it_says_where_it_looked(relet):
    relet("submit", "q")
    done = relet("limits", "--tenant", "nobody")
    assert (done.out, "no queues in " in done.err) == ("", True)


def test_show_says_what_keeps_a_ready_task_waiting(relet, busy):
    shown = relet("show", "r-2").out
    assert "held back" in shown
    assert "its queue is at its limit, 1 live at once → relet limits reports" in shown
    assert "customer-7" in shown
    assert relet("show", "r-2", "--json").json["queue"]["held_back"] == "concurrency"
    assert relet("show", "r-1", "--json").json["queue"] is None


def test_a_claim_that_finds_nothing_says_what_it_waits_for(relet, busy):
    done = relet("claim", "reports")
    assert (done.code, "its queue is at its limit" in done.err) == (3, True)
    done = relet("claim", "--task", "r-2")
    assert (done.code, "its queue is at its limit" in done.err) == (3, True)
    relet("pause", "empty")
    assert "paused" not in relet("claim", "empty").err, "nothing waits in it"


def test_each_reason_has_its_words(relet, db, busy):
    relet("limits", "reports", "--concurrency", "none")
    relet("claim", "reports", "--handle-file", "r-2.handle")
    relet("submit", "reports", "--id", "r-3", "--share", "customer-7")
    assert "its share customer-7 is at its limit, 1 live at once" in relet("show", "r-3").out
    relet("limits", "reports", "--share-concurrency", "none", "--rate", "1/h")
    relet("submit", "reports", "--id", "r-4")
    # What was started before counts for a moment, by the rate of before; from the next start on it is one an hour.
    eventually(lambda: relet("claim", "reports").code == 0)
    waits = db.tasks("reports", "ready")[0].id
    assert "its queue is at its rate, 1/h; the next one starts in " in relet("show", waits).out
    relet("pause", "reports")
    assert "its queue is paused → relet unpause reports" in relet("show", waits).out


@pytest.mark.parametrize(
    ("rate", "ms", "text"),
    [(100, 60_000, "100/m"), (10, 30_000, "10/30s"), (5, 1_500, "5/1500ms"), (None, None, "none")],
)
def test_a_rate_reads_as_it_was_given(rate, ms, text):
    assert rate_text(rate, ms) == text


@pytest.mark.parametrize(
    "command",
    [
        ["pause", "report"], ["unpause", "report"], ["limits", "report"], ["limits", "report", "--rate", "5/s"],
        ["advise", "report"], ["prune", "--queue", "report"], ["prune", "--queue", "report", "--retention", "1d"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_a_queue_that_nobody_ever_used_is_told_and_what_was_meant(relet, busy, command):
    told = relet(*command)
    assert told.code == 0
    assert "no task is or ever was in queue report of " in told.err
    assert "did you mean reports?" in told.err
    assert "ever was" not in relet(*["reports" if word == "report" else word for word in command]).err


def test_all_behind_the_limit_of_their_shares_are_told_wherever_somebody_asks_for_them(relet, process):
    for n in range(2):
        relet("submit", "mail", "--share", "acme", "--id", f"m-{n}")
    relet("limits", "mail", "--share-concurrency", "1")
    relet("claim", "mail", "--handle-file", "m.handle")
    assert re.split(r" {2,}", relet("limits").out.splitlines()[1])[-1] == "share_concurrency"
    why = "; mail: each share with ready tasks is at its limit, 1 live at once → relet limits mail"
    for told in (relet("claim", "mail"), process("exec", "mail", "--", "true")):
        assert told.code == 3
        assert why in told.err
