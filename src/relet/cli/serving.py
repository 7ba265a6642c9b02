"""What `relet serve` does: check where it may listen, open the store, and serve it until a signal."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Final, NamedTuple

from relet.cli.exits import Exit
from relet.cli.session import Session
from relet.client.redacting import log_named
from relet.connect import backend_of, extra, is_service, place_of
from relet.core.border import invalid
from relet.core.limits import PAGE_ITEMS_MAX
from relet.core.rules.keys import Key, ListKeys

MAKE_KEY: Final = "relet token create NAME --role worker"


class Asked(NamedTuple):
    """How a store is to be served, as it was written."""

    listen: str
    names: Sequence[str]
    proxies: Sequence[str]
    rate: str | float | None
    for_keys: bool
    """Is everybody asked for a key."""


def serve_store(session: Session, asked: Asked, version: str) -> Exit:
    """Serve the store of `--url`. Raises `Invalid` for an address that needs what is not there."""
    from relet.worker.main import log_to_stderr

    with extra("server", "relet serve"):
        from relet.server.app import application
        from relet.server.arenas import keep_few
        from relet.server.keys import NoKeys, StoreKeys
        from relet.server.proxies import trusted
        from relet.server.rates import PER_KEY, rate_of
        from relet.server.service import Service
        from relet.server.serving import bind, is_loopback, listen_at, names_of, run, serve
    at, proxies = listen_at(asked.listen), trusted(asked.proxies)
    hosts = names_of(at, asked.names)
    rate = PER_KEY if asked.rate is None else rate_of(asked.rate)
    if not asked.for_keys and not is_loopback(at[0]):
        raise invalid(
            "listen",
            f"{at[0]} is reached by other machines, and --insecure-no-auth lets all of them do everything; leave it "
            f"out and make keys → {MAKE_KEY}",
        )
    session.watch()
    keep_few()
    for name in ("uvicorn.error", "asyncio"):
        log_named(name)  # a fault is told by them, with all that was under way; the process is ours
    log_to_stderr(logging.WARNING)
    url = session.value("url")
    if is_service(url):
        raise invalid("url", "is a service already; give its store, such as sqlite:///work.db")
    tenant = session.value("tenant")
    with closing(bind(at)) as bound, closing(backend_of(url, tenant, None)) as backend:
        service = Service(backend, lambda: place_of(backend))
        ring = StoreKeys(service) if asked.for_keys else NoKeys(tenant)
        app = application(service, ring, hosts=hosts, version=version, rate=rate, proxies=proxies)
        served: Any = backend
        opens = not asked.for_keys or has_good_key(served.operate)
        if not opens and not is_loopback(at[0]):
            raise invalid(
                "listen",
                f"{at[0]} is reached by other machines, and no key of this store is good: nobody could ask it for "
                f"anything. Make one, and serve it then → {MAKE_KEY}",
            )
        extended = served.begin_to_serve()

        def started(address: str) -> None:
            session.talk(f"serving {backend.place} at {address}")
            _tell(session, extended, asked, opens=opens)

        run(serve(app, service, bound, started))
    return Exit.OK


def has_good_key(operate: Callable[[ListKeys], list[Key]]) -> bool:
    """Is there a key that opens anything."""
    ask = ListKeys(limit=PAGE_ITEMS_MAX)
    while page := operate(ask):
        if any(key.good for key in page):
            return True
        ask = ListKeys(after=page[-1].id, limit=PAGE_ITEMS_MAX)
    return False


def _tell(session: Session, extended: int, asked: Asked, *, opens: bool) -> None:
    if extended:
        session.talk(f"{extended} leases have a whole ttl from now: nobody could renew them here until now")
    if not asked.for_keys:
        session.talk("nobody is asked for a key: whoever is on this machine may do everything")
    if not opens:
        session.talk(f"there is no good key yet, so it refuses everybody; make one → {MAKE_KEY}")
