"""The names that a service is given, and those that a request may call it by."""

import pytest

from relet.core.errors import Invalid
from relet.server.hosts import Hosts, host_names
from relet.server.proxies import trusted


@pytest.mark.parametrize("text", [
    "*", "foo bar", "http://x", "a,b", "", ".", "a..b", "-a", "a-", "c.example:", "c.example:0", "c.example:65536",
    "c.example:x", "[::1", "[::1]x", "::1%eth0", "[fe80::1%eth0]", "10.0.0.256", "1.2.3", "c.example/x", "a@b",
    "a" * 64, ".".join(["a" * 60] * 5), "c.example\n",
])  # fmt: skip
def test_what_no_request_can_name_is_refused_by_its_field(text):
    with pytest.raises(Invalid, match=r"^host_name: .* is no host name or address; ") as refused:
        host_names(["c.example", text])
    assert refused.value.detail["field"] == "host_name"


@pytest.mark.parametrize(("text", "way"), [
    ("a,b", "give it once for each"), ("exämple.com", "write its xn-- form"), ("http://x", "write the host alone"),
    ("x:0", "its port is none of 1 to 65535"),
])  # fmt: skip
def test_the_refusal_says_the_way_out(text, way):
    with pytest.raises(Invalid, match=way):
        host_names([text])


def test_names_and_addresses_are_taken_with_a_port_or_without():
    given = ["C.example.", "my_relet", "xn--exmple-cua.com:8443", "10.0.0.7", "10.0.0.7:80", "::1", "[fd00::7]:443"]
    assert host_names(given) == [
        "c.example", "my_relet", "xn--exmple-cua.com:8443", "10.0.0.7", "10.0.0.7:80", "[::1]", "[fd00::7]:443"
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["c.example:443", "c.example:80"])
def test_a_port_that_browsers_leave_out_may_be_left_out(name):
    hosts = Hosts([name])
    assert all(hosts.has(host) for host in ("c.example", "c.example.", name, "C.Example"))
    assert not any(hosts.has(host) for host in ("c.example:8443", "d.example", "", "c.example..", "."))


def test_of_another_port_it_may_not():
    hosts = Hosts(["c.example:8443"])
    assert (hosts.has("c.example:8443"), hosts.has("c.example.:8443"), hosts.has("c.example")) == (True, True, False)


def test_a_site_is_told_by_its_scheme_where_it_names_no_port():
    hosts = Hosts(["c.example:443"])
    assert hosts.is_site("https://c.example")
    assert not any(
        hosts.is_site(one) for one in ("http://c.example", "https://c.example:444", "null", "https://[", "")
    )


def test_of_proxies_in_one_option_it_says_so_too():
    with pytest.raises(Invalid, match="give it once for each"):
        trusted(["127.0.0.1, ::1"])
