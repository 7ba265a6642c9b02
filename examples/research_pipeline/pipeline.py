"""The handler: what a later holder would have to pay again is a step, what happens elsewhere is an effect."""

from __future__ import annotations

import asyncio
import os
from typing import Any

import msgspec

import relet
from examples.outside.asking import ask
from examples.outside.model import chosen, parsed, prompt
from examples.research_pipeline.corpus import Corpus
from examples.research_pipeline.script import SCRIPTS

app = relet.App()
EXTRACT = "Give the sentences of the page, word for word, that say something about the topic, as a list of texts."
SUMMARISE = 'Sum up the findings about the topic, as {"title": text, "summary": text}.'
KEY_KEPT = "24h"
"""How long the catalogue remembers an idempotency key, by its own documentation."""


class Page(msgspec.Struct, frozen=True):
    """A page as it was on that day: its bytes are an artifact."""

    name: str
    uri: str
    sha256: str


class Finding(msgspec.Struct, frozen=True):
    """A sentence, and the page that it stands on."""

    claim: str
    page: str


class Summary(msgspec.Struct, frozen=True):
    """What the model makes of the findings."""

    title: str
    summary: str


class Entry(msgspec.Struct, frozen=True):
    """The catalogue's receipt."""

    number: int
    key: str


class Report(msgspec.Struct, frozen=True):
    """The structured result."""

    topic: str
    number: int
    title: str
    summary: str
    findings: list[Finding]
    sources: list[Page]


@app.task("research", retry=relet.RetryPolicy(base="1s"))
async def research(run: relet.AsyncRun, topic: str) -> Report:
    """Each result is kept once. Whoever takes over runs this from its first line, and calls only what is missing."""
    corpus = Corpus(os.environ["CORPUS_URL"])
    names = await run.step("search", corpus.search, topic)
    if not names:
        raise relet.Permanent(f"the corpus has no page on {topic!r}", code="NOTHING-FOUND")
    async with asyncio.TaskGroup() as group:
        reading = [group.create_task(read(run, corpus, topic, name)) for name in names]
    read_pages = [one.result() for one in reading]
    findings = [finding for _, found in read_pages for finding in found]
    summary = await run.step("summarise", summarise, topic, [one.claim for one in findings])
    entry = await run.effect(
        "catalogue", {"title": summary.title, "findings": len(findings)}, register,
        contract=relet.Keyed(retention=KEY_KEPT), returns=Entry,
    )  # fmt: skip
    report = Report(
        topic=topic, number=entry.number, title=summary.title, summary=summary.summary, findings=findings,
        sources=[page for page, _ in read_pages],
    )  # fmt: skip
    await run.attach("report.json", msgspec.json.encode(report))
    return report


async def read(run: relet.AsyncRun, corpus: Corpus, topic: str, name: str) -> tuple[Page, list[Finding]]:
    """Two steps for each page. They run beside those of other pages, so each has its page as its key."""

    async def retrieve() -> Page:
        text = await asyncio.to_thread(corpus.page, name)
        kept = await run.attach(f"{name}.txt", text)
        return Page(name=name, uri=kept.uri, sha256=kept.sha256)

    async def extract(page: Page) -> list[Finding]:
        with await run.open(f"{page.name}.txt") as kept:
            text = kept.read().decode()
        claims = await asyncio.to_thread(complete, "extract", EXTRACT, list[str], topic=topic, page=text)
        # A page is material that others wrote, and a model may invent: only what really stands there is a finding.
        return [Finding(claim=claim, page=page.name) for claim in claims if claim in text]

    page = await run.step("retrieve", retrieve, key=name)
    return page, await run.step("extract", extract, page, key=name)


def summarise(topic: str, claims: list[str]) -> Summary:
    """The whole in a few words."""
    found: Summary = complete("summarise", SUMMARISE, Summary, topic=topic, findings="\n".join(claims))
    return found


def complete(job: str, order: str, kind: Any, **parts: str) -> Any:
    """What the model answers, as a type; its tokens are the cost of the step that asks."""
    answer = chosen(SCRIPTS).complete(prompt(job, order, **parts))
    relet.current_run().spent(answer.tokens)
    return parsed(answer, kind)


def register(payload: dict[str, Any], effect: Any) -> Any:
    """The one call that changes something elsewhere: repeated after a crash, with the same key."""
    sent = ask(os.environ["DESK_URL"], payload, headers=effect.headers, timeout=effect.timeout)
    return msgspec.json.decode(sent)
