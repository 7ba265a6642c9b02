"""A transaction of the user's own on the store's database, committed only while the lease holds."""

from __future__ import annotations

from typing import Any

import pytest

from relet.core.errors import Conflict, Invalid, LeaseLost
from relet.core.model import LostReason, State
from relet.testing.conformance.route import Route
from relet.testing.conformance.scenes import causes, expire, held, taken


def test_what_is_written_is_committed_with_the_lease_still_held(route: Route) -> None:
    lease = held(route)
    with lease.transaction() as connection:
        connection.execute("CREATE TABLE mine (x INTEGER)")
        connection.execute("INSERT INTO mine VALUES (1)")
    with lease.transaction() as connection:
        assert connection.execute("SELECT x FROM mine").fetchall() == [(1,)]
    assert lease.renew() == 60
    lease.complete("done")


def test_a_lease_that_is_lost_meanwhile_undoes_it(route: Route) -> None:
    lease = held(route)
    with pytest.raises(LeaseLost) as caught, lease.transaction() as connection:
        connection.execute("CREATE TABLE mine (x INTEGER)")
        expire(route, lease)
    assert caught.value.reason is LostReason.EXPIRED
    assert causes(route)[-1] == "lapsed"  # for good, before it was told
    second = taken(route)
    with second.transaction() as connection:
        connection.execute("CREATE TABLE mine (x INTEGER)")  # refused, were it there


def test_a_lease_that_was_lost_before_begins_none(route: Route) -> None:
    lease = held(route)
    expire(route, lease)
    taken(route)
    entered: list[Any] = []
    with pytest.raises(LeaseLost) as caught, lease.transaction() as connection:
        entered.append(connection)
    assert (caught.value.reason, entered) == (LostReason.SUPERSEDED, [])


def test_an_exception_undoes_it_and_leaves_the_lease(route: Route) -> None:
    lease = held(route)
    before = route.rows()
    with pytest.raises(KeyError), lease.transaction() as connection:
        route.db.submit("next", 1, tx=connection)
        raise KeyError
    assert route.rows() == before
    assert lease.renew() == 60


def test_relets_own_tables_and_the_commit_are_out_of_its_reach(route: Route) -> None:
    lease = held(route)
    before = route.rows()
    for sql in route.out_of_reach:
        with pytest.raises(Exception, match="names one of relet"), lease.transaction() as connection:
            connection.execute(sql)
    assert route.rows() == before


def test_a_submit_and_a_result_are_committed_with_it_or_not_at_all(route: Route) -> None:
    lease = held(route)
    with lease.transaction() as connection:
        task = route.db.submit("next", {"n": 1}, id="n", tx=connection)
        assert (task.id, task.created) == ("n", True)
        lease.complete("done", tx=connection)
    assert (route.db.task("n").state, route.db.result("t")) == (State.READY, "done")
    assert causes(route)[-1] == "completed"


def test_a_refusal_within_it_does_not_undo_the_rest(route: Route) -> None:
    lease = held(route)
    with lease.transaction() as connection:
        route.db.submit("next", 1, id="n", tx=connection)
        with pytest.raises(Conflict):
            route.db.submit("elsewhere", 1, id="t", tx=connection)
    assert route.db.task("n").state is State.READY


def test_a_run_has_it_too(route: Route) -> None:
    lease = held(route)
    with lease.run() as run:
        with run.transaction() as connection:
            route.db.submit("next", 1, id="n", tx=connection)
        lease.complete("done")
    assert route.db.task("n").state is State.READY


@pytest.mark.parametrize("tx", [7, "sqlite:///relet.db", object()], ids=["number", "url", "object"])
def test_what_is_no_transaction_is_refused_by_name(route: Route, tx: Any) -> None:
    lease = held(route)
    before = route.rows()
    for call in (lambda: route.db.submit("next", 1, tx=tx), lambda: lease.complete("done", tx=tx)):
        with pytest.raises(Invalid, match=r"^tx: ") as caught:
            call()
        assert caught.value.detail["field"] == "tx"
    assert route.rows() == before
