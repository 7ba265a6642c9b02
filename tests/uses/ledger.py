"""The far side of the effects of the examples, as their tests see it."""

import json
import urllib.request


class Ledger:
    """The far side of the effects of a test: what it has applied, and how often it was asked, by key."""

    def __init__(self, url):
        self.url = url
        self._opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def get(self, place):
        with self._opener.open(f"{self.url}/{place}", timeout=10) as answer:
            return json.load(answer)

    @property
    def applied(self):
        return self.get("applied")

    @property
    def asked(self):
        return self.get("asked")

    @property
    def entries(self):
        return self.get("entries")
