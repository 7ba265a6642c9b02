"""The watch of a waiting worker: it notices commits, it can be woken, and it rests while nothing happens."""

import os
import sys
import threading

import pytest

from relet.store.sqlite import watch as watch_module
from relet.store.sqlite.watch import ToldWatch, Watch, open_watch

FOREVER_S = 30
WITHIN_S = 15

told_here = sys.platform == "linux"


class Version:
    """What the file's version would be, and how often it was asked for."""

    def __init__(self):
        self.now = self.looks = 0

    def __call__(self):
        self.looks += 1
        return self.now


@pytest.fixture
def log(tmp_path):
    log = tmp_path / "a.db-wal"
    log.touch()
    return log


@pytest.fixture(params=["told", "looking"] if told_here else ["looking"])
def watch(request, log):
    version = Version()
    made = ToldWatch(version, log) if request.param == "told" else Watch(version)
    made.version = version
    made.wait(0)
    yield made
    made.close()


def waits(watch, verb="wait"):
    """A thread that waits; what the watch answered it."""
    answers = []
    thread = threading.Thread(target=lambda: answers.append(getattr(watch, verb)(FOREVER_S)), daemon=True)
    thread.start()
    return thread, answers


def write(log, watch):
    with log.open("ab") as file:
        file.write(b"page")
    watch.version.now += 1


def test_a_commit_ends_the_wait(watch, log):
    thread, answers = waits(watch)
    write(log, watch)
    thread.join(WITHIN_S)
    assert answers == [True]


def test_a_commit_before_the_wait_ends_it_at_once(watch, log):
    write(log, watch)
    assert watch.wait(FOREVER_S)
    assert not watch.wait(0), "each commit is told once"


@pytest.mark.parametrize("verb", ["wait", "pause"])
def test_any_thread_may_wake_it_also_before_it_waits(watch, verb):
    thread, answers = waits(watch, verb)
    watch.wake()
    thread.join(WITHIN_S)
    assert answers == [True]
    watch.wake()
    assert getattr(watch, verb)(FOREVER_S)
    assert not getattr(watch, verb)(0), "each waking ends one wait"


def test_a_pause_does_not_end_by_a_commit(watch, log):
    write(log, watch)
    assert not watch.pause(0.01)
    assert watch.wait(0), "and the commit is not forgotten"


def test_waking_one_that_was_closed_harms_nobody(log):
    watch = open_watch(Version(), log.with_name("a.db"))
    watch.close()
    watch.wake()


if told_here:

    class TestTold:
        """Where the kernel tells of writes."""

        def test_a_store_in_a_file_has_one_that_is_told(self, db):
            watch = db.backend.watch()
            assert isinstance(watch, ToldWatch)
            watch.close()

        def test_it_looks_seldom_while_nobody_writes(self, log):
            version = Version()
            watch = ToldWatch(version, log)
            watch.wait(0)
            version.looks = 0
            assert not watch.wait(2.2 * watch_module.LOOK_ANYWAY_S)
            assert version.looks <= 4
            watch.close()

        def test_it_looks_for_the_commit_that_follows_a_write(self, log, monkeypatch):
            monkeypatch.setattr(watch_module, "LOOK_ANYWAY_S", FOREVER_S)

            class LateVersion(Version):
                def __call__(self):
                    super().__call__()
                    return self.looks >= 6  # the pages come first, their commit can be seen a sync later

            watch = ToldWatch(LateVersion(), log)
            watch.wait(0)
            thread, answers = waits(watch)
            with log.open("ab") as file:
                file.write(b"page")
            thread.join(WITHIN_S)
            assert answers == [True]
            watch.close()

        def test_it_follows_a_log_that_was_made_anew(self, log, monkeypatch):
            version = Version()
            watch = ToldWatch(version, log)
            watch.version = version
            watch.wait(0)
            log.unlink()
            log.touch()
            watch.wait(0.2)  # told that the old one is gone
            watch._stirred_until = 0  # and nothing of it is looked for any more
            monkeypatch.setattr(watch_module, "LOOK_ANYWAY_S", FOREVER_S)
            watch.wait(0)
            thread, answers = waits(watch)
            write(log, watch)
            thread.join(WITHIN_S)
            assert answers == [True]
            watch.close()

        def test_it_gives_its_descriptors_back(self, log):
            before = set(os.listdir("/proc/self/fd"))
            watch = ToldWatch(Version(), log)
            watch.wait(0)
            watch.close()
            assert set(os.listdir("/proc/self/fd")) == before

        def test_where_too_many_are_open_it_looks_instead(self, log, monkeypatch):
            def none_left():
                raise OSError(24, "too many")

            monkeypatch.setattr(watch_module, "_inotify", none_left)
            assert type(open_watch(Version(), log.with_name("a.db"))) is Watch
