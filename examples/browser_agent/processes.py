"""The processes of the example: the shop, and workers that each have a browser of their own."""

import sys

AGENT = "examples.browser_agent.agent:app"
SHOP = [sys.executable, "-m", "examples.browser_agent.shop"]


def worker(holder):
    """What `relet worker` does, with the relet that this Python has."""
    return [sys.executable, "-c", "from relet.cli.entry import main; main()", "worker", AGENT, "--holder", holder]
