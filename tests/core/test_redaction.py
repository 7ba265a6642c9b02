"""What is secret leaves texts before people read them: by its value, by its form, by its name; the rest stays."""

import json
import logging
import time
from urllib.parse import quote, quote_plus

import msgspec
import pytest

from relet.core import border, limits
from relet.core.errors import FAMILIES, Conflict, Invalid, LeaseLost
from relet.core.model import End, LostReason, State
from relet.core.problem import error_in, problem_of
from relet.core.redaction import REDACTED, SECRETS, Secrets, redact
from relet.core.secret_names import secret_words
from relet.core.wire import encode
from relet.core.work import DecisionKind

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
    ('it sent {\\"password\\": \\"c4n\\"}', 'it sent {\\"password\\": \\"[redacted]\\"}'),
    ('{"password": 12-c4n, "n": 1}', '{"password": "[redacted]", "n": 1}'),
    ('\\"pwd\\":12-c4n}', '\\"pwd\\":\\"[redacted]\\"}'),
    ("{'password': 'c4n", "{'password': '[redacted]"), ("password='c4n' n=1", "password='[redacted]' n=1"),
    ("token=13c4n", "token=[redacted]"), ("X-TOKEN=c4n and token=5", "X-TOKEN=[redacted] and token=5"),
    ("run --api-key=c4n --n=2", "run --api-key=[redacted] --n=2"),
    ("DB_PASSWORD=c4n HOME=/x", "DB_PASSWORD=[redacted] HOME=/x"),
    ('body="password=c4n"', 'body="password=[redacted]"'),
    ("password: c4n-c4n", "password: [redacted]"),
    ("connect(password=b'c4n', n=1)", "connect(password=b'[redacted]', n=1)"),
    ("{'password': b'c4n'}", "{'password': b'[redacted]'}"),
    ("password=SecretStr('c4n') n=1", "password=SecretStr('[redacted]') n=1"),
    ("postgres://u:c4/4n@host/db", "postgres://u:[redacted]@host/db"),
    ("postgres://u:c4@4n@host/db", "postgres://u:[redacted]@host/db"),
    ("Authorization: Token abc123def", "Authorization: Token [redacted]"),
    ("{'authorization': 'ApiKey a1b2c3d4e5'}", "{'authorization': '[redacted]'}"),
    (f"key lt_{'0' * 12}_{'A' * 43}", "key [redacted]"),
    (f"handle r1.5.{'0' * 32}.dA", "handle [redacted]"),
])  # fmt: skip
def test_what_is_secret_by_its_form_or_its_name_leaves_a_text(secrets, before, after):
    told = secrets.text(before)
    assert told == after
    assert secrets.text(told) == told


@pytest.mark.parametrize("secret", ['a"b\\', "c4n-c4n", 1_234_567, 1.234567, True, None, ""])
def test_what_was_json_is_json(secrets, secret):
    told = json.loads(secrets.text(json.dumps({"n": [1], "apiKey": secret, "plain": {"token": secret}})))
    hidden = REDACTED if secret and secret is not True else secret
    assert told == {"n": [1], "apiKey": hidden, "plain": {"token": secret if type(secret) is int else hidden}}


@pytest.mark.parametrize("text", [
    "", "attempt 2 begins (task=t token=4294967301 attempt=2 holder=w reason=-)", "token=- token=None",
    "token: 5 is not the newest", "Authorization: is not one `Bearer KEY`; send the key",
    "Authorization: Bearer KEY", "password: is missing", "RELET_API_KEY_FILE: 'no-such-7' cannot be read",
    "TOKEN_URL=https://x7.example", "secret: unknown", "max_tokens=100 keys=5 tokenizer=fast",
    "postgresql://me:***@db/work?password=***&x=1", "http://127.0.0.1:8787/v1?queue=a", "cookie: none",
    "a" * 300 + "_token=x", "http://127.0.0.1:8787/v1?by=ann@example.org", "at http://[::1]:8787 by ann@example.org",
])  # fmt: skip
def test_everything_else_stays(secrets, text):
    assert secrets.text(text) == text


@pytest.mark.parametrize("piece", [
    "a", '"', 'a="', "://", "://:", "://:@", "authorization: x ",
    "x: ", "password=", "\\", "token:'", " ", 'password=\\"', "bearer ", "cookie: a=b ",
])  # fmt: skip
def test_a_text_of_eight_times_the_length_takes_no_more_than_that(secrets, piece):
    """What is worse takes 64 times as long, and more."""
    assert took(secrets, piece * 40_000) < 24 * took(secrets, piece * 5_000)


def took(secrets, text):
    """The least of some tries, by the processor's time: others use it, too."""
    times = []
    for _ in range(3):
        began = time.thread_time_ns()
        secrets.text(text)
        times.append(time.thread_time_ns() - began)
    return max(min(times), 100_000)


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
        "MY_API_KEY": "value-01", "PGPASSWORD": "value-02", "my_secret": "value-03", "RELET_TOKEN": "value-04",
        "A_TOKEN": "tiny-07", "OTHER": "value-05", "RELET_HANDLE": "value-08",
    })  # fmt: skip
    secrets.watch({"LATER_TOKEN": "value-06"})
    assert secrets.text("value-01 value-02 value-03 value-04 value-05 value-06 tiny-07 value-08") == (
        f"{REDACTED} {REDACTED} {REDACTED} value-04 value-05 value-06 tiny-07 {REDACTED}"
    )


@pytest.mark.parametrize(("name", "is_one"), [
    ("OPENAI_API_KEY", True), ("SECRET_KEY", True), ("AWS_SECRET_ACCESS_KEY", True), ("SSH_PRIVATE_KEY", True),
    ("RAILS_MASTER_KEY", True), ("GITHUB_TOKEN", True), ("CLIENT_SECRET", True), ("MYSQL_PASSWD", True),
    ("DB_CREDENTIALS", True), ("apiKey", True), ("OPENAI_APIKEY", True), ("API_KEY_2", True), ("RELET_HANDLE", True),
    ("PARTITION_KEY", False), ("SORT_KEY", False), ("PRIMARY_KEY", False), ("KEY", False), ("GPG_KEY", False),
    ("TOKEN_URL", False), ("PASSWORD_FILE", False), ("COOKIE_DOMAIN", False), ("API_KEY_HEADER", False),
    ("RELET_TOKEN", False), ("MAX_TOKENS", False), ("PATH", False), ("_", False), ("2", False),
])  # fmt: skip
def test_a_variable_is_a_secrets_by_the_end_of_its_name(secrets, name, is_one):
    secrets.watch({name: "c4n4ry-1"})
    assert (secrets.text("c4n4ry-1") == REDACTED) is is_one


@pytest.mark.parametrize(("value", "is_one"), [
    ("hunter2!", True), ("s3cr3t-value", True), ("päss wörd", True), ("correct-horse-battery", True),
    ("4294967301429496", True), ("abcdefghijklmnop", True),
    ("hunter2", False), ("postgres", False), ("changeme", False), ("nightly-reports", False), ("work.mails", False),
    ("MyDefaultQueue", False), ("some_worker", False), ("4294967301", False), ("2026-11-30", False), ("", False),
])  # fmt: skip
@pytest.mark.parametrize("patterns", [None, ["*_TOKEN"]], ids=["by its name", "by a pattern"])
def test_a_value_that_was_only_found_must_look_like_a_secret(secrets, value, is_one, patterns):
    secrets.watch({"MY_TOKEN": value}, patterns)
    assert secrets.text(value) == (REDACTED if is_one else value)


def test_the_folders_of_a_shell_are_no_passwords(secrets):
    secrets.watch({"PWD": "/srv/agents-7/relet", "OLDPWD": "/srv/agents-7", "DB_PWD": "c4n4ry-in-it-7"})
    assert secrets.text("in /srv/agents-7/relet: c4n4ry-in-it-7") == f"in /srv/agents-7/relet: {REDACTED}"


def test_other_names_can_be_given_in_their_place(secrets):
    environ = {"MY_API_KEY": "value-01", "PLAIN": "value-02", "PLANE": "value-03", "NAMED": "worker"}
    secrets.watch({**environ, "RELET_REDACT_ENV": "pla*, none, named"})
    assert secrets.text("value-01 value-02 value-03 worker") == f"value-01 {REDACTED} {REDACTED} {REDACTED}"
    other = Secrets()
    other.watch({**environ, "RELET_REDACT_ENV": "PLA*"}, ["MY_API_KEY"])
    assert other.text("value-01 value-02") == f"{REDACTED} value-02"
    none = Secrets()
    none.watch({**environ, "RELET_REDACT_ENV": "none"})
    assert none.text("value-01") == "value-01"


def test_a_variable_that_was_named_in_full_must_be_long_enough_each_time(secrets):
    environ = {"FIRST": "c4n4ry-1", "DB_PASS": "abc", "LAST": "c4n4ry-2"}
    for _ in range(2):
        with pytest.raises(Invalid, match=r"^DB_PASS: ") as caught:
            secrets.watch(environ, list(environ))
        assert "abc" not in str(caught.value)
    secrets.watch(environ | {"DB_PASS": "abcdef"}, list(environ))
    assert secrets.text("c4n4ry-1 abcdef c4n4ry-2") == f"{REDACTED} {REDACTED} {REDACTED}"


def test_errors_are_stored_and_answered_without_it(ours):
    redact("c4n4ry-1", "c4n4ry-2")
    assert border.text("it was c4n4ry-1") == f"it was {REDACTED}"
    assert border.text("x" * 7 + "c4n4ry-1", most=10) == f"xxxxxxx{REDACTED}"[:9] + "…"
    assert "c4n4ry" not in border.shown({"a": "c4n4ry-2", "password": "q"})
    told = problem_of(Conflict("it is c4n4ry-1", engine="at c4n4ry-2", refusals=["c4n4ry-1"], token=5, at=[6]))
    assert told.detail == f"it is {REDACTED}"
    assert told.facts == {"engine": f"at {REDACTED}", "refusals": [REDACTED], "token": 5, "at": [6]}


def test_what_programs_compare_comes_back_whatever_is_called_a_secret(ours):
    """Words of ours, ids and names: else nobody could rebuild the error, or tell what it is about."""
    words = [str(word) for kind in (LostReason, State, End, DecisionKind) for word in kind]
    codes = [kind.code for kind in FAMILIES]
    for value in (*words, *codes, *(kind.__name__ for kind in FAMILIES), "reports", "default-tenant", "task-0001"):
        if len(value) >= limits.SECRET_CHARS_MIN:
            redact(value)
    for kind, word in [(kind, word) for kind in FAMILIES for word in words]:
        if issubclass(kind, LeaseLost) and word not in list(LostReason):
            continue
        error = kind("m", reason=word, state=word, field="reports", task_id="task-0001", queue="reports", token=7)
        found = error_in(encode(problem_of(error)))
        assert type(found) is kind
        assert (found.code, found.detail) == (error.code, error.detail)


def test_typical_variables_leave_names_in_errors(ours):
    ours.watch({
        "PARTITION_KEY": "default", "SORT_KEY": "reports", "PRIMARY_KEY": "task-0001", "HASH_KEY": "tenant-0001",
        "POSTGRES_PASSWORD": "postgres", "APP_SECRET": "changeme", "WORKER_TOKEN": "worker",
        "TOKEN_QUEUE": "queue-0001", "API_KEY": "c4n4ry-1",
    })  # fmt: skip
    message = "task-0001: queue reports of tenant default, tenant-0001, queue-0001: postgres changeme worker"
    told = problem_of(Conflict(f"{message} c4n4ry-1"))
    assert told.detail == f"{message} {REDACTED}"


def test_it_logs_nothing_by_itself(ours, caplog):
    caplog.set_level(logging.DEBUG)
    redact("c4n4ry-1")
    assert caplog.records == []
