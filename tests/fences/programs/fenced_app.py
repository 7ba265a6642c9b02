"""A web service behind the middleware: PUT and GET of values; /bare takes what nobody guards. Prints its address."""

import socket
import sys
from urllib.parse import unquote

import uvicorn

from relet.fences import FenceMiddleware

VALUES = {}


async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    resource = unquote(scope["raw_path"].decode().split("/", 2)[2])
    body, more = b"", True
    while more:
        message = await receive()
        body, more = body + message.get("body", b""), message.get("more_body", False)
    if scope["method"] == "PUT":
        VALUES[resource] = body
        status, body = 204, b""
    else:
        status, body = (200, VALUES[resource]) if resource in VALUES else (404, b"")
    await send({"type": "http.response.start", "status": status, "headers": [(b"content-type", b"text/plain")]})
    await send({"type": "http.response.body", "body": body})


def is_guarded(scope):
    return scope["type"] != "http" or (scope["method"] == "PUT" and scope["path"].startswith("/values/"))


def main(store):
    fenced = FenceMiddleware(app, store=store, guarded=is_guarded)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        sys.stdout.write(f"http://127.0.0.1:{listening.getsockname()[1]}\n")
        config = uvicorn.Config(fenced, log_level="warning", lifespan="off", ws="none")
        uvicorn.Server(config).run(sockets=[listening])


main(sys.argv[1])
