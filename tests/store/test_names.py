"""Odd names, and what is no file: each store has one name for all, and nothing lies where a store keeps its own."""

import os
import shlex
from pathlib import Path
from urllib.parse import quote

import apsw
import pytest

import relet
from relet.core.errors import Conflict, Error, Invalid, NotFound, Unavailable
from relet.store.sqlite import place
from relet.store.sqlite.adopt import adopt
from relet.store.sqlite.restore import restore
from relet.store.sqlite.upgrade import migrate
from relet.testing.stores import open_store

BESIDE = ["-journal", "-wal", "-shm", "-open", "-gate", "-restoring", "-artifacts", f"-holder-{'0a' * 12}"]
NOT_UTF_8 = os.fsdecode(b"caf\xe9.db")


@pytest.fixture
def linked(db, tmp_path):
    """The URL of a link in another folder, which leads to the store."""
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "by-link.db"
    link.symlink_to("../relet.db")
    return f"sqlite:///{link}"


def held(path):
    """What lies in the folder of a file, with its bytes."""
    return {one.name: one.read_bytes() for one in path.parent.iterdir() if one.is_file()}


def test_a_store_has_the_name_of_its_file_however_links_lead_to_it(db, tmp_path, linked):
    assert place.path_of(linked) == tmp_path / "relet.db"
    (tmp_path / "links" / "again.db").symlink_to("by-link.db")
    assert place.path_of(f"sqlite:///{tmp_path}/links/again.db") == tmp_path / "relet.db"


@pytest.mark.parametrize("verb", [restore, adopt, migrate])
def test_sq_08_a_store_in_use_is_in_use_by_the_name_of_a_link_too(db, tmp_path, linked, verb):
    backup = db.backup(tmp_path / "backup.db").backup
    with pytest.raises(Conflict) as refused:
        verb(linked, backup) if verb is restore else verb(linked)
    assert refused.value.code == "RELET-IN-USE"


def test_a_restore_by_a_link_replaces_the_file_and_leaves_the_link(db, clock, tmp_path, linked):
    db.submit("q", id="t")
    backup = db.backup(tmp_path / "backup.db").backup
    db.close()
    done = restore(linked, backup, clock=clock, state=tmp_path / "state")
    assert (done.place, Path(done.replaced).parent) == (f"{tmp_path}/relet.db", tmp_path)
    assert os.readlink(tmp_path / "links" / "by-link.db") == "../relet.db"
    assert [one.name for one in (tmp_path / "links").iterdir()] == ["by-link.db"]


def test_a_link_that_is_turned_elsewhere_under_an_open_client_is_noticed(clock, tmp_path):
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        open_store(tmp_path / name, clock).close()
    (tmp_path / "relet.db").symlink_to("one/relet.db")
    with open_store(tmp_path, clock) as client:
        client.submit("q", id="before")
        (tmp_path / "relet.db").unlink()
        (tmp_path / "relet.db").symlink_to("two/relet.db")
        with pytest.raises(Unavailable, match=r"relet\.db was replaced") as refused:
            client.submit("q", id="after")
        assert refused.value.code == "RELET-REPLACED"


@pytest.mark.parametrize("ending", BESIDE)
@pytest.mark.parametrize("name", ["relet.db", "to-be.db"])
def test_no_backup_is_made_under_a_name_that_a_store_needs(db, tmp_path, ending, name):
    before = held(tmp_path / "relet.db").keys()
    target = tmp_path / f"{name}{ending}"
    with pytest.raises((Invalid, Conflict), match=r"^to: "):
        db.backup(target)
    assert held(tmp_path / "relet.db").keys() == before
    db.submit("q")


@pytest.mark.parametrize("ending", BESIDE)
def test_what_lies_beside_a_store_is_no_store_for_any_verb(db, tmp_path, ending):
    backup = db.backup(tmp_path / "backup.db").backup
    url = f"sqlite:///{tmp_path}/relet.db{ending}"
    before = held(tmp_path / "relet.db")
    for verb in (place.path_of, lambda url: restore(url, backup), adopt, migrate):
        with pytest.raises(Invalid, match=r"url: .* keeps beside the store .*relet\.db"):
            verb(url)
    assert held(tmp_path / "relet.db") == before


def test_a_name_that_only_looks_like_one_is_a_store_like_any_other(tmp_path):
    (tmp_path / "research").write_text("notes")
    for name in ("research-journal", "relet.db-backup", "x-holder-me", "-wal"):
        assert place.path_of(f"sqlite:///{tmp_path}/{name}") == tmp_path / name


@pytest.mark.parametrize("link", [None, os.symlink, os.link])
@pytest.mark.parametrize("ending", ["-restoring", "-wal", "-journal", "-gate"])
def test_a_backup_that_a_restore_would_write_over_is_refused_and_kept(db, tmp_path, ending, link):
    made = Path(db.backup(tmp_path / "backup.db").backup)
    db.close()
    named = tmp_path / f"relet.db{ending}"
    made.replace(named)
    given = named
    if link is not None:
        given = tmp_path / "other.db"
        link(named, given)
    before = held(named)
    with pytest.raises(Invalid, match=r"backup: .* would be lost; .*→ mv "):
        restore(f"sqlite:///{tmp_path}/relet.db", given, state=tmp_path / "state")
    assert held(named) == before


def test_what_was_replaced_can_be_restored_from_where_it_is_kept(db, clock, tmp_path):
    backup = db.backup(tmp_path / "backup.db").backup
    db.submit("q", id="since")
    db.close()
    url, state = f"sqlite:///{tmp_path}/relet.db", tmp_path / "state"
    kept = restore(url, backup, clock=clock, state=state).replaced
    restore(url, kept, clock=clock, state=state)
    with open_store(tmp_path, clock) as client:
        assert client.task("since").id == "since"


ODD = {
    "nothing": ("", Invalid, "names no file"),
    "folder": (".", Invalid, "is not a file"),
    "device": (os.devnull, Invalid, "is not a file"),
    "pipe": ("pipe", Invalid, "is not a file"),
    "nul": ("a\x00b", Invalid, "has a NUL"),
    "empty": ("empty", Invalid, "is empty"),
    "no text": (NOT_UTF_8, Invalid, "no UTF-8"),
    "too long": ("n" * 300, Unavailable, "cannot be looked at"),
    "below a file": ("relet.db/x", NotFound, "there is no file"),
    "circle": ("circle", Unavailable, "cannot be looked at"),
    "nowhere": ("nowhere", NotFound, "there is no file"),
}


@pytest.fixture
def oddities(db, tmp_path, monkeypatch):
    db.close()
    monkeypatch.chdir(tmp_path)
    os.mkfifo("pipe")
    Path("empty").touch()
    Path(NOT_UTF_8).write_bytes(Path("relet.db").read_bytes())
    Path("circle").symlink_to("circle")
    Path("nowhere").symlink_to("there/is/nothing")
    return tmp_path


@pytest.mark.parametrize("odd", ODD)
def test_what_is_no_backup_is_said_to_be_none_and_nothing_is_waited_for(oddities, odd):
    name, error, words = ODD[odd]
    before = (oddities / "relet.db").read_bytes()
    with pytest.raises(error, match=f"^backup: .*{words}"):
        restore("sqlite:///relet.db", name, state=oddities / "state")
    assert (oddities / "relet.db").read_bytes() == before


@pytest.mark.parametrize("name", ["pipe", "circle", "."])
def test_what_is_no_file_is_no_store_and_is_not_replaced(oddities, db, name):
    kind = os.lstat(name).st_mode
    for verb in (lambda url: restore(url, "relet.db", state=oddities / "state"), adopt, migrate):
        with pytest.raises(Error, match=r"is not a file|cannot be looked at"):
            verb(f"sqlite:///{name}")
    assert os.lstat(name).st_mode == kind
    assert not [one for one in os.listdir() if one.startswith(("pipe-", "circle-"))]


@pytest.mark.parametrize("name", [NOT_UTF_8, "a\x00b", "n" * 300, "folder", "new/", "circle/b.db", ""])
def test_a_backup_to_what_no_file_can_be_is_refused_and_makes_nothing(db, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("circle").symlink_to("circle")
    before = sorted(os.listdir())
    with pytest.raises(Error):
        db.backup(name)
    assert sorted(os.listdir()) == before


@pytest.mark.parametrize("way", ["name too long", "folder in the way"])
def test_a_restore_that_cannot_be_done_says_so_and_leaves_the_store(tmp_path, clock, way):
    path = tmp_path / ("n" * 240 if way == "name too long" else "relet.db")
    url, state = f"sqlite:///{path}", tmp_path / "state"
    with relet.connect(url) as client:
        client.submit("q", id="t")
        backup = client.backup(tmp_path / "backup.db").backup
    if way == "folder in the way":
        (tmp_path / "relet.db-restoring").mkdir()
    before = path.read_bytes()
    with pytest.raises(Unavailable, match=r"was not restored: .*relet restore") as refused:
        restore(url, backup, clock=clock, state=state)
    assert refused.value.code == "RELET-CANNOT-OPEN"
    assert path.read_bytes() == before


def test_a_restore_into_no_folder_says_how_to_make_it(db, tmp_path):
    backup = db.backup(tmp_path / "backup.db").backup
    with pytest.raises(Unavailable, match="its folder does not exist → mkdir -p"):
        restore(f"sqlite:///{tmp_path}/nowhere/relet.db", backup)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize("way", ["backup", "restore"])
def test_a_url_that_is_told_can_be_pasted_whatever_the_name_of_the_file(tmp_path, way):
    folder = tmp_path / "it's 100%41 of $HOME"
    folder.mkdir()
    with relet.connect(f"sqlite:///{quote(str(folder))}/relet.db") as client:
        client.submit("q", id="t")
        backup = client.backup(folder / "backup.db").backup
        for path in (client.place, backup):
            connection = apsw.Connection(path)
            connection.execute("UPDATE tasks SET attempt = 9")
            connection.close()
        if way == "backup":
            with pytest.raises(Unavailable, match=r"hold what must hold") as refused:
                client.backup(folder / "other.db")
    if way == "restore":
        with pytest.raises(Unavailable, match=r"hold what must hold") as refused:
            restore(f"sqlite:///{quote(str(folder))}/relet.db", backup)
    *_, option, url = shlex.split(str(refused.value).partition("→ ")[2])
    assert option == "--url"
    assert place.path_of(url) == Path(refused.value.detail["path"])
