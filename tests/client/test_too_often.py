"""A service that is asked too often says when there is room again; its client waits so long, and not for ever."""

import httpx2
import pytest

from relet.client.http import line
from relet.client.http.line import BYTES, SLOWLY_S, Line, Span
from relet.core.errors import Error, Unavailable
from relet.core.problem import TOO_MANY, problem_of
from relet.core.wire import encode

TOO_OFTEN = encode(problem_of(Unavailable("asks too often", code=TOO_MANY)))


class Site:
    """Refuses so many times, each with what it is told to say, and then answers; its clock moves when one waits."""

    def __init__(self, monkeypatch, *said, status=429):
        self.now, self.waited, self.asked = 0.0, [], []
        self.line = Line("http://relet.test", None)
        self.line._client = httpx2.Client(
            base_url="http://relet.test", transport=httpx2.MockTransport(self._answer)
        )  # fmt: skip
        self._said, self._status = list(said), status
        monkeypatch.setattr(line.time, "sleep", self._sleep)
        monkeypatch.setattr(line.time, "monotonic", lambda: self.now)

    def _sleep(self, seconds):
        self.waited.append(seconds)
        self.now += seconds

    def _answer(self, request):
        self.asked.append(request.read())
        if not self._said:
            return httpx2.Response(200, content=b"done")
        told = self._said.pop(0)
        return httpx2.Response(self._status, content=TOO_OFTEN, headers={} if told is None else {"Retry-After": told})

    def ask(self, span=None):
        return self.line.ask("POST", "/v1/submit", writes=True, span=span, content=b"[1]").content


def test_it_is_asked_again_when_there_is_room_and_not_before(monkeypatch):
    site = Site(monkeypatch, "1", "3")
    assert site.ask() == b"done"
    assert (site.waited, site.asked) == ([1, 3], [b"[1]"] * 3)


def test_it_waits_for_so_long_in_all_and_then_says_why(monkeypatch):
    site = Site(monkeypatch, *["2"] * 9)
    with pytest.raises(Unavailable, match="asks too often") as refused:
        site.ask()
    assert (refused.value.code, sum(site.waited) <= SLOWLY_S, len(site.asked)) == (TOO_MANY, True, 3)


def test_it_does_not_begin_to_wait_for_what_is_too_far_away(monkeypatch):
    site = Site(monkeypatch, "3600")
    with pytest.raises(Unavailable):
        site.ask()
    assert (site.waited, len(site.asked)) == ([], 1)


@pytest.mark.parametrize("span", [Span.within(4.0), BYTES])
def test_a_heartbeat_and_an_upload_are_not_held_back(monkeypatch, span):
    """The one has a deadline, and of the other nothing is there any more to be sent again."""
    site = Site(monkeypatch, "1")
    with pytest.raises(Unavailable):
        site.ask(span)
    assert (site.waited, len(site.asked)) == ([], 1)


@pytest.mark.parametrize("told", [
    None, "", "soon", "-1", "1.5", "Fri, 31 Dec 2027 23:59:59 GMT", "9" * 400, b"\xb2"
])  # fmt: skip
def test_without_a_number_of_seconds_it_is_told_at_once(monkeypatch, told):
    site = Site(monkeypatch, told)
    with pytest.raises(Unavailable):
        site.ask()
    assert site.waited == []


def test_of_no_seconds_at_all_it_makes_one(monkeypatch):
    site = Site(monkeypatch, *["0"] * 9)
    with pytest.raises(Unavailable):
        site.ask()
    assert len(site.asked) == 1 + SLOWLY_S


@pytest.mark.parametrize("status", [503, 408, 500])
def test_a_store_that_is_away_is_told_at_once(monkeypatch, status):
    site = Site(monkeypatch, "1", status=status)
    with pytest.raises(Error):
        site.ask()
    assert site.waited == []
