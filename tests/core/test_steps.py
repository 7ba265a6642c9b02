"""steps, checkpoints, artifacts and progress: what a holder leaves for the next one."""

import msgspec
import pytest

from relet.core import limits
from relet.core.errors import Conflict, LeaseLost, NotFound
from relet.core.model import Cause, State
from relet.core.rules.attach import Attach
from relet.core.rules.cancel import Cancel
from relet.core.rules.check import Check, Checked
from relet.core.rules.fail import Fail
from relet.core.rules.inspect_work import Artifacts, Checkpoints, Referenced, Steps
from relet.core.rules.memo import Attached, ReadStep
from relet.core.rules.progress import Progress
from relet.core.rules.release import Release
from relet.core.rules.requeue import Requeue
from relet.core.rules.save import Load, Save
from relet.core.rules.submit import NewTask, Submit
from relet.core.rules.sweep import Sweep
from tests.core.durable import claimed, decide, keep, park, plain, raw, remembered
from tests.core.scene import TTL_MS


def save(scene, grant, value, name="main"):
    return scene.ask(Save(handle=grant.handle, name=name, value=raw(value)))


def attach(scene, grant, digest="aa", name="page.png"):
    return scene.ask(
        Attach(handle=grant.handle, name=name, uri=f"artifact:{digest}", sha256=digest, size=len(digest))
    )


def note(scene, grant, text):
    return scene.ask(Progress(handle=grant.handle, note=text))


def submit_child(scene, grant, id="t.child"):
    return scene.ask(Submit(queue="r", kind="r", tasks=[NewTask(id=id, input=raw(1))], under=grant.handle))


def kept(scene, grant):
    return [(one.name, one.slot, plain(one.value)) for one in remembered(scene, grant).steps]


# -- steps ---------------------------------------------------------------------------------------------------------


def test_a_kept_step_is_what_the_next_holder_reads_in_place_of_calling(scene):
    first = scene.held()
    told = keep(scene, first, {"found": 3}, fingerprint="f", took_ms=1_500, cost=0.25)
    assert (told.name, told.slot, told.fingerprint, told.took_ms, told.cost) == ("search", "#1", "f", 1_500, 0.25)
    scene.pass_ms(TTL_MS)
    second = claimed(scene, holder="B")
    assert kept(scene, second) == [("search", "#1", {"found": 3})]
    assert (second.saving.steps, second.saving.took_ms, second.saving.cost) == (1, 1_500, 0.25)
    claims = [event.detail for event in scene.events() if event.kind is Cause.CLAIMED]
    assert "saved" not in claims[0]
    assert claims[1]["saved"] == {"steps": 1, "took_ms": 1_500, "cost": 0.25}


def test_a_first_holder_has_nothing_to_be_saved(scene):
    grant = scene.held()
    assert grant.saving is None
    scene.pass_ms(TTL_MS)
    assert claimed(scene).saving.steps == 0


def test_the_first_result_of_a_slot_stands(scene):
    grant = scene.held()
    first = keep(scene, grant, "first", fingerprint="f", took_ms=7)
    before, events = scene.state(), scene.events()
    again = keep(scene, grant, "second", fingerprint="f", took_ms=9)
    assert (plain(again.value), again.took_ms) == (plain(first.value), 7)
    assert (scene.state(), scene.events()) == (before, events)


@pytest.mark.parametrize(("slot", "words"), [("#2", "(call 2 of it)"), ("=page 3", "(key 'page 3')")])
@pytest.mark.parametrize("other", ["g", None])
def test_a_slot_that_was_kept_for_other_arguments_is_refused_with_the_way_out(scene, slot, words, other):
    grant = scene.held()
    keep(scene, grant, slot=slot, fingerprint="f")
    before = scene.state()
    refused = keep(scene, grant, slot=slot, fingerprint=other)
    assert (type(refused), refused.code, refused.detail["slot"]) == (Conflict, "RELET-STEP-CHANGED", slot)
    assert words in str(refused)
    assert "relet steps t" in str(refused)
    assert scene.state() == before


def test_names_and_slots_are_kept_apart(scene):
    grant = scene.held()
    for n, (name, slot) in enumerate([("a", "#1"), ("a", "#2"), ("a", "=1"), ("b", "#1")]):
        keep(scene, grant, n, name=name, slot=slot)
    assert kept(scene, grant) == [("a", "#1", 0), ("a", "#2", 1), ("a", "=1", 2), ("b", "#1", 3)]
    shown = scene.ask(Steps(task_id="t")).steps
    assert [(step.name, step.key, step.n) for step in shown] == [
        ("a", None, 1), ("a", None, 2), ("a", "1", None), ("b", None, 1),
    ]  # fmt: skip


def test_ck_08_tasks_with_equal_input_share_nothing(scene):
    one, two = scene.held("one"), scene.held("two")
    keep(scene, one, "mine")
    save(scene, one, "mine")
    attach(scene, one)
    assert kept(scene, two) == []
    assert plain(scene.ask(Load(handle=two.handle, name="main"))) is None
    assert isinstance(scene.ask(Attached(handle=two.handle, name="page.png")), NotFound)
    assert two.saving is None


def test_a_step_starts_the_count_of_losses_in_a_row_anew(scene):
    scene.submit("t", ttl_ms=1_000, max_losses=2, max_attempts=10)
    for n in range(3):
        grant = claimed(scene)
        keep(scene, grant, slot=f"#{n}")
        scene.pass_ms(1_000)
        scene.ask(Sweep())
        scene.pass_ms(10_000)
    assert (scene.task().state, scene.task().losses) == (State.READY, 3)
    claimed(scene)
    scene.pass_ms(1_000)
    scene.ask(Sweep())
    assert scene.task().state is State.FAILED, "and without one in between they count"


def test_a_step_known_already_is_no_progress(scene):
    scene.submit("t", ttl_ms=1_000, max_losses=2, max_attempts=10)
    for _ in range(2):
        keep(scene, claimed(scene))
        scene.pass_ms(1_000)
        scene.ask(Sweep())
    assert scene.task().losses == 2
    assert scene.task().reason == "losses"


@pytest.mark.parametrize("many", [1, limits.MEMO_ITEMS, limits.MEMO_ITEMS + 1])
def test_the_memo_is_read_in_pages_and_its_decisions_come_with_the_first(scene, many):
    grant = scene.held()
    park(scene, grant, name="a")
    grant = claimed_after_answer(scene)
    for n in range(many):
        keep(scene, grant, n, slot=f"={n:05}")
    page = remembered(scene, grant)
    assert len(page.steps) == min(many, limits.MEMO_ITEMS)
    assert len(page.decisions) == 1
    assert (page.cursor is None) is (many < limits.MEMO_ITEMS)
    if page.cursor is not None:
        rest = remembered(scene, grant, after=page.cursor, decisions_after=page.decisions_cursor)
        assert ([plain(one.value) for one in rest.steps], rest.decisions) == (list(range(1_000, many)), [])
        assert rest.cursor is None


def claimed_after_answer(scene):
    decide(scene, name="a")
    return claimed(scene)


def test_who_asks_for_decisions_alone_reads_no_steps(scene):
    first = scene.held()
    keep(scene, first, 1)
    park(scene, first)
    decide(scene)
    found = remembered(scene, claimed(scene), after=None)
    assert found.steps == [] and found.cursor is None
    assert [one.name for one in found.decisions] == ["go"]


def test_a_large_result_is_left_out_of_the_page_and_read_apart(scene):
    grant = scene.held()
    keep(scene, grant, "x" * limits.MEMO_BYTES_MAX, name="large")
    keep(scene, grant, "x" * (limits.MEMO_BYTES_MAX - 2), name="small")
    large, small = remembered(scene, grant).steps
    assert (large.value, len(plain(small.value))) == (msgspec.UNSET, limits.MEMO_BYTES_MAX - 2)
    found = scene.ask(ReadStep(handle=grant.handle, name="large", slot="#1"))
    assert len(plain(found)) == limits.MEMO_BYTES_MAX
    missing = scene.ask(ReadStep(handle=grant.handle, name="large", slot="#2"))
    assert (type(missing), missing.detail["field"]) == (NotFound, "name")


def test_everybody_reads_steps_in_pages(scene):
    grant = scene.held()
    for n in range(3):
        keep(scene, grant, n, name=f"s{n}")
    first = scene.ask(Steps(task_id="t", limit=2))
    assert [step.value for step in first.steps] == [0, 1]
    rest = scene.ask(Steps(task_id="t", after=first.cursor, limit=2))
    assert ([step.value for step in rest.steps], rest.cursor) == ([2], None)


# -- checkpoints ---------------------------------------------------------------------------------------------------


def test_the_last_ten_of_a_name_are_kept_newest_first(scene):
    grant = scene.held()
    for n in range(1, 14):
        assert save(scene, grant, n).version == n
    save(scene, grant, "p", name="plan")
    found = scene.ask(Checkpoints(task_id="t"))
    assert [(one.name, one.version, one.value) for one in found] == [
        *(("main", n, n) for n in range(13, 3, -1)), ("plan", 1, "p"),
    ]  # fmt: skip
    assert {one.token for one in found} == {grant.handle.token}
    assert [one.value for one in scene.ask(Checkpoints(task_id="t", name="plan"))] == ["p"]


def test_ck_04_holders_that_die_before_their_first_checkpoint_leave_the_last_one(scene):
    scene.submit("t", max_attempts=6, max_losses=6, ttl_ms=1_000)
    first = claimed(scene)
    save(scene, first, "kept")
    for _ in range(4):
        scene.pass_ms(1_000)
        scene.ask(Sweep())
        scene.pass_ms(60_000)
        grant = claimed(scene)
        assert plain(scene.ask(Load(handle=grant.handle, name="main"))) == "kept"
    assert [(one.value, one.token) for one in scene.ask(Checkpoints(task_id="t"))] == [("kept", first.handle.token)]


def test_ck_06_after_a_takeover_the_very_next_checkpoint_is_refused_and_history_has_none_of_it(scene):
    first = scene.held()
    for n in range(20):
        scene.renew(first)
        assert save(scene, first, n).version == n + 1
        scene.pass_ms(20)
    scene.pass_ms(TTL_MS)
    second = claimed(scene, holder="B")
    before = scene.state()
    assert save(scene, first, "late").reason == "superseded"
    assert scene.state() == before
    save(scene, second, "mine")
    newest = scene.ask(Checkpoints(task_id="t"))[0]
    assert (newest.value, newest.version, newest.token) == ("mine", 21, second.handle.token)


# -- artifacts -----------------------------------------------------------------------------------------------------


def test_the_newest_of_a_name_is_read_by_every_holder(scene):
    first = scene.held()
    told = attach(scene, first)
    assert (told.name, told.uri, told.sha256, told.size, told.token) == (
        "page.png", "artifact:aa", "aa", 2, first.handle.token,
    )  # fmt: skip
    attach(scene, first, "bb")
    attach(scene, first, "cc", name="log")
    scene.pass_ms(TTL_MS)
    second = claimed(scene)
    assert scene.ask(Attached(handle=second.handle, name="page.png")).sha256 == "bb"
    assert [one.sha256 for one in scene.ask(Artifacts(task_id="t"))] == ["aa", "bb", "cc"]
    assert scene.ask(Referenced(digests=["bb", "zz", "aa"])) == ["bb", "aa"]


def test_the_same_bytes_attached_again_are_attached_once(scene):
    grant = scene.held()
    first = attach(scene, grant)
    before, events = scene.state(), scene.events()
    scene.pass_ms(5)
    assert attach(scene, grant) == first
    assert (scene.state(), scene.events()) == (before, events)
    attach(scene, grant, "bb")
    attach(scene, grant)
    assert scene.ask(Attached(handle=grant.handle, name="page.png")).sha256 == "aa", "it is the newest again"


def test_an_artifact_that_nobody_attached_is_not_found(scene):
    missing = scene.ask(Attached(handle=scene.held().handle, name="page.png"))
    assert (type(missing), missing.detail["name"]) == (NotFound, "page.png")


def test_every_digest_that_a_kept_value_names_stays(scene):
    def address(digit):
        return raw({"relet:artifact": digit * 64, "size": 300_000})

    scene.submit("x", content={"relet:artifact": "1" * 64, "size": 300_000})
    grant = scene.held()
    scene.ask(Save(handle=grant.handle, name="main", value=address("2")))
    keep(scene, grant, {"relet:artifact": "3" * 64, "size": 300_000})
    scene.complete(grant, result={"relet:artifact": "4" * 64, "size": 300_000})
    late = scene.held("late")
    scene.pass_ms(TTL_MS)
    scene.complete(late, result={"relet:artifact": "5" * 64, "size": 300_000})  # refused, and kept beside the refusal
    digests = [digit * 64 for digit in "123456"]
    assert scene.ask(Referenced(digests=digests)) == digests[:5]


# -- progress, check, children -------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["fails", "is cancelled", "completes", "lapses"])
def test_ck_01_the_last_progress_is_what_stands_however_the_run_ends(scene, how):
    grant = scene.held()
    for n in range(1, 101):
        assert note(scene, grant, f"{n} of 100").note == f"{n} of 100"
    match how:
        case "fails":
            scene.ask(Fail(handle=grant.handle, error="no", delay_ms=0))
        case "is cancelled":
            scene.ask(Cancel(task_id="t", reason="enough"))
            scene.ask(Release(handle=grant.handle))
            scene.ask(Requeue(task_id="t"))
        case "completes":
            scene.complete(grant)
        case _:
            scene.pass_ms(TTL_MS)
    if how != "completes":
        assert claimed(scene).progress == "100 of 100"
    assert scene.task().progress == "100 of 100"


def test_progress_is_no_checkpoint_and_no_event(scene):
    scene.submit("t", ttl_ms=1_000, max_losses=2, max_attempts=10)
    for _ in range(2):
        note(scene, claimed(scene), "still alive")
        scene.pass_ms(1_000)
        scene.ask(Sweep())
    assert scene.task().reason == "losses"
    assert set(scene.causes()) == {Cause.SUBMITTED, Cause.CLAIMED, Cause.LAPSED, Cause.FAILED}


def test_a_check_answers_how_long_the_lease_lasts_and_changes_nothing(scene):
    grant = scene.held()
    before = scene.state()
    scene.pass_ms(1_000)
    assert scene.ask(Check(handle=grant.handle)) == Checked(left_ms=TTL_MS - 1_000)
    assert scene.state() == before


def test_a_child_is_submitted_once_by_whoever_holds_the_parent(scene):
    first = scene.held()
    (task,) = submit_child(scene, first)
    assert (task.id, task.queue, task.created) == ("t.child", "r", True)
    (again,) = submit_child(scene, first)
    assert not again.created


UNDER = {
    "check": lambda scene, grant: scene.ask(Check(handle=grant.handle)),
    "step": keep,
    "save": lambda scene, grant: save(scene, grant, 1),
    "attach": attach,
    "progress": lambda scene, grant: note(scene, grant, "late"),
    "submit": submit_child,
}


@pytest.mark.parametrize("verb", UNDER)
@pytest.mark.parametrize("how", ["expired", "superseded", "cancelled", "closed"])
def test_a_verb_under_a_lost_lease_is_refused_and_writes_nothing(scene, verb, how):
    grant = scene.held()
    match how:
        case "expired":
            scene.pass_ms(TTL_MS)
            scene.ask(Sweep())
        case "superseded":
            scene.pass_ms(TTL_MS)
            claimed(scene)
        case "cancelled":
            scene.ask(Cancel(task_id="t", reason="enough"))
        case _:
            park(scene, grant)
    before, events = scene.state(), scene.events()
    refused = UNDER[verb](scene, grant)
    assert (type(refused), refused.reason) == (LeaseLost, how)
    assert (scene.state(), scene.events()) == (before, events)


@pytest.mark.parametrize(
    "read",
    [
        lambda handle: ReadStep(handle=handle, name="s", slot="#1"),
        lambda handle: Attached(handle=handle, name="a"),
    ],
    ids=["step", "artifact"],
)
@pytest.mark.parametrize("changed", [{"secret": "x"}, {"token": 99}], ids=str)
def test_a_stranger_reads_nothing_by_a_handle(scene, read, changed):
    grant = scene.held()
    handle = msgspec.structs.replace(grant.handle, **changed)
    refused = scene.ask(read(handle))
    assert (type(refused), refused.code) == (NotFound, "RELET-HANDLE")
    assert isinstance(remembered(scene, msgspec.structs.replace(grant, handle=handle)), NotFound)


@pytest.mark.parametrize("ask", [Steps, Checkpoints, Artifacts])
def test_of_a_task_that_nobody_knows_nothing_is_shown(scene, ask):
    refused = scene.ask(ask(task_id="x"))
    assert (type(refused), refused.detail["field"]) == (NotFound, "task_id")
