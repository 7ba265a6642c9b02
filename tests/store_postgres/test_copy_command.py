"""`relet copy`: what it says, how it ends, and where the bytes of a store in a database are."""

import json
import shlex

import psycopg
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
        assert (code, out.splitlines()[0]) == (11, "would be refused now")
        assert "worker-7 holds task b of default" in err
        assert "is open in" in err.splitlines()[-1], "the real one would end with that"
        assert asked(database, "SELECT to_regclass('relet.meta')") == [(None,)]
        lease.release()
    code, out, _ = relet("copy", source, database, "--dry-run")
    assert (code, out.splitlines()[0]) == (0, "would copy")
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
    with connect(source):
        code, out, err = relet("copy", source, database, "--back")
    assert (code, out) == (0, "is back already\n")
    assert "is shut" in err


def test_a_dry_run_takes_nothing_back(relet, source, database):
    relet("copy", source, database)
    code, out, err = relet("copy", source, database, "--back", "--dry-run")
    assert (code, out) == (0, "would take back\n")
    assert "nothing was changed" in err
    told = json.loads(relet("copy", source, database, "--back", "--dry-run", "--json")[1])
    assert (told["dry_run"], told["already"]) == (True, False)
    assert relet("submit", "q", "--url", database)[0] == 0
    assert relet("copy", source, database, "--back", "--dry-run")[0] == 11, "somebody has worked there now"


@pytest.mark.parametrize("option", [["--no-bytes"], ["--artifacts", "there"]])
def test_taking_back_takes_no_option_about_bytes(relet, source, database, option):
    relet("copy", source, database)
    code, _, err = relet("copy", source, database, "--back", *option)
    assert (code, f"relet: {option[0]}: " in err) == (2, True)
    assert relet("submit", "q", "--url", database)[0] == 0


def test_a_dry_run_ends_as_the_real_one_would_where_another_store_is(relet, source, database):
    assert relet("submit", "q", "--url", database)[0] == 0
    code, out, err = relet("copy", source, database, "--dry-run")
    assert (code, out.splitlines()[0], "[RELET-OTHER-STORE]" in err) == (11, "would be refused now", True)
    code, out, err = relet("copy", source, database, "--dry-run", "--json")
    assert (code, json.loads(out)["refused"][0]["code"]) == (11, "RELET-OTHER-STORE")
    assert json.loads(err.splitlines()[-1])["code"] == "RELET-OTHER-STORE"
    assert relet("copy", source, database)[0] == 11


def test_addresses_that_are_told_can_be_pasted(relet, source, database, tmp_path):
    given = database.replace("postgres@", "postgres:s3cret@")
    said = "".join(relet("copy", source, given)[1:])
    assert "s3cret" not in said
    address = next(line.split()[-1] for line in said.splitlines() if line.split()[0] == "to")
    assert address.startswith("postgresql://postgres@")
    assert relet("ls", "--url", address)[0] == 0
    assert address in relet("submit", "q", "--url", source)[2]
    told = json.loads(relet("doctor", "--url", source, "--json")[1])
    assert [one["detail"]["to"] for one in told["findings"] if one["check"] == "moved"] == [address]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("DROP SCHEMA relet CASCADE")
    code, _, err = relet("copy", source, given)
    assert (code, "s3cret" in err, "SOURCE" in err) == (11, False, False)
    pasted = shlex.split(err[err.index("→ relet ") + 8 : err.rindex(" [RELET-COPIED]")])
    assert pasted == ["copy", source, address, "--back"]
    code, out, err = relet(*pasted)
    assert (code, out, address in err) == (0, "taken back\n", True)


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
    assert to.startswith("postgresql://")
    assert fix.endswith(f"relet copy {source} {shlex.quote(to)} --back")
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
