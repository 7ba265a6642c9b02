"""A service that answers from a task: it submits, waits for the result, and does nothing twice when asked twice."""

import asyncio

import relet

app = relet.App()


@app.task("report", ttl="10s")
async def report(run: relet.AsyncRun, topic: str) -> dict:
    await asyncio.sleep(0.1)  # the call of the model
    return {"topic": topic, "text": f"All about {topic}.", "token": run.token}


async def handle(db: relet.AsyncClient, request_id: str, topic: str) -> dict:
    """What your web framework calls. The id of the request makes it safe to repeat."""
    await report.submit(db, topic=topic, id=request_id)
    return await db.result(request_id, wait="10s")


async def main() -> None:
    async with relet.connect_async("sqlite:///service.db") as db, app.worker(db, concurrency=4):
        grain, rye, again = await asyncio.gather(
            handle(db, "q-1", "grain"), handle(db, "q-2", "rye"), handle(db, "q-1", "grain")
        )
    print(grain["text"], rye["text"])
    print("asked twice, done once:", grain == again)


asyncio.run(main())
