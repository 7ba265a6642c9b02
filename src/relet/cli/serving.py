"""What `relet serve` does: check where it may listen, open the store, and serve it until a signal."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from typing import Any

from relet.cli.exits import Exit
from relet.cli.session import Session
from relet.connect import HTTP, backend_of, extra, place_of
from relet.core.border import invalid


def serve_store(
    session: Session, *, listen: str, names: Sequence[str], proxies: Sequence[str], rate: str | float | None,
    asks_for_keys: bool, version: str,
) -> Exit:  # fmt: skip
    """Serve the store of `--url`. Raises `Invalid` for an address that needs what is not there."""
    with extra("server", "relet serve"):
        from relet.server.app import application
        from relet.server.keys import NoKeys, StoreKeys
        from relet.server.proxies import trusted
        from relet.server.rates import PER_KEY, rate_of
        from relet.server.service import Service
        from relet.server.serving import bind, is_loopback, listen_at, names_of, run, serve
    at, believed, limit = listen_at(listen), trusted(proxies), PER_KEY if rate is None else rate_of(rate)
    if not asks_for_keys and not is_loopback(at[0]):
        raise invalid(
            "listen",
            f"{at[0]} is reached by other machines, and --insecure-no-auth lets all of them do everything; leave it "
            "out and make keys → relet token create NAME --role worker",
        )
    session.watch()
    url = session.value("url")
    if url.partition(":")[0] in HTTP:
        raise invalid("url", "is a service already; give its store, such as sqlite:///work.db")
    tenant = session.value("tenant")
    with closing(bind(at)) as bound, closing(backend_of(url, tenant, None)) as backend:
        service = Service(backend, lambda: place_of(backend))
        ring = StoreKeys(service) if asks_for_keys else NoKeys(tenant)
        app = application(
            service, ring, hosts=names_of(at, names), version=version, rate=limit, proxies=believed
        )  # fmt: skip

        served: Any = backend
        extended = served.begin_to_serve()

        def started(address: str) -> None:
            session.talk(f"serving {backend.place} at {address}")
            if extended:
                session.talk(f"{extended} leases have a whole ttl from now: nobody could renew them here until now")
            if not asks_for_keys:
                session.talk("nobody is asked for a key: whoever is on this machine may do everything")

        run(serve(app, service, bound, started))
    return Exit.OK
