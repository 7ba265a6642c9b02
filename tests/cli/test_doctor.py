"""doctor: what is amiss with a store, told to people and to programs."""

import pytest

from relet.core import limits
from relet.core.doctor.examine import CHECKS


@pytest.fixture(autouse=True)
def on_disk(monkeypatch):
    """Tests run in memory where they can, which is a finding of its own."""
    monkeypatch.setattr("relet.store.sqlite.examine.kind_of", lambda _: "ext4")


def findings(done):
    return {one["check"]: one for one in done.json["findings"]}


def test_a_store_that_is_well_says_what_was_looked_at(relet, folder):
    relet("submit", "q", "1")
    done = relet("doctor")
    assert done.code == 0
    assert done.out.splitlines()[0] == f"all is well with {folder}/relet.db"
    assert [line.split()[0] for line in done.out.splitlines()[1:]] == [check.name for check in CHECKS]
    report = relet("doctor", "--json").json
    assert (report["place"], report["findings"]) == (f"{folder}/relet.db", [])
    assert {tuple(sorted(one)) for one in report["checks"]} == {("check", "ok", "seen", "tenant")}


def test_without_a_store_it_says_so_and_makes_none(relet, folder):
    done = relet("doctor")
    assert done.code == 8
    assert "file: there is no file" in done.out
    assert list(folder.iterdir()) == []


def test_of_a_service_it_says_that_it_is_one(relet):
    done = relet("doctor", "--url", "http://127.0.0.1:9")
    assert (done.code, "url: is a service" in done.err) == (2, True)


@pytest.mark.case("OB-05")
def test_when_nobody_sweeps_it_names_the_oldest_expired_lease_within_two_ttls(relet, held, clock):
    held("t-1", ttl="60s")
    clock.advance("1ms")
    held("t-2", ttl="60s")
    clock.advance("89s")
    assert "lapsed" not in findings(relet("doctor", "--json"))
    clock.advance("30s")
    done = relet("doctor", "--json")
    assert done.code == 8
    lapsed = findings(done)["lapsed"]
    assert (lapsed["detail"]["task_id"], lapsed["detail"]["count"]) == ("t-1", 2)
    assert lapsed["fix"].endswith("relet sweep")
    assert set(lapsed) == {"check", "tenant", "evidence", "fix", "detail"}
    text = relet("doctor").out
    assert "t-1" in text
    assert "    → " in text
    assert "\nwell: engine, " in text
    relet("sweep")
    assert "lapsed" not in findings(relet("doctor", "--json"))


def test_a_kind_that_no_worker_takes_is_named(relet, clock):
    relet("submit", "q", "1", "--kind", "orphan", "--id", "o-1")
    clock.advance(f"{limits.DOCTOR_UNCLAIMED_MS}ms")
    alone = findings(relet("doctor", "--json"))["claims"]
    assert "nobody has claimed" in alone["evidence"]
    relet("submit", "q", "1")
    relet("claim", "q", "--kind", "q", "--handle-file", "h")
    done = relet("doctor", "--json")
    assert findings(done)["claims"]["detail"] == {
        "queue": "q", "kind": "orphan", "ready": 1, "task_id": "o-1", "claimed": ["q"],
    }  # fmt: skip


def test_a_store_that_cannot_be_opened_is_a_finding_and_no_error(relet, folder):
    (folder / "relet.db").write_bytes(b"not a database " * 100)
    done = relet("doctor", "--json")
    assert (done.code, done.err) == (8, "")
    assert "is not a SQLite database" in findings(done)["opens"]["evidence"]


def test_a_store_in_memory_is_examined_too(relet):
    done = relet("doctor", "--url", "sqlite://", "--json")
    assert (done.code, done.json["place"]) == (0, "sqlite://")


def test_a_url_that_is_none_is_refused(relet):
    assert relet("doctor", "--url", "nonsense").code == 2


def test_the_work_of_all_tenants_is_looked_at_and_one_alone_is_named_as_one(relet, clock, monkeypatch):
    relet("submit", "q", "1")
    relet("submit", "dd", "1", "--tenant", "acme")
    well = relet("doctor")
    assert well.code == 0
    heads = [line for line in well.out.splitlines() if line.startswith("tenant ")]
    assert heads == ["tenant acme", "tenant default"]
    assert "tenants" in well.out
    assert "2 looked at: acme, default" in well.out
    relet("claim", "dd", "--ttl", "5s", "--tenant", "acme", "--handle-file", "h")
    clock.advance("20s")
    done = relet("doctor", "--json")
    assert (done.code, findings(done)["lapsed"]["tenant"]) == (8, "acme")
    assert "lapsed: tenant acme: the lease of task" in relet("doctor").out
    monkeypatch.setenv("RELET_TENANT", "nobody")
    assert findings(relet("doctor", "--json"))["lapsed"]["tenant"] == "acme", "a setting narrows nothing"
    monkeypatch.delenv("RELET_TENANT")
    alone = relet("doctor", "--tenant", "default")
    assert (alone.code, alone.out.splitlines()[0][:33]) == (0, "all is well with tenant default i")
    assert "1 looked at: default; not looked at: acme" in alone.out
    assert relet("doctor", "--tenant", "acme").code == 8


def test_more_tenants_than_are_looked_at_are_a_finding(relet, monkeypatch):
    monkeypatch.setattr("relet.core.limits.DOCTOR_TENANTS", 2)
    for name in ("a", "b", "c"):
        relet("submit", "q", "1", "--tenant", name)
    told = findings(relet("doctor", "--json"))["tenants"]
    assert (told["detail"], told["fix"]) == (
        {"looked_at": 2, "next": "c"}, "relet doctor --tenant c, and so on; all of them: relet tenants",
    )  # fmt: skip


def test_tenants_are_listed_with_their_queues(relet, folder):
    assert relet("tenants").code == 10
    assert not list(folder.iterdir()), "a look makes no store"
    for name, queue in (("acme", "q"), ("acme", "r"), ("default", "q")):
        relet("submit", queue, "1", "--tenant", name)
    relet("pause", "q", "--tenant", "paused")
    done = relet("tenants")
    assert [line.split() for line in done.out.splitlines()] == [
        ["TENANT", "QUEUES"], ["acme", "2"], ["default", "1"], ["paused", "1"],
    ]  # fmt: skip
    page = relet("tenants", "--limit", "2", "--json").json
    assert page == {"tenants": [{"name": "acme", "queues": 2}, {"name": "default", "queues": 1}], "next": "default"}
    assert relet("tenants", "--after", page["next"], "--json").json["tenants"] == [{"name": "paused", "queues": 1}]
    assert "--after default" in relet("tenants", "--limit", "2").err
    assert relet("tenants", "--limit", "0").code == 2


def test_a_store_without_a_task_has_no_tenants(relet, db):
    done = relet("tenants")
    assert (done.code, done.out) == (0, "")
    assert "no tenants in" in done.err
