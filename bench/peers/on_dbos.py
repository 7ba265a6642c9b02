"""DBOS on SQLite at its defaults: workflows of no steps from a queue, put in before the executor starts."""

from __future__ import annotations

import json
import sys
import time

from dbos import DBOS, DBOSClient


def main(folder: str, tasks: int) -> None:
    """Put in the workflows, work them off, and say when that began and ended."""
    url = f"sqlite:///{folder}/dbos.sqlite"
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "application_version": "1"})

    @DBOS.workflow(name="nothing")
    def nothing(topic: str) -> dict[str, bool]:
        return {"ok": True}

    DBOS.launch()  # makes its tables
    DBOS.register_queue("bench")
    DBOS.destroy(destroy_registry=False)
    client = DBOSClient(system_database_url=url)
    options = {"workflow_name": "nothing", "queue_name": "bench", "app_version": "1"}
    handles = [client.enqueue(options, "grain") for _ in range(tasks)]
    DBOS(config={"name": "bench", "system_database_url": url, "log_level": "ERROR", "application_version": "1"})
    began = time.monotonic()
    DBOS.launch()
    left = {handle.workflow_id for handle in handles}
    while left:
        time.sleep(0.05)
        done = client.list_workflows(queue_name="bench", status="SUCCESS", load_input=False, load_output=False)
        left -= {one.workflow_id for one in done}
    ended = time.monotonic()
    DBOS.destroy()
    print(json.dumps([began, ended, tasks]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
