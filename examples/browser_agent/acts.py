"""How each kind of action is done on a page, and how the shop is asked whether an outward one has happened."""

import os
import re

import relet
from examples.browser_agent.plan import basket_count

PASSWORD = "SHOP_PASSWORD"


async def nobody_to_ask():
    """Most actions may be begun by whoever holds the page."""


async def act(page, action, reference="", may_still=nobody_to_ask):
    """Do it; `may_still` is asked right before something leaves for good. Raises `NotApplied` when refused."""
    args = action.args
    match action.kind:
        case "open":
            await page.goto(args["url"])
        case "sign_in":
            await sign_in(page, args["name"])
        case "search":
            await page.get_by_label("Search").fill(args["words"])
            await press(page, page.get_by_role("button", name="Find"))
        case "follow":
            await press(page, page.get_by_role("link", name=args["link"], exact=True))
        case "add":
            await may_still()
            await press(page, page.get_by_role("button", name="Add to basket"))
        case "fill":
            for label, value in args["fields"].items():
                await page.get_by_label(label).fill(value)
        case "choose":
            await page.get_by_label(args["option"]).check()
        case "order":
            await page.get_by_label("Your reference").fill(reference)
            await may_still()
            await press(page, page.get_by_role("button", name="Send order"))
        case "read":
            await page.get_by_text("Your order").wait_for()
        case unknown:
            raise relet.Permanent(f"there is no action {unknown!r}", code="ACTION")


async def press(page, target):
    """Click on what leads to another page, and be there."""
    async with page.expect_navigation() as leading:
        await target.click()
    answer = await leading.value
    if answer is not None and answer.status >= 400:
        # This shop changes nothing when it refuses. Where that is not known, let the error be an unknown outcome.
        raise relet.NotApplied(f"the shop refused ({answer.status}): {await page.get_by_role('alert').inner_text()}")


async def is_signed_in(page):
    return await page.get_by_text("Signed in as").count() > 0


async def sign_in(page, name):
    """Look first: the cookie may be there, kept by a holder who died before it could say so."""
    if await is_signed_in(page):
        return
    await press(page, page.get_by_role("link", name="Sign in"))
    await page.get_by_label("Name").fill(name)
    await page.get_by_label("Password").fill(os.environ[PASSWORD])
    await press(page, page.get_by_role("button", name="Sign in"))
    if not await is_signed_in(page):
        raise relet.Permanent(f"the shop does not let {name} in; check {PASSWORD}", code="SIGN-IN")


async def in_basket(context, shop, payload, effect):
    """Did the book get into the basket? Its page tells."""
    async with tab(context, f"{shop}/basket") as page:
        return {"url": page.url} if basket_count(await page.aria_snapshot()) > payload["had"] else None


async def ordered(context, shop, payload, effect):
    """Is there an order with our reference? The list of orders can be asked for it."""
    async with tab(context, f"{shop}/orders?reference={effect.key}") as page:
        number = page.get_by_role("link", name=re.compile(r"^H-\d+$"))
        return {"url": f"{shop}/orders/{await number.first.inner_text()}"} if await number.count() else None


LOOKS = {"add": in_basket, "order": ordered}


class tab:  # noqa: N801 - read as `async with tab(…)`
    """Another tab of the same visitor, to look something up while the page stays where it is."""

    def __init__(self, context, url):
        self._context, self._url = context, url

    async def __aenter__(self):
        self._page = await self._context.new_page()
        await self._page.goto(self._url)
        return self._page

    async def __aexit__(self, *_):
        await self._page.close()
