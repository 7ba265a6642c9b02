"""`relet serve`: the store over HTTP, for other machines and other languages."""

from __future__ import annotations

import click

from relet.cli.exits import Exit
from relet.cli.options import verb
from relet.cli.session import Session


@verb("serve", example="relet serve --url sqlite:///work.db --listen 127.0.0.1:8787")
@click.option("--listen", metavar="HOST:PORT", help="Where to listen.  [default: 127.0.0.1:8787]")
@click.option("--host-name", "names", metavar="NAME", multiple=True, help="A name clients reach it by. Repeatable.")
@click.option(
    "--proxy", "proxies", metavar="ADDRESS", multiple=True,
    help="A proxy whose X-Forwarded-For and -Proto are believed: an address or a network. Repeatable.",
)  # fmt: skip
@click.option(
    "--rate", metavar="N/TIME", help="How often a key may ask: 100/s, 6000/m, none: as it likes.  [default: 5000/s]"
)
@click.option("--insecure-no-auth", is_flag=True, help="Ask nobody for a key. On this machine alone.")
def serve(
    session: Session, listen: str | None, names: tuple[str, ...], proxies: tuple[str, ...], rate: str | None,
    insecure_no_auth: bool,
) -> Exit:  # fmt: skip
    """Answer the store's operations over HTTP, until a signal ends it.

    Clients connect by http://HOST:PORT with a key in RELET_API_KEY; relet token makes them. GET /openapi.json lists
    what can be asked. Whatever reaches it from other machines goes through a proxy with TLS.
    """
    from relet import __version__
    from relet.cli.serving import Asked, serve_store

    asked = Asked(
        listen=session.value("listen", listen), names=session.value("host_name", list(names) or None) or [],
        proxies=session.value("proxy", list(proxies) or None) or [], rate=session.value("rate", rate),
        for_keys=not insecure_no_auth,
    )  # fmt: skip
    return serve_store(session, asked, __version__)
