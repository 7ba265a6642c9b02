"""fleetwright at its defaults: the loop of its own first page, one unit at a time."""

from __future__ import annotations

import json
import sys
import time

import fleetwright


def main(folder: str, tasks: int) -> None:
    """Put in the units, work them off, and say when that began and ended."""
    store = fleetwright.connect(f"{folder}/fleetwright.db")
    fleetwright.add(store, "bench", [f"unit-{number}" for number in range(tasks)])
    done = 0
    began = time.monotonic()
    while units := fleetwright.claim(store, "bench", lease=60):
        for unit in units:
            done += fleetwright.finish(store, unit.unit_id)
    ended = time.monotonic()
    print(json.dumps([began, ended, done]))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
