"""A program that keeps a lease for a block of its own: held_gil_in_block.py URL STYLE HEARTBEAT WHAT.

STYLE is blocking or awaiting; WHAT is `holds`, the interpreter's lock for three ttls, or `waits`, for a line.
"""

import asyncio
import ctypes
import sys

import relet

url, style, heartbeat, what = sys.argv[1:]
native = ctypes.PyDLL(None)


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def work(client):
    beside = client.keeper._beside
    say("-" if beside is None else beside.process.pid)
    say("begins")
    if what == "holds":
        native.usleep(3_000_000)  # PyDLL keeps the lock, as a careless native library does
    else:
        sys.stdin.readline()


def blocking():
    with relet.connect(url, holder="program") as db:
        lease = db.claim("work", wait=10)
        try:
            with lease.keep(heartbeat=heartbeat):
                work(db)
                lease.complete("done")
        except relet.LeaseLost as lost:
            say(f"lost {lost.reason}")
        say("left")
        sys.stdin.readline()
    say("closed")


async def awaiting():
    async with relet.connect_async(url, holder="program") as db:
        lease = await db.claim("work", wait=10)
        try:
            async with lease.keep(heartbeat=heartbeat):
                work(db.blocking)
                await lease.complete("done")
        except relet.LeaseLost as lost:
            say(f"lost {lost.reason}")
        say("left")
        sys.stdin.readline()
    say("closed")


if style == "blocking":
    blocking()
else:
    asyncio.run(awaiting())
sys.stdin.readline()
