"""attach and open: bytes by name, published by the lease that attached them, checked when they are read."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from relet.core.errors import Error, LeaseLost, NotFound
from relet.core.model import LostReason
from relet.testing.conformance.evidence import lost, lost_by_lapse, refused, unchanged
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import causes, expire, held, taken

PAGE = b"<html>\x00\xff page 3</html>"


def test_attached_bytes_are_read_back_by_every_holder_and_by_everybody(route: Route) -> None:
    first = held(route)
    made = first.attach("page.html", PAGE)
    assert (made.name, made.size, made.token) == ("page.html", len(PAGE), first.token)
    assert made.sha256 == hashlib.sha256(PAGE).hexdigest()
    assert first.open("page.html").read() == PAGE
    expire(route, first)
    second = taken(route, by=route.other)
    assert second.open("page.html").read() == PAGE
    assert route.other.artifacts("t") == [made]
    assert route.other.open(made.uri).read() == PAGE


def test_a_file_is_attached_by_its_path(route: Route, tmp_path: Path) -> None:
    path = tmp_path / "page.html"
    path.write_bytes(PAGE)
    lease = held(route)
    assert lease.attach("page", path).sha256 == lease.attach("same", str(path)).sha256
    path.unlink()
    assert lease.open("page").read() == PAGE


def test_the_newest_of_a_name_is_read_and_the_older_ones_stay(route: Route) -> None:
    lease = held(route)
    old = lease.attach("page", b"old")
    new = lease.attach("page", b"new")
    lease.attach("other", b"")
    assert lease.open("page").read() == b"new"
    assert lease.open("other").read() == b""
    assert [one.name for one in route.db.artifacts("t")] == ["page", "page", "other"]
    assert (route.db.open(old.uri).read(), route.db.open(new.uri).read()) == (b"old", b"new")
    assert causes(route).count("attached") == 3


def test_the_same_bytes_attached_again_change_nothing(route: Route) -> None:
    lease = held(route)
    made = lease.attach("page", PAGE)
    with unchanged(route):
        assert lease.attach("page", PAGE) == made


def test_what_a_lost_holder_stored_is_never_published(route: Route) -> None:
    first = held(route)
    expire(route, first)
    with lost_by_lapse(route, first.token):
        first.attach("page", PAGE)
    second = taken(route)
    with lost(route, LostReason.SUPERSEDED):
        first.attach("page", PAGE)
    assert route.db.artifacts("t") == []
    with refused(route, NotFound, name="page"):
        second.open("page")


def test_after_a_cancel_nothing_is_attached(route: Route) -> None:
    lease = held(route)
    route.db.cancel("t")
    with pytest.raises(LeaseLost) as caught:
        lease.attach("page", PAGE)
    assert caught.value.reason is LostReason.CANCELLED
    assert route.db.artifacts("t") == []


def test_a_name_that_nobody_attached_is_not_found(route: Route) -> None:
    lease = held(route)
    with refused(route, NotFound, field="name", name="page") as caught:
        lease.open("page")
    assert "relet artifacts t" in str(caught.value)


def damage(route: Route, how: str) -> None:
    """Change what lies in the place of artifacts behind the library's back."""
    (found,) = (path for path in route.folder.rglob("*") if path.is_file() and path.read_bytes() == PAGE)
    found.chmod(0o600)
    if how == "missing":
        found.unlink()
    else:
        found.write_bytes(PAGE[:-1] if how == "cut" else PAGE[:-1] + b"!")


@pytest.mark.parametrize("how", ["missing", "cut", "changed"])
def test_bytes_that_are_not_what_they_were_are_an_error_that_says_so(route: Route, how: str) -> None:
    lease = held(route)
    made = lease.attach("page", PAGE)
    damage(route, how)
    for by_name in (True, False):
        with unchanged(route), pytest.raises(Error) as caught:
            (lease.open("page") if by_name else route.other.open(made.uri)).read()
        assert made.sha256[:12] in str(caught.value)
    assert lease.renew() == 60


def test_a_task_that_nobody_knows_or_of_another_tenant_shows_none(route: Route) -> None:
    held(route).attach("page", PAGE)
    with pytest.raises(NotFound):
        route.db.artifacts("nobody")
    with pytest.raises(NotFound):
        route.stranger.artifacts("t")
