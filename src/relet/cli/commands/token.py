"""`relet token`: the API keys with which programs and people use the service of a store."""

from __future__ import annotations

from typing import Final

import click
import msgspec

from relet.cli.colour import Paint
from relet.cli.options import Verbs, verb
from relet.cli.session import Session
from relet.cli.words import clean, quoted, table, when
from relet.core.access import SCOPES_OF, Role, Scope
from relet.core.rules.keys import Key

HEAD: Final = ("ID", "NAME", "ROLE", "TENANT", "QUEUES", "EXPIRES", "LAST USED", "STATE")
NO_KEYS: Final = "makes no keys for those who ask it"


@verb(
    "create",
    example="""relet token create ci --role worker --queue reports --expires 90d
relet token create ann --role approver --scope audit""",
)
@click.argument("name")
@click.option("--role", type=click.Choice([str(role) for role in Role]), required=True, help="What it is for.")
@click.option("--queue", "queues", metavar="QUEUE", multiple=True, help="Bind it to this queue. Repeatable.")
@click.option(
    "--scope", "scopes", type=click.Choice([str(scope) for scope in Scope]), multiple=True,
    help="Give it this scope beside those of its role. Repeatable.",
)  # fmt: skip
@click.option("--expires", metavar="TIME", help="When it ends by itself: 12h, 90d.  [default: never]")
def create(
    session: Session, name: str, role: str, queues: tuple[str, ...], scopes: tuple[str, ...], expires: str | None
) -> None:
    """Make a key for the tenant of --tenant, and print it, once.

    The store keeps only what a key can be known by. NAME is what the log and other people call it; of one name there
    is one key at a time. A store that is not there yet is made.
    """
    from relet.client.key_asks import make_key
    from relet.connect import operated_at

    ask, text = make_key(
        name, role, tenant=session.value("tenant"), queues=queues, scopes=scopes, expires=expires
    )  # fmt: skip
    with operated_at(session.value("url"), service=NO_KEYS, anew=True) as store:
        session.place = store.place
        made: Key = store.operate(ask)
    if session.json:
        session.answer({"key": text, **msgspec.structs.asdict(made)})
    else:
        session.data(text)
    ends = "does not expire" if made.expires_at is None else f"expires at {when(made.expires_at)}"
    session.talk(
        f"this key is shown once: keep it where its program finds it, in RELET_API_KEY or the file of "
        f"RELET_API_KEY_FILE. It is for tenant {made.tenant}, and {ends}. To end it → relet token revoke {made.id}"
    )


@verb("ls", example="relet token ls --all")
@click.option("--all", "revoked", is_flag=True, help="Those that are revoked, too.")
@click.option("--limit", type=int, default=100, help="At most so many, 1000 at the utmost.  [default: 100]")
@click.option("--after", metavar="ID", default="", help="Go on after this one, as the page before said.")
def ls(session: Session, revoked: bool, limit: int, after: str) -> None:
    """List the keys of a store, of all tenants, without what would open anything.

    Those of a page are in the order in which they were made. When a key was used last is noted every so often.
    """
    from relet.client.key_asks import list_keys
    from relet.connect import operated_at

    ask = list_keys(after, limit, revoked=revoked)
    with operated_at(session.value("url"), service=NO_KEYS) as store:
        session.place = store.place
        found: list[Key] = store.operate(ask)
    following = found[-1].id if len(found) == limit else None
    found.sort(key=lambda key: key.created_at)
    if session.json:
        session.answer({"keys": found, "next": following})
    elif found:
        session.data(table(HEAD, [_row(key) for key in found], Paint(session.color)))
        if following is not None:
            session.talk(f"there may be more → relet token ls --after {following}")
    if not found:
        session.empty("no keys")


def _row(key: Key) -> tuple[str, ...]:
    state = "revoked" if key.revoked else "expired" if key.expired else "good"
    role = " + ".join([str(key.role), *sorted(set(key.scopes) - SCOPES_OF[key.role])])
    queues = "all" if key.queues is None else clean(",".join(key.queues))
    return (
        key.id, clean(key.name), role, clean(key.tenant), queues, when(key.expires_at), when(key.used_at), state,
    )  # fmt: skip


@verb("revoke", example="relet token revoke ci")
@click.argument("key")
def revoke(session: Session, key: str) -> None:
    """End a key, by its id or its name, for good.

    Whoever uses it is refused from the next request on, and streams that are open with it are closed. Its name is
    free for another one.
    """
    from relet.client.key_asks import revoke_key
    from relet.connect import operated_at

    with operated_at(session.value("url"), service=NO_KEYS) as store:
        session.place = store.place
        ended: Key = store.operate(revoke_key(key))
    if session.json:
        session.answer(ended)
    else:
        session.data(f"revoked {ended.id} {quoted(clean(ended.name))}")


token: Final = Verbs(
    "token",
    [create, ls, revoke],
    help="""Make, list and revoke API keys of the service.

    They are in the store that `relet serve` answers for, and made there: with the --url of the store itself, not with
    the address of the service.
    """,
    example="relet token create ci --role worker --expires 90d\nrelet token ls\nrelet token revoke ci",
)
