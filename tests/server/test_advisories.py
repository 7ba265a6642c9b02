"""What has gone wrong in services like this one, each as a test of its own, by the number of our list of advisories.

1 Airflow CVE-2020-13927 · 2 Flower CVE-2022-30034 · 3 Airflow CVE-2021-38540 · 4 CVE-2021-35936 ·
5 Dask CVE-2021-42343 · 6 Ray CVE-2023-48022 · 7 Ray CVE-2026-27482 · 8 Prefect CVE-2026-7723 · 9 CVE-2026-3514 ·
10 Temporal CVE-2023-3485 · 11 CVE-2025-14986 · 12 CVE-2025-14987 · 13 CVE-2026-5199 · 14 Airflow CVE-2020-17526 ·
15 CVE-2022-38054 · 16 CVE-2022-41672 · 17 Luigi CVE-2018-1000843 · 18 Airflow CVE-2020-13944 ·
19 CVE-2022-45402 · 20 CVE-2023-42792 · 21 CVE-2024-26280 · 22 CVE-2022-27949 ·
23 CVE-2023-22887 · 24 MLflow CVE-2023-1177 · 29 MCP SDKs CVE-2025-66416.

Of 4, 5 and 6 what needs a process is in test_process.py; 1, 3 and 8 are asked of every route in test_matrix.py, and
10 to 13 of every operation in test_tenants.py. Of 14, 15, 17, 18 and 19 what is about pages, their sessions
and their forms waits for pages: here are the halves that a service without them has.
"""

import hashlib
import logging

import msgspec
import pytest

from relet.core.access import Role, Scope
from relet.core.model import Handle
from relet.core.rules.attach import Attach
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete, Completion
from relet.core.rules.inspect import FindTask
from relet.core.rules.progress import Progress
from relet.core.rules.renew import Renew
from relet.core.rules.save import Save
from relet.core.rules.submit import NewTask, Submit
from relet.server.serving import is_loopback, names_of
from tests.server.served import HOST, Served
from tests.server.test_matrix import METHODS, routes_in, target_of
from tests.server.world import World, raw

TASK = Submit(queue="q", kind="k", tasks=[NewTask(id="t", input=raw(1))])


def paths(served):
    return sorted({target_of(route.path) for route in routes_in(served.app)})


# -- who gets in -----------------------------------------------------------------------------------------------------


def test_adv_01_and_03_everything_but_two_health_checks_is_closed_by_default(served):
    opened = []
    for path in paths(served):
        served.app_forgets_failures()
        opened += [path] if served.ask("GET", path).status != 401 else []
    assert opened == ["/healthz", "/readyz"]


@pytest.mark.parametrize("text", [
    "", " ", "lt_", "lt_000000000000_", "Bearer", "null", "undefined", "admin", "*", "%", "' OR 1=1 --",
])  # fmt: skip
def test_adv_02_what_only_looks_like_a_key_is_none(served, text):
    good = served.key()
    for shown in (text, f"{good}x", f"x{good}", good[:-1], good.upper(), f"{good}\x00", f"{good},{good}"):
        served.app_forgets_failures()
        assert served.ask("GET", "/v1/whoami", key=shown).status == 401, shown


def test_adv_02_only_the_header_carries_a_key(served):
    good = served.key()
    for headers in (
        [("Authorization", f"Basic {good}")], [("Authorization", good)], [("X-Api-Key", good)],
        [("Cookie", f"key={good}; session={good}; Authorization={good}")],
        [("Authorization", f"Bearer {good}"), ("Authorization", "Bearer other")],
    ):  # fmt: skip
        assert served.ask("GET", "/v1/whoami", headers=headers).status == 401, headers
    assert served.ask("GET", f"/v1/whoami?key={good}&access_token={good}").status == 401
    assert served.ask("POST", "/v1/submit", body=msgspec.json.encode({"key": good})).status == 401


@pytest.mark.parametrize(
    "host", ["0.0.0.0", "::", "10.0.0.1", "relet.example", "127.0.0.1.evil.example", "", "localhost."]
)
def test_adv_05_and_06_what_others_reach_is_no_loopback(host):
    assert not is_loopback(host)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_adv_05_what_is_loopback(host):
    assert is_loopback(host)


@pytest.mark.parametrize("path", [
    "/v1/healthz", "/v1/claim/healthz", "/x/healthz", "/x/readyz", "/healthz/", "/healthz/x", "/HEALTHZ", "//healthz",
    "/healthz;x", "/healthz%2f", "/healthz%00", "/readyz/../v1/whoami", "/healthz/../v1/whoami",
    "/v1/whoami/../healthz",
    "/v1/whoami?/healthz", "/v1/artifacts/healthz", "/./healthz",
])  # fmt: skip
def test_adv_09_a_path_that_looks_like_a_health_check_needs_a_key(served, path):
    reply = served.ask("GET", path)
    assert (reply.status, reply.is_problem) == (401, True)


@pytest.mark.parametrize("name", ["health", "healthz", "ready", "readyz", "x/ready", "/healthz"])
def test_adv_09_a_task_or_queue_of_such_a_name_is_as_any_other(served, name):
    key = served.key()
    ask = Submit(queue=name, kind=name, tasks=[NewTask(id=name, input=raw(1))])
    assert served.call(ask, None).status == 401
    assert served.call(ask, key).status == 200
    assert served.call(FindTask(task_id=name), None).status == 401
    assert served.call(FindTask(task_id=name), key).status == 200


def test_adv_14_a_key_of_one_install_opens_nothing_of_another(served, tmp_path):
    other = Served(tmp_path)
    try:
        assert other.ask("GET", "/v1/whoami", key=served.key()).status == 401
        assert served.ask("GET", "/v1/whoami", key=other.key()).status == 401
        victim, twin = World(served, "a"), World(other, "a")
        assert victim.held.token == twin.held.token and victim.held.secret != twin.held.secret
        assert served.call(Renew(handles=[twin.held]), served.key()).json[0]["error"]["code"] == "RELET-HANDLE"
    finally:
        other.close()


def test_adv_15_and_16_a_revoked_key_opens_nothing_from_its_next_request_on(served):
    key = served.key()
    assert served.ask("GET", "/v1/whoami", key=key).status == 200
    served.revoke(key)
    before = served.rows()
    assert served.ask("GET", "/v1/whoami", key=key).status == 401
    assert served.call(TASK, key).status == 401
    assert served.rows() == before


def test_adv_16_nor_does_one_that_has_expired(served):
    key = served.key(expires_ms=60_000)
    served.clock.advance("59s")
    assert served.ask("GET", "/v1/whoami", key=key).status == 200
    served.clock.advance("1s")
    assert served.ask("GET", "/v1/whoami", key=key).status == 401


def test_adv_21_the_audit_log_is_for_its_own_scope(served):
    for role in Role:
        assert (served.ask("GET", "/v1/audit", key=served.key(role)).status == 200) == (role is Role.ADMIN), role
    assert served.ask("GET", "/v1/audit", key=served.key(Role.VIEWER, scopes=[Scope.AUDIT])).status == 200


# -- from where ------------------------------------------------------------------------------------------------------

ELSEWHERE = ["http://evil.example", "http://relet.test:3000", "http://relet.test", "null", "file://", "http://", "x",
             "http://[", "http://relet.test:8787.evil.example",
             "http://evil.example#relet.test:8787", "http://relet.test:8787@evil.example"]  # fmt: skip


@pytest.mark.parametrize("origin", ELSEWHERE)
def test_adv_07_17_and_29_a_page_of_another_site_may_ask_nothing_by_any_method(served, origin):
    key, before = served.key(), served.rows()
    for path in paths(served):
        for method in METHODS:
            reply = served.ask(method, path, key=key, headers=[("Origin", origin)])
            assert (reply.status, reply.is_problem) == (403, True), (path, method)
    assert served.rows() == before


@pytest.mark.parametrize("site", ["cross-site", "same-site", "?"])
@pytest.mark.parametrize("method", METHODS)
def test_adv_17_nor_may_what_a_browser_says_comes_from_one(served, site, method):
    reply = served.ask(method, "/v1/submit", key=served.key(), headers=[("Sec-Fetch-Site", site)])
    assert reply.status == 403


@pytest.mark.parametrize("kind", [
    "text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/xml", "",
    "application/jsonp", "application/json-patch+json",
])  # fmt: skip
def test_adv_17_what_a_form_can_send_is_not_read(served, kind):
    before = served.rows()
    reply = served.call(TASK, served.key(), headers=[("Content-Type", kind)])
    assert (reply.status, reply.code) == (415, "RELET-MEDIA-TYPE")
    assert served.rows() == before


HOSTS = ["evil.example", "evil.example:8787", "", "relet.test.evil.example", "relet.test:8787:1", "xrelet.test:8787",
         "169.254.169.254", "relet.test:8787@evil.example", "relet.test :8787",
         "relet.test:8787,evil.example"]  # fmt: skip


@pytest.mark.parametrize("host", HOSTS)
def test_adv_29_a_name_that_is_not_the_services_own_is_misdirected(served, host):
    """What a rebound name of somebody else's leads here is none of ours, also where a health check is asked for."""
    key, before = served.key(), served.rows()
    for path in ("/healthz", "/v1/whoami", "/v1/submit", "/v1/changes/stream", "/openapi.json"):
        reply = served.ask("GET", path, key=key, host=host)
        assert (reply.status, reply.code, reply.json["facts"]["field"]) == (421, "RELET-WRONG-HOST", "Host")
    assert served.rows() == before


def test_adv_29_its_own_names_are_answered_in_any_case_and_from_its_own_pages(served):
    key = served.key()
    assert served.ask("GET", "/v1/whoami", key=key, host=HOST.upper()).status == 200
    assert served.ask("GET", "/v1/whoami", key=key, headers=[("Origin", f"http://{HOST}")]).status == 200


def test_adv_29_what_listens_on_loopback_answers_to_loopback_alone():
    assert set(names_of(("127.0.0.1", 8787), [])) == {
        name for host in ("127.0.0.1", "localhost", "[::1]") for name in (host, f"{host}:8787")
    }
    assert "evil.example" not in names_of(("0.0.0.0", 8787), ["relet.example"])


def test_adv_29_no_other_site_is_told_that_it_may_read(served):
    for headers in ([], [("Origin", f"http://{HOST}")], [("Access-Control-Request-Method", "POST")]):
        for method in ("GET", "OPTIONS", "POST"):
            reply = served.ask(method, "/v1/whoami", key=served.key(), headers=headers)
            assert not [name for name in reply.headers if name.startswith("access-control-")]


# -- what is named ---------------------------------------------------------------------------------------------------


def test_adv_10_a_lease_that_nobody_granted_opens_nothing(served):
    world, key = World(served, "a"), served.key()
    held = world.held
    before = served.rows()
    for forged in (
        Handle(held.task_id, held.token, "0" * 32), Handle(held.task_id, held.token, ""),
        Handle(held.task_id, held.token + 1, held.secret), Handle(world.id("done"), held.token, held.secret),
        Handle(held.task_id, 0, held.secret), Handle(held.task_id, (1 << 53) - 1, held.secret),
    ):  # fmt: skip
        reply = served.call(Save(handle=forged, name="main", value=raw(1)), key)
        assert (reply.status, reply.code) == (404, "RELET-HANDLE"), forged
    assert served.rows() == before


def test_adv_10_a_good_lease_is_no_credential(served):
    world, before = World(served, "a"), None
    before = served.rows()
    request = Save(handle=world.held, name="main", value=raw(1))
    assert served.call(request, None).status == 401
    assert served.call(request, served.key(Role.VIEWER)).status == 403
    assert served.call(request, served.key(tenant="b")).status == 404
    assert served.rows() == before


def test_adv_12_a_completion_carries_nothing_for_another_tenant(served):
    victim, attacker, key = World(served, "a"), World(served, "b"), served.key(tenant="b")
    reply = served.call(Complete(completions=[], next=Claim(holder="A", task_id=victim.id("ready"))), key)
    assert victim.id("ready") in reply.json["grants"]["error"]["message"]
    assert victim.ask(FindTask(task_id=victim.id("ready"))).state == "ready"
    assert attacker.ask(FindTask(task_id=attacker.id("held"))).state == "leased"


@pytest.mark.parametrize("field", ["tenant", "key", "role", "scopes", "access", "queues_allowed", "__class__"])
def test_adv_13_nobody_says_in_a_request_who_they_are(served, field):
    key, before = served.key(Role.WORKER, tenant="b"), served.rows()
    body = msgspec.json.encode({"queue": "q", "kind": "k", "tasks": [{"id": "t", "input": 1}], field: "a"})
    reply = served.ask("POST", "/v1/submit", key=key, body=body)
    assert (reply.status, reply.json["facts"]["field"]) == (400, field)
    for headers in ([("X-Tenant", "a")], [("X-Forwarded-User", "admin")], [("Forwarded", "for=127.0.0.1;by=admin")]):
        assert served.ask("GET", "/v1/whoami", key=key, headers=headers).json["tenant"] == "b"
    assert served.ask("GET", "/v1/whoami?tenant=a", key=key).json["facts"]["field"] == "query"
    assert served.rows() == before


def test_adv_19_nobody_is_sent_elsewhere(served):
    for path in ("/v1/whoami/", "//evil.example", "//evil.example/v1/whoami/", "/v1/whoami?next=//evil.example",
                 "/\\evil.example", "/v1//whoami", "/login?next=https://evil.example"):  # fmt: skip
        reply = served.ask("GET", path, key=served.key())
        assert not 300 <= reply.status < 400 and "location" not in reply.headers, path


def test_adv_20_notes_and_labels_are_under_the_same_key_as_the_task(served):
    world, key = World(served, "a"), served.key(queues=["elsewhere"])
    before = served.rows()
    assert served.call(Progress(handle=world.held, note="mine now"), key).status == 404
    labelled = Submit(queue="elsewhere", kind="k", labels={"queue": "q"}, tasks=[NewTask(id="n", input=raw(1))])
    assert served.rows() == before
    assert served.call(labelled, key).status == 200
    assert served.ask("POST", "/v1/tasks", key=key, body=b'{"which":{"labels":{"queue":"q"}}}').status == 403


def test_adv_18_what_goes_out_is_no_page(served):
    script = "<script>alert(1)</script>"
    key, bytes_ = served.key(), f"<html>{script}".encode()
    digest = hashlib.sha256(bytes_).hexdigest()
    path = f"/v1/artifacts/{digest}"
    assert served.ask("PUT", path, key=key, body=bytes_).status == 204
    replies = [served.ask("GET", f"/{script}", key=key), served.call(FindTask(task_id=script), key),
               served.ask("GET", f"/v1/changes/stream?after={script}", key=key),
               served.ask("GET", path, key=key)]  # fmt: skip
    for reply in replies:
        assert reply.headers["content-type"].split(";")[0] in (
            "application/json", "application/problem+json", "application/octet-stream"
        )  # fmt: skip
        assert reply.headers["x-content-type-options"] == "nosniff"
    assert replies[-1].headers["content-disposition"] == "attachment"
    assert replies[-1].headers["content-security-policy"] == "sandbox"


# -- secrets ---------------------------------------------------------------------------------------------------------


def test_adv_22_a_key_is_in_no_answer_no_log_and_no_row(served, caplog):
    key, wrong = served.key(), served.key()
    served.revoke(wrong)
    caplog.set_level(logging.DEBUG)
    secrets = [key.split("_", 2)[2].encode(), wrong.split("_", 2)[2].encode()]
    said = []
    for shown in (key, wrong, f"{key}x"):
        for method in ("GET", "POST", "PUT", "DELETE"):
            served.app_forgets_failures()
            ways = [*paths(served), f"/v1/{shown}", f"/{shown}/x", f"/v1/artifacts/{shown}",
                    f"/v1/changes/stream?after={shown}", f"/v1/audit?before={shown}"]  # fmt: skip
            said += [served.ask(method, path, key=shown, body=b"[]") for path in ways]
    served.ask("GET", "/v1/whoami", host=key)
    served.loop.run_until_complete(served.written())
    said.append(served.ask("GET", "/v1/audit", key=key))
    for secret in secrets:
        assert not [reply for reply in said if secret in reply.body or secret in repr(reply.headers).encode()]
        assert secret.decode() not in caplog.text
        assert not [path for path in served.folder.rglob("*") if path.is_file() and secret in path.read_bytes()]


# -- odd names -------------------------------------------------------------------------------------------------------

WAYS_OUT = ["..", "../..", "../../etc/passwd", "..%2f..%2fetc%2fpasswd", "%2e%2e%2f%2e%2e%2fetc%2fpasswd",
            "....//....//etc/passwd", "..\\..\\windows", "%5c..%5c", "/etc/passwd", "%2fetc%2fpasswd", "C:\\boot.ini",
            "file:///etc/passwd", "sha256/aa/bb", "%00", "a%00b", "0" * 63, "0" * 65, "A" * 64, "g" * 64, "~", ".",
            "*", "0" * 64 + "%0a", "%0a" + "0" * 64, "0" * 64 + "/..", "artifact:" + "0" * 64, "\u0660" * 64,
            "😀", "x" * 5_000]  # fmt: skip


@pytest.mark.parametrize("way", WAYS_OUT, ids=range(len(WAYS_OUT)))
@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT"])
def test_adv_24_no_path_leads_out_of_the_place_of_artifacts(served, method, way):
    key = served.key()
    before = {path for path in served.folder.rglob("*") if path.suffix != ".lock"}
    reply = served.ask(method, f"/v1/artifacts/{way}", key=key, body=b"evil")
    assert reply.status in (400, 404, 405), reply
    assert reply.is_problem
    assert b"root:" not in reply.body
    assert {path for path in served.folder.rglob("*") if path.suffix != ".lock"} - before == set()


@pytest.mark.parametrize("name", ["../x", "a/b", "..", ".", "", "a\\b", "x\x00", "a" * 201, "/etc/passwd"])
def test_adv_24_nor_does_the_name_of_one(served, name):
    world = World(served, "a")
    naming = msgspec.structs.replace(world.attach(), name=name)
    assert isinstance(naming, Attach)
    reply = served.call(naming, served.key())
    assert (reply.status, reply.json["facts"]["field"]) == (400, "name")


ODD = ["../../etc/passwd", "a/b/../c", "%2e%2e", "\\..\\", "'; DROP TABLE tasks; --", '") OR 1=1', "*", "_", "%",
       "😀", "\u202egpj.exe", "a" * 200, "health/ready", "{{7*7}}", "${jndi:ldap://x}", "<b>", "-rf", "--help",
       "null"]  # fmt: skip


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_adv_23_an_odd_id_is_an_id_and_nothing_else(served, text):
    key = served.key()
    World(served, "a")
    ask = Submit(queue=text, kind=text, tasks=[NewTask(id=text, input=raw(text))], labels={text: text})
    assert served.call(ask, key).status == 200
    assert served.call(FindTask(task_id=text), key).json["id"] == text
    (grant,) = served.call(Claim(holder=text, queues=[text]), key).json
    handle = msgspec.convert(grant["handle"], Handle)
    assert handle.task_id == text
    done = Completion(handle=handle, result=raw(text))
    assert served.call(Complete(completions=[done]), key).status == 200


@pytest.mark.parametrize("text", ["", "a" * 201, "a\x00b", "a\nb", "\x7f", "\x1b[31m"], ids=range(6))
@pytest.mark.parametrize("operation", ["task", "history", "steps", "artifacts", "cancel", "requeue"])
def test_adv_23_one_that_no_store_keeps_is_refused_by_its_field(served, operation, text):
    key, before = served.key(), served.rows()
    reply = served.ask(
        "POST", f"/v1/{operation}", key=key, body=msgspec.json.encode({"task_id": text, "reason": "r"})
    )
    assert reply.status == 400 and reply.is_problem
    assert served.rows() == before
