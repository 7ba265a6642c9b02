"""The adapter to a real model, against a local endpoint: what it sends, and what each failure means to a task."""

import json
import socket
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

import relet
from examples.outside.asking import Declined, NotNow, ask
from examples.outside.chat import ChatModel
from examples.outside.model import Completion, parsed, prompt
from examples.outside.serving import Reply
from tests.waiting import Gate

GOOD = {
    "choices": [{"message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 5, "total_tokens": 7},
}


def chat(url, **named):
    return ChatModel(f"{url}/v1/", "small", "secret", **named)


def failure(raised):
    """Its kind, and whether it is certain that nothing was done."""
    kind = next(kind for kind in (relet.Permanent, relet.Temporary) if isinstance(raised, kind))
    return kind.__name__, isinstance(raised, relet.NotApplied)


def failed(beside, reply):
    with pytest.raises((relet.Permanent, relet.Temporary)) as raised:
        chat(beside(lambda _: reply)).complete("Is it?")
    return raised.value


def test_a_prompt_is_one_message_and_the_answer_comes_with_its_price(beside):
    seen = []

    def answer(asked):
        seen.append(asked)
        return Reply(200, GOOD)

    assert chat(beside(answer)).complete("Is it?") == Completion(text="Yes.", tokens=7)
    (asked,) = seen
    assert (asked.method, asked.path, asked.headers["Authorization"]) == (
        "POST",
        "/v1/chat/completions",
        "Bearer secret",
    )
    sent = json.loads(asked.body)
    assert (sent["model"], sent["messages"]) == ("small", [{"role": "user", "content": "Is it?"}])


def test_without_a_key_no_credential_is_sent(beside):
    seen = []
    url = beside(lambda asked: seen.append(asked) or Reply(200, GOOD))
    ChatModel(url, "small").complete("Is it?")
    assert "Authorization" not in seen[0].headers


@pytest.mark.parametrize(
    ("status", "meaning"),
    [
        (429, ("Temporary", True)), (500, ("Temporary", False)), (503, ("Temporary", False)),
        (408, ("Temporary", False)), (409, ("Temporary", False)), (400, ("Permanent", True)),
        (401, ("Permanent", True)), (403, ("Permanent", True)), (404, ("Permanent", True)),
        (422, ("Permanent", True)), (302, ("Permanent", True)),
    ],
)  # fmt: skip
def test_each_status_says_whether_to_ask_again_and_whether_anything_was_done(beside, status, meaning):
    raised = failed(beside, Reply(status, {"error": "because"}))
    assert (failure(raised), raised.code) == (meaning, f"HTTP-{status}")
    assert "because" in str(raised) and "secret" not in str(raised)


def in_a_minute():
    return format_datetime(datetime.now(UTC) + timedelta(seconds=60), usegmt=True)


@pytest.mark.parametrize(
    ("asked_for", "least", "most"),
    [
        ("7", 7, 7), ("0.5", 0.5, 0.5), (in_a_minute, 50, 60), ("Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        ("-3", 0, 0), ("99999999", 3_600, 3_600),
    ],
)  # fmt: skip
def test_retry_after_is_obeyed_as_seconds_and_as_a_date_within_an_hour(beside, asked_for, least, most):
    value = asked_for() if callable(asked_for) else asked_for
    raised = failed(beside, Reply(429, "slow down", {"Retry-After": value}))
    assert least <= raised.delay <= most


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "soon"}, {"Retry-After": "nan"}])
def test_without_a_readable_retry_after_the_policy_decides(beside, headers):
    assert failed(beside, Reply(429, "slow down", headers)).delay is None


def test_an_endpoint_that_does_not_answer_in_time_may_have_worked_all_the_same(beside):
    given_up = Gate()

    def answer(_):
        given_up.pass_through()
        return Reply(lost=True)

    slow = chat(beside(answer), timeout=0.05)
    with pytest.raises(relet.Temporary) as raised:
        slow.complete("Is it?")
    given_up.set()
    assert failure(raised.value) == ("Temporary", False)


def test_a_connection_that_ends_without_an_answer_may_have_worked_all_the_same(beside):
    assert failure(failed(beside, Reply(lost=True))) == ("Temporary", False)


def test_an_endpoint_that_is_not_there_has_done_nothing():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(NotNow):
            chat(f"http://127.0.0.1:{taken.getsockname()[1]}").complete("Is it?")


def test_a_redirect_is_not_followed_so_the_key_goes_nowhere_else(beside):
    seen = []
    other = beside(lambda asked: seen.append(asked) or Reply(200, GOOD))
    with pytest.raises(Declined, match="302"):
        ask(beside(lambda _: Reply(302, "", {"Location": other})), headers={"Authorization": "Bearer secret"})
    assert seen == []


@pytest.mark.parametrize(
    ("said", "kind", "code"),
    [
        (b"<html>", relet.Temporary, "MODEL-ANSWER"),
        ({"choices": []}, relet.Temporary, "MODEL-ANSWER"),
        ({"error": "overloaded"}, relet.Temporary, "MODEL-ANSWER"),
        ({"choices": [{"message": {"content": "Ye"}, "finish_reason": "length"}]}, relet.Permanent, "MODEL-LENGTH"),
        ({"choices": [{"message": {"refusal": "no"}, "finish_reason": "stop"}]}, relet.Permanent, "MODEL-REFUSED"),
    ],
)
def test_an_answer_that_is_none_is_told_apart_from_one_that_no_retry_mends(beside, said, kind, code):
    raised = failed(beside, Reply(200, said))
    assert isinstance(raised, kind) and raised.code == code


@pytest.mark.parametrize("text", ['["a"]', '```json\n["a"]\n```', ' ["a"] '])
def test_json_is_read_as_models_write_it(text):
    assert parsed(Completion(text=text, tokens=1), list[str]) == ["a"]


def test_json_of_another_shape_is_asked_for_again():
    with pytest.raises(relet.Temporary, match="does not fit"):
        parsed(Completion(text='{"a": 1}', tokens=1), list[str])


def test_a_prompt_names_the_job_and_each_part_of_the_material():
    assert prompt("extract", "Find it.", topic="grain").splitlines() == [
        "# extract", "Find it. Answer with JSON and nothing else.", "", "## topic", "grain",
    ]  # fmt: skip
