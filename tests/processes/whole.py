"""Is a store whole: nothing half done, whoever was killed in the middle of what."""

from tests.processes.looking import ask, is_in_a_file

STATES = """
SELECT t.id, t.state, count(l.token), max(l.token), t.token FROM tasks t
LEFT JOIN leases l ON l.task_seq = t.seq AND l.ended IS NULL GROUP BY t.seq
"""
LAST_EVENTS = """
SELECT t.id, t.state, e.state FROM (SELECT max(seq) AS seq FROM events GROUP BY task_seq) last
JOIN events e ON e.seq = last.seq JOIN tasks t ON t.seq = e.task_seq
"""
# A verb of the holder before the instant of expiry, a lapse from that instant on, all in store time. Earlier lapses
# are those of holders that died, whose leases are bound to them, and of holders that let go by their own clock, whose
# request has left its digest.
OUT_OF_TIME = """
SELECT token, ended, ended_ms - expires_ms FROM leases
WHERE ended IS NOT NULL AND (ended = 'lapsed') <> (ended_ms >= expires_ms)
    AND NOT (ended = 'lapsed' AND (call_id LIKE '%~%' OR end_digest IS NOT NULL))
"""
ROWS = {
    "tasks": "SELECT * FROM tasks ORDER BY seq",
    "leases": "SELECT * FROM leases ORDER BY token",
    "checkpoints": "SELECT * FROM checkpoints ORDER BY task_seq, name",
    "events": "SELECT * FROM events ORDER BY seq",
}


def rows(db):
    """Everything that a refused write may not touch."""
    return {name: ask(db, statement) for name, statement in ROWS.items()}


def is_whole(db):
    """A file is sound; each task has the lease and the last event of its state; no lease ended out of time."""
    for (said,) in ask(db, "PRAGMA integrity_check") if is_in_a_file(db) else ():
        assert said == "ok", said
    for task_id, state, open_leases, newest, token in ask(db, STATES):
        assert open_leases == (1 if state == "leased" else 0), f"{task_id} is {state} with {open_leases} open leases"
        assert newest in (None, token), f"{task_id} has token {token}, its open lease {newest}"
    for token, ended, late_ms in ask(db, OUT_OF_TIME):
        raise AssertionError(f"token {token} was {ended} {late_ms} ms after its end")
    for task_id, state, told in ask(db, LAST_EVENTS):
        assert state == told, f"{task_id} is {state}, its last event says {told}"
    return True


def tokens_grow(db):
    """Those of each task grow, and none is given out twice. In a file, where one writes at a time, all grow."""
    claims = ask(db, "SELECT task_seq, token FROM events WHERE kind = 'claimed' ORDER BY seq")
    tokens = [token for _, token in claims]
    assert len(set(tokens)) == len(tokens)
    assert sorted(claims) == sorted(claims, key=lambda claim: claim[0])
    assert not is_in_a_file(db) or tokens == sorted(tokens)
    return True


def tokens_in_order_of_claims(db):
    return [token for (token,) in ask(db, "SELECT token FROM events WHERE kind = 'claimed' ORDER BY seq")]
