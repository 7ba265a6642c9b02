"""The handler: draft, ask a person, publish once. While the person thinks, no worker and no lease is held."""

from __future__ import annotations

import os
from typing import Any

import msgspec

import relet
from examples.approval_flow.script import SCRIPTS
from examples.outside.asking import Declined, ask
from examples.outside.model import chosen, parsed, prompt

app = relet.App()
DRAFT = "Write a short announcement on the topic, heeding the remark on the last draft if there is one, as one text."
DRAFTS_MAX = 3
SEND_S = 2.0
"""How long one request to the site may take; the site may notice it up to half a second later."""


class Announcement(msgspec.Struct, frozen=True):
    """What became of it: the number of the post, or None, and whose decision that was."""

    post: int | None
    text: str
    decision: str
    by: str
    drafts: int


class Receipt(msgspec.Struct, frozen=True):
    """What the site says of a post."""

    number: int


@app.task("announcement", retry=relet.RetryPolicy(base="1s"))
def announce(run: relet.Run, topic: str, patience: str = "1d") -> Announcement:
    """Whoever goes on after an answer runs this from its first line; drafts and answers are kept."""
    text, problem = run.step("draft", draft, topic), None
    for number in range(1, DRAFTS_MAX + 1):
        ask_for = {"draft": text, "number": number, "of": DRAFTS_MAX, "problem": problem}
        answer = run.approval("publish", ask=ask_for, timeout=patience, default="deny")
        problem = None
        match answer.kind:
            case "accept":
                return publish(run, text, answer, number)
            case "edit" if edited := text_in(answer.value):
                return publish(run, edited, answer, number)
            case "respond" if remark := text_in(answer.value):
                if number < DRAFTS_MAX:
                    text = run.step("draft", redraft, topic, text, remark)
            case "edit" | "respond":
                problem = f"the answer of {answer.by} carried no text; the draft is as it was"
            case _:
                break
    return Announcement(post=None, text=text, decision=answer.kind, by=answer.by, drafts=number)


def draft(topic: str) -> str:
    """The first draft."""
    return write(topic=topic)


def redraft(topic: str, before: str, remark: str) -> str:
    """Another one, in answer to a person's remark."""
    return write(topic=topic, draft=before, remark=remark)


def write(**parts: str) -> str:
    """What the model writes; its tokens are the cost of the step that asks."""
    answer = chosen(SCRIPTS).complete(prompt("draft", DRAFT, **parts))
    relet.current_run().spent(answer.tokens)
    return parsed(answer, str)


def text_in(value: Any) -> str | None:
    """What a person typed, bare or as the draft of what was shown; None for anything else."""
    given = value.get("draft") if isinstance(value, dict) else value
    return given if isinstance(given, str) and given.strip() else None


def publish(run: relet.Run, text: str, answer: relet.Decision, drafts: int) -> Announcement:
    """Once: the site makes a post of each request, but can be asked whether one has arrived."""
    contract = relet.Queryable(look, max_in_flight="500ms")
    receipt = run.effect("publish", {"text": text}, post, contract=contract, timeout=SEND_S, returns=Receipt)
    return Announcement(post=receipt.number, text=text, decision=answer.kind, by=answer.by, drafts=drafts)


def post(payload: dict[str, Any], effect: Any) -> Any:
    """Make the post, with our reference on it."""
    said = {**payload, "reference": effect.key}
    return msgspec.json.decode(ask(os.environ["SITE_URL"], said, timeout=effect.timeout))


def look(payload: dict[str, Any], effect: Any) -> Any:
    """The post with our reference; None when there is none."""
    try:
        return msgspec.json.decode(ask(f"{os.environ['SITE_URL']}/applied?key={effect.key}", timeout=effect.timeout))
    except Declined as refused:
        if refused.code == "HTTP-404":
            return None
        raise
