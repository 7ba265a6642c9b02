"""The floor of the service: Starlette on uvicorn, and renewals that share a commit, with nothing around them."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from bench.floors import Floor
from relet.server.serving import bind

LEASES = 64


class Together:
    """Whoever asks within one turn of the loop is answered after one commit."""

    def __init__(self, floor: Floor) -> None:
        self._floor = floor
        self._asked: list[tuple[int, asyncio.Future[int]]] = []

    async def renew(self, token: int) -> int:
        """The token, once it is renewed."""
        answered: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._asked.append((token, answered))
        if len(self._asked) == 1:
            asyncio.get_running_loop().call_soon(self._commit)
        return await answered

    def _commit(self) -> None:
        asked, self._asked = self._asked, []
        self._floor.renew([token for token, _ in asked])
        for token, answered in asked:
            answered.set_result(token)


def application(floor: Floor) -> Starlette:
    """One route."""
    together = Together(floor)

    async def renew(request: Request) -> Response:
        asked = json.loads(await request.body())
        return Response(json.dumps({"token": await together.renew(asked["token"])}), media_type="application/json")

    return Starlette(routes=[Route("/renew", renew, methods=["POST"])])


def main(path: str) -> None:
    """Serve until it is ended; says at which port."""
    floor = Floor(Path(path))
    floor.grant(LEASES)  # with the tokens from 1 on
    bound = bind(("127.0.0.1", 0))
    print(bound.getsockname()[1], flush=True)
    config = uvicorn.Config(application(floor), log_config=None, access_log=False)
    asyncio.run(uvicorn.Server(config).serve([bound]))


if __name__ == "__main__":
    main(*sys.argv[1:])
