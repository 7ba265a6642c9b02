"""What a client may ask in the ordinary course of work, each from the same start, and all that it leaves behind."""

import copy
from itertools import count

import psycopg
from psycopg.rows import dict_row

from relet.client.blocking import Client

TTL_S = 7_200
NUMBERS = count(1)
OF_TASKS = ("events", "checkpoints", "inputs")
TABLES = {
    "tasks": "SELECT * FROM relet.tasks WHERE tenant = %(tenant)s ORDER BY seq",
    "leases": "SELECT * FROM relet.leases WHERE tenant = %(tenant)s ORDER BY token",
    "totals": "SELECT queue, sum(submitted) AS submitted, sum(takeovers) AS takeovers FROM relet.totals "
              "WHERE tenant = %(tenant)s GROUP BY queue",
    "rejections": "SELECT * FROM relet.rejections WHERE tenant = %(tenant)s ORDER BY seq",
    **{table: f"SELECT x.* FROM relet.{table} x JOIN relet.tasks t ON t.seq = x.task_seq "
              f"WHERE t.tenant = %(tenant)s ORDER BY x.{'task_seq' if table == 'inputs' else 'token, x.*'}"
       for table in OF_TASKS},
}  # fmt: skip
TABLES["events"] = TABLES["events"].replace("x.token, x.*", "x.seq")
OWN = {"tenant", "call_id", "request_id", "request_digest", "end_digest", "wait_seq"}
"""Columns that differ between two tenants, or two calls, by their nature."""


class Desk:
    """One tenant of a store, to itself, with two tasks of which one is held."""

    def __init__(self, db, *, held=True):
        backend = copy.copy(db.backend)
        backend.tenant = f"tenant-{next(NUMBERS)}"
        self.tenant, self.place = backend.tenant, db.backend.url
        self.db = Client(backend, holder="worker", clock=db.clock)
        self.db.submit_many("work", [1, 2, 3], ids=["a", "b", "c"])
        self.lease = self.db.claim("work", ttl=TTL_S) if held else None

    def rows(self, url):
        """All that there is of this tenant; numbers that leave some out are given by their order."""
        with psycopg.connect(url, row_factory=dict_row) as connection:
            found = {name: connection.execute(query, {"tenant": self.tenant}).fetchall()
                     for name, query in TABLES.items()}  # fmt: skip
        tokens = ranks(row["token"] for row in found["leases"])
        tasks = ranks(row["seq"] for row in found["tasks"])
        ranked = {"token": tokens, "current_token": tokens, "took_over": tokens, "task_seq": tasks}
        return {
            name: [plain(row, ranked | ({"seq": tasks} if name == "tasks" else {})) for row in rows]
            for name, rows in found.items()
        }


def ranks(numbers):
    return {number: rank for rank, number in enumerate(sorted(set(numbers)), 1)}


def plain(row, ranked):
    return {
        column: ranked[column].get(value, value) if column in ranked else value
        for column, value in row.items()
        if column not in OWN and (column != "seq" or "seq" in ranked)
    }


def granted(lease):
    return lease and (lease.task_id, lease.attempt, lease.input)


MARK = "marked"
AT_ONCE = {
    "claim": lambda desk: granted(desk.db.claim("work", holder=MARK, ttl=TTL_S)),
    "complete": lambda desk: desk.lease.complete(MARK),
}
"""Verbs that are one statement, which the server commits by itself; recognised by a value."""
VERBS = {
    "submit": lambda desk: desk.db.submit("work", 4, id="d").id,
    "submit_many": lambda desk: [task.id for task in desk.db.submit_many("work", [4, 5], ids=["d", "e"])],
    "claim": lambda desk: granted(desk.db.claim("work", ttl=TTL_S)),
    "claim with a request id": lambda desk: granted(desk.db.claim("work", ttl=TTL_S, request_id="one")),
    "claim of a task": lambda desk: granted(desk.db.claim(task_id="c", ttl=TTL_S)),
    "claim_many": lambda desk: [granted(lease) for lease in desk.db.claim_many("work", 5, ttl=TTL_S)],
    "renew": lambda desk: desk.lease.renew(),
    "renew_many": lambda desk: desk.db.renew_many([desk.lease]),
    "save": lambda desk: desk.lease.save({"half": "done"}),
    "complete": lambda desk: desk.lease.complete("result"),
    "complete_many": lambda desk: desk.db.complete_many([(desk.lease, "result")]),
    "complete and claim": lambda desk: granted(desk.lease.complete("result", claim_next=True)),
    "fail": lambda desk: desk.lease.fail("no luck", delay=0).state,
    "release": lambda desk: desk.lease.release().state,
    "park": lambda desk: desk.lease.park("ok?", ask={"may": "I"}).state,
    "cancel": lambda desk: desk.db.cancel("b").state,
}
