"""Flag, then environment, then the folder's file, then the user's file, then the default; wrong ones are named."""

import pytest

from relet.cli.settings import Settings
from relet.core.errors import Invalid

LAYERS = ["flag", "env RELET_TENANT", "relet.toml", "config.toml", "default"]


def setting(done, name):
    (row,) = [row for row in done.json["settings"] if row["name"] == name]
    return row["value"], row["origin"]


@pytest.fixture
def set_in(folder, tmp_path, monkeypatch):
    """Set the tenant in one layer."""

    def put(layer):
        if layer == "env RELET_TENANT":
            monkeypatch.setenv("RELET_TENANT", layer)
        elif layer == "relet.toml":
            (folder / "relet.toml").write_text(f'tenant = "{layer}"')
        elif layer == "config.toml":
            home = tmp_path / "home" / ".config" / "relet"
            home.mkdir(parents=True)
            (home / "config.toml").write_text(f'tenant = "{layer}"')

    return put


@pytest.mark.parametrize("strongest", range(len(LAYERS)))
def test_the_strongest_layer_wins_and_is_named(relet, set_in, strongest):
    for layer in LAYERS[strongest:]:
        set_in(layer)
    args = ["--tenant", "flag"] if strongest == 0 else []
    value, origin = setting(relet("config", "--json", *args), "tenant")
    assert value == LAYERS[strongest]
    assert LAYERS[strongest] in origin


def test_a_project_file_counts_where_there_is_no_file_of_our_own(relet, folder):
    (folder / "pyproject.toml").write_text('[project]\nname = "x"\n[tool.relet]\ntenant = "p"\n')
    value, origin = setting(relet("config", "--json"), "tenant")
    assert (value, origin) == ("p", f"{folder}/pyproject.toml [tool.relet]")
    (folder / "relet.toml").write_text('holder = "h"')
    assert setting(relet("config", "--json"), "tenant") == ("default", "default")


def test_a_project_file_of_others_is_left_alone(relet, folder):
    (folder / "pyproject.toml").write_text("this is [no toml")
    assert relet("config").code == 0


@pytest.mark.parametrize(
    ("file", "text", "words"),
    [
        ("relet.toml", 'urll = "x"', "there is no setting 'urll'; did you mean 'url'?"),
        ("relet.toml", "zzz = 1", "there is no setting 'zzz'; there are color,"),
        ("relet.toml", "[serve]\nport = 1", "there is no setting 'serve'"),
        ("pyproject.toml", "[tool.relet]\nqueue = 1", "there is no setting 'queue'; did you mean 'queues'?"),
        ("pyproject.toml", "[tool]\nrelet = 1 # [tool.relet]", "is not a table"),
        ("relet.toml", "url = ", "cannot be read as TOML"),
        ("relet.toml", "url = 3", "url: 3 is not text"),
        ("relet.toml", 'json = "maybe"', "json: 'maybe' is neither true nor false"),
        ("relet.toml", "queues = []", "queues: [] is no list of names"),
        ("relet.toml", "concurrency = 0", "concurrency: 0 is not a whole number"),
        ("relet.toml", "ttl = true", "ttl: True is not a duration"),
    ],
)
def test_a_wrong_file_is_refused_by_file_and_key(relet, folder, file, text, words):
    (folder / file).write_text(text)
    done = relet("config")
    assert (done.code, done.out) == (2, "")
    assert words in done.err
    assert f"{folder}/{file}" in done.err


@pytest.mark.parametrize(
    ("name", "value"), [("RELET_JSON", "perhaps"), ("RELET_COLOR", "blue"), ("RELET_CONCURRENCY", "many")]
)
def test_a_wrong_variable_is_named(relet, monkeypatch, name, value):
    monkeypatch.setenv(name, value)
    done = relet("config")
    assert done.code == 2
    assert name in done.err


def test_all_kinds_of_values_are_read(relet, folder):
    (folder / "relet.toml").write_text(
        'queues = ["a", "b"]\nconcurrency = 4\nttl = 90\njson = true\ncolor = false\nholder = "h"\nurl = "sqlite:///w.db"\n'
        'listen = "[::1]:80"\nhost_name = "a.org"\nproxy = "10.0.0.1,fd00::/64"\nrate = "6000/m"\n'
        'redact_env = ["MY_KEY", "*_PIN"]\n'
    )
    done = relet("config")
    values = {row["name"]: row["value"] for row in done.json["settings"]}
    assert values == {
        "url": "sqlite:///w.db", "tenant": "default", "holder": "h", "ttl": 90, "queues": ["a", "b"],
        "concurrency": 4, "listen": "[::1]:80", "host_name": ["a.org"],
        "proxy": ["10.0.0.1", "fd00::/64"], "rate": "6000/m", "json": True, "color": False,
        "redact_env": ["MY_KEY", "*_PIN"],
    }  # fmt: skip
    assert done.json["files"] == [f"{folder}/relet.toml"]
    assert done.json["place"] == f"{folder}/w.db"
    assert not (folder / "w.db").exists()


def test_a_table_shows_the_same(relet, monkeypatch):
    monkeypatch.setenv("RELET_QUEUES", "a, b")
    monkeypatch.setenv("RELET_JSON", "no")
    out = relet("config").out
    assert "queues       a,b" in out
    assert "json         false" in out


def test_a_password_in_a_url_is_not_shown(relet, monkeypatch):
    monkeypatch.setenv("RELET_URL", "postgresql://me:secret@db/relet")
    done = relet("config")
    assert "postgresql://me:***@db/relet" in done.out
    assert "secret" not in done.out
    for url in ("postgresql://me@db/relet?password=secret", "postgresql:/me:secret@db/relet"):
        shown = relet("config", "--url", url).out
        assert ("secret" in shown, "***" in shown) == (False, True)


def test_settings_reach_the_commands(relet, folder, db):
    (folder / "relet.toml").write_text('url = "sqlite:///other.db"\ntenant = "blue"\nholder = "H"\nttl = "2m"\n')
    relet("submit", "q", "--id", "t-1")
    assert db.tasks() == []
    claimed = relet("claim", "q").json
    assert (claimed["holder"], claimed["ttl"]) == ("H", 120)
    assert relet("claim", "--task", "t-1", "--tenant", "red").code == 10
    assert relet("ls", "--json").json["tasks"][0]["tenant"] == "blue"


@pytest.mark.parametrize(
    "args",
    [
        ["--url", "sqlite:///w.db", "--tenant", "t", "--json", "config"],
        ["config", "--url", "sqlite:///w.db", "--tenant", "t", "--json"],
        ["--url", "sqlite:///x.db", "--tenant", "t", "config", "--json", "--url", "sqlite:///w.db"],
    ],
)
def test_options_of_every_command_work_before_and_after_it(relet, args):
    done = relet(*args)
    assert setting(done, "url") == ("sqlite:///w.db", "flag")
    assert setting(done, "tenant") == ("t", "flag")


def test_colour_is_asked_for_or_left_out(relet, monkeypatch):
    relet("submit", "q")
    assert "\x1b[" not in relet("ls").out  # no terminal
    assert "\x1b[1m" in relet("ls", "--color").out
    assert "\x1b[1m" in relet("--color", "ls").out
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert "\x1b[" in relet("ls").out
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in relet("ls").out
    assert "\x1b[" in relet("ls", "--color").out
    monkeypatch.delenv("NO_COLOR")
    assert "\x1b[" not in relet("ls", "--no-color").out


def test_a_list_is_told_as_it_was_given():
    with pytest.raises(Invalid, match=r"^--proxy: .* is no list of names; give it once for each"):
        Settings({"proxy": [""]}, {}).value("proxy")
    with pytest.raises(Invalid, match=r"^RELET_PROXY: .* is no list of names; write a,b"):
        Settings({}, {"RELET_PROXY": "a,,b"}).value("proxy")
    assert Settings({}, {"RELET_PROXY": "127.0.0.1, ::1,"}).value("proxy") == ["127.0.0.1", "::1"]
