"""Addresses that are told: what is pasted means the same database, and holds no secret."""

import pytest
from psycopg.conninfo import conninfo_to_dict

from relet.core.errors import Invalid
from relet.store.postgres.address import KEPT, address_of, is_same
from relet.store.postgres.place import located, place_of

GIVEN = {
    "postgresql://ann@db.internal/work": "postgresql://ann@db.internal/work",
    "postgresql://ann:s3cret@db.internal:5433/work": "postgresql://ann@db.internal:5433/work",
    "postgresql://ann@db/work?password=s3cret&sslpassword=s3cret&sslmode=require": (
        "postgresql://ann@db/work?sslmode=require"
    ),
    "postgresql://a%40b%3A:s3cret@db/w%20k": "postgresql://a%40b%3A@db/w%20k",
    "postgresql://ann@a:1,b:2/work?target_session_attrs=read-write": (
        "postgresql://ann@a:1,b:2/work?target_session_attrs=read-write"
    ),
    "postgresql://ann@a,b/work?port=7": "postgresql://ann@a,b/work?port=7",
    "postgresql://ann@[::1]:5433/work": "postgresql://ann@[::1]:5433/work",
    "postgresql://ann@/work?host=/run/pg&port=5433": "postgresql://ann@%2Frun%2Fpg:5433/work",
    "postgresql:///work": "postgresql:///work",
    "postgresql://db": "postgresql://db/",
    "postgresql://ann@db/work#jobs": "postgresql://ann@db/work#jobs",
}  # fmt: skip
MEANT = ("user", "host", "port", "dbname", *KEPT)


@pytest.mark.parametrize("url", GIVEN)
def test_what_is_told_means_the_same_and_tells_no_secret(url):
    address = address_of(*located(url, None))
    assert address == GIVEN[url]
    given, told = (conninfo_to_dict(one.partition("#")[0]) for one in (url, address))
    assert {name: told.get(name) for name in MEANT} == {name: given.get(name) for name in MEANT}
    assert told.keys() <= set(MEANT)
    assert located(address, None)[1] == located(url, None)[1]


@pytest.mark.parametrize("url", GIVEN)
def test_it_is_the_same_place_for_every_user_and_however_it_was_told(url):
    database, schema = located(url, None)
    told = [
        address_of(database, schema),
        place_of(database, schema),
        address_of(database, schema).replace("ann@", "eve@"),
    ]
    assert [is_same(one, database, schema) for one in told] == [True] * 3
    for other in ("postgresql://ann@other/work", "postgresql://ann@db.internal/work#other", "no address"):
        assert not is_same(other, database, schema)


def test_only_an_address_is_told():
    with pytest.raises(Invalid):
        address_of("postgresql://ann@db/work?nothing=1", "relet")
