"""The browser agent buys one book and orders it once, wherever it is killed; in a real Chromium, in processes."""

import io
import json
import os
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.processes.program import Programs
from tests.uses.browser_stage import PASSWORD, PATIENCE_S, Purchase, ShopDesk, bearing, nobody_is_left
from tests.waiting import eventually

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
ACTIONS = [
    "01-open", "02-sign_in", "03-search", "04-follow", "05-follow", "06-follow", "07-add", "08-follow", "09-fill",
    "10-choose", "11-order", "12-read",
]  # fmt: skip
OUTWARD = {"07-add": "add", "11-order": "order"}
HELD_UP = {"02-sign_in": "login", **OUTWARD}
BOUNDARIES = [f"kept:{one}" for one in ACTIONS]
MIDDLES = [
    *[f"acted:{one}" for one in ACTIONS],
    *[f"{when}:{one}" for one in OUTWARD for when in ("begun", "sent")],
]


@pytest.fixture(scope="module")
def desk(tmp_path_factory):
    """The shop of all tests that have a customer of their own in it."""
    with Programs(tmp_path_factory.mktemp("shop")) as programs:
        yield ShopDesk(programs.start)


@pytest.fixture
def purchase(tmp_path, desk, request):
    """The purchase of a customer that no other test has."""
    with Programs(tmp_path) as programs:
        buying = Purchase(tmp_path, programs.start, desk, request.node.name)
        yield buying
    buying.close()


def bought_once(purchase, logins, actions=ACTIONS):
    """The result is right, and the shop has counted each action that reaches outward once."""
    result, counts = purchase.result(), purchase.counts
    (order,) = counts["orders"]
    assert (counts["add"], counts["order"], counts["basket"]) == (1, 1, [])
    assert counts["login"] == logins
    assert (order["books"], order["name"], order["delivery"], order["total"]) == (["rope"], "Ann Lee", "post", 26)
    assert result["order"] == order["number"]
    assert result["actions"] == actions
    assert [effect.state for effect in purchase.db.effects(task_id=purchase.task_id)] == ["succeeded", "succeeded"]
    return result


def tokens_of(purchase):
    """Under which token each action was done, the first grant as 1."""
    tokens = [one["token"] for one in purchase.progress["done"]]
    return [1 + sorted(set(tokens)).index(token) for token in tokens]


def before(moment):
    """How many actions had been kept by then."""
    return ACTIONS.index(moment.partition(":")[2])


def taken_over(purchase, first):
    """The first holder is dead with its browser, and the next one has gone on."""
    assert first.wait(PATIENCE_S) == -signal.SIGKILL
    assert nobody_is_left(purchase.place("A"))
    purchase.result()
    assert (purchase.task.holder, purchase.task.attempt) == ("B", 2)


def test_without_a_kill_each_action_is_done_once_and_no_process_is_left(purchase):
    program = purchase.worker("A")
    result = bought_once(purchase, logins=1)
    assert (result["skipped"], purchase.task.attempt) == (0, 1)
    program.send(signal.SIGTERM)
    assert program.wait() == 0
    assert bearing(purchase.place("A")) == []


@pytest.mark.parametrize("moment", BOUNDARIES)
def test_killed_between_two_actions_it_goes_on_at_the_next(moment, purchase):
    first = purchase.worker("A", dies_at=moment)
    purchase.held_by("A")
    purchase.worker("B")
    taken_over(purchase, first)
    kept = before(moment) + 1
    assert bought_once(purchase, logins=1)["skipped"] == kept
    assert tokens_of(purchase) == [1] * kept + [2] * (len(ACTIONS) - kept)


@pytest.mark.parametrize("moment", MIDDLES)
def test_killed_in_the_middle_of_an_action_it_does_nothing_outward_twice(moment, purchase):
    first = purchase.worker("A", dies_at=moment)
    purchase.held_by("A")
    purchase.worker("B")
    taken_over(purchase, first)
    # A session whose cookie died with the browser is nobody's; signing in again makes another.
    assert bought_once(purchase, logins=2 if moment == "acted:02-sign_in" else 1)["skipped"] == before(moment)


@pytest.mark.parametrize("when", ["arrived", "done"])
@pytest.mark.parametrize("action", HELD_UP)
def test_killed_while_the_shop_has_the_request_it_is_not_sent_twice(action, when, purchase, desk):
    gate = (purchase.customer, HELD_UP[action], when)
    desk.shut(*gate)
    first = purchase.worker("A")
    purchase.held_by("A")
    purchase.worker("B")
    eventually(lambda: desk.holds(*gate), within=PATIENCE_S)
    first.send(signal.SIGKILL)
    desk.open(*gate)
    taken_over(purchase, first)
    bought_once(purchase, logins=2 if action == "02-sign_in" else 1)


@pytest.mark.parametrize("action", OUTWARD)
def test_a_request_that_lands_after_the_takeover_is_waited_for(action, purchase, desk):
    gate = (purchase.customer, OUTWARD[action], "arrived")
    desk.shut(*gate)
    first = purchase.worker("A")
    eventually(lambda: desk.holds(*gate), within=PATIENCE_S)
    purchase.worker("B")
    first.send(signal.SIGKILL)
    purchase.held_by("B")
    desk.open(*gate)  # the shop does now what a dead agent has asked for
    taken_over(purchase, first)
    bought_once(purchase, logins=1)


@pytest.mark.parametrize("moment", ["kept:10-choose", "sent:11-order"])
def test_a_frozen_agent_that_wakes_after_the_takeover_orders_nothing(moment, purchase):
    first = purchase.worker("A", stops_at=moment)
    purchase.held_by("A")
    purchase.worker("B")
    bought_once(purchase, logins=1)
    assert any(b"--type=renderer" in command for _, command in bearing(purchase.place("A")))
    first.send(signal.SIGCONT)
    eventually(lambda: not [pid for pid, command in bearing(purchase.place("A")) if b"chrom" in command])
    assert first.pid in dict(bearing(purchase.place("A"))), "its browser is closed, and itself it goes on"
    bought_once(purchase, logins=1)
    assert purchase.task.holder == "B"
    assert ("11-order was not sent: the lease is lost" in purchase.logs()) == moment.startswith("sent")


def test_signed_out_in_the_meantime_it_signs_in_again_and_goes_on(purchase, desk):
    first = purchase.worker("A", dies_at="kept:10-choose")
    assert first.wait(PATIENCE_S) == -signal.SIGKILL
    desk.tell("forget", customer=purchase.customer)
    purchase.worker("B")
    taken_over(purchase, first)
    assert bought_once(purchase, logins=2)["skipped"] == 10


def test_a_page_that_has_changed_in_the_meantime_is_looked_at_anew(tmp_path):
    with Programs(tmp_path) as programs:
        desk = ShopDesk(programs.start)
        purchase = Purchase(tmp_path, programs.start, desk, "Ann")
        first = purchase.worker("A", dies_at="kept:05-follow")
        assert first.wait(PATIENCE_S) == -signal.SIGKILL
        assert purchase.progress["next"]["args"] == {"link": "Rope, Sail and Sea"}
        for number in range(4):  # and so the book moves on to the next page
            desk.tell("arrive", code=f"new-{number}", title=f"Sea Stories {number}", price=9)
        purchase.worker("B")
        taken_over(purchase, first)
        actions = [*ACTIONS[:5], "06-follow", "07-follow", "08-add", "09-follow", "10-fill", "11-choose", "12-order"]
        bought_once(purchase, logins=1, actions=[*actions, "13-read"])
    purchase.close()


def test_the_last_page_is_kept_as_a_picture_and_each_action_as_a_trace(purchase):
    purchase.worker("A")
    purchase.result()
    progress = purchase.progress
    assert progress["seen"]["title"] == f"Order {purchase.counts['orders'][0]['number']} - Harbour Books"
    picture = purchase.artifact(progress["screenshot"])
    assert picture.startswith(b"\x89PNG") and len(picture) > 10_000
    names = {one.name for one in purchase.db.artifacts(purchase.task_id)}
    traced = {f"{one}-trace.zip" for one in ACTIONS if one != "02-sign_in"}
    assert names == {"visitor", *[f"{one}.png" for one in ACTIONS], *traced}


def test_what_signs_in_is_kept_in_one_artifact_and_in_no_log_or_checkpoint(purchase):
    purchase.worker("A", dies_at="kept:08-follow").wait(PATIENCE_S)
    purchase.worker("B")
    purchase.result()
    visitor = json.loads(purchase.artifact("visitor"))
    (cookie,) = visitor["storage"]["cookies"]
    (tab_key,) = [items["tab"] for items in visitor["tab"].values()]
    checkpoints = json.dumps([one.value for one in purchase.db.checkpoints(purchase.task_id)])
    for secret in (cookie["value"], tab_key, PASSWORD):
        assert len(secret) > 12
        assert secret not in purchase.logs()
        assert secret not in checkpoints
    for one in purchase.db.artifacts(purchase.task_id):
        assert PASSWORD.encode() not in unzipped(purchase.artifact(one.name)), one.name


def unzipped(data):
    if not data.startswith(b"PK"):
        return data
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return b"".join(archive.read(name) for name in archive.namelist())


def test_one_command_shows_a_kill_and_the_takeover(tmp_path):
    done = command("--kill-at", "7", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "A was killed in the middle of action 7, and its browser with it" in lines
    assert [line.split()[0] for line in lines if "not done again" in line] == ACTIONS[:6]
    assert "the shop has 1 order of Ann's: H-1001" in lines
    assert (tmp_path / "browser-agent" / "order.png").read_bytes().startswith(b"\x89PNG")


def test_without_chromium_the_command_says_what_to_install(tmp_path):
    done = command(folder=tmp_path, BROWSER_AGENT_CHROMIUM="/no/such/browser")
    assert done.returncode == 1
    assert "sudo apt-get install -y --no-install-recommends chromium" in done.stderr
    assert list(tmp_path.iterdir()) == []


def command(*arguments, folder, **environment):
    return subprocess.run(
        [sys.executable, "-m", "examples.browser_agent", "--folder", folder / "browser-agent", *arguments],
        cwd=ROOT, env={**os.environ, **environment}, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
