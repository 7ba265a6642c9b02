"""A URL that is no address is refused by every command, with what to write, and without a part of its password."""

import pytest

import relet
from relet.cli.main import run
from relet.connect import diagnose
from relet.core.errors import Invalid
from relet.store.postgres.place import conninfo_of, located, place_of

pytestmark = pytest.mark.postgres
NO_ADDRESS = {
    "postgresql://db/work?foo=bar": r"URI query parameter: \"foo\"",
    "postgresql://db/work?schema=jobs": "a schema is named after a #, as in",
    "postgresql://me:hush%zz@db/work": "percent-encoded token",
    "postgresql://me:hush%ff@db/work": "write %25 for a %",
    "postgresql://db/my db": "a space, as % and two digits",
    "postgresql://me:hush@[::1/work": "is not the address",
    "postgresql:/me:hush@db/work": "does not begin with postgresql://",
    "postgresql:host=db password=hush": "does not begin with postgresql://",
    "postgresql://me:xyzzy#hush@db/work": "write %23 for a #",
    "postgresql://me:xyzzy#plugh#hush@db/work": "write %23 for a #",
    "postgresql://me:xyzzy@hush@db/work": "write %40 for an @",
    "postgresql://me:xyzzy/hush@db/work": "%2F for a /",
    "postgresql://me:hush/work": "its port is no number of 1 to 65535",
    "postgresql://db:99999/work": "its port is no number of 1 to 65535",
    "postgresql://db:0/work": "its port is no number of 1 to 65535",
    "postgresql://db/work?password=xyzzy&hush": "is not the address",
    "postgresql://db/work?password=xyzzy&hush=1": "is not the address",
    "postgresql://db/work?password=xyzzy#Hush": "write %23 for a #",
    "postgresql://me:hush@db/work?connect_timeout=x": "connect_timeout is no whole number",
    "postgresql://me:hush@db/wo\nrk": "a line break, or another",
    "postgresql://me:hush@db/wo\udcffrk": "a line break, or another",
}
COMMANDS = [
    ["stats"], ["ls"], ["prune"], ["verify"], ["tenants"], ["limits"], ["limits", "q", "--rate", "1/s"],
    ["show", "t"], ["result", "t"], ["demo"], ["doctor"], ["migrate"], ["submit", "q"], ["claim", "q"],
    ["sweep"], ["advise"],
]  # fmt: skip


@pytest.mark.parametrize("url", NO_ADDRESS, ids=ascii)
def test_it_is_refused_with_what_to_write(url):
    for look in (conninfo_of, lambda at: place_of(at, "relet"), relet.connect, lambda at: diagnose(at, "default")):
        with pytest.raises(Invalid, match=NO_ADDRESS[url]) as refused:
            look(url)
        assert (refused.value.code, refused.value.detail["field"]) == ("RELET-INVALID", "url")
        told = f"{refused.value} {refused.value.detail}".lower()
        assert not [part for part in ("hush", "xyzzy", "plugh") if part in told]
        assert refused.value.__cause__ is None


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_every_command_ends_as_for_what_is_used_wrongly(command, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for url in ("postgresql://me:hush%zz@db/work?foo=bar", "postgresql://me:xyzzy@hush@127.0.0.1:1/work"):
        code = run([*command, "--url", url])
        out, err = capsys.readouterr()
        assert (code, "[RELET-INVALID]" in err, "hush" in out + err) == (2, True, False)


def test_a_scheme_that_is_unknown_is_told_without_what_stands_after_it():
    for url in ("postgresql+psycopg://me:hush@db/work", "POSTGRESQL://me:hush@db/work", "mysql://me:hu#sh@db/work"):
        with pytest.raises(Invalid, match="no known scheme") as refused:
            relet.connect(url)
        assert "sh@" not in str(refused.value)


@pytest.mark.parametrize(
    ("url", "password"),
    [
        ("postgresql://me:p%40%23%2F%25@db/work#jobs", "p@#/%"),
        ("postgresql://me:a?b:c@db/work", "a?b:c"),
        ("postgresql://me@db/work?password=p%26q", "p&q"),
    ],
)
def test_what_is_written_as_it_should_be_is_taken(url, password):
    database, schema = located(url, None)
    assert f"password={password}" in conninfo_of(database).replace("'", "")
    assert place_of(database, schema).startswith("postgresql://db/work")


def test_a_socket_may_have_an_at_in_its_name():
    assert "host=@relet" in conninfo_of("postgresql://me@/work?host=@relet")


@pytest.mark.parametrize(
    "setting",
    [
        "sslmode=bogus", "target_session_attrs=bogus", "load_balance_hosts=bogus", "ssl_min_protocol_version=bogus",
        "service=bogus", "hostaddr=127.0.0.1,127.0.0.1", "port=1,2", "connect_timeout=bogus",
    ],
)  # fmt: skip
def test_a_setting_that_can_never_work_is_told_by_its_name(setting, capsys):
    url = f"postgresql://me:hush@127.0.0.1/work?{setting}"
    with pytest.raises(Invalid, match=f"{setting.partition('=')[0]}|host") as refused:
        relet.connect(url)
    assert (refused.value.code, refused.value.detail["field"]) == ("RELET-INVALID", "url")
    for command in ("doctor", "stats"):
        assert run([command, "--url", url]) == 2
    assert "hush" not in f"{refused.value} {capsys.readouterr().err}"


def test_a_setting_of_the_environment_that_can_never_work_is_told(monkeypatch):
    monkeypatch.setenv("PGPORT", "99999")
    with pytest.raises(Invalid, match=r"invalid port number.*PG… of the environment"):
        relet.connect("postgresql://me:hush@127.0.0.1/work")


def test_a_setting_that_the_server_does_not_know_is_told(database):
    with pytest.raises(Invalid, match="unrecognized configuration parameter"):
        relet.connect(f"{database}&options=-cnosuch%3D1")
