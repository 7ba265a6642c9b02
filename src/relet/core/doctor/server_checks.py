"""Findings about what a server's store stands on: the server, its settings and clock, its tables, its other users."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final

from relet.core.doctor.facts import Facts
from relet.core.doctor.place_checks import moved, opens, tenants
from relet.core.doctor.report import Check, Found, Problem, amiss, duration, size
from relet.core.doctor.server_facts import RightsFacts, ServerFacts, SessionFacts, TableFacts

CLOCK_MS: Final = 5_000
"""Between the server's clock and that of a client, which gives the due times and deadlines that the other judges."""
OPEN_S: Final = 60
"""No transaction of relet's is open for so long."""
IDLE_S: Final = 10
ALL_BOUND_FROM: Final = 170_000
"""The PostgreSQL that bounds a transaction whatever its session does."""
DEAD_LEAST: Final = 10_000
DEAD_SHARE: Final = 0.4
"""Versions that nobody sees any more, of all in a table: its own settings have it cleaned far earlier."""
CONNECTIONS_SHARE: Final = 0.85
LARGEST: Final = 3
Ask = Callable[[ServerFacts], Found | None]


def version(server: ServerFacts) -> Found | None:
    """A PostgreSQL that has what is asked of it."""
    if server.version is None:
        return None
    seen = f"PostgreSQL {server.version // 10_000}.{server.version % 10_000}"
    if server.version >= server.least_version:
        return Found(seen)
    least = server.least_version // 10_000
    return amiss(seen, f"{seen} is too old; relet needs {least} or newer", f"upgrade it to {least} or newer",
                 version=server.version)  # fmt: skip


def schema(server: ServerFacts) -> Found | None:
    """There is a store, whole, and of a schema that this relet knows."""
    if server.version is None:
        return None
    if (found := server.schema) is None:
        return amiss(
            "no store", f"schema {server.schema_name} of {server.place} holds no store that could be read",
            f"name the store that you meant with --url or RELET_URL; {_new_one(server)}", place=server.place,
        )  # fmt: skip
    writers = "shut" if found.is_shut else f"written by clients of {found.min_writer} or newer"
    seen = f"schema {found.version}, {writers}"
    problems = []
    if found.version < found.knows:
        problems.append(Problem(
            f"it has schema {found.version}, or is half way to a newer one; this relet needs {found.knows}",
            "bring it up to date, its programs may go on meanwhile: relet migrate",
            {"schema": found.version, "knows": found.knows},
        ))  # fmt: skip
    elif found.min_writer < found.raises_to:
        seen += "; once no older client is left: relet migrate --post"
    if found.missing:
        problems.append(Problem(
            f"tables are missing: {', '.join(found.missing)}",
            "restore a backup of the whole schema; relet makes all of its tables or none", {"missing": found.missing},
        ))  # fmt: skip
    if found.invalid:
        problems.append(Problem(
            f"indexes were begun and not finished, and are of no use: {', '.join(found.invalid)}",
            f"relet migrate, or: REINDEX INDEX CONCURRENTLY {server.schema_name}.{found.invalid[0]}",
            {"invalid": found.invalid},
        ))  # fmt: skip
    return Found(seen, tuple(problems))


def _new_one(server: ServerFacts) -> str:
    rights = server.rights
    if rights is None or (rights.may_make and not rights.not_granted):
        return "a submit makes a new one"
    if rights.not_granted:
        return "this role may not look into the one that there seems to be"
    return (
        "this role may not make a new one; to let it, an owner runs "
        f"CREATE SCHEMA {server.schema_name} AUTHORIZATION {rights.role}, or GRANT CREATE ON DATABASE "
        f"{rights.database} TO {rights.role}"
    )


def role(server: ServerFacts) -> Found | None:
    """It takes writes."""
    if server.is_standby is None:
        return None
    if server.is_standby:
        return amiss(
            "standby", f"{server.place} is a standby: it shows what is in the store and refuses every write",
            "connect to the primary; name all servers: postgresql://a,b/database?target_session_attrs=read-write",
        )  # fmt: skip
    followed = ", ".join(server.standbys)
    lossy = "; a failover to one that is async can lose what was acknowledged last" if "async" in followed else ""
    seen = f"primary{f', followed by {followed}' if followed else ''}{lossy}"
    return Found(seen) if server.rights is None else Found(seen, tuple(_kept_from_writing(server, server.rights)))


def _kept_from_writing(server: ServerFacts, rights: RightsFacts) -> Iterator[Problem]:
    if (by := rights.read_only_by) is not None:
        yield Problem(
            f"default_transaction_read_only is on for role {rights.role} (set by: {by}): every write is refused",
            _writing_again(by, rights), {"setting": "default_transaction_read_only", "source": by},
        )  # fmt: skip
    if names := rights.not_granted:
        schema, more = server.schema_name, f" and {len(names) - LARGEST} more" if len(names) > LARGEST else ""
        yield Problem(
            f"role {rights.role} may not read and write all of the store: {', '.join(names[:LARGEST])}{more}",
            f"an owner runs GRANT USAGE ON SCHEMA {schema} TO {rights.role}; GRANT SELECT, INSERT, UPDATE, DELETE ON "
            f"ALL TABLES IN SCHEMA {schema} TO {rights.role}; GRANT SELECT, USAGE, UPDATE ON ALL SEQUENCES IN SCHEMA "
            f"{schema} TO {rights.role}; to look at it SELECT is enough",
            {"role": rights.role, "names": names},
        )


def _writing_again(by: str, rights: RightsFacts) -> str:
    reset = "RESET default_transaction_read_only"
    match by:
        case "user":
            return f"ALTER ROLE {rights.role} {reset}"
        case "database":
            return f"ALTER DATABASE {rights.database} {reset}"
        case "database user":
            return f"ALTER ROLE {rights.role} IN DATABASE {rights.database} {reset}"
        case "client":
            return "take it out of the options of the URL, and of PGOPTIONS"
        case _:
            return f"ALTER SYSTEM {reset}; SELECT pg_reload_conf(); it may stand in postgresql.conf too"


def durability(server: ServerFacts) -> Found | None:
    """What is acknowledged is on disk."""
    if not server.settings:
        return None
    names = ("fsync", "full_page_writes", "synchronous_commit")
    seen = ", ".join(f"{name} {server.settings.get(name, '?')}" for name in names)
    if server.settings.get("synchronous_commit") in ("off", "local"):
        seen += " (relet commits with on)"
    off = [name for name in names[:2] if server.settings.get(name) == "off"]
    problems = [
        Problem(
            f"{name} is off: a crash of its machine can damage the store, undo what was acknowledged, and make a "
            "holder that was told of its loss the holder again (promise P5)",
            f"ALTER SYSTEM SET {name} = on; SELECT pg_reload_conf()",
            {"setting": name},
        )
        for name in off
    ]
    return Found(seen, tuple(problems))


def sessions(server: ServerFacts) -> Found | None:
    """What the way to the server leaves of its abilities."""
    if server.version is None:
        return None
    seen = "sessions of one's own" if server.own_session else "a pooler's sessions, and so nothing is prepared"
    seen += ", told of commits by LISTEN" if server.listens else ", looks for commits of others 5 times a second"
    if server.without:
        seen += f"; RELET_POSTGRES_WITHOUT does without {', '.join(server.without)}"
    problems = []
    if not server.skips_locked:
        problems.append(Problem(
            "the server knows no SKIP LOCKED: claims wait for each other",
            "use a PostgreSQL, or few claimers; take skip_locked out of RELET_POSTGRES_WITHOUT", {},
        ))  # fmt: skip
    if not server.knows_its_run:
        problems.append(Problem(
            "the server does not say when it was started and on which timeline it is: a failover that lost commits "
            "goes unnoticed, and a token may be given out twice",
            "use a PostgreSQL, or take run out of RELET_POSTGRES_WITHOUT", {},
        ))  # fmt: skip
    return Found(seen, tuple(problems))


def clock(server: ServerFacts) -> Found | None:
    """The clock that everything is judged by goes right."""
    if (found := server.clock) is None:
        return None
    off = f"{duration(abs(found.off_ms))} {'ahead of' if found.off_ms > 0 else 'behind'} this machine's"
    seen = f"the server's, {off}, give or take {duration(found.within_ms)}"
    if found.ahead_ms:
        seen += f"; it was stepped, and store time is {duration(abs(found.ahead_ms))} "
        seen += "ahead of it" if found.ahead_ms > 0 else "behind it"
    if abs(found.off_ms) - found.within_ms < CLOCK_MS:
        return Found(seen)
    return amiss(
        seen, f"the server's clock is {off}: due times and deadlines that are given by this one come so much "
        "too late or too early",
        "set both by NTP; let the server's be slewed, never stepped, while workers run", off_ms=round(found.off_ms),
    )  # fmt: skip


def vacuum(server: ServerFacts) -> Found | None:
    """Versions of rows that nobody sees any more leave soon: claims read past them until then."""
    if not server.tables:
        return None
    problems = []
    if server.settings.get("autovacuum") == "off":
        problems.append(Problem(
            "autovacuum is off: every renewal leaves a version behind, and claims get slower and slower",
            "ALTER SYSTEM SET autovacuum = on; SELECT pg_reload_conf()", {},
        ))  # fmt: skip
    for one in server.tables:
        table = f"{server.schema_name}.{one.name}"
        if not one.is_vacuumed:
            problems.append(Problem(
                f"autovacuum is off for {table}", f"ALTER TABLE {table} RESET (autovacuum_enabled)", {"table": table},
            ))  # fmt: skip
        if _is_behind(one):
            problems.append(Problem(
                f"{one.dead} of {one.live + one.dead} row versions in {table} are dead: cleaning is behind",
                f"VACUUM (ANALYZE) {table}; if they stay, some transaction holds them back; if they come again: "
                f"ALTER TABLE {table} SET (autovacuum_vacuum_cost_delay = 0)",
                {"table": table, "dead": one.dead, "live": one.live},
            ))  # fmt: skip
    worst = max(server.tables, key=lambda one: one.dead)
    return Found(f"{worst.dead} dead row versions in {worst.name}, the most of all tables", tuple(problems))


def _is_behind(one: TableFacts) -> bool:
    return one.dead >= DEAD_LEAST and one.dead >= DEAD_SHARE * (one.live + one.dead)


def snapshots(server: ServerFacts) -> Found | None:
    """Nobody looks at the database as it was long ago, which keeps every version since."""
    return _transactions(
        server, [one for one in server.sessions if one.holds_back and one.open_s >= OPEN_S],
        "keeps all versions of rows since then: claims and renewals slow down", "none is held open for long",
    )  # fmt: skip


def locks(server: ServerFacts) -> Found | None:
    """Nobody has relet's tables locked for long."""
    return _transactions(
        server, [one for one in server.sessions if one.tables and one.open_s >= IDLE_S],
        "has locks on tables of the store", "none are held for long", fix=_bound(server),
    )  # fmt: skip


def idle(server: ServerFacts) -> Found | None:
    """No transaction is left open by a program that does something else."""
    return _transactions(
        server, [one for one in server.sessions if one.is_idle and one.open_s >= IDLE_S],
        "is idle within its transaction", "none is left open",
        fix=_bound(server),
    )  # fmt: skip


def _bound(server: ServerFacts) -> str:
    """How to have the server end such a transaction; relet's own sessions ask for it themselves."""
    if (server.version or 0) >= ALL_BOUND_FROM:
        return "; or bound those of its role: ALTER ROLE … SET transaction_timeout = '60s'"
    return (
        "; or bound those of its role: ALTER ROLE … SET idle_in_transaction_session_timeout = '60s', which spares "
        "one that was stopped in the middle of what it sends; PostgreSQL 17 has transaction_timeout, for all of them"
    )


def _transactions(
    server: ServerFacts, found: list[SessionFacts], does: str, well: str, *, fix: str = ""
) -> Found | None:  # fmt: skip
    if server.version is None:
        return None
    seen = f"{len(found)} found" if found else well
    if not server.sees_others:
        seen += ", as far as this role may see; to see all: GRANT pg_read_all_stats TO it"
    return Found(seen, tuple(_open(one, does, fix) for one in found))


def _open(one: SessionFacts, does: str, fix: str) -> Problem:
    what = f"process {one.pid} of the server ({one.name})" if one.pid is not None else f"{one.name}, prepared,"
    ends = f"SELECT pg_terminate_backend({one.pid})" if one.pid is not None else f"ROLLBACK PREPARED '{one.name}'"
    tables = f" ({', '.join(one.tables)})" if one.tables else ""
    return Problem(
        f"the transaction of {what} has been open for {duration(one.open_s * 1_000)} and {does}{tables}",
        f"end it there, or: {ends}{fix}",
        {"pid": one.pid, "name": one.name, "open_s": one.open_s, "tables": one.tables},
    )


def tables(server: ServerFacts) -> Found | None:
    """What is kept, and how its tables are set."""
    if not server.tables or server.schema is None:
        return None
    largest = sorted(server.tables, key=lambda one: one.bytes + one.index_bytes, reverse=True)
    seen = f"{size(sum(one.bytes + one.index_bytes for one in largest))}: " + ", ".join(
        f"{one.name} {size(one.bytes)} and indexes {size(one.index_bytes)}" for one in largest[:LARGEST]
    )
    if not server.schema.untuned:
        return Found(seen)
    names = [name.replace("_", " ") for name in server.schema.untuned]
    return amiss(
        seen, f"settings of its tables are not in place ({', '.join(names)})",
        "relet migrate, as the owner of the tables and without tuning in RELET_POSTGRES_WITHOUT",
        untuned=server.schema.untuned,
    )  # fmt: skip


def connections(server: ServerFacts) -> Found | None:
    """There is room for one more client."""
    if server.connections is None:
        return None
    seen = f"{server.connections} of {server.connections_most}"
    if server.connections < CONNECTIONS_SHARE * server.connections_most:
        return Found(seen)
    return amiss(
        seen, f"{seen} connections are in use: soon clients are refused",
        "raise max_connections, or put a pooler such as PgBouncer (pool_mode = transaction) between",
        connections=server.connections, most=server.connections_most,
    )  # fmt: skip


def artifacts(server: ServerFacts) -> Found | None:
    """Bytes that one machine stores can be read by the others."""
    if server.version is None:
        return None
    if server.artifacts is not None:
        return Found(server.artifacts)
    seen = "in a folder of each machine"
    if not server.names_artifacts:
        return Found(f"{seen}; none are named yet")
    return amiss(
        seen, "RELET_ARTIFACTS is not set: bytes that tasks of this store name are in a folder of the machine that "
        "stored them, and no other can read them",
        "let RELET_ARTIFACTS name one place for all, such as s3://bucket/prefix or a shared folder",
    )  # fmt: skip


def _of_server(ask: Ask) -> Callable[[Facts], Found | None]:
    return lambda facts: None if facts.server is None else ask(facts.server)


SERVER_CHECKS: Final = (
    Check("server", _of_server(version)),
    Check("schema", _of_server(schema)),
    Check("moved", moved),
    Check("opens", opens),
    Check("tenants", tenants),
    Check("role", _of_server(role)),
    Check("durability", _of_server(durability)),
    Check("sessions", _of_server(sessions)),
    Check("clock", _of_server(clock)),
    Check("vacuum", _of_server(vacuum)),
    Check("snapshots", _of_server(snapshots)),
    Check("locks", _of_server(locks)),
    Check("idle", _of_server(idle)),
    Check("tables", _of_server(tables)),
    Check("connections", _of_server(connections)),
    Check("artifacts", _of_server(artifacts)),
)
