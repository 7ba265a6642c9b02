"""What the soak looks for is found when it is there."""

import subprocess
from types import SimpleNamespace

import pytest

from relet.testing.clock import Clock
from relet.testing.stores import open_store
from tests.alive import state_of
from tests.soak import __main__ as soak
from tests.soak import judging
from tests.soak.ledger import Ledger
from tests.soak.routes import ByService, Sample, Watched
from tests.waiting import eventually


@pytest.fixture
def course(tmp_path):
    """A soak that has ended well: two tasks, one of which charges, the first taken over once."""
    with open_store(tmp_path, Clock()) as db:
        ledger = Ledger(tmp_path / "ledger.db")
        course = SimpleNamespace(db=db, ledger=ledger, submitted={"a": "steps", "b": "effect"}, faults=[])
        for task_id in course.submitted:
            db.submit("soak", id=task_id)
        older = db.claim(task_id="a", ttl=1)
        ledger.write("a", older.token)
        db.clock.advance(1)
        for task_id in course.submitted:
            lease = db.claim(task_id=task_id)
            ledger.write(task_id, lease.token)
            lease.complete(lease.token)
        ledger.charge("b", "key of b")
        yield course


def found(course):
    return [*judging.by_the_way(course, 64.0), *judging.in_the_end(course)]


def test_where_all_is_well_nothing_is_found(course):
    assert found(course) == []
    course.ledger.charge("b", "key of b")
    assert found(course) == [], "a key may be called twice: it charges once"


def planted(course, sql):
    course.ledger._connection().execute(sql).fetchall()


def planted_in_store(course, sql):
    course.db.backend.store._write.connection().execute(sql).fetchall()


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("DELETE FROM writes WHERE task = 'b'", "b was completed under token"),
        ("INSERT INTO writes (task, token) SELECT task, min(token) FROM writes WHERE task = 'a'", "went back"),
        ("INSERT INTO writes (task, token) SELECT task, max(token) FROM writes WHERE task = 'b'", "repeats itself"),
        ("INSERT INTO charges VALUES ('another', 'b', 1)", "the ledger has 2 charges"),
        ("DELETE FROM charges", "the ledger has 0 charges"),
    ],
)
def test_a_write_too_few_too_many_or_too_late_is_found(course, sql, told):
    planted(course, sql)
    assert told in "\n".join(found(course))


def test_a_lost_task_a_stranger_a_fault_and_a_long_log_are_found(course):
    course.submitted["c"] = "steps"
    assert "1 tasks are not done, such as ['c']" in found(course)
    del course.submitted["a"], course.submitted["c"]
    assert "nobody submitted ['a']" in found(course)
    course.faults.append("a worker ended with 1")
    assert "a worker ended with 1" in found(course)
    assert list(judging.by_the_way(course, 64.1)) == [
        "the log of the store had 64.1 MB, more than 64",
        "a worker ended with 1",
    ]


@pytest.mark.parametrize(
    ("samples", "told"),
    [
        ([50, 50], []),
        ([50, 60], []),
        ([50, 61], ["the memory of a worker grew from 50.0 to 61.0 MB, by more than 10"]),
        ([90, 40, 40], []),
        ([50, 50, 50, 80, 50, 50, 50, 50, 80], []),
        ([50, 52, 54, 56, 58, 60, 62], []),
        ([50, 54, 58, 62, 66, 70], ["the memory of a worker grew from 52.0 to 68.0 MB, by more than 10"]),
        ([50], ["the memory of a worker was looked at 1 times, too few to tell whether it grows"]),
        ([], ["the memory of a worker was looked at 0 times, too few to tell whether it grows"]),
    ],
)
def test_memory_has_grown_when_its_median_did_by_more_than_ten_megabytes(samples, told):
    assert list(judging.memory_grew(samples)) == told


@pytest.mark.parametrize(
    ("samples", "told"),
    [([], []), ([1, 64.0], []), ([70.0, 64.1, 3], ["the log of the store had 70.0 MB, more than 64"])],
)
def test_a_log_is_too_long_above_64_megabytes_at_any_time(samples, told):
    assert list(judging.log_grew(samples)) == told


def test_what_verify_finds_is_found_in_the_end(course):
    planted_in_store(course, "UPDATE totals SET submitted = submitted + 1")
    assert "verify, totals: queue soak of default: it counts 3 tasks submitted, and 2 are there" in found(course)


@pytest.mark.parametrize(("findings", "code"), [([], 0), (["memory grew"], 1)])
def test_the_soak_ends_with_1_when_anything_was_found(monkeypatch, tmp_path, capsys, findings, code):
    asked = []
    monkeypatch.setattr(
        soak, "soak", lambda folder, seconds, rate, seed, route: asked.append((seconds, route)) or findings
    )
    for options in ([], ["--route", "http"]):
        assert soak.main(["--minutes", "2", "--seed", "7", "--folder", str(tmp_path), *options]) == code
    assert asked == [(120, "file"), (120, "http")]
    assert capsys.readouterr().out.endswith(f"{len(findings)} findings; seed 7\n")


@pytest.mark.parametrize(
    ("sql", "told"),
    [
        ("UPDATE tasks SET state = 'ready', result = NULL WHERE id = 'a'", "a is ready, its last event says done"),
        ("UPDATE events SET kind = 'claimed' WHERE kind = 'completed'", "was completed 0 times"),
        ("UPDATE leases SET ended = 'completed' WHERE ended = 'lapsed'", "a was completed 2 times"),
        ("UPDATE leases SET ended = 'lapsed' WHERE ended = 'completed'", "b was completed 0 times"),
        ("UPDATE tasks SET token = token + 1 WHERE id = 'b'", "b was completed 1 times, or not by its last holder"),
        ("UPDATE events SET token = token + 9 WHERE kind = 'claimed' AND task_seq = 1", "tokens went back"),
    ],
)
def test_a_store_that_contradicts_itself_is_found(course, sql, told):
    planted_in_store(course, sql)
    assert told in "\n".join(found(course))


def living(memory_mb=50.0, descriptors=40, threads=60, *, seconds=60, restarts=1, held=200):
    """A service whose figures are as given, or a function of the second, after as long as it takes to be warm."""
    grown = [
        Sample(at, *(figure(at) if callable(figure) else figure for figure in (memory_mb, descriptors, threads)))
        for at in range(-(seconds // 2), seconds)
    ]
    return Watched(grown, Sample(*map(max, *grown)) if grown else Sample(0, 0, 0, 0), [held] * 9, restarts)


@pytest.mark.parametrize(
    ("watched", "told"),
    [
        (living(), []),
        (living(lambda at: 50 + at / 12), []),
        (living(lambda at: 50 + at % 7), []),
        (living(lambda at: 90 if at in (3, 4, 55, 56) else 50), []),
        (living(lambda at: 50 + min(at, 0), lambda at: 90 + 3 * min(at, 0)), []),
        (living(lambda at: 50 + min(at, 10)), []),
        (living(lambda at: 50 + at / 10), ["the memory of the service rose by 5.9 MB, more than 5, to 55.9"]),
        (living(lambda at: 50 + min(at, 30), threads=lambda at: min(5 + 2 * at, 65)), []),
        (
            living(lambda at: 50 + at, threads=lambda at: min(5 + 2 * at, 65)),
            ["the memory of the service rose by 30.0 MB, more than 5, to 109.0"],
        ),
        (
            living(lambda at: 50 + at, threads=lambda at: 5 + at),
            ["the memory of the service rose by 59.0 MB, more than 5, to 109.0"],
        ),
        (
            living(lambda at: 50 + at / 6, threads=lambda at: 60 if at < 40 else 65),
            ["the memory of the service rose by 9.8 MB, more than 5, to 59.8"],
        ),
        (living(descriptors=lambda at: 40 + at), ["the open files of the service rose by 59, more than 50"]),
        (living(descriptors=501), ["the service had 501 files open, more than 500"]),
        (living(threads=121), ["the service had 121 threads, more than 120"]),
        (living(seconds=6), ["the service was looked at 9 times, too few to tell whether it grows"]),
        (living(restarts=0), ["no service was begun again"]),
        (living(held=149), ["149 leases were held at a time, fewer than 150"]),
        (None, []),
    ],
)  # fmt: skip
def test_a_service_has_grown_when_the_line_through_its_figures_rises(watched, told):
    assert list(judging.service_grew(watched, ByService.scene)) == told


def test_of_a_service_that_is_begun_again_only_the_last_that_lives_for_long_is_judged():
    watched = Watched()
    for at_s, (memory_mb, is_long) in enumerate([(90, True), (50, True), (51, True), (95, False)]):
        if memory_mb in (50, 95):
            watched.begins_again(is_long)
        watched.saw(Sample(at_s, memory_mb, 40, 60), is_long)
    assert [one.memory_mb for one in watched.grown] == [50, 51]
    assert (watched.most.memory_mb, watched.restarts) == (95, 2)


def route_to(**program):
    route = ByService.__new__(ByService)
    route.faults, route._begun, route._service = [], 0.0, SimpleNamespace(program=SimpleNamespace(**program))
    return route


@pytest.mark.parametrize(("code", "told"), [(None, []), (-11, ["the service ended by itself, with -11: why"])])
def test_a_service_that_ended_by_itself_is_found(code, told):
    route = route_to(process=SimpleNamespace(poll=lambda: code), errors="why")
    route._look_whether_it_lives()
    assert route.faults == told


def test_of_a_service_that_has_ended_no_memory_is_seen_and_not_none_at_all():
    process = subprocess.Popen(["sleep", "60"])
    assert route_to(pid=process.pid)._sample().memory_mb > 0
    process.kill()
    eventually(lambda: state_of(process.pid) == "Z")
    assert route_to(pid=process.pid)._sample() is None
    process.wait()
    assert route_to(pid=process.pid)._sample() is None
