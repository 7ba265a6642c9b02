"""The schema of a file of settings: every setting is in it, and what it lets through is read."""

import json
import tomllib

import jsonschema
import pytest

from relet.cli.schema import FORMS, document
from relet.cli.settings import SETTINGS
from relet.core.errors import Invalid

VALUES = [
    "",
    "a",
    " ",
    "a,b",
    "90s",
    "true",
    "4",
    0,
    1,
    4,
    -1,
    1.5,
    True,
    False,
    [],
    ["a"],
    ["a", "b"],
    [" "],
    [1],
    {},
]


def lets_through(value, schema):
    return jsonschema.Draft202012Validator(schema).is_valid(value)


def test_it_is_a_schema_and_names_every_setting(relet):
    jsonschema.Draft202012Validator.check_schema(document())
    assert list(document()["properties"]) == [setting.name for setting in SETTINGS]
    assert json.loads(relet("config", "--schema").out) == document()


def test_it_is_printed_where_the_settings_themselves_are_wrong(relet, folder):
    (folder / "relet.toml").write_text("urll = 1")
    assert relet("config").code == 2
    assert relet("config", "--schema").code == 0


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda one: one.name)
def test_what_it_lets_through_is_read_and_some_of_it_is(setting):
    good = [value for value in VALUES if lets_through({setting.name: value}, document())]
    assert good
    for value in good:
        setting.read(setting.name, value)


@pytest.mark.parametrize("read", FORMS, ids=lambda one: one.__name__)
def test_what_no_file_may_hold_is_refused_by_it_too(read):
    for value in VALUES:
        try:
            read("x", value)
        except Invalid:
            assert not lets_through(value, FORMS[read]), value


@pytest.mark.parametrize(
    ("text", "good"),
    [
        (
            'listen = "0.0.0.0:8787"\nhost_name = ["relet.example.com"]\nttl = "2m"\nconcurrency = 4\njson = true',
            True,
        ),
        ('urll = "x"', False),
        ("concurrency = 0", False),
        ("json = 1", False),
    ],
)
def test_a_whole_file_is_judged(text, good):
    assert lets_through(tomllib.loads(text), document()) is good
