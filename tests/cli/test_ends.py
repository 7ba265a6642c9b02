"""Every error has its exit code, a paragraph, and an object; what is meant for programs never changes its shape."""

import pytest

from relet.cli.exits import MEANINGS, Exit
from relet.cli.faults import exit_of, told
from relet.core import errors

CODES = {
    errors.Invalid: 2, errors.NotFound: 10, errors.Forbidden: 4, errors.Conflict: 11, errors.UpgradeRequired: 1,
    errors.StaleToken: 5, errors.LeaseLost: 5, errors.Unavailable: 75, errors.OutcomeUnknown: 76,
    errors.TaskFailed: 1, errors.TaskCancelled: 1, errors.Refused: 1, errors.Error: 1,
}  # fmt: skip


def an(kind):
    return kind("why", **({"reason": "expired"} if issubclass(kind, errors.LeaseLost) else {}))


@pytest.mark.parametrize("kind", errors.FAMILIES, ids=lambda kind: kind.__name__)
def test_each_family_of_errors_has_its_exit_code(kind):
    assert exit_of(an(kind)) == CODES[kind]


def test_a_timeout_is_124():
    assert exit_of(TimeoutError("late")) == 124
    assert told(TimeoutError(), None)["message"] == "not finished in time"


def test_the_codes_are_the_ones_that_are_promised(relet):
    promised = {0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 75, 76, 124, 130}
    assert {int(code) for code in Exit} == {int(code) for code in MEANINGS} == promised
    lines = relet("help", "exit-codes").out.splitlines()
    assert {int(line.split()[0]) for line in lines} == promised
    listed = relet("help", "exit-codes", "--json").json["exit_codes"]
    assert {row["code"] for row in listed} == promised
    assert all(row["meaning"] for row in listed)


@pytest.mark.parametrize(
    ("raised", "code"),
    [
        (errors.Unavailable("busy"), 75),
        (errors.OutcomeUnknown("who knows"), 76),
        (errors.Forbidden("no"), 4),
        (KeyboardInterrupt(), 130),
    ],
)
def test_what_a_store_raises_ends_the_command(relet, monkeypatch, raised, code):
    def call(*_, **__):
        raise raised

    monkeypatch.setattr("relet.store.sqlite.backend.SqliteBackend.call", call)
    done = relet("sweep", "--json")
    assert (done.code, done.out) == (code, "")
    if code != 130:
        assert done.error == {"code": raised.code, "message": raised.message, "detail": {}}


def test_a_fault_of_ours_is_not_dressed_up(relet, monkeypatch):
    def call(*_, **__):
        raise LookupError("a bug")

    monkeypatch.setattr("relet.store.sqlite.backend.SqliteBackend.call", call)
    with pytest.raises(LookupError):
        relet("sweep")


def test_an_error_is_one_paragraph_with_its_code(relet, held):
    held()
    err = relet("renew", "--ttl", "10ms", "--handle-file", "t-1.handle").err
    assert err.startswith("relet: ttl: ")
    assert err.endswith(" [RELET-INVALID]\n")
    assert err.count("\n") == 1


def test_an_error_in_json_is_an_object_on_stderr(relet):
    for args in (["--json", "show"], ["show", "--json"], ["sho", "--json"], ["show", "--bogus", "--json"]):
        done = relet(*args)
        assert (done.code, done.out) == (2, "")
        assert set(done.error) == {"code", "message", "detail"}
        assert done.error["code"] == "RELET-USAGE"


def test_json_after_the_dashes_is_the_programs_own(relet):
    done = relet("show", "--bogus", "--", "--json")
    assert done.code == 2
    assert done.err.startswith("relet: ")


def test_a_url_that_means_nothing_is_usage(relet):
    for url in ("mysql://x", "sqlite:/x", "http://"):
        assert relet("ls", "--url", url).code == 2


def test_a_folder_that_does_not_exist_is_75(relet):
    assert relet("submit", "q", "--url", "sqlite:///none/x.db").code == 75


TASK = {
    "id", "queue", "kind", "tenant", "state", "live", "attempt", "failures", "losses", "token", "holder", "input",
    "result", "error", "code", "reason", "labels", "priority", "exclusive", "share", "progress", "waiting_for",
    "cancel_requested", "created", "created_at", "updated_at", "due_at", "deadline", "claimed_at", "expires_at",
    "renew_by", "last_heartbeat",
}  # fmt: skip
EVENT = {"seq", "task_id", "queue", "kind", "state", "token", "holder", "at", "detail"}
ENDED = {"task_id", "token", "state", "reason", "delay"}
ARTIFACT = {"name", "uri", "sha256", "size", "token", "at"}
FILE = ["--handle-file", "t-1.handle"]
SHAPES = {
    "ls": (["ls"], {"tasks", "next"}),
    "show": (
        ["show", "t-1"],
        {
            "task", "ttl", "takeovers", "released", "rejections", "checkpoints", "waiting", "decisions", "effects",
            "settled", "ways", "steps", "artifacts", "queue", "next",
        },
    ),
    "steps": (["steps", "t-1"], {"task_id", "steps"}),
    "artifacts": (["artifacts", "t-1"], {"task_id", "artifacts"}),
    "artifacts --collect": (["artifacts", "--collect"], {"n", "bytes", "dry_run"}),
    "cat": (["cat", "t-1", "main", "--checkpoint"], {"task_id", "name", "version", "token", "at", "value"}),
    "cat --diff": (["cat", "t-1", "main", "--diff", "1:1"], {"task_id", "name", "old", "new", "diff"}),
    "waits": (["waits"], {"waits"}),
    "signal": (["signal", "t-1", "go"], {"task_id", "name", "taken", "kept"}),
    "effects": (["effects"], {"effects", "next"}),
    "attach": (["attach", "a", "t-1.handle", *FILE], {"task_id", *ARTIFACT}),
    "progress": (["progress", "half way", *FILE], {"task_id", "token", "note"}),
    "park": (["park", "publish", *FILE], ENDED),
    "history": (["history", "t-1"], {"task_id", "events"}),
    "watch": (["watch", "--after", "0", "--limit", "1"], EVENT),
    "stats": (["stats"], {"queues", "total", "rejections"}),
    "rejections": (["rejections"], {"rejections", "next"}),
    "submit": (["submit", "q"], TASK),
    "submit --lines": (["submit", "q", "--lines"], {"tasks"}),
    "claim": (
        ["claim", "--task", "t-2"],
        {
            "task_id", "handle", "handle_file", "token", "attempt", "holder", "queue", "kind", "labels", "input",
            "ttl", "expires_in", "renew_by", "took_over",
        },
    ),
    "renew": (["renew", *FILE], {"task_id", "token", "expires_in", "capped"}),
    "save": (["save", "1", *FILE], {"task_id", "token", "name", "version"}),
    "complete": (["complete", *FILE], ENDED),
    "fail": (["fail", "x", *FILE], ENDED),
    "release": (["release", *FILE], ENDED),
    "cancel": (["cancel", "t-2"], TASK),
    "cancel --all": (["cancel", "--all", "--dry-run"], {"ids", "count", "dry_run"}),
    "pause": (
        ["pause", "q"],
        {
            "tenant", "name", "paused", "ttl_ms", "timeout_ms", "max_hold_ms", "max_attempts", "max_losses",
            "retention_ms", "concurrency", "share_concurrency", "rate", "rate_ms", "shared_from", "last_share",
            "full_us",
        },
    ),
    "limits": (["limits"], {"queues"}),
    "limits QUEUE": (
        ["limits", "q", "--rate", "5/s"],
        {
            "name", "paused", "concurrency", "share_concurrency", "rate", "rate_ms", "retention_ms", "shares",
            "last_share", "live", "places", "held_back", "next_ms",
        },
    ),
    "sweep": (["sweep"], {"closed"}),
    "config": (["config"], {"settings", "place", "files"}),
    "completion": (["completion", "zsh"], {"shell", "source"}),
    "help": (["help", "renew"], {"topic", "text"}),
    "help exit-codes": (["help", "exit-codes"], {"exit_codes"}),
    "adopt": (
        ["adopt", "--url", "sqlite:///alone.db"],
        {"place", "moved", "store_id", "former_id", "epoch", "former_epoch", "tokens_above", "extended"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SHAPES)
def test_the_shape_of_an_answer_in_json_is_fixed(relet, held, name):
    relet("claim", "q", "--url", "sqlite:///alone.db")
    relet("submit", "q", "--id", "t-2")
    held()
    relet("save", "1", *FILE)
    args, fields = SHAPES[name]
    done = relet(*args, "--json", stdin="1\n")
    assert done.code == 0, done.err
    assert done.out.count("\n") == 1
    assert set(done.json) == fields
    again = relet(*args, stdin="1\n") if name in {"ls", "show", "history"} else None
    assert again is None or not again.out.startswith("{")


def test_times_are_utc_in_iso_8601(relet):
    made = relet("submit", "q", "--json").json["created_at"]
    assert made.endswith("Z")
    assert made[10] == "T"
