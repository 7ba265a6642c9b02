"""The promised rules survive every order of events within small bounds; each known mistake does not."""

from dataclasses import fields

import pytest

from tests.model.explicit import ACCEPTED, REFUSED, REPEATED, Bounds, Rules, search

QUICK = Bounds(ttl=2)

# The mistake, the promise that it breaks, and the number of moves in a shortest way to break it.
MISTAKES = [
    (Rules(renew_at_equality=True), "strict expiry: a claim and a renewal would both succeed", 3),
    (Rules(claim_after_equality=True), "strict expiry: neither a claim nor a renewal would succeed", 3),
    (Rules(check_token=False), "only the owner acts", 4),
    (Rules(trust_holder_name=True), "only the owner acts", 4),
    (Rules(tokens_restart=True), "tokens grow", 4),
    (Rules(record_lapse=False), "lost is lost", 6),
    (Rules(renew_may_shorten=True), "a renewal never shortens", 3),
    (Rules(look_then_take=True), "one live holder", 4),
    (Rules(raise_before_read=False), "fence: an old write landed", 7),
    (Rules(check_fence=False), "fence: an old write landed", 9),
    (Rules(land_before_judging=True), "a refusal changes nothing", 8),
]


def mistakes_in(rules):
    return [f.name for f in fields(Rules) if getattr(rules, f.name) != f.default]


def show(report):
    print(f"\n{report}")  # noqa: T201 - the trace is the lesson: pytest -s shows it


def test_the_promised_rules_hold_in_every_state():
    report = search(Rules(), Bounds())
    show(report)
    assert report.broken is None, str(report)
    assert report.states > 50_000
    # A clean search proves little if some verb was never taken, or never refused.
    for action in ("renew", "complete", "release", "raise", "deliver"):
        assert report.verdicts[action, ACCEPTED] > 1_000
        assert report.verdicts[action, REFUSED] > 1_000
    for action in ("complete", "release"):
        assert report.verdicts[action, REPEATED] > 1_000
    for action in ("tick", "clock back", "expire", "claim", "read", "send"):
        assert report.verdicts[action, ACCEPTED] > 1_000


def test_without_raise_before_read_an_old_write_lands_under_the_new_holder():
    report = search(Rules(raise_before_read=False), Bounds(ttl=2, releases=False))
    show(report)
    assert report.broken is not None
    assert report.broken.startswith("fence: an old write landed")
    assert report.trace == [
        "claim by A: token 1",
        "tick: 1 left",
        "tick: 0 left",
        "claim by B: token 2",
        "read by A with token 1: accepted",
        "send by A with token 1: accepted",
        "read by B with token 2: accepted",
        "deliver by A with token 1: accepted",
    ]


def test_with_raise_before_read_the_same_bounds_are_clean():
    report = search(Rules(), Bounds(ttl=2, releases=False))
    assert report.broken is None, str(report)
    assert report.states > 10_000


@pytest.mark.parametrize(
    ("rules", "promise", "moves"), MISTAKES, ids=[mistakes_in(rules)[0] for rules, _, _ in MISTAKES]
)
def test_each_mistake_has_a_shortest_counterexample(rules, promise, moves):
    report = search(rules, QUICK)
    show(report)
    assert report.broken is not None
    assert report.broken.startswith(promise)
    assert len(report.trace) == moves


def test_trusting_the_holder_name_fails_on_a_reused_name():
    report = search(Rules(trust_holder_name=True), Bounds(holders=("A",), ttl=2))
    assert report.trace[-1] == "renew by A with token 1: accepted"
    assert any(line.startswith("claim by A: token 2") for line in report.trace)


def test_every_mistake_that_the_model_knows_is_tried():
    tried = {name for rules, _, _ in MISTAKES for name in mistakes_in(rules)}
    assert tried == {f.name for f in fields(Rules)}
