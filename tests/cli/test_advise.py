"""advise: figures, reasons and lines to paste."""

from relet.core import limits


def work(db, n, queue="q"):
    db.submit_many(queue, range(n))
    db.complete_many([(lease, None) for lease in db.claim_many(queue, n)])


def test_without_leases_it_says_so(relet):
    done = relet("advise")
    assert (done.code, done.out) == (0, "")
    assert "no leases in" in done.err
    assert "0 of its leases are known" in relet("advise", "q").out


def test_it_tells_figures_reasons_and_what_to_paste(relet, db):
    work(db, limits.ADVICE_HOLD_LEAST)
    text = relet("advise", "q").out
    for told in (
        "queue q",
        "100 finished",
        "p99 ",
        "ttl 1m00s, no max_hold",
        "too few",
        'max_hold="2m"',
        "--max-hold 2m",
    ):
        assert told in text
    (advice,) = relet("advise", "--json").json["queues"]
    assert (advice["queue"], advice["leases"], advice["advised_max_hold_ms"]) == ("q", 100, 120_000)


def test_the_command_to_paste_is_of_the_tenant_that_was_measured(relet, monkeypatch):
    monkeypatch.setattr("relet.core.limits.ADVICE_LEASES_LEAST", 1)
    monkeypatch.setattr("relet.core.limits.ADVICE_HOLD_LEAST", 1)
    for tenant in ("acme", "default"):
        relet("submit", "q", "1", "--tenant", tenant)
        relet("claim", "q", "--tenant", tenant, "--handle-file", tenant)
        relet("complete", "--handle-file", tenant, "--tenant", tenant)
    assert "relet submit q INPUT --max-hold 2m --tenant acme\n" in relet("advise", "q", "--tenant", "acme").out
    assert "relet submit q INPUT --max-hold 2m\n" in relet("advise", "q").out


def test_late_heartbeats_and_late_holders_are_told(relet, held, clock):
    held("t-1", ttl="60s")
    clock.advance("55s")
    relet("renew", "--handle-file", "t-1.handle")
    clock.advance("70s")
    assert relet("complete", "--handle-file", "t-1.handle").code == 5
    text = relet("advise", "q").out
    assert "1 heartbeats, the narrowest with 5.0s left" in text
    assert "1 holders came back after their lease had expired" in text


def test_settings_that_fit_need_no_pasting(relet, db):
    db.queue("q", max_hold="2m")
    db.submit_many("q", range(limits.ADVICE_LEASES_LEAST))
    work(db, limits.ADVICE_HOLD_LEAST - limits.ADVICE_LEASES_LEAST)
    assert "nothing: all may stay as it is" in relet("advise", "q").out
