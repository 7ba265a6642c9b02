"""A page that is opened again is the same visitor's, with all that the tab knew, before its first script runs."""

import asyncio
import json
from contextlib import AsyncExitStack

import pytest

from examples.browser_agent.chromium import chromium
from relet.integrations.browser import SignedIn, look, reopen, signed_in
from tests.integrations.pages import site

pytestmark = pytest.mark.browser

FILL = "items => { for (const key in items) sessionStorage.setItem(key, items[key]) }"
IN_A_DATABASE = """() => new Promise(done => {
    const opened = indexedDB.open('notes', 1)
    opened.onupgradeneeded = () => opened.result.createObjectStore('notes')
    opened.onsuccess = () => {
        const change = opened.result.transaction('notes', 'readwrite')
        change.objectStore('notes').put('kept', 'key')
        change.oncomplete = done
    }
})"""
FROM_A_DATABASE = """() => new Promise(done => {
    const opened = indexedDB.open('notes', 1)
    opened.onsuccess = () => {
        const read = opened.result.transaction('notes').objectStore('notes').get('key')
        read.onsuccess = () => done(read.result)
    }
})"""


@pytest.fixture(scope="module")
def with_chromium():
    """Run a coroutine function with the browser of these tests and a site of its own."""
    with asyncio.Runner() as runner:
        stack = AsyncExitStack()
        browser = runner.run(stack.enter_async_context(chromium()))

        def run(act):
            with site() as server:
                runner.run(act(browser, server))

        yield run
        runner.run(stack.aclose())


async def new_page(browser, url):
    page = await (await browser.new_context(viewport={"width": 700, "height": 500})).new_page()
    await page.goto(url)
    return page


async def again(browser, page, before=None):
    """The page as a later holder opens it: from what was kept, as bytes, and nothing else."""
    seen, _ = await look(page)
    visitor = SignedIn.unpacked((await signed_in(page, before)).packed())
    await page.context.close()
    return await reopen(browser, seen, visitor)


async def found(page):
    """What the page's first script found in sessionStorage."""
    return json.loads(await page.evaluate("window.found"))


def test_session_storage_is_there_before_the_first_script_of_the_page(with_chromium):
    async def act(browser, server):
        page = await new_page(browser, server.one)
        await page.evaluate(FILL, {"tab": "7"})
        assert await found(await again(browser, page)) == {"tab": "7"}

    with_chromium(act)


def test_nothing_is_asked_of_a_site_but_the_page_itself(with_chromium):
    async def act(browser, server):
        page = await new_page(browser, f"{server.one}/other")
        await page.evaluate(FILL, {"tab": "7"})
        server.asked.clear()
        await again(browser, page)
        assert [path for path, _ in server.asked if path != "/favicon.ico"] == ["/other"]

    with_chromium(act)


def test_session_storage_of_an_origin_that_the_tab_was_on_before_comes_back_too(with_chromium):
    async def act(browser, server):
        page = await new_page(browser, server.one)
        await page.evaluate(FILL, {"at": "one"})
        before = await signed_in(page)
        await page.goto(server.two)
        await page.evaluate(FILL, {"at": "two"})
        page = await again(browser, page, before)
        assert (page.url, await found(page)) == (f"{server.two}/", {"at": "two"})
        await page.goto(server.one)
        assert await found(page) == {"at": "one"}

    with_chromium(act)


def test_session_storage_that_a_page_has_cleared_stays_cleared(with_chromium):
    async def act(browser, server):
        page = await new_page(browser, server.one)
        await page.evaluate(FILL, {"tab": "7"})
        page = await again(browser, page)
        await page.goto(f"{server.one}/clear")
        await page.goto(f"{server.one}/other")
        assert await found(page) == {}
        before = SignedIn(storage={}, tab={server.one: {"tab": "7"}})
        assert (await signed_in(page, before)).tab == {}

    with_chromium(act)


def test_cookies_local_storage_databases_and_the_window_come_back(with_chromium):
    async def act(browser, server):
        page = await new_page(browser, server.one)
        await page.evaluate("document.cookie = 'visit=9'; localStorage.setItem('colour', 'blue')")
        await page.evaluate(IN_A_DATABASE)
        page = await again(browser, page)
        assert server.asked[-1] == ("/", "visit=9")
        assert await page.evaluate("localStorage.getItem('colour')") == "blue"
        assert await page.evaluate(FROM_A_DATABASE) == "kept"
        assert page.viewport_size == {"width": 700, "height": 500}

    with_chromium(act)


def test_the_digest_is_of_what_the_page_shows(with_chromium):
    async def act(browser, server):
        page = await new_page(browser, server.one)
        first, text = await look(page)
        assert (first.url, first.title, first.text_len) == (f"{server.one}/", "Start", len(text))
        assert (await look(await again(browser, page)))[0].digest == first.digest

        typed = await new_page(browser, server.one)
        await typed.get_by_label("Name").fill("Ann")
        assert (await look(typed))[0].digest != first.digest

    with_chromium(act)


def test_a_page_of_no_site_has_no_session_storage(with_chromium):
    async def act(browser, server):
        page = await new_page(browser, "about:blank")
        assert (await signed_in(page)).tab == {}
        assert (await again(browser, page)).url == "about:blank"

    with_chromium(act)


def test_what_signs_in_is_not_shown():
    visitor = SignedIn(
        storage={"cookies": [{"name": "visit", "value": "secret"}]}, tab={"http://a": {"tab": "secret"}}
    )
    assert "secret" not in f"{visitor!r} {visitor}"
    assert "1 cookies" in repr(visitor)
