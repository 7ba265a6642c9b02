"""How often somebody may ask: a key, and an address that shows wrong ones; and how soon again."""

import pytest

from relet.core.errors import Invalid
from relet.server.rates import FAILURES, KEPT_MAX, Buckets, Lately, Rate, rate_of
from tests.server.served import Served
from tests.ticking import Ticking


def test_a_bucket_gives_what_is_in_it_and_fills_with_time():
    clock = Ticking()
    buckets = Buckets(Rate(3, 0.5), clock)
    assert [buckets.take("a") for _ in range(4)] == [True, True, True, False]
    assert not buckets.has("a")
    assert buckets.take("b"), "each name has one of its own"
    clock.now = 1.9
    assert not buckets.take("a")
    clock.now = 2.0
    assert (buckets.has("a"), buckets.take("a"), buckets.take("a")) == (True, True, False)
    clock.now = 1_000.0
    assert [buckets.take("a") for _ in range(4)] == [True, True, True, False], "and no further than it was"


@pytest.mark.parametrize("rate", [Rate(3, 0.5), Rate(1, 40), Rate(2, 1 / 60), Rate(7, 1 / 86_400)])
def test_a_bucket_says_how_soon_there_is_one_again_and_there_is(rate):
    clock = Ticking()
    buckets = Buckets(rate, clock)
    assert buckets.after_s("a") == 0
    while buckets.take("a"):
        pass
    after_s = buckets.after_s("a")
    assert after_s == pytest.approx(1 / rate.each_second)
    clock.now += after_s * 0.99
    assert (buckets.has("a"), buckets.after_s("a")) == (False, pytest.approx(after_s * 0.01, rel=0.01))
    clock.now += after_s * 0.011
    assert (buckets.after_s("a"), buckets.take("a")) == (0, True)


@pytest.mark.parametrize(("given", "rate"), [
    ("100/s", Rate(200, 100)), ("100", Rate(200, 100)), (100, Rate(200, 100)), ("6000/m", Rate(200, 100)),
    ("10/30s", Rate(10, 1 / 3)), ("1/h", Rate(10, 1 / 3_600)), (" 5/s ", Rate(10, 5)),
])  # fmt: skip
def test_a_rate_is_written_as_that_of_a_queue_and_lets_two_seconds_of_it_through_at_once(given, rate):
    assert rate_of(given) == pytest.approx(rate)


def test_a_rate_of_none_lets_all_through():
    buckets = Buckets(rate_of("none"), Ticking())
    assert all(buckets.take("a") for _ in range(50_000))


@pytest.mark.parametrize(
    "given", ["", "x", "0/s", 0, -5, "-1/s", "1e3", "100/y", "5/0s", "1/2d", "10000000", "\uff11"]
)
def test_what_is_no_rate_is_refused_by_its_name(given):
    with pytest.raises(Invalid, match=r"^rate: .*is no rate; give") as refused:
        rate_of(given)
    assert refused.value.detail["field"] == "rate"


def test_buckets_are_so_many_at_most():
    buckets = Buckets(Rate(1, 0))
    for n in range(KEPT_MAX + 10):
        buckets.take(str(n))
    assert len(buckets._left) == KEPT_MAX
    lately = Lately()
    for n in range(KEPT_MAX + 10):
        lately.add(str(n))
    assert ("0" in lately, str(KEPT_MAX) in lately) == (False, True)


def test_who_asks_too_often_is_told_to_ask_more_slowly(tmp_path):
    served = Served(tmp_path, rate=Rate(5, 0.01))
    try:
        one, other = served.key(), served.key()
        statuses = [served.ask("GET", "/v1/whoami", key=one).status for _ in range(7)]
        assert statuses == [200] * 5 + [429] * 2
        reply = served.ask("GET", "/v1/whoami", key=one)
        assert (reply.code, reply.json["retryable"]) == ("RELET-TOO-MANY", True)
        assert 90 <= int(reply.headers["retry-after"]) == reply.json["facts"]["after_s"] <= 100
        assert served.ask("GET", "/v1/whoami", key=other).status == 200, "another key has a rate of its own"
    finally:
        served.close()


def test_wrong_keys_from_one_address_are_not_looked_up_any_more_and_good_ones_from_there_are(served, monkeypatch):
    good, elsewhere, fresh, looked = served.key(), served.key(), served.key(), []
    operate = served.service.operate

    async def counting(request):
        looked.append(request)
        return await operate(request)

    assert served.ask("GET", "/v1/whoami", key=good).status == 200
    monkeypatch.setattr(served.service, "operate", counting)
    served.gate._failed._clock = Ticking()
    wrong = good[:-1] + ("a" if good[-1] != "a" else "b")
    statuses = [served.ask("GET", "/v1/whoami", key=wrong).status for _ in range(200)]
    assert statuses.count(401) < FAILURES.at_once + 5
    assert statuses[-1] == 429
    seen = len(looked)
    assert served.ask("GET", "/v1/whoami", key=wrong).status == 429
    assert len(looked) == seen, "refused without a look into the store"
    assert served.ask("GET", "/v1/whoami", key=good).status == 200, (
        "whoever was good lately is not kept out by others"
    )
    assert served.ask("GET", "/v1/whoami", key=elsewhere, client=("10.0.0.9", 1)).status == 200
    reply = served.ask("GET", "/v1/whoami", key=fresh)
    assert (reply.status, reply.headers["retry-after"]) == (429, "2")
    served.gate._failed._clock.now += 2
    assert served.ask("GET", "/v1/whoami", key=fresh).status == 200


def test_a_key_that_was_good_lately_and_is_not_any_more_is_not_known_as_good(served):
    key = served.key()
    assert served.ask("GET", "/v1/whoami", key=key).status == 200
    served.revoke(key)
    statuses = [served.ask("GET", "/v1/whoami", key=key).status for _ in range(50)]
    assert set(statuses) == {401, 429}
