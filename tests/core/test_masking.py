"""Whatever may be of a password in a URL is not shown, however it was written; the rest is."""

import pytest

from relet.core.masking import masked


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://me:hush@db:5432/work#jobs", "postgresql://me:***@db:5432/work#jobs"),
        ("postgresql://me:hush@db/work?sslmode=require#jobs", "postgresql://me:***@db/work?sslmode=require#jobs"),
        ("postgresql://me:hu:sh@db/work", "postgresql://me:***@db/work"),
        ("postgresql://me:hu@sh@db/work", "postgresql://me:***@db/work"),
        ("postgresql://me:hu#sh@db/work", "postgresql://me:***@db/work"),
        ("postgresql://me:hu/sh@db/work", "postgresql://me:***@db/work"),
        ("postgresql://me:hu?sh@db/work", "postgresql://me:***@db/work"),
        ("postgresql:/me:hush@db/work", "postgresql:/me:***@db/work"),
        ("postgresql:me:hush@db/work", "postgresql:***@db/work"),
        ("me:hush@db/work", "me:***@db/work"),
        ("postgresql+psycopg://me:hush@db/work", "postgresql+psycopg://me:***@db/work"),
        ("postgresql://me@db/work?password=hush&port=1#jobs", "postgresql://me@db/work?password=***&port=1#jobs"),
        ("postgresql://me@db/work?port=1&sslpassword=hu&sh", "postgresql://me@db/work?port=1&sslpassword=***"),
        ("postgresql://me@db/work?password=hu#sh", "postgresql://me@db/work?password=***"),
        ("postgresql:host=db password = hush user=me", "postgresql:host=db password = ***"),
        ("postgresql://me@db/work", "postgresql://me@db/work"),
        ("postgresql://db/work#jobs", "postgresql://db/work#jobs"),
        ("sqlite:////srv/a:b@c.db", "sqlite:////srv/a:b@c.db"),
    ],
)
def test_a_password_is_masked(url, shown):
    assert masked(url) == shown
