"""Let a store write down each renewal that it takes in."""

import itertools

import apsw

from tests.processes.looking import ask, connected, is_in_a_file

ON_POSTGRES = """
CREATE TABLE test_beats (token bigint, beat_ms bigint);
CREATE FUNCTION test_beat() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN INSERT INTO relet.test_beats VALUES (NEW.token, NEW.beat_ms); RETURN NEW; END $$;
CREATE TRIGGER test_beat AFTER UPDATE OF beat_ms ON leases FOR EACH ROW EXECUTE FUNCTION test_beat();
"""


def record_beats(db):
    if not is_in_a_file(db):
        with connected(db) as connection:
            connection.execute(ON_POSTGRES)
        return
    connection = apsw.Connection(db.place)
    connection.set_busy_timeout(5_000)
    connection.execute("CREATE TABLE test_beats (token INTEGER, beat_ms INTEGER)")
    connection.execute(
        "CREATE TRIGGER test_beat AFTER UPDATE OF beat_ms ON leases BEGIN "
        "INSERT INTO test_beats VALUES (NEW.token, NEW.beat_ms); END"
    )
    connection.close()


def gaps_s(db, token):
    """The times between the claim, each renewal, and the end of a lease, where it has ended."""
    ((claimed, ended),) = ask(db, f"SELECT claimed_ms, ended_ms FROM leases WHERE token = {token}")
    beats = [at for (at,) in ask(db, f"SELECT beat_ms FROM test_beats WHERE token = {token} ORDER BY beat_ms")]
    instants = [claimed, *beats, *([] if ended is None else [ended])]
    return [(later - earlier) / 1_000 for earlier, later in itertools.pairwise(instants)]
