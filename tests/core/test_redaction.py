"""What is secret leaves texts before people read them: by its value, by its form, by its name; the rest stays."""

import json
import logging
from urllib.parse import quote, quote_plus

import msgspec
import pytest

from relet.core import border
from relet.core.errors import Conflict, Invalid
from relet.core.problem import problem_of
from relet.core.redaction import REDACTED, SECRETS, Secrets, redact
from relet.core.secret_names import secret_words

CANARY = "c4n4ry-Värde \"7\" & 'x'"


@pytest.fixture
def secrets():
    return Secrets()


@pytest.fixture
def ours():
    """Those of this process, which are none again afterwards."""
    SECRETS.forget()
    yield SECRETS
    SECRETS.forget()


@pytest.mark.parametrize("form", [
    str, repr, ascii, json.dumps, quote_plus,
    pytest.param(lambda value: json.dumps(value, ensure_ascii=False), id="json"),
    pytest.param(lambda value: quote(value, safe=""), id="percent"),
])  # fmt: skip
def test_a_registered_value_leaves_in_every_form_in_which_it_is_written(secrets, form):
    secrets.add(CANARY)
    text = secrets.text(f"before {form(CANARY)} after")
    assert "c4n4ry" not in text
    assert text.startswith("before ") and text.endswith(" after") and REDACTED in text


def test_the_longest_one_is_found_first_whenever_it_was_added(secrets):
    secrets.add("abcdef")
    assert secrets.text("abcdefgh") == f"{REDACTED}gh"
    secrets.add("abcdefgh")
    assert secrets.text("abcdefgh") == REDACTED


def test_of_one_with_lines_each_long_one_leaves(secrets):
    secrets.add("first-line\nx\n second-line \n")
    assert secrets.text("it says second-line, x") == f"it says {REDACTED}, x"


@pytest.mark.parametrize("value", ["", "s-ort", 123456, None])
def test_what_is_too_short_is_refused_by_name_and_not_shown(secrets, value):
    with pytest.raises(Invalid, match="at least 6") as caught:
        secrets.add(value, "DB_PASS")
    assert caught.value.detail["field"] == "DB_PASS"
    assert not value or str(value) not in str(caught.value)


@pytest.mark.parametrize(("before", "after"), [
    ("401 for https://api.example/v1?api_key=c4n&page=2", "401 for https://api.example/v1?api_key=[redacted]&page=2"),
    ("postgresql://me:c4n@db/work is away", "postgresql://me:[redacted]@db/work is away"),
    ("https://ghp_0123456789abcdef@git.example/x", "https://[redacted]@git.example/x"),
    ("{'Authorization': 'Bearer c4n.c4n'}", "{'Authorization': '[redacted]'}"),
    ("Authorization: Bearer 0123456789abcdef== was refused", "Authorization: Bearer [redacted] was refused"),
    ("X-Api-Key: c4n-c4n\nAccept: */*", "X-Api-Key: [redacted]\nAccept: */*"),
    ("Cookie: sid=c4n; other=c4n\nAccept: */*", "Cookie: [redacted]\nAccept: */*"),
    ('{"user": "u", "clientSecret": "c\\"4n", "n": 1}', '{"user": "u", "clientSecret": "[redacted]", "n": 1}'),
    ('it sent {\\"password\\": \\"c4n\\"}', 'it sent {\\"password\\": [redacted]\\"}'),
    ("{'password': 'c4n", "{'password': [redacted]"),
    ("token=13c4n", "token=[redacted]"), ("X-TOKEN=c4n and token=5", "X-TOKEN=[redacted] and token=5"),
    ("run --api-key=c4n --n=2", "run --api-key=[redacted] --n=2"),
    ("DB_PASSWORD=c4n HOME=/x", "DB_PASSWORD=[redacted] HOME=/x"),
    ('body="password=c4n"', 'body="password=[redacted]"'),
    ("password: c4n-c4n", "password: [redacted]"),
    (f"key lt_{'0' * 12}_{'A' * 43}", "key [redacted]"),
    (f"handle r1.5.{'0' * 32}.dA", "handle [redacted]"),
])  # fmt: skip
def test_what_is_secret_by_its_form_or_its_name_leaves_a_text(secrets, before, after):
    told = secrets.text(before)
    assert "c4n" not in told
    assert told.replace(f"'{REDACTED}'", REDACTED).replace(f'"{REDACTED}"', REDACTED) == after.replace(
        f"'{REDACTED}'", REDACTED
    ).replace(f'"{REDACTED}"', REDACTED)
    assert secrets.text(told) == told


@pytest.mark.parametrize("text", [
    "", "attempt 2 begins (task=t token=4294967301 attempt=2 holder=w reason=-)", "token=- token=None",
    "token: 5 is not the newest", "Authorization: is not one `Bearer KEY`; send the key",
    "Authorization: Bearer KEY", "password: is missing", "secret: unknown", "max_tokens=100 keys=5 tokenizer=fast",
    "postgresql://me:***@db/work?password=***&x=1", "http://127.0.0.1:8787/v1?queue=a", "cookie: none",
    "a" * 300 + "_token=x",
])  # fmt: skip
def test_everything_else_stays(secrets, text):
    assert secrets.text(text) == text


def test_a_long_text_is_looked_through_in_no_time(secrets):
    for piece in ("a", '"', 'a="', "://", "x: ", "password=", "\\", "token:'", " "):
        secrets.text(piece * 20_000)


@pytest.mark.parametrize(("name", "is_secret"), [
    ("password", True), ("DB_PASSWORD", True), ("apiKey", True), ("X-Api-Key", True), ("API_KEY", True),
    ("accessToken", True), ("OPENAI_API_KEY", True), ("client.secret", True), ("Set-Cookie", True),
    ("AWS_SECRET_ACCESS_KEY", True), ("HTTPAuthorization", True), ("privateKey", True), ("PGPASSWORD", True),
    ("key", False), ("primary_key", False), ("tokens", False), ("max_tokens", False), ("tokenizer", False),
    ("secretary", False), ("keys", False), ("passwordless", False), ("a" * 201 + "_password", False),
])  # fmt: skip
def test_a_name_is_a_secrets_by_its_words(name, is_secret):
    assert bool(secret_words(name)) is is_secret


class Noun(msgspec.Struct, frozen=True):
    token: int
    input: object
    error: str | None = None


def test_of_a_noun_only_what_is_secret_is_hidden_and_the_noun_itself_stays(secrets):
    secrets.add("c4n4ry")
    noun = Noun(7, {"db": {"password": "x", "token": 7, "pin": [1]}, "secret": {"a": 1}, "c4n4ry": None}, "c4n4ry!")
    seen = secrets.shown([noun, (noun,), Noun(1, {"password": None, "secret": False, "api_key": 5}), 5])
    hidden = Noun(
        7, {"db": {"password": REDACTED, "token": 7, "pin": [1]}, "secret": REDACTED, REDACTED: None}, f"{REDACTED}!"
    )
    assert seen == [hidden, (hidden,), Noun(1, {"password": None, "secret": False, "api_key": REDACTED}), 5]
    assert noun.error == "c4n4ry!"
    plain = Noun(7, {1: "plain"})
    assert secrets.shown(plain) is plain


def test_an_environment_is_looked_at_once_by_names_like_those_of_secrets(secrets):
    secrets.watch({
        "MY_API_KEY": "value-1", "PGPASSWORD": "value-2", "my_secret": "value-3", "RELET_TOKEN": "value-4",
        "A_KEY": "tiny", "OTHER": "value-5", "RELET_HANDLE": "",
    })  # fmt: skip
    secrets.watch({"LATER_KEY": "value-6"})
    assert secrets.text("value-1 value-2 value-3 value-4 value-5 value-6 tiny") == (
        f"{REDACTED} {REDACTED} {REDACTED} value-4 value-5 value-6 tiny"
    )


def test_other_names_can_be_given_in_their_place(secrets):
    environ = {"MY_API_KEY": "value-1", "PLAIN": "value-2", "PLANE": "value-3"}
    secrets.watch({**environ, "RELET_REDACT_ENV": "pla*, none"})
    assert secrets.text("value-1 value-2 value-3") == f"value-1 {REDACTED} {REDACTED}"
    other = Secrets()
    other.watch({**environ, "RELET_REDACT_ENV": "PLA*"}, ["MY_API_KEY"])
    assert other.text("value-1 value-2") == f"{REDACTED} value-2"


def test_a_variable_that_was_named_in_full_must_be_long_enough(secrets):
    with pytest.raises(Invalid, match=r"^DB_PASS: ") as caught:
        secrets.watch({"DB_PASS": "abc"}, ["DB_PASS"])
    assert "abc" not in str(caught.value)


def test_errors_are_stored_and_answered_without_it(ours):
    redact("c4n4ry-1", "c4n4ry-2")
    assert border.text("it was c4n4ry-1") == f"it was {REDACTED}"
    assert border.text("x" * 7 + "c4n4ry-1", most=10) == f"xxxxxxx{REDACTED}"[:9] + "…"
    assert "c4n4ry" not in border.shown({"a": "c4n4ry-2", "password": "q"})
    told = problem_of(Conflict("it is c4n4ry-1", name="c4n4ry-2", token=5, current_token=6))
    assert told.detail == f"it is {REDACTED}"
    assert told.facts == {"name": REDACTED, "token": 5, "current_token": 6}


def test_it_logs_nothing_by_itself(ours, caplog):
    caplog.set_level(logging.DEBUG)
    redact("c4n4ry-1")
    assert caplog.records == []
