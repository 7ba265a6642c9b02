"""What this engine answers by statements of its own is what the pure rule says: answers, rows, events, refusals."""

import random
import time

import msgspec
import psycopg
import pytest
from psycopg.rows import dict_row

from relet.core.errors import Error, NotFound
from relet.core.model import Handle
from relet.core.rules.claim import Claim
from relet.core.rules.complete import DONE, Complete, Completion
from relet.core.rules.grant import Knobs
from relet.core.rules.inspect import Rejections
from relet.core.rules.release import Release
from relet.core.rules.renew import Renew
from relet.core.rules.set_queue import SetQueue
from relet.core.rules.submit import NewTask, Submit
from relet.store.postgres import engine, hot
from relet.store.postgres.backend import PostgresBackend
from relet.store.postgres.hot import NOT_PLAIN
from relet.testing import Clock
from tests.conformance.on_sqlite import TABLES
from tests.core.scene import Scene
from tests.store import test_at_once, test_many_at_once

pytestmark = pytest.mark.postgres
ROUNDS = 12
SLACK_MS = 2_000
"""Between the clock of the server and that of the tests."""
ROWS = TABLES | {
    "evidence": "seq", "totals": "tenant, queue", "late_beats": "token", "places": "queue, share, token",
}  # fmt: skip


class DatabaseScene(Scene):
    """As the scene, of a store in a database."""

    url = None
    steered = True

    def __init__(self):
        self.clock = Clock()
        self.backend = PostgresBackend(self.url, "default", clock=self.clock if self.steered else None)
        self.backend.store.is_hot = True  # nobody is waited for here, and so the clock stands still meanwhile

    def rows(self, sql):
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("SET search_path = relet")
            cursor = connection.execute(sql)
            return cursor.fetchall() if cursor.description else []

    def whole(self, table, order):
        what = "tenant, queue, sum(submitted), sum(takeovers)" if table == "totals" else "*"
        group = " GROUP BY tenant, queue" if table == "totals" else ""
        with psycopg.connect(self.url, autocommit=True, row_factory=dict_row) as connection:
            connection.execute("SET search_path = relet")
            return connection.execute(f"SELECT {what} FROM {table}{group} ORDER BY {order}").fetchall()


@pytest.fixture
def both(databases, monkeypatch):
    """What comes of a function that is given nothing, first by the engine's own statements, then by the rules."""

    def run(module, seed, outcome, *, steered=True):
        told = []
        for ruled in (False, True):
            with databases.emptied() as url, monkeypatch.context() as patched:
                scenes = []

                def made(url=url, scenes=scenes):
                    scene = type("Here", (DatabaseScene,), {"url": url, "steered": steered})()
                    scenes.append(scene)
                    return scene

                patched.setattr(module, "Scene", made)
                if ruled:
                    patched.setattr(engine, "AT_ONCE", {})
                    patched.setattr(engine, "question_of", lambda *_: None)
                try:
                    told.append(outcome(*module.stocked(seed)))
                finally:
                    for scene in scenes:
                        scene.backend.close()
        return told

    return run


class Ranks:
    """Tokens by their order: others are drawn and given to nobody in between."""

    def __init__(self, tokens):
        self._rank = {token: n for n, token in enumerate(sorted(tokens), 1)}

    def of(self, value):
        if isinstance(value, dict):
            return {key: self.of(one) for key, one in value.items()}
        if isinstance(value, list | tuple):
            return [self.of(one) for one in value]
        if isinstance(value, Handle):
            return (value.task_id, self.of(value.token))
        if isinstance(value, msgspec.Struct):
            fields = {name: getattr(value, name) for name in value.__struct_fields__}
            return (type(value).__name__, self.of(fields))
        if isinstance(value, str):
            for token, rank in self._rank.items():
                value = value.replace(str(token), f"#{rank}")
            return value
        return self._rank.get(value, value) if isinstance(value, int) and value > 1 << 32 else value


def told(answer):
    if isinstance(answer, Error):
        return [type(answer).__name__, str(answer), answer.code, answer.detail]
    if isinstance(answer, list):
        return [told(one) for one in answer]
    if hasattr(answer, "outcomes"):
        return [told(answer.outcomes), told(answer.grants)]
    return answer


def outcome(scene, asks):
    """All that can be seen of them: in the answers, in the store, in the feed of refusals."""
    asks = asks if isinstance(asks, list) else [asks]
    answers = [told(scene.ask(ask)) for ask in asks]
    feed = [msgspec.structs.replace(one, seq=0) for one in scene.ask(Rejections())]
    ids = dict(scene.rows("SELECT seq, id FROM tasks"))
    rows = {table: [named(ids, row) for row in scene.whole(table, order)] for table, order in ROWS.items()}
    ranks = Ranks(row["token"] for row in rows["leases"])
    # In which order the events of one transaction come is nobody's business but that of each task.
    rows["events"].sort(key=lambda row: row["task_seq"] or "")
    return ranks.of({"answers": answers, "feed": feed, "rows": rows})


def named(ids, row):
    """A row without its number, which one that was refused may have used up, and with its task by id."""
    return {
        name: ids.get(value, value) if name == "task_seq" else value for name, value in row.items() if name != "seq"
    }


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_many_together_are_answered_as_by_the_rule(both, seed):
    at_once, ruled = both(test_many_at_once, seed, outcome)
    assert at_once == ruled


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_renewals_by_one_statement_are_those_of_the_rule(both, seed):
    at_once, ruled = both(test_at_once, seed, outcome)
    assert at_once == ruled


def test_a_forged_handle_is_not_renewed_along_with_the_true_one(database):
    scene = type("Here", (DatabaseScene,), {"url": database})()
    try:
        handle = scene.held("t").handle
        forged = msgspec.structs.replace(handle, secret="0" * 32)
        renewed, refused = scene.ask(Renew(handles=[handle, forged]))
        assert (renewed.left_ms, type(refused)) == (60_000, NotFound)
    finally:
        scene.backend.close()


class OneByOne:
    """Claims and completions of one each, and submits, in every condition."""

    Scene = None

    def stocked(self, seed):
        chance = random.Random(seed)
        scene, (complete, *claims) = self._many(seed)
        asks = []
        for item in complete.completions[:12]:
            asks.append(msgspec.structs.replace(complete, completions=[item], next=None))
            asks += [
                msgspec.structs.replace(
                    claim, n=1, queues=[chance.choice("qr")], request_id=None, holder=chance.choice("AB")
                )
                for claim in claims
            ]
            asks.append(Submit(
                queue=chance.choice("qr"), kind="k", delay_ms=chance.choice([0, 0, 700]), labels=None,
                ttl_ms=chance.choice([None, 9_000]),
                tasks=[
                    NewTask(id=f"n{chance.randrange(30)}", input=msgspec.Raw(b"[1]"))
                    for _ in range(chance.choice([1, 1, 3]))
                ],
            ))  # fmt: skip
        return scene, asks

    def _many(self, seed):
        test_many_at_once.Scene, before = self.Scene, test_many_at_once.Scene
        try:
            return test_many_at_once.stocked(seed)
        finally:
            test_many_at_once.Scene = before


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_one_by_one_they_are_answered_as_by_the_rule(both, seed):
    at_once, ruled = both(OneByOne(), seed, outcome)
    assert at_once == ruled


@pytest.fixture
def asked(monkeypatch):
    """The single statements that were asked, and their answers."""
    asked, real = [], hot.asked

    def noted(store, cursor, question, tenant):
        asked.append((question.name, real(store, cursor, question, tenant)))
        return asked[-1][1]

    monkeypatch.setattr(hot, "asked", noted)
    monkeypatch.setattr(engine, "asked", noted)
    return asked


def test_the_plain_ones_are_answered_by_one_statement(database, asked):
    scene = type("Here", (DatabaseScene,), {"url": database})()
    try:
        scene.submit("t")
        scene.submit("u")
        (grant,) = scene.claim()
        scene.complete(grant)
        scene.submit("late", delay_ms=5)
        (grant,) = scene.claim()
        scene.pass_ms(20)
        (late,) = scene.claim()
        assert late.handle.task_id == "late"
        plain = [name for name, answer in asked if answer is not NOT_PLAIN]
        assert plain == ["claim_plain", "complete_one", "claim_plain"], (
            "the last one sees to what has fallen due first"
        )
    finally:
        scene.backend.close()


def test_many_plain_ones_are_handed_in_and_followed_by_others_in_one_transaction(database, asked):
    scene = type("Here", (DatabaseScene,), {"url": database})()
    following = Claim(holder="B", queues=["q"], n=2)
    try:
        scene.submit(*"abcde")
        some = scene.claim(n=2)
        told = scene.complete(*some, following=following)
        assert [grant.handle.task_id for grant in (*some, *told.grants)] == ["a", "b", "c", "d"]
        assert [name for name, _ in asked] == ["claim_plain", "complete_plain", "claim_plain"]
        assert NOT_PLAIN not in dict(asked).values()
        scene.ask(Release(handle=told.grants[0].handle))
        told = scene.complete(told.grants[1], following=following)
        ids = [grant.handle.task_id for grant in told.grants]
        assert ids == ["c", "e"], "one was held before, so that the rule granted them"
        assert [answer is NOT_PLAIN for _, answer in asked[3:]] == [False, True, True]
        assert told.outcomes == [DONE]
    finally:
        scene.backend.close()


DAY_MS = 86_400_000
TOMORROW_MS = int(time.time()) * 1_000 + DAY_MS
INSTANTS_MS = 1_000_000_000_000
"""No duration is as long."""
SINCE = {
    "expires_ms": "claimed_ms", "check_ms": "claimed_ms", "beat_ms": "claimed_ms", "due_wall_ms": "created_wall_ms",
}  # fmt: skip


class OnServerTime:
    """Tasks on all kinds of terms, claimed and completed; nothing falls due or lapses, however long that takes."""

    Scene = None

    def stocked(self, seed):
        chance, scene = random.Random(seed), self.Scene()
        scene.began_ms = time.time() * 1_000 - SLACK_MS
        for n in range(40):
            scene.submit(f"t{n}", queue=chance.choice("qr"), kind=chance.choice("kl"), **chance.choice([
                {}, {}, {}, {"priority": chance.randrange(5)}, {"ttl_ms": 3_600_000}, {"timeout_ms": DAY_MS},
                {"max_hold_ms": DAY_MS, "max_attempts": 1}, {"labels": {"a": "b"}}, {"delay_ms": DAY_MS},
                {"deadline_wall_ms": TOMORROW_MS},
            ]))  # fmt: skip
        scene.ask(
            SetQueue(name="r", **chance.choice([{"ttl_ms": 7_200_000}, {"max_attempts": 9}, {"max_losses": 1}]))
        )
        return scene, self._grants(chance, scene)

    def _grants(self, chance, scene):
        held, told = [], []
        for n in (1, 1, 3, 1, 6, 2):
            claim = Claim(
                holder="B", n=n, queues=[chance.choice("qr")], kinds=chance.choice([None, ["k"]]), call_id="call",
                handlers={"k": Knobs(backoff_base_ms=5, timeout_ms=DAY_MS)}, ttl_ms=chance.choice([None, 9_000_000]),
            )  # fmt: skip
            held += scene.ask(claim)
            ending, held = held[: n // 2 + 1], held[n // 2 + 1 :]
            items = [Completion(handle=grant.handle, result=msgspec.Raw(b"[1]")) for grant in ending]
            ended = scene.ask(Complete(completions=items, next=claim if n == 3 else None))
            assert ended.outcomes == [DONE] * len(ending)
            held += ended.grants
            told += [*ending, *ended.grants]
        return told


def timed_outcome(scene, grants):
    """All rows, with each instant in them only as far as it comes of what was asked, and not of when."""
    until_ms = time.time() * 1_000 + SLACK_MS

    def timed(name, row):
        value = row[name]
        if not name.endswith("_ms") or value in {None, TOMORROW_MS} or value < INSTANTS_MS:
            return value
        if name in SINCE:
            return value - row[SINCE[name]]
        assert scene.began_ms <= value <= until_ms, (name, value)
        return "meanwhile"

    ids = dict(scene.rows("SELECT seq, id FROM tasks"))
    rows = {
        table: [named(ids, {name: timed(name, row) for name in row}) for row in scene.whole(table, order)]
        for table, order in ROWS.items()
    }
    rows["events"].sort(key=lambda row: row["task_seq"] or "")
    for grant in grants:
        if (left_ms := grant.deadline_left_ms) is not None:
            assert TOMORROW_MS - until_ms <= left_ms <= TOMORROW_MS - scene.began_ms
    grants = [msgspec.structs.replace(grant, deadline_left_ms=None) for grant in grants]
    return Ranks(row["token"] for row in rows["leases"]).of({"grants": grants, "rows": rows})


@pytest.mark.parametrize("seed", range(ROUNDS // 2))
def test_on_the_servers_own_clock_all_is_as_by_the_rule(both, seed, asked):
    at_once, ruled = both(OnServerTime(), seed, timed_outcome, steered=False)
    assert at_once == ruled
    plain = {name for name, answer in asked if answer is not NOT_PLAIN}
    assert plain == {"claim_plain", "complete_one", "complete_plain"}
