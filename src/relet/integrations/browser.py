"""A browser page that a later holder can go on from: what it showed, who it was signed in as, and how to reopen it.

For Playwright's async API; nothing of it is imported here.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Self

import msgspec

if TYPE_CHECKING:
    from playwright.async_api import Browser, Page, Route

_USER_AGENT = "navigator.userAgent"
_READ_TAB = "location.origin === 'null' ? null : [location.origin, {...sessionStorage}]"
_FILL_TAB = "items => { for (const [key, text] of Object.entries(items)) sessionStorage.setItem(key, text) }"


class Seen(msgspec.Struct, frozen=True, kw_only=True):
    """A page as it was looked at. Holds no cookie and belongs in a checkpoint."""

    url: str
    title: str
    digest: str
    """Of what the page shows to whoever reads it by roles and names: the same digest, the same page for an agent."""
    text_len: int
    user_agent: str
    viewport: tuple[int, int] | None


class SignedIn(msgspec.Struct, frozen=True, kw_only=True):
    """What makes a browser the same visitor again: cookies, localStorage, IndexedDB, and sessionStorage by origin.

    Live credentials. Whoever reads them is signed in: keep them where only the agent reads, and out of every log.
    """

    storage: dict[str, Any]
    tab: dict[str, dict[str, str]]

    def __repr__(self) -> str:
        return f"<SignedIn: {len(self.storage.get('cookies', ()))} cookies, sessionStorage of {sorted(self.tab)}>"

    def packed(self) -> bytes:
        """As bytes, for an artifact."""
        return msgspec.json.encode(self)

    @classmethod
    def unpacked(cls, data: bytes) -> Self:
        """From bytes that `packed` made."""
        return msgspec.json.decode(data, type=cls)


async def look(page: Page) -> tuple[Seen, str]:
    """The page as it is now: its record, and its text as roles and names (an ARIA snapshot)."""
    text = await page.aria_snapshot()
    title = await page.title()
    size = page.viewport_size
    seen = Seen(
        url=page.url, title=title, digest=hashlib.sha256(f"{title}\n{text}".encode()).hexdigest(),
        text_len=len(text), user_agent=await page.evaluate(_USER_AGENT),
        viewport=None if size is None else (size["width"], size["height"]),
    )  # fmt: skip
    return seen, text


async def signed_in(page: Page, before: SignedIn | None = None) -> SignedIn:
    """The visitor that the page's browser is now.

    `before` has the sessionStorage of origins that this tab was on earlier; Playwright's storage state has none.
    That of frames from other sites is not kept.
    """
    storage = await page.context.storage_state(indexed_db=True)
    tab = {} if before is None else dict(before.tab)
    found = await page.evaluate(_READ_TAB)
    if found is not None:
        origin, items = found
        tab.pop(origin, None)
        if items:
            tab[origin] = items
    return SignedIn(storage=dict(storage), tab=tab)


async def reopen(browser: Browser, seen: Seen, visitor: SignedIn) -> Page:
    """The page again, in a context of its own: the same visitor, at the same address.

    Loading an address again does again whatever a GET of it does, and what was typed into the page is gone. Compare
    the digest of `look` with the one that was saved before going on.
    """
    viewport = None if seen.viewport is None else {"width": seen.viewport[0], "height": seen.viewport[1]}
    context = await browser.new_context(
        storage_state=visitor.storage,  # type: ignore[arg-type] # in the form in which it was read
        user_agent=seen.user_agent,
        viewport=viewport,  # type: ignore[arg-type] # its two keys
        no_viewport=viewport is None,
    )
    page = await context.new_page()
    await _fill(page, visitor.tab)
    await page.goto(seen.url)
    return page


async def _fill(page: Page, tab: dict[str, dict[str, str]]) -> None:
    """Set the tab's sessionStorage before any script of its sites runs.

    From a blank answer in each site's name: an init script would set it again on every page that follows, even after
    the site has cleared it.
    """
    await page.route("**/*", _blank)
    for origin, items in tab.items():
        await page.goto(f"{origin}/")
        await page.evaluate(_FILL_TAB, items)
    await page.unroute("**/*", _blank)


async def _blank(route: Route) -> None:
    await route.fulfill(content_type="text/html", body="<!doctype html>")
