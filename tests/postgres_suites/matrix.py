"""The kinds of servers that the suites run over, and what a run leaves out of them: always the same.

`RELET_TEST_MATRIX=one`, or nothing: each test runs over PostgreSQL 18, and over one of its other routes, that which
belongs to its name. `quick`: over one of all its routes. `all`: over each. A list of routes, as in
`postgres-15,postgres-bare`: over those alone. A test that has no routes to choose from runs in any case.
"""

import os
import re
import zlib
from collections import defaultdict

KINDS = ("18", "15", "pgbouncer", "serializable", "bare")
ROUTES = {"postgres" if kind == "18" else f"postgres-{kind}": kind for kind in KINDS}
"""What a parameter of a test is called, and the kind of server that it stands for."""
OVER_HTTP = ("http", "http-awaiting")
"""Through a service over SQLite: each test over one of them, unless all are asked for."""
IS_ROUTE = re.compile(r"(postgres|http)(-\w+)?")
MATRIX = (os.environ.get("RELET_TEST_MATRIX") or "one").split(",")
RUNS_ALL = MATRIX == ["all"]


def pytest_collection_modifyitems(config, items):
    """To be imported by the conftest of each suite that has routes. What one of them has chosen stays chosen."""
    if RUNS_ALL:
        return
    routes = defaultdict(list)
    for item in items:
        if (route := route_of(item)) is not None:
            routes[kin(route, item)].append(route)
    chosen = {each: set(choose(each[1], found)) for each, found in routes.items()}

    def is_left_out(item):
        route = route_of(item)
        return route is not None and route not in chosen[kin(route, item)]

    leave_out(config, items, is_left_out)


def choose(name, routes):
    """Those of its routes that a test of this name runs over; 18 is the first of them."""
    if set(routes) <= set(OVER_HTTP):
        return one_of(routes, name)
    match MATRIX:
        case ["one"]:
            first, *others = routes
            return [first, *one_of(others, name)]
        case ["quick"]:
            return one_of(routes, name)
    return MATRIX


def one_of(routes, name):
    return routes and [routes[number(name, len(routes))]]


def route_of(item):
    """The route that a test runs over; None where it has no choice."""
    params = item.callspec.params.values() if hasattr(item, "callspec") else ()
    return next((param for param in params if isinstance(param, str) and IS_ROUTE.fullmatch(param)), None)


def kin(route, item):
    """What the items of one test have in common over routes among which there is a choice."""
    return route in OVER_HTTP, name_without(route, item)


def name_without(route, item):
    """What the items of one test over its routes have in common."""
    test, _, params = item.nodeid.partition("[")
    return test + params.replace(route, "", 1)


def number(test, n):
    """A number below `n` that belongs to the name of a test."""
    return zlib.crc32(test.encode()) % n


def leave_out(config, items, is_left_out):
    """Take tests from those that were collected, and have them counted as such."""
    left_out = {item for item in items if is_left_out(item)}
    config.hook.pytest_deselected(items=list(left_out))
    items[:] = [item for item in items if item not in left_out]
