"""What is in deploy/ is read as the programs read it that it is made for; its commands and variables are relet's."""

import ipaddress
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import click
import pytest
import yaml

from relet.server.serving import GRACE_S, IDLE_S
from tests.docs.test_commands import inline, parse

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
UNITS = [DEPLOY / "relet.service", DEPLOY / "relet-worker@.service"]
BINARY = "/opt/relet/bin/relet"
VARIABLE = re.compile(r"\bRELET_[A-Z_]+\b")
OURS = [
    DEPLOY / name for name in ("Caddyfile", "Containerfile", "compose.yaml", "entry.sh", "relet.sysusers")
] + UNITS  # fmt: skip


def text_of(path):
    return path.read_text(encoding="utf-8")


def settings_of(unit):
    """What a unit sets, each name with all that it is set to."""
    found = {}
    for line in text_of(unit).splitlines():
        name, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            found.setdefault(name, []).append(value)
    return found


def container(begins):
    """The words of a command in the container's file, by what stands before it in its line."""
    (words,) = re.findall(rf"^{begins}CMD (\[.*\])$", text_of(DEPLOY / "Containerfile"), re.MULTILINE)
    return json.loads(words)


def compose():
    return yaml.safe_load(text_of(DEPLOY / "compose.yaml"))


def commands():
    yield "Containerfile", container("")
    yield "compose.yaml", compose()["services"]["relet"]["command"]
    for unit in UNITS:
        (start,) = settings_of(unit)["ExecStart"]
        binary, *words = shlex.split(start.replace("%i", "work:app"))
        assert binary == BINARY
        yield unit.name, words
    for path in OURS:
        yield from ((path.name, shlex.split(one)) for one in inline(path))


def misused(words):
    try:
        parse(list(words))
    except click.UsageError as wrong:
        return wrong.format_message()
    return None


def test_every_command_is_one_that_there_is():
    found = list(commands())
    assert {name for name, _ in found} >= {
        "Containerfile",
        "compose.yaml",
        "Caddyfile",
        *(unit.name for unit in UNITS),
    }
    assert [(name, words, wrong) for name, words in found if (wrong := misused(words))] == []


def test_a_command_that_there_is_not_is_found():
    assert "--lissten" in misused(["serve", "--lissten", "127.0.0.1:8787"])
    assert misused(["servee"])


def known_variables():
    return {name for path in (ROOT / "src").rglob("*.py") for name in VARIABLE.findall(text_of(path))}


@pytest.mark.parametrize("path", OURS, ids=lambda path: path.name)
def test_every_variable_is_one_that_relet_reads(path):
    assert set(VARIABLE.findall(text_of(path))) <= known_variables()


def test_the_container_runs_as_nobody_in_particular_and_keeps_its_store_in_its_volume():
    text = text_of(DEPLOY / "Containerfile")
    (user,) = re.findall(r"^USER (\d+):\d+$", text, re.MULTILINE)
    assert int(user) > 0
    (volume,) = re.findall(r"^VOLUME (\S+)$", text, re.MULTILINE)
    assert f"RELET_URL=sqlite:///{volume}/" in text
    assert f"RELET_STATE_DIR={volume}/" in text
    for source in re.findall(r"^COPY (?!--from)(?:--\S+ )*(.+) \S+$", text, re.MULTILINE):
        assert all((ROOT / one).exists() for one in source.split())


def test_what_a_service_of_the_compose_file_names_is_in_it():
    told = compose()
    for name, service in told["services"].items():
        named = {one.partition(":")[0] for one in service["volumes"] if ":" in one}
        assert named <= told["volumes"].keys(), name
        assert set(service.get("secrets", ())) <= told["secrets"].keys()
        assert service.get("depends_on", {}).keys() <= told["services"].keys()
        assert all(port.startswith("127.0.0.1:") for port in service.get("ports", ()))
        assert "PASSWORD" not in {key for key in service["environment"] if not key.endswith("_FILE")}
    (network,) = told["networks"]["default"]["ipam"]["config"]
    relet = told["services"]["relet"]
    assert ipaddress.ip_address(network["gateway"]) in ipaddress.ip_network(network["subnet"])
    assert relet["command"][relet["command"].index("--proxy") + 1] == network["gateway"]
    assert (ROOT / "deploy" / relet["build"]["context"] / relet["build"]["dockerfile"]).is_file()


class Answers(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(self.server.status if self.path == "/healthz" else 404)
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.mark.parametrize(("status", "well"), [(200, True), (503, False)])
def test_the_health_check_of_the_container_tells_well_from_unwell(status, well):
    python, *words = container(" +")
    assert compose()["services"]["relet"]["healthcheck"]["test"] == ["CMD", python, *words]
    with HTTPServer(("127.0.0.1", 0), Answers) as server:
        server.status = status
        threading.Thread(target=server.handle_request, daemon=True).start()
        words = [word.replace(":8787", f":{server.server_address[1]}") for word in words]
        done = subprocess.run([sys.executable, *words], capture_output=True, timeout=30, check=False)
    assert (done.returncode == 0) is well, done.stderr


def test_the_entry_takes_the_password_from_a_file_and_becomes_relet(tmp_path):
    (tmp_path / "relet").write_text('#!/bin/sh\necho "$PGPASSWORD $* $PPID"\n')
    (tmp_path / "relet").chmod(0o755)
    (tmp_path / "password").write_text("p w\n")
    done = subprocess.run(
        ["sh", DEPLOY / "entry.sh", "serve", "--host-name", "a b"], capture_output=True, text=True, timeout=30,
        check=True,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PGPASSWORD_FILE": str(tmp_path / "password")},
    )  # fmt: skip
    assert done.stdout == f"p w serve --host-name a b {os.getpid()}\n"


def judged(unit, folder):
    """What systemd says of a unit, where there is one: nothing, when all is well."""
    if shutil.which("systemd-analyze") is None:
        return ""
    relet = Path(sys.executable).with_name("relet")
    target = folder / unit.name
    target.write_text(text_of(unit).replace(BINARY, str(relet)), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", target], capture_output=True, text=True, timeout=60, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_has_nothing_that_systemd_does_not_know(unit, tmp_path):
    assert judged(unit, tmp_path) == ""


@pytest.mark.parametrize("unit", UNITS, ids=lambda unit: unit.name)
def test_a_unit_is_confined_and_comes_back(unit):
    told = settings_of(unit)
    for name in ("NoNewPrivileges", "PrivateTmp", "ProtectHome", "RestrictNamespaces"):
        assert told[name] == ["yes"], name
    assert (told["ProtectSystem"], told["CapabilityBoundingSet"], told["Restart"]) == (["strict"], [""], ["always"])
    assert "User" in told or told["DynamicUser"] == ["yes"]
    assert "ProcSubset" not in told  # the boot's id is read there


def seconds(text):
    return int(text.removesuffix("s"))


def test_what_ends_is_given_the_time_for_it():
    worker, service = settings_of(UNITS[1]), settings_of(UNITS[0])
    (grace,) = re.findall(r"--grace (\S+)", worker["ExecStart"][0])
    assert seconds(worker["TimeoutStopSec"][0]) > seconds(grace) + 5
    assert worker["KillMode"] == ["mixed"]
    assert seconds(service["TimeoutStopSec"][0]) > GRACE_S + 5
    assert seconds(compose()["services"]["relet"]["stop_grace_period"]) > GRACE_S + 5


def test_the_proxy_lets_a_line_go_before_the_service_does():
    (kept,) = re.findall(r"keepalive (\S+)", text_of(DEPLOY / "Caddyfile"))
    assert seconds(kept) < IDLE_S
