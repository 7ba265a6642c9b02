"""Buy a book in a local shop: `python -m examples.browser_agent`, with `--kill-at 7` to see a takeover."""

import argparse
import contextlib
import json
import os
import secrets
import subprocess
import sys
import urllib.request
from pathlib import Path

import relet
from examples.browser_agent.acts import PASSWORD
from examples.browser_agent.chromium import missing
from examples.browser_agent.moments import DIES_AT
from examples.browser_agent.plan import Goal
from examples.browser_agent.processes import SHOP, worker

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120
ACTIONS = 12


def main():
    asked = arguments()
    if (what := missing()) is not None:
        print(f"browser_agent: {what}", file=sys.stderr)
        return 1
    folder = Path(asked.folder).absolute()
    folder.mkdir(parents=True, exist_ok=True)
    url = asked.url or f"sqlite:///{folder / 'agent.db'}"
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])),
        "RELET_URL": url,
        PASSWORD: os.environ.get(PASSWORD) or secrets.token_urlsafe(12),
    }
    with contextlib.ExitStack() as running, relet.connect(url) as db:
        shop = running.enter_context(process(SHOP, environment, stdout=subprocess.PIPE))
        goal = Goal(
            shop=shop.stdout.readline().strip(), customer="Ann", search="sea", title="Rope, Sail and Sea",
            address={"Full name": "Ann Lee", "Street": "Quay 1", "City": "Hull"}, delivery="By post",
        )  # fmt: skip
        task = db.submit("browser", {"goal": goal}, kind="buy")
        print(f"the shop is at {goal.shop}, the task is {task.id} in {db.place}")
        if asked.kill_at is not None:
            environment[DIES_AT] = f"acted:{asked.kill_at:02}"
            with process(worker("A"), environment) as first:
                first.wait(PATIENCE_S)
            print(f"A was killed in the middle of action {asked.kill_at}, and its browser with it")
            environment.pop(DIES_AT)
        running.enter_context(process(worker("B"), environment))
        result = db.result(task.id, wait=PATIENCE_S)
        tell(db, task.id, result, folder / "order.png")
        orders = [one["number"] for one in counts(goal.shop, goal.customer)["orders"]]
    print(f"the shop has {len(orders)} order of {goal.customer}'s: {', '.join(orders)}")
    # One that was given may have a password in it.
    print(f"all that was kept: relet artifacts {task.id} --url {'… (as here)' if asked.url else url}")
    return 0


def arguments():
    parser = argparse.ArgumentParser(prog="python -m examples.browser_agent", description=__doc__)
    parser.add_argument(
        "--kill-at", type=int, metavar="N", choices=range(1, ACTIONS + 1),
        help=f"kill the first worker in the middle of action N (1 to {ACTIONS})",
    )  # fmt: skip
    parser.add_argument("--folder", default="browser-agent", help="where the store goes  [default: ./browser-agent]")
    parser.add_argument("--url", help="the store, as postgresql://host/database  [default: a file in the folder]")
    return parser.parse_args()


@contextlib.contextmanager
def process(command, environment, **streams):
    with subprocess.Popen(command, env=environment, text=True, start_new_session=True, **streams) as started:
        try:
            yield started
        finally:
            started.terminate()


def counts(shop, customer):
    with urllib.request.urlopen(f"{shop}/desk/counts?customer={customer}") as answer:
        return json.load(answer)


def tell(db, task_id, result, picture):
    progress = db.checkpoints(task_id)[0].value
    tokens = [one["token"] for one in progress["done"]]
    for one in progress["done"]:
        skipped = ", not done again" if one["token"] != tokens[-1] else ""
        print(f"  {one['action']['id']:12} under token {one['token']}{skipped}")
    newest = {one.name: one for one in db.artifacts(task_id)}
    with db.open(newest[progress["screenshot"]].uri) as file:
        picture.write_bytes(file.read())
    print(f"order {result['order']}; {result['skipped']} actions were skipped in the last attempt")
    print(f"the last page is in {picture}")


if __name__ == "__main__":
    sys.exit(main())
