"""`python -m examples.approval_flow`: a draft, your decision, one post; `--kill-at N` kills its worker."""

from __future__ import annotations

import argparse
import json
import os
import sys

import msgspec

import relet
from examples.approval_flow.flow import Announcement, announce
from examples.outside.asking import ask
from examples.outside.stage import Stage, folder_for, follow, saved

ANSWERS = ["accept", "edit", "respond", "deny", "ignore", "wait"]


class Person:
    """Who decides: somebody at this terminal, or the answer that was given on the command line."""

    def __init__(self, db: relet.Client, answer: str | None, text: str) -> None:
        self._db = db
        self._answer = answer
        self._text = text

    def decide(self, wait: relet.Wait) -> None:
        """Answer one question; late answers, and those to a question that has changed, are refused by the store."""
        print(f"\n  {json.dumps(wait.ask, ensure_ascii=False)}\n  open until {wait.due_at:%Y-%m-%d %H:%M:%S} UTC")
        answer = self._answer
        while answer not in ANSWERS:
            answer = typed(f"  {', '.join(ANSWERS)}? ").strip()
        if answer == "wait":
            print("  nobody answers; the default stands when the time is over\n")
            return
        text = None
        if answer in {"edit", "respond"}:
            text = self._text if self._answer else typed("  your text: ")
        try:
            self._db.decide(wait.task_id, wait.name, answer, text or None, by="you", digest=wait.digest)
        except relet.Refused as refused:
            print(f"  not taken: {refused}")
        if answer == "respond" and self._answer:
            self._answer = "accept"  # one remark is enough for a run that nobody watches
        print()


def typed(question: str) -> str:
    """What somebody types. Ends the program where nobody can."""
    try:
        return input(question)
    except EOFError:
        raise SystemExit(
            "\nnobody can be asked, stdin is closed: decide by --answer accept, or another one"
        ) from None


def main() -> int:
    """0 when it was published once, or not at all where that was decided."""
    parser = argparse.ArgumentParser(prog="python -m examples.approval_flow", description=__doc__)
    parser.add_argument("--topic", default="the new silo")
    parser.add_argument("--answer", choices=ANSWERS, help="decide so, without asking  [default: you are asked]")
    parser.add_argument("--text", default="The new silo is open.", help="the text for edit or respond")
    parser.add_argument("--patience", help="how long the question is open  [default: 1d; 3s with --answer wait]")
    parser.add_argument("--kill-at", type=int, metavar="N", help="SIGKILL the worker after N lines of its work")
    parser.add_argument("--lose", type=int, default=0, metavar="N", help="the site loses its first N replies")
    parser.add_argument("--ttl", default="2s", help="how long a dead worker keeps the task  [default: 2s]")
    parser.add_argument("--folder", help="keep the store and the logs here  [default: a temporary one]")
    parser.add_argument("--url", help="the store, as postgresql://host/database  [default: a file in the folder]")
    given = parser.parse_args()
    patience = given.patience or ("3s" if given.answer == "wait" else "1d")
    os.environ.setdefault("EXAMPLE_MODEL_SECONDS", "0.2")  # slow enough to be watched
    with folder_for(given.folder) as folder, Stage(folder, "examples.approval_flow.flow:app", given.url) as stage:
        site = stage.serve("SITE_URL", "examples.outside.ledger", "--lose", str(given.lose))
        with relet.connect(stage.url, holder="you") as db:
            announce.submit(db, topic=given.topic, patience=patience, id="announcement", ttl=given.ttl)
            person = Person(db, given.answer, given.text)
            task = follow(stage, db, "announcement", given.kill_at, person.decide)
            if task.state != "done":
                print(f"{task.state}: {task.error}")
                return 1
            made = db.result(task.id, returns=Announcement)
            posts = msgspec.json.decode(ask(f"{site}/entries"), type=dict[str, dict[str, str]])
            applied = msgspec.json.decode(ask(f"{site}/applied"), type=dict[str, int])
            print(f"\n{made.decision} by {made.by} on draft {made.drafts}; {saved(db, task.id)}")
            print(
                f"the site has {sum(applied.values())} posts of this run: {[post['text'] for post in posts.values()]}"
            )
            return 0 if sum(applied.values()) in {0, 1} else 1


if __name__ == "__main__":
    sys.exit(main())
