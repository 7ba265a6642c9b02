"""`python -m examples.research_pipeline`: the whole pipeline on this machine; `--kill-at N` kills its worker."""

from __future__ import annotations

import argparse
import os
import sys

import msgspec

import relet
from examples.outside.asking import ask
from examples.outside.stage import Stage, folder_for, follow, saved
from examples.research_pipeline.pipeline import Report, research


def main() -> int:
    """0 when the report is there and the catalogue has it once."""
    parser = argparse.ArgumentParser(prog="python -m examples.research_pipeline", description=__doc__)
    parser.add_argument("--topic", default="grain")
    parser.add_argument("--kill-at", type=int, metavar="N", help="SIGKILL the worker after N lines of its work")
    parser.add_argument("--lose", type=int, default=0, metavar="N", help="the catalogue loses its first N replies")
    parser.add_argument("--ttl", default="2s", help="how long a dead worker keeps the task  [default: 2s]")
    parser.add_argument("--folder", help="keep the store and the logs here  [default: a temporary one]")
    parser.add_argument("--url", help="the store, as postgresql://host/database  [default: a file in the folder]")
    given = parser.parse_args()
    os.environ.setdefault("EXAMPLE_MODEL_SECONDS", "0.2")  # slow enough to be watched
    app = "examples.research_pipeline.pipeline:app"
    with folder_for(given.folder) as folder, Stage(folder, app, given.url) as stage:
        stage.serve("CORPUS_URL", "examples.research_pipeline.corpus")
        desk = stage.serve("DESK_URL", "examples.outside.ledger", "--lose", str(given.lose))
        with relet.connect(stage.url, holder="you") as db:
            research.submit(db, topic=given.topic, id=f"research-{given.topic}", ttl=given.ttl)
            task = follow(stage, db, f"research-{given.topic}", given.kill_at)
            if task.state != "done":
                print(f"{task.state}: {task.error}")
                return 1
            report = db.result(task.id, returns=Report)
            applied = msgspec.json.decode(ask(f"{desk}/applied"), type=dict[str, int])
            print(f"\n{report.title} (entry {report.number}): {report.summary}")
            for finding in report.findings:
                print(f"  - {finding.claim} [{finding.page}]")
            cost = sum(step.cost or 0 for step in db.steps(task.id))
            print(f"{len(db.artifacts(task.id))} artifacts; {cost:.0f} tokens paid for once; {saved(db, task.id)}")
            print(f"the catalogue applied {sum(applied.values())} entry of this run")
            return 0 if all(times == 1 for times in applied.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
