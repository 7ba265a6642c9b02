"""The application of B8 and B9: handlers that tell when they began, by the clock that all processes share."""

from __future__ import annotations

import time

import relet

app = relet.App()


@app.task("wake")
async def wake(run: relet.AsyncRun, number: int) -> float:
    """Tell when it began."""
    return time.monotonic()


@app.task("long", ttl="1s")
def long(run: relet.Run, number: int) -> float:
    """The first attempt never ends by itself; the one after it tells when it began."""
    began = time.monotonic()
    if run.attempt == 1:
        run.save("within")
        while True:
            time.sleep(0.05)
            run.check()
    return began
