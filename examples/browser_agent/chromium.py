"""Start the distribution's Chromium under Playwright, or say what is missing and how to get it."""

import os
import shutil
from contextlib import asynccontextmanager
from importlib.util import find_spec

CHROMIUM = "BROWSER_AGENT_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
"""Without its sandbox, since root cannot have one: for pages of your own. Leave the first flag out for others'."""


def missing():
    """What has to be installed before this can run, as a sentence; None when all is there."""
    if find_spec("playwright") is None:
        return "the Python package playwright is missing. Install it: python -m pip install 'relet[browser]'"
    if path() is None:
        return (
            "Chromium is missing. Install it: sudo apt-get install -y --no-install-recommends chromium "
            f"(or name the program that you have in {CHROMIUM})"
        )
    return None


def path():
    """The browser's program: the one that the environment names, else the first of the usual names."""
    named = os.environ.get(CHROMIUM)
    return shutil.which(named) if named else next(filter(None, map(shutil.which, NAMES)), None)


@asynccontextmanager
async def chromium():
    """A browser for one run. It ends with this process, also when that is killed: its pipe to us closes."""
    from playwright.async_api import async_playwright

    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path(), headless=True, args=FLAGS)
        try:
            yield browser
        finally:
            await browser.close()
