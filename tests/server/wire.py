"""A real server in a thread, which serves whichever application it is given."""

import asyncio
import threading

import uvicorn

from relet.server.serving import bind
from tests.waiting import eventually


class Wire:
    """A server that listens for all tests, and serves the store of the one that runs."""

    def __init__(self):
        self.app = None
        self._socket = bind(("127.0.0.1", 0))
        self.port = self._socket.getsockname()[1]
        self.host = f"127.0.0.1:{self.port}"
        self.url = f"http://{self.host}"
        config = uvicorn.Config(
            self._answer, log_config=None, access_log=False, lifespan="off", ws="none", interface="asgi3"
        )
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(target=asyncio.run, args=(self._serve(),), daemon=True)
        self._thread.start()
        eventually(lambda: self._server.started)

    async def _serve(self):
        self._loop = asyncio.get_running_loop()
        await self._server.serve([self._socket])

    def in_loop(self, call):
        """What the server's own thread does."""
        done = threading.Event()
        self._loop.call_soon_threadsafe(lambda: (call(), done.set()))
        assert done.wait(10)

    async def _answer(self, scope, receive, send):
        await self.app(scope, receive, send)

    def close(self):
        self._server.should_exit = True
        self._thread.join(10)
