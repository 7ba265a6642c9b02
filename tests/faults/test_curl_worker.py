"""The worker of a shell and curl goes on, gives way and asks again as a worker has to, at a real `relet serve`."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from relet.core.access import KEY
from tests.alive import is_gone
from tests.processes.program import ROOT
from tests.waiting import eventually

pytestmark = pytest.mark.faults
SCRIPT = ROOT / "examples" / "curl_worker.sh"
RELET = Path(sys.executable).with_name("relet")
TTL_S = 9
PAGES = """
echo $$ >"$FOLDER/work.pid"
page=$(sh "$WORKER" load)
[ "$page" != null ] || page=0
while [ "$page" -lt 3 ]; do
    page=$((page + 1))
    echo "$page $RELET_TOKEN" >>"$FOLDER/diary"
    echo "$page" | sh "$WORKER" save || exit
    while [ -e "$FOLDER/hold-$page" ]; do : >"$FOLDER/held-$page"; sleep 0.1; done
done
echo "{\\"pages\\": $page}"
"""


@pytest.fixture(autouse=True)
def _tools():
    require_tools()


def require_tools():
    for tool in ("curl", "jq"):
        if shutil.which(tool) is None:
            pytest.fail(f"{tool} is missing, and this needs it: sudo apt-get install -y {tool}")


class Service:
    """`relet serve` over the store of the test, which can be killed and started again at the same address."""

    def __init__(self, url, log):
        made = subprocess.run(
            [RELET, "token", "create", "worker", "--role", "worker", "--url", url],
            capture_output=True, text=True, check=True, timeout=30,
        )  # fmt: skip
        self.key = made.stdout.strip()
        self._url, self._log = url, log
        self.start("127.0.0.1:0")

    def start(self, listen):
        with self._log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen([RELET, "serve", "--url", self._url, "--listen", listen], stderr=log)
        self.address = eventually(self._told).rpartition(" at ")[2]
        self.listen = self.address.removeprefix("http://")

    def _told(self):
        assert self.process.poll() is None, self._log.read_text(encoding="utf-8")
        return next((line for line in self._log.read_text(encoding="utf-8").splitlines() if " at http" in line), None)

    def kill(self):
        self.process.kill()
        self.process.wait()


@pytest.fixture
def service(db, url, tmp_path):
    serving = Service(url, tmp_path / "serve.log")
    yield serving
    serving.kill()


class Worker:
    """The script on one queue, in a session of its own."""

    def __init__(self, folder, number, address, key):
        self.folder, self.log = folder, folder / f"worker-{number}.log"
        program = folder / "pages.sh"
        program.write_text(PAGES, encoding="utf-8")
        with self.log.open("w", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                ["sh", SCRIPT, "work", "books", "sh", program], stderr=log, start_new_session=True,
                env={
                    **os.environ, "RELET_URL": address, "RELET_API_KEY": key, "RELET_TTL": str(TTL_S),
                    "WORKER": str(SCRIPT), "FOLDER": str(folder), "TMPDIR": str(folder),
                },
            )  # fmt: skip

    @property
    def diary(self):
        """Which pages were worked on, and under which tokens."""
        file = self.folder / "diary"
        return [line.split() for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []

    @property
    def pages(self):
        return [int(page) for page, _ in self.diary]

    def work(self):
        """The process of the work, which is a group of its own; None once it has ended."""
        pid = int((self.folder / "work.pid").read_text(encoding="utf-8"))
        return None if is_gone(pid) else pid

    def is_held(self, page):
        """Has the work its answer for this page, and waits."""
        return (self.folder / f"held-{page}").exists()

    def signal_all(self, number):
        """To the worker, its heartbeat and its work, as a machine that stands still would."""
        work = self.work()  # found before the worker goes on, for it may end it at once
        os.killpg(self.process.pid, number)
        with suppress(ProcessLookupError):
            os.killpg(work, number)

    @property
    def said(self):
        return self.log.read_text(encoding="utf-8")

    def kill(self):
        """The worker alone; its heartbeat ends by itself, and the work with it."""
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGCONT)
        self.process.kill()
        self.process.wait()


@pytest.fixture
def worker(tmp_path, service):
    started = []

    def start(address=None):
        started.append(Worker(tmp_path, len(started), address or service.address, service.key))
        return started[-1]

    yield start
    for one in started:
        one.kill()
        eventually(lambda one=one: not (one.folder / "work.pid").exists() or one.work() is None)


@pytest.fixture
def hold(tmp_path):
    """Keep the work waiting once it has saved a page, until told to go on."""

    def at(page):
        file = tmp_path / f"hold-{page}"
        file.touch()
        return file.unlink

    return at


def kinds(db, task_id):
    return [str(event.kind) for event in db.history(task_id)]


def is_done(db, task_id):
    return lambda: db.task(task_id).state == "done"


def test_it_does_one_task_after_another_and_shows_its_secrets_to_nobody(db, service, worker):
    db.submit("books", id="first")
    working = worker()
    eventually(is_done(db, "first"))
    eventually(lambda: any("wait=20" in said for said in arguments()))  # it waits for more
    assert not any(KEY.fullmatch(service.key)[2] in said for said in arguments())
    db.submit("books", id="second")
    eventually(is_done(db, "second"))
    assert [db.task(one).result for one in ("first", "second")] == [{"pages": 3}] * 2
    assert (working.pages, db.rejections("first")) == ([1, 2, 3, 1, 2, 3], [])


def arguments():
    """Of every process that there is, as everybody can read them."""
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            yield file.read_text(encoding="utf-8", errors="replace")


def test_a_task_outlives_a_worker_that_is_killed_and_goes_on_from_its_checkpoint(db, worker, hold):
    db.submit("books", id="t")
    go_on = hold(2)
    first = worker()
    eventually(lambda: first.is_held(2))
    first.kill()
    eventually(lambda: first.work() is None)
    go_on()
    worker()
    eventually(is_done(db, "t"), within=TTL_S + 15)
    tokens = [token for _, token in first.diary]
    assert first.pages == [1, 2, 3]
    assert tokens[0] == tokens[1] < tokens[2] == str(db.task("t").token)
    assert (db.task("t").losses, db.task("t").attempt) == (1, 2)


def test_a_worker_that_stood_still_past_its_ttl_kills_its_work_and_hands_in_nothing(db, worker, hold):
    db.submit("books", id="t")
    hold(2)
    frozen = worker()
    eventually(lambda: frozen.is_held(2))
    frozen.signal_all(signal.SIGSTOP)
    other = eventually(lambda: db.claim(task_id="t", holder="other"), within=TTL_S + 15)
    assert other.load() == 2
    other.complete("by another")
    frozen.signal_all(signal.SIGCONT)
    eventually(lambda: "t: lost; its work was killed" in frozen.said)
    eventually(lambda: frozen.work() is None)
    assert (db.task("t").result, kinds(db, "t")[-1]) == ("by another", "completed")
    assert db.rejections("t") == []  # it knew without asking
    hold(2)()
    db.submit("books", id="next")
    eventually(is_done(db, "next"))


def test_a_lease_that_another_has_is_refused_by_the_service_too(db, worker, hold):
    """The heartbeat is told so, while its own clock sees nothing amiss: the task was cancelled."""
    db.submit("books", id="t")
    hold(1)
    working = worker()
    eventually(lambda: working.is_held(1))
    db.cancel("t", "not wanted")
    eventually(lambda: working.work() is None)
    eventually(lambda: db.task("t").state == "cancelled", within=TTL_S + 15)
    assert "t: lost" in working.said


def test_a_worker_that_is_told_to_end_gives_its_task_back(db, worker, hold):
    db.submit("books", id="t")
    hold(1)
    working = worker()
    eventually(lambda: working.is_held(1))
    working.process.terminate()
    assert working.process.wait(10) == 0
    assert working.work() is None
    assert (db.task("t").state, db.task("t").attempt, kinds(db, "t")[-1]) == ("ready", 1, "released")


def test_what_is_saved_while_the_service_is_away_is_sent_again_until_it_is_back(db, service, worker, hold):
    db.submit("books", id="t")
    go_on = hold(1)
    working = worker()
    eventually(lambda: working.is_held(1))
    service.kill()
    go_on()
    eventually(lambda: "save: 503" in working.said)
    service.start(service.listen)
    eventually(is_done(db, "t"), within=30)
    assert (db.task("t").attempt, kinds(db, "t").count("saved")) == (1, 3)


def test_output_that_is_no_json_fails_the_task_and_is_told_as_that(db, service, tmp_path):
    db.submit("books", id="t")
    working = subprocess.Popen(
        ["sh", SCRIPT, "work", "books", "echo", "no", "json"], stderr=subprocess.DEVNULL, start_new_session=True,
        env={**os.environ, "RELET_URL": service.address, "RELET_API_KEY": service.key, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    try:
        eventually(lambda: db.task("t").state == "failed")
    finally:
        working.terminate()
        working.wait(10)
    assert "the output of the command is no JSON" in db.task("t").error


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"RELET_URL": None}, "RELET_URL"),
        ({"RELET_URL": "sqlite:///work.db"}, "RELET_URL"),
        ({"RELET_API_KEY_FILE": "no-such.key"}, "no-such.key"),
        ({"RELET_TTL": "1m"}, "1m"),
        ({"RELET_TTL": "5"}, "RELET_TTL"),
    ],
)
def test_settings_that_cannot_be_meant_are_told_in_one_line_before_anything_is_asked(wrong, named, tmp_path):
    settings = {**os.environ, "RELET_URL": "http://127.0.0.1:9", "TMPDIR": str(tmp_path), **wrong}
    ended = subprocess.run(
        ["sh", SCRIPT, "work", "books", "true"], capture_output=True, text=True, check=False, timeout=30,
        env={name: value for name, value in settings.items() if value is not None},
    )  # fmt: skip
    assert (ended.returncode, ended.stdout, ended.stderr.count("\n")) == (2, "", 1)
    assert named in ended.stderr


class LosesFirst(BaseHTTPRequestHandler):
    """Passes on each request; of each operation but renew the first answer is lost on the way back."""

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = Request(f"{self.server.target}{self.path}", body, dict(self.headers), method="POST")
        try:
            with urlopen(request, timeout=60) as answer:
                status, told = answer.status, answer.read()
        except HTTPError as refused:
            status, told = refused.code, refused.read()
        if self.path not in [*self.server.lost, "/v1/renew"]:
            self.server.lost.append(self.path)
            status, told = 504, b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(told)))
        self.end_headers()
        self.wfile.write(told)

    def log_message(self, *_):
        pass


@pytest.fixture
def losing(service):
    """A proxy on the way to the service."""
    with ThreadingHTTPServer(("127.0.0.1", 0), LosesFirst) as proxy:
        proxy.target, proxy.lost = service.address, []
        thread = threading.Thread(target=proxy.serve_forever)
        thread.start()
        yield proxy
        proxy.shutdown()
        thread.join()


def test_a_request_whose_answer_was_lost_is_repeated_and_done_once(db, losing, worker):
    db.submit("books", id="t")
    worker(f"http://127.0.0.1:{losing.server_address[1]}")
    eventually(is_done(db, "t"), within=30)
    eventually(lambda: "/v1/complete" in losing.lost)
    assert (kinds(db, "t").count("claimed"), kinds(db, "t").count("completed")) == (1, 1)
    assert (db.task("t").attempt, db.task("t").result, db.rejections("t")) == (1, {"pages": 3}, [])
