"""`relet copy`: what it says, how it ends, and where the bytes of a store in a database are."""

import json

import pytest

from relet.artifacts.opening import folder_beside
from relet.cli.main import run
from relet.connect import connect
from tests.store_postgres.test_copy_columns import asked

pytestmark = pytest.mark.postgres


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setenv("RELET_STATE_DIR", str(tmp_path / "state"))
    url = f"sqlite:///{tmp_path}/work.db"
    with connect(url, holder="A") as db:
        db.submit_many("q", [1, 2], ["a", "b"])
        lease = db.claim("q")
        lease.attach("page", b"bytes")
        lease.complete("ok")
    return url


@pytest.fixture
def relet(capsys):
    def call(*args):
        capsys.readouterr()
        code = run(list(args))
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_it_says_how_far_it_is_and_what_was_copied(relet, source, database, tmp_path):
    code, out, err = relet("copy", source, database)
    assert code == 0
    assert "tasks: 2" in err
    lines = {line.split("  ")[1].strip(): line.split("  ")[-1].strip() for line in out.splitlines()[1:]}
    assert (lines["tasks"], lines["leases"]) == ("2", "1")
    assert lines["stored bytes"].startswith(f"1, 1 of them brought to {tmp_path}/state/artifacts/")
    code, out, _ = relet("copy", source, database)
    assert (code, out.splitlines()[0]) == (0, "was copied before; it is open now")


def test_a_dry_run_says_what_would_be_and_who_stands_in_the_way(relet, source, database):
    with connect(source, holder="worker-7") as db:
        lease = db.claim("q")
        code, out, err = relet("copy", source, database, "--dry-run")
        assert (code, out.splitlines()[0]) == (0, "would copy")
        assert "worker-7 holds task b of default" in err
        assert asked(database, "SELECT to_regclass('relet.meta')") == [(None,)]
        lease.release()
    code, out, _ = relet("copy", source, database, "--dry-run", "--json")
    told = json.loads(out)
    assert (told["rows"]["tasks"], told["artifacts"], told["dry_run"], told["held"]) == (2, 1, True, [])


def test_how_it_ends_tells_why(relet, source, database, tmp_path):
    assert relet("copy", f"sqlite:///{tmp_path}/none.db", database)[0] == 10
    assert relet("copy", database, source)[0] == 2
    assert relet("copy", source, source)[0] == 2
    assert relet("copy", source, "postgresql://postgres@127.0.0.1:1/none")[0] == 75
    with connect(source) as db:
        code, _, err = relet("copy", source, database)
        assert code == 11
        assert "is open in" in err
        held = db.claim("q")
    code, _, err = relet("copy", source, database, "--json")
    assert (code, json.loads(err.splitlines()[-1])["detail"]["held"][0]["task"]) == (11, "b")
    with connect(source) as db:
        db.lease(held.handle).release()


def test_with_findings_nothing_has_moved(relet, source, database, tmp_path):
    bytes_ = folder_beside(tmp_path / "work.db")
    bytes_.rename(tmp_path / "elsewhere")
    code, out, err = relet("copy", source, database)
    assert code == 8
    assert out.startswith("bytes-are-there: artifact:")
    assert "was not moved" in err
    assert relet("submit", "q", "--url", source)[0] == 0
    assert relet("copy", source, database, "--artifacts", str(tmp_path / "elsewhere"))[0] == 0
    with connect(database) as db:
        assert db.open(db.artifacts("a")[0].uri).read() == b"bytes"
        assert db.verify().findings == []


def test_without_its_bytes_they_are_left_where_they_are(relet, source, database):
    code, out, _ = relet("copy", source, database, "--no-bytes")
    assert code == 0
    assert "stored bytes" not in out
    with connect(database) as db:
        assert [finding.rule for finding in db.verify().findings] == ["bytes-are-there"]


def test_bytes_go_to_the_place_that_is_named_for_all_stores(relet, source, database, tmp_path, monkeypatch):
    monkeypatch.setenv("RELET_ARTIFACTS", str(tmp_path / "all"))
    assert f"brought to {tmp_path / 'all'}" in relet("copy", source, database)[1]
    with connect(database) as db:
        assert db.open(db.artifacts("a")[0].uri).read() == b"bytes"


def test_it_is_taken_back(relet, source, database):
    relet("copy", source, database)
    code, _, err = relet("submit", "q", "--url", source)
    assert (code, "RELET-COPIED" in err) == (11, True)
    code, out, _ = relet("copy", source, database, "--back")
    assert (code, out) == (0, "taken back\n")
    assert relet("submit", "q", "--url", source)[0] == 0
    code, _, err = relet("submit", "q", "--url", database)
    assert (code, "RELET-COPYING" in err) == (75, True)
    assert relet("copy", source, database, "--back")[0] == 11


def findings(told):
    return [(one["check"], one["evidence"], one["fix"], one["detail"]) for one in json.loads(told)["findings"]]


@pytest.fixture
def moved(relet, monkeypatch):
    """What doctor says of a place that the store has left; of nothing else is there anything to say."""
    # Tests run in memory where they can, which is a finding of its own.
    monkeypatch.setattr("relet.store.sqlite.examine.kind_of", lambda _: "ext4")

    def ask(url):
        code, out, _ = relet("doctor", "--url", url, "--json")
        assert code == 8
        ((evidence, fix, detail),) = [told for check, *told in findings(out) if check in ("moved", "opens", "schema")]
        return evidence, fix, detail["to"]

    return ask


def test_doctor_says_of_the_file_where_its_store_went(relet, source, database, moved, tmp_path):
    relet("copy", source, database)
    evidence, fix, to = moved(source)
    assert evidence.startswith(f"the store of {tmp_path}/work.db was copied to {to} on 2")
    assert "refuses every write" in evidence
    assert (to.startswith("postgresql://"), fix.endswith(f"relet copy {source} ADDRESS --back")) == (True, True)
    told = json.loads(relet("doctor", "--url", source, "--json")[1])
    assert [one["seen"] for one in told["checks"] if one["check"] == "opens"] == ["not tried"], (
        "its work is elsewhere"
    )


def test_doctor_says_of_the_database_that_its_copy_was_taken_back(relet, source, database, moved, tmp_path):
    relet("copy", source, database)
    relet("copy", source, database, "--back")
    evidence, fix, to = moved(database)
    assert f"was taken back to {tmp_path}/work.db on 2" in evidence
    assert (to, "use that file" in fix) == (f"{tmp_path}/work.db", True)
    relet("copy", source, database)
    assert asked(database, "SELECT to_regclass('relet.gone')") == [(None,)]
    told = json.loads(relet("doctor", "--url", database, "--json")[1])
    assert [one["seen"] for one in told["checks"] if one["check"] in ("moved", "opens")] == ["no", "opened"]
