"""The smaller verbs of a run: children, notes, checks, artifacts, and transactions of one's own."""

import pytest

import relet
from tests.durable.styles import STYLES, Calls


def test_a_child_is_submitted_once_however_often_its_parent_runs(db, handle, settle):
    crash, created = Calls(RuntimeError), []

    async def body(run):
        child = await run.submit("summary", "children", {"n": 1}, priority=3)
        created.append((child.id, child.created))
        crash()
        return child.id

    task = handle(body).submit(db, id="parent-1")
    assert settle(task).result == "parent-1.summary"
    assert created == [("parent-1.summary", True), ("parent-1.summary", False)]
    (child,) = db.tasks(queue="children")
    assert (child.input, child.priority, child.state) == ({"n": 1}, 3, "ready")


def test_a_child_of_the_same_name_with_other_content_is_refused(db, handle, settle):
    async def body(run):
        await run.submit("summary", "children", {"n": 1})
        with pytest.raises(relet.Conflict):
            await run.submit("summary", "children", {"n": 2})

    assert settle(handle(body).submit(db)).state == "done"


def test_a_child_is_not_submitted_once_the_lease_is_lost(db, handle, go):
    async def body(run):
        if run.attempt == 1:
            db.clock.advance("61s")
            await run.submit("summary", "children")

    handle(body).submit(db)
    go()
    assert db.tasks(queue="children") == []


def test_long_ids_make_ids_of_children_that_fit_and_stay_apart(db, handle, settle):
    async def body(run):
        return [(await run.submit("c" * 90 + mark, "children")).id for mark in "ab"]

    one, other = settle(handle(body).submit(db, id="p" * 190)).result
    assert one != other
    assert max(len(one), len(other)) <= 200


def test_a_note_of_progress_is_there_to_see_and_the_last_one_stands(db, handle, settle):
    seen = []

    async def body(run):
        for page in range(3):
            await run.progress(f"page {page}")
            seen.append(db.task(run.task_id).progress)

    assert settle(handle(body).submit(db)).state == "done"
    assert seen == ["page 0", "page 1", "page 2"]


def test_a_check_asks_for_trusted_seconds(db, handle, settle):
    said = []

    async def body(run):
        await run.check()
        await run.check(30)
        with pytest.raises(relet.LeaseLost) as short:
            await run.check("2m")
        said.append(str(short.value))
        return await run.step("goes on", Calls("on"))

    assert settle(handle(body).submit(db)).result == "on"
    assert "120000 ms are needed" in said[0]


def test_what_is_attached_is_read_by_the_next_holder(db, handle, settle):
    crash = Calls(RuntimeError)

    async def body(run):
        if run.attempt == 1:
            await run.attach("page.html", b"<p>grain</p>")
        crash()
        return (await run.open("page.html")).read().decode()

    task = handle(body).submit(db)
    assert settle(task).result == "<p>grain</p>"


def test_a_name_with_a_path_in_it_is_no_name_of_an_artifact(db, handle, settle):
    async def body(run):
        for name in ("../up", "a/b", "a\\b", ".."):
            with pytest.raises(relet.Invalid, match="holds a path"):
                await run.attach(name, b"")
            with pytest.raises(relet.Invalid, match="holds a path"):
                await run.open(name)

    task = handle(body).submit(db)
    assert settle(task).state == "done"
    assert db.artifacts(task.id) == []


# -- transactions ------------------------------------------------------------------------------------------------


def write(connection, text):
    connection.execute("CREATE TABLE IF NOT EXISTS mine (text TEXT)")
    connection.execute("INSERT INTO mine VALUES (?)", (text,))


def rows(db):
    with db.backend.transaction(2.0) as own:
        own.connection.execute("CREATE TABLE IF NOT EXISTS mine (text TEXT)")
        return [text for (text,) in own.connection.execute("SELECT text FROM mine ORDER BY rowid")]


@pytest.fixture
def within(app, style):
    """A handler in either style that writes within `run.transaction()`, and does what it is given before its end."""

    def within(after):
        async def awaiting(run):
            async with run.transaction() as connection:
                write(connection, f"attempt {run.attempt}")
                return after(run)

        def blocking(run):
            with run.transaction() as connection:
                write(connection, f"attempt {run.attempt}")
                return after(run)

        return app.task("work")(awaiting if style == "async def" else blocking)

    assert set(STYLES) == {"def", "async def"}
    return within


def test_a_transaction_of_ones_own_is_committed_with_the_lease_held(db, within, settle):
    assert settle(within(lambda run: "done").submit(db)).result == "done"
    assert rows(db) == ["attempt 1"]


def test_an_exception_within_it_rolls_it_back(db, within, settle):
    def after(run):
        if run.attempt == 1:
            raise RuntimeError

    assert settle(within(after).submit(db)).state == "done"
    assert rows(db) == ["attempt 2"]


def test_a_lease_that_is_lost_in_the_middle_rolls_it_back(db, within, go):
    holders = []

    def after(run):
        holders.append(run.token)
        if len(holders) == 1:
            db.clock.advance("61s")
        return "by the next holder"

    task = within(after).submit(db)
    go()
    assert (db.result(task.id), len(holders)) == ("by the next holder", 2)
    assert rows(db) == ["attempt 2"]


def test_a_cancelled_task_begins_none(db, app, go):
    within = []

    @app.task("work")
    def work(run):
        db.cancel(run.task_id, "not needed")
        with run.transaction():
            within.append("never")

    task = work.submit(db)
    go()
    assert (db.task(task.id).state, within) == ("cancelled", [])


def test_a_blocking_handler_cannot_swallow_the_loss_at_its_end(db, app, go):
    swallowed, tokens = [], []

    @app.task("work")
    def work(run):
        tokens.append(run.token)
        if len(tokens) > 1:
            return "by the next holder"
        try:
            with run.transaction() as connection:
                write(connection, "never")
                db.clock.advance("61s")
        except Exception as wrong:
            swallowed.append(wrong)
        return "by the first"

    task = work.submit(db)
    go()
    assert (db.result(task.id), swallowed, rows(db)) == ("by the next holder", [], [])


def test_a_completion_within_it_stands_or_falls_with_it(db, app, settle):
    @app.task("work")
    def work(run):
        with run.transaction() as connection:
            write(connection, f"attempt {run.attempt}")
            run.lease.complete("told within", tx=connection)

    task = work.submit(db)
    assert settle(task).result == "told within"
    assert rows(db) == ["attempt 1"]


@pytest.mark.parametrize("kept", [False, True], ids=["dropped", "kept"])
def test_a_verb_that_is_not_awaited_fails_the_task_and_says_which(db, app, go, kept):
    @app.task("work")
    async def work(run):
        await run.save(1)
        decision = run.approval("publish")
        if not kept:
            del decision
        run.effect("send", 1, lambda payload, effect: None)  # noqa: RUF100
        return "published"

    task = work.submit(db)
    assert go() == 1
    found = db.task(task.id)
    assert (found.state, found.code, found.result) == ("failed", "RELET-NOT-AWAITED", None)
    assert "run.approval(), run.effect() was called and never awaited" in found.error
    assert (db.waits(task.id), db.effects()) == ([], [])


def test_of_many_awaited_verbs_none_is_held_against_the_handler(db, app, go):
    @app.task("work")
    async def work(run):
        for n in range(200):
            await run.step("count", lambda n=n: n, key=str(n))
        return "done"

    task = work.submit(db)
    go()
    assert db.result(task.id) == "done"
