"""Behind a proxy a client is known by its own address, as the proxy tells it; nobody else is believed about that."""

import time

import pytest

from relet.core.errors import Invalid
from relet.core.rules.audit import ListAudit
from relet.server.proxies import Behind, trusted
from relet.server.rates import FAILURES
from tests.server.served import Served, ask

PROXY, INNER = "10.0.0.1", "10.0.7.7"
CLIENT, OTHER = "203.0.113.9", "198.51.100.4"


@pytest.fixture
def served(tmp_path):
    served = Served(tmp_path, proxies=[PROXY, "10.0.7.0/24", "fd00::1"])
    yield served
    served.close()


def seen(served, *told, peer=PROXY, **headers):
    """Where a request comes from, as the audit log has it."""
    given = [("X-Forwarded-For", text) for text in told] + list(headers.items())
    reply = served.ask("GET", "/v1/tasks", headers=given, client=peer and (peer, 40_000))
    assert reply.status == 401
    served.loop.run_until_complete(served.written())
    return served.backend.operate(ListAudit(tenant=None, limit=1))[0].address


def test_by_the_word_of_a_proxy_that_is_named_the_client_is_known(served):
    assert seen(served, CLIENT) == CLIENT
    assert seen(served, f"{CLIENT}:51234") == CLIENT
    assert seen(served, CLIENT, peer=INNER) == CLIENT, "one of a network that is named"


def test_what_anybody_else_says_of_it_is_not_believed(served):
    assert seen(served, OTHER, peer=CLIENT) == CLIENT
    assert seen(served, OTHER, peer="10.0.8.1") == "10.0.8.1"
    assert seen(served, PROXY, peer=CLIENT) == CLIENT


def test_without_proxies_nobody_is(tmp_path):
    served = Served(tmp_path)
    try:
        assert seen(served, OTHER, peer="127.0.0.1") == "127.0.0.1"
    finally:
        served.close()


def test_through_two_proxies_it_is_the_last_one_that_is_none_of_them(served):
    assert seen(served, f"{CLIENT}, {INNER}") == CLIENT
    assert seen(served, CLIENT, INNER) == CLIENT, "in two headers as in one"


def test_an_address_has_one_spelling_by_which_it_is_counted(served):
    assert seen(served, "::ffff:203.0.113.9") == "203.0.113.9"
    assert seen(served, "2001:DB8:0::9") == "2001:db8::9"


def test_what_a_client_has_sent_itself_stands_before_and_is_not_reached(served):
    assert seen(served, f"{OTHER}, {CLIENT}") == CLIENT
    assert seen(served, f"{PROXY}, {OTHER}, {CLIENT}, {INNER}") == CLIENT
    assert seen(served, f"rubbish, <b>, {CLIENT}") == CLIENT
    assert seen(served, OTHER, CLIENT) == CLIENT, "in a header of its own, which the proxy left"


@pytest.mark.parametrize("last", [
    "", " ", "unknown", "_hidden", "localhost", "<script>", "a" * 5_000, "203.0.113.9.", "1.2.3.4.5", "::1::2",
    "[fd00::9", "203.0.113.9:x:y", f"203.0.113.9:{'9' * 5_000}", "fe80::9%" + "z" * 5_000, "\xe9", "0x7f.1", "127.1",
])  # fmt: skip
def test_what_is_no_address_is_not_taken_for_one(served, last):
    """It would stand in the audit log, and have a count of wrong keys of its own."""
    assert seen(served, f"{CLIENT}, {last}") == PROXY


def test_an_address_of_ipv6_is_known_in_one_spelling(served):
    for told in ("2001:DB8::0009", "2001:db8:0:0::9", "[2001:db8::9]", "[2001:db8::9]:443"):
        assert seen(served, told) == "2001:db8::9"
        assert seen(served, told, peer="fd00:0::1") == "2001:db8::9"
    assert seen(served, OTHER, peer="fd00::2") == "fd00::2"


def test_whoever_comes_without_an_address_is_not_believed(served):
    """As through a socket of Unix."""
    assert seen(served, OTHER, peer=None) is None


def test_when_all_of_them_are_proxies_it_is_the_first(served):
    assert seen(served, f"{INNER}, {PROXY}") == INNER
    assert seen(served) == PROXY, "and the proxy itself where it says nothing"


def test_a_header_of_any_size_takes_no_time(served):
    began = time.monotonic()
    for text in (f"{OTHER}," * 5_000 + CLIENT, "," * 60_000 + CLIENT, CLIENT + f",{INNER}" * 6_000):
        assert seen(served, text) == CLIENT
    assert time.monotonic() - began < 2


def test_each_client_behind_a_proxy_has_a_count_of_wrong_keys_of_its_own(served):
    def statuses(client, n):
        told = {"headers": [("X-Forwarded-For", f"9.9.9.9, {client}")], "client": (PROXY, 1)}
        return [served.ask("GET", "/v1/whoami", key="wrong", **told).status for _ in range(n)]

    assert statuses(CLIENT, FAILURES.at_once + 10)[-1] == 429
    assert statuses(OTHER, 1) == [401]
    assert statuses(CLIENT, 1) == [429]


def test_the_scheme_is_believed_of_the_same_and_only_a_good_one(served):
    found = []

    async def noting(scope, receive, send):
        found.append(scope["scheme"])
        await send({"type": "http.response.start", "status": 204, "headers": []})

    layer = Behind(noting, [PROXY])
    for peer, told in ((PROXY, "https"), (OTHER, "https"), (PROXY, "gopher"), (PROXY, "")):
        headers = [("X-Forwarded-Proto", told)]
        served.loop.run_until_complete(ask(layer, "GET", "/", headers=headers, client=(peer, 1)))
    assert found == ["https", "http", "http", "http"]


@pytest.mark.parametrize("text", [
    "localhost", "proxy.internal", "10.0.0.1/8", "10.0.0.256", "[::1]", "10.0.0.1:80", "10.0.0.0/33", "",
    "fd00::/129", " 10.0.0.1",
])  # fmt: skip
def test_what_is_no_proxy_is_refused_by_its_name(text):
    with pytest.raises(Invalid, match=r"^proxy: .*no address and no network") as refused:
        trusted([PROXY, text])
    assert refused.value.detail["field"] == "proxy"


@pytest.mark.parametrize("text", ["*", "0.0.0.0/0", "::/0"])
def test_everybody_is_no_proxy(text):
    with pytest.raises(Invalid, match=r"^proxy: .*is everybody"):
        trusted([text])


def test_addresses_and_networks_are():
    given = [PROXY, "10.0.7.0/24", "fd00::1", "fd00:1::/64"]
    assert trusted(given) == given
