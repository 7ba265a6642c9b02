"""The application of the idle worker: one handler that is never called."""

from __future__ import annotations

import relet

app = relet.App()


@app.task("idle", queue="idle")
async def idle(run: relet.AsyncRun) -> None:
    """Do nothing."""
