"""A holder that was frozen past its own deadline writes nothing, also before anybody has raised the fence."""

import asyncio
import secrets

import pytest

import relet
from relet.fences import FileFence
from relet.testing import store
from relet.testing.clock import Clock
from tests.fences.conftest import TARGETS, opener


@pytest.fixture
def db():
    with store(clock=Clock(), holder="A") as client:
        yield client


@pytest.fixture(params=TARGETS)
def subject(request, tmp_path):
    """A fence of each kind, opened here, with a target behind it."""
    with opener(request.param, tmp_path, request.getfixturevalue)() as opened:
        yield opened


@pytest.fixture
def name():
    """A resource that no other test has, on servers that tests share."""
    return f"frozen-{secrets.token_hex(4)}"


@pytest.fixture
def refused(db):
    """Do something in a run whose lease is lost meanwhile: it must be refused, by the holder's own clock alone."""

    def refused(verb):
        db.submit("work")
        db.claim("work").release()  # so that there is a smaller token than that of the lease
        lease = db.claim("work", ttl="60s")
        with pytest.raises(relet.LeaseLost) as ended, lease.run() as run:
            verb(run)
        assert (type(ended.value), ended.value.reason) == (relet.LeaseLost, "expired")
        assert ended.traceback[-1].name != "__exit__", "the verb itself was refused, and not the end of the run"
        return lease

    return refused


def test_a_block_that_outlives_the_lease_writes_nothing(db, subject, name, refused):
    def freeze(run):
        with subject.fence.write(name, run.token) as target:
            subject.put(target, name, "good")
        with subject.fence.write(name, run.token) as target:
            db.clock.advance("61s")
            subject.put(target, name, "late")

    refused(freeze)
    assert subject.read(name) == "good"


@pytest.mark.parametrize("verb", ["raise_to", "write"])
def test_after_the_deadline_nothing_begins_and_nothing_is_raised(db, subject, name, refused, verb):
    def freeze(run):
        db.clock.advance("61s")
        if verb == "raise_to":
            subject.fence.raise_to(name, run.token)
        else:
            subject.fence.write(name, run.token).__enter__()

    refused(freeze)
    subject.fence.raise_to(name, 1)


def test_outside_of_a_run_the_target_alone_judges(db, subject, name, refused):
    lease = refused(lambda run: run.check("10m"))
    db.clock.advance("61s")
    with subject.fence.write(name, lease.token) as target:
        subject.put(target, name, "unasked")
    assert subject.read(name) == "unasked"


def test_the_token_of_another_lease_is_not_judged_by_the_current_one(db, tmp_path, refused):
    fence = FileFence(tmp_path)

    def freeze(run):
        db.clock.advance("61s")
        fence.raise_to("page", run.token + 1)
        fence.raise_to("page", run.token)

    refused(freeze)
    assert (tmp_path / ".relet-fences" / "page.token").exists()


def test_what_is_published_obeys_too(db, tmp_path, refused):
    fence = FileFence(tmp_path)

    def freeze(run):
        fence.publish("page", run.token, b"good")
        db.clock.advance("61s")
        fence.publish("late", run.token, b"late")

    lease = refused(freeze)
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == [f"page.{lease.token}"]


@pytest.mark.parametrize("style", ["def", "async def"])
def test_in_a_handler_it_holds_too_and_in_its_threads(db, tmp_path, style):
    app, fence, seen = relet.App(), FileFence(tmp_path), []

    def write(token):
        try:
            with fence.write("page", token) as file:
                db.clock.advance("61s")
                file.write(b"late")
        except relet.LeaseLost as lost:
            seen.append((type(lost), lost.reason))
            raise

    async def awaiting(run):
        await asyncio.to_thread(write, run.token)

    app.task("work", ttl="60s")(awaiting if style == "async def" else lambda run: write(run.token))
    task = db.submit("work", max_losses=1)
    app.run_until_idle(db)
    assert (seen, (tmp_path / "page").exists()) == ([(relet.LeaseLost, "expired")], False)
    assert db.task(task.id).state != "done"
