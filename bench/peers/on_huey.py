"""huey at its defaults: one consumer with one worker thread; a task that was taken is in its file no more."""

from __future__ import annotations

import json
import sys
import threading
import time

from huey import SqliteHuey


def main(folder: str, tasks: int) -> None:
    """Put in the tasks, work them off, and say when that began and ended."""
    huey = SqliteHuey(filename=f"{folder}/huey.db")
    done, all_done = [0], threading.Event()

    @huey.task()
    def nothing(topic: str) -> dict[str, bool]:
        done[0] += 1
        if done[0] == tasks:
            all_done.set()
        return {"ok": True}

    for _ in range(tasks):
        nothing(topic="grain")
    consumer = huey.create_consumer()
    began = time.monotonic()
    consumer.start()
    all_done.wait()
    ended = time.monotonic()
    consumer.stop(graceful=True)
    print(json.dumps([began, ended, done[0]]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
