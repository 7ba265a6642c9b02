"""The agent: one action after the other, each kept before the next begins, so that any holder can go on."""

import logging
import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

import relet
from examples.browser_agent.acts import LOOKS, act, is_signed_in
from examples.browser_agent.chromium import chromium, missing
from examples.browser_agent.moments import reached
from examples.browser_agent.plan import Action, Done, Goal, Planner, Reach, Script
from relet.integrations.browser import Seen, SignedIn, look, reopen, signed_in

VIEWPORT = {"width": 900, "height": 640}
ANSWER_WITHIN = "3s"
STILL_ARRIVES = "1s"
"""How long after that a request may still reach the shop: from a browser that dies later than its agent."""
VISITOR = "visitor"

app = relet.App()
log = logging.getLogger("relet.examples.browser_agent")


class Progress(msgspec.Struct, kw_only=True):
    """The checkpoint. Cookies and the like are not in it: they are the artifact `visitor`."""

    seen: Seen | None = None
    done: list[Done] = []
    pending: Action | None = None
    """Begun, and perhaps done: to be looked into before anything else."""
    next: Action | None = None
    screenshot: str | None = None
    trace: str | None = None


@app.task("buy", queue="browser", ttl="2s", retry=relet.RetryPolicy(max_attempts=5, base="1s"))
async def buy(run: relet.AsyncRun, goal: Goal) -> dict[str, Any]:
    """Buy one book."""
    if (what := missing()) is not None:
        raise relet.Permanent(what, code="BROWSER")
    async with chromium() as browser:
        return await Agent(run, goal, Script(goal), browser).work()


class Agent:
    """One run of one task in one browser."""

    def __init__(self, run: relet.AsyncRun, goal: Goal, planner: Planner, browser: Any) -> None:
        self.run = run
        self.goal = goal
        self.planner = planner
        self.browser = browser
        self.progress = Progress()
        self.visitor: SignedIn | None = None
        self.page: Any = None
        self.skipped = 0

    async def work(self) -> dict[str, Any]:
        saved = await self.run.load()
        if saved is None:
            await self._begin()
        else:
            self.progress = msgspec.convert(saved, Progress)
            await self._go_on()
        while (action := self.progress.next) is not None:
            await self._turn(action)
        return {
            "order": self.progress.seen.url.rpartition("/")[2],
            "page": self.progress.seen.title,
            "actions": [one.action.id for one in self.progress.done],
            "skipped": self.skipped,
        }

    async def _begin(self) -> None:
        context = await self.browser.new_context(viewport=VIEWPORT)
        self.page = await context.new_page()
        self.progress.next = await self.planner.next(self.page.url, "", [])

    async def _go_on(self) -> None:
        """Where the last holder was: the same visitor at the same address, and the page as it was."""
        progress = self.progress
        self.skipped = len(progress.done)
        log.info("goes on after %s", ", ".join(one.action.id for one in progress.done) or "nothing")
        if progress.seen is None:
            return await self._begin()
        with await self.run.open(VISITOR) as file:
            # It may be one action newer than the checkpoint: of cookies, the newest are the ones that hold.
            self.visitor = SignedIn.unpacked(file.read())
        self.page = await reopen(self.browser, progress.seen, self.visitor)
        await self._sign_in_again()
        for action in self._typed():
            await act(self.page, action)
        begun = progress.pending
        if begun is not None and begun.reach in {Reach.SESSION, Reach.OUTWARD}:
            progress.next = begun  # whatever the page shows now: first find out what became of it
            return None
        seen, text = await look(self.page)
        if seen.digest != progress.seen.digest:
            log.info("the page has changed since; deciding anew")
            progress.next = await self.planner.next(seen.url, text, progress.done)
        return None

    async def _sign_in_again(self) -> None:
        """Where the shop has forgotten the visitor in the meantime."""
        entered = [one.action for one in self.progress.done if one.action.reach is Reach.SESSION]
        if entered and not await is_signed_in(self.page):
            log.info("signed out in the meantime; signing in again")
            await act(self.page, entered[-1])
            await self.page.goto(self.progress.seen.url)

    def _typed(self) -> list[Action]:
        """What was done on the page since it was loaded."""
        actions: list[Action] = []
        for one in reversed(self.progress.done):
            if one.action.reach is not Reach.PAGE:
                break
            actions.insert(0, one.action)
        return actions

    async def _turn(self, action: Action) -> None:
        """One action: said before it is done, and kept with all that it led to."""
        self.progress.pending = action
        await self.run.save(self.progress)
        reached(f"begun:{action.id}")
        if action.reach is not Reach.SESSION:  # a trace has all that was typed and sent, passwords as well
            await self.page.context.tracing.start(title=action.id, snapshots=True)
        receipt = await self._do(action)
        reached(f"acted:{action.id}")
        seen, text = await look(self.page)
        self.progress.done.append(Done(action=action, token=self.run.token, url=seen.url, receipt=receipt))
        await self._attach(action)
        self.progress.seen, self.progress.pending = seen, None
        self.progress.next = await self.planner.next(seen.url, text, self.progress.done)
        await self.run.save(self.progress)
        reached(f"kept:{action.id}")

    async def _do(self, action: Action) -> Any:
        if action.reach is not Reach.OUTWARD:
            await act(self.page, action)
            return None

        async def may_still() -> None:
            """Asked as late as can be: this process may have been frozen since the effect was begun."""
            reached(f"sent:{action.id}")
            try:
                await self.run.check(need="500ms")
            except relet.LeaseLost as lost:
                log.warning("%s was not sent: the lease is lost", action.id)
                raise relet.NotApplied(f"{action.id} was not sent: {lost}") from lost

        async def send(_: Any, effect: Any) -> dict[str, str]:
            await act(self.page, action, effect.key, may_still)
            return {"url": self.page.url}

        async def check(payload: Any, effect: Any) -> dict[str, str] | None:
            return await LOOKS[action.kind](self.page.context, self.goal.shop, payload, effect)

        contract = relet.Queryable(check, max_in_flight=STILL_ARRIVES)
        receipt = await self.run.effect(action.id, action.args, send, contract=contract, timeout=ANSWER_WITHIN)
        if self.page.url != receipt["url"]:
            await self.page.goto(receipt["url"])  # it was done before, by a page that is gone
        return receipt

    async def _attach(self, action: Action) -> None:
        """Who the browser is, what it shows, and how it got there. Who can read the first or the last can sign in."""
        self.visitor = await signed_in(self.page, self.visitor)
        await self.run.attach(VISITOR, self.visitor.packed())
        self.progress.screenshot, self.progress.trace = f"{action.id}.png", None
        await self.run.attach(self.progress.screenshot, await self.page.screenshot())
        if action.reach is Reach.SESSION:
            return
        self.progress.trace = f"{action.id}-trace.zip"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "trace.zip")
            await self.page.context.tracing.stop(path=path)
            await self.run.attach(self.progress.trace, os.fspath(path))
