"""Which file a URL means; which file systems and engines are refused; who may read what is made."""

import errno
import os
import stat
from pathlib import Path

import pytest

import relet
from relet.core.errors import Invalid, Unavailable
from relet.core.mounts import NETWORK_FILE_SYSTEMS
from relet.store.sqlite import marks, place
from tests.store.inside import path_of

HERE = Path.cwd()


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///work.db", HERE / "work.db"),
        ("sqlite:///sub/../work.db", HERE / "work.db"),
        ("sqlite:////srv/work.db", Path("/srv/work.db")),
        ("sqlite:///a%20b.db", HERE / "a b.db"),
        ("sqlite:///:memory:", None),
        ("sqlite://", None),
    ],
)
def test_a_url_names_a_file_or_the_memory(url, path):
    assert place.path_of(url) == path


@pytest.mark.parametrize(
    "url",
    [
        "sqlite:/work.db",
        "sqlite:work.db",
        "sqlite://host/work.db",
        "sqlite:///",
        "sqlite:///a.db?mode=ro",
        "sqlite:///%00",
    ],
)
def test_a_url_that_names_no_file_is_refused_with_an_example(url):
    with pytest.raises(Invalid, match=r"write sqlite:///work\.db") as refused:
        place.path_of(url)
    assert refused.value.detail["field"] == "url"


def test_a_path_that_is_no_text_is_refused_and_nothing_is_made(tmp_path):
    path = os.fsdecode(bytes(tmp_path) + b"/\xff.db")
    with pytest.raises(Invalid, match=r"url: the path .*udcff.* has bytes that are no UTF-8.*rename the file"):
        place.path_of(f"sqlite:///{path}")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("written", ["%FF.db", "%ED%A0%80.db"])
def test_bytes_that_are_no_text_are_not_taken_for_the_name_of_another_file(written):
    with pytest.raises(Invalid, match=r"url: the path .*udc.* has bytes that are no UTF-8"):
        place.path_of(f"sqlite:///{written}")


# SQLite before 3.51.3 can reset the log under a second writer; two older lines were mended.
ENGINES = [
    ("3.40.1", False),
    ("3.44.5", False),
    ("3.44.6", True),
    ("3.44.10", True),
    ("3.45.0", False),
    ("3.49.9", False),
    ("3.50.6", False),
    ("3.50.7", True),
    ("3.51.2", False),
    ("3.51.3", True),
    ("3.54.0", True),
    ("4.0.0", True),
]


@pytest.mark.case("SQ-06")
@pytest.mark.parametrize(("version", "good"), ENGINES)
def test_engines_that_can_damage_a_log_of_several_writers_are_refused(version, good):
    if good:
        place.check_engine(version)
        return
    with pytest.raises(Unavailable, match=f"SQLite {version} can corrupt .* pip install --upgrade apsw") as refused:
        place.check_engine(version)
    assert (refused.value.code, refused.value.detail["version"]) == ("RELET-ENGINE", version)


def test_the_engine_of_this_installation_is_a_good_one():
    place.check_engine()


@pytest.mark.case("SQ-04")
@pytest.mark.parametrize("kind", sorted(NETWORK_FILE_SYSTEMS))
def test_a_network_file_system_is_refused(kind, tmp_path):
    with pytest.raises(Unavailable, match=f"is on a {kind} file system, where SQLite's locks do not hold") as refused:
        place.check_file_system(tmp_path / "relet.db", kind)
    assert refused.value.code == "RELET-NETWORK-FILE"
    assert refused.value.detail["file_system"] == kind


@pytest.mark.case("SQ-04")
@pytest.mark.parametrize("kind", ["ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", "unknown"])
def test_a_local_file_system_is_taken(kind, tmp_path):
    place.check_file_system(tmp_path / "relet.db", kind)


@pytest.mark.case("SQ-04")
def test_a_store_on_a_network_file_system_is_not_even_made(tmp_path, monkeypatch):
    monkeypatch.setattr(place, "kind_of", lambda folder: "nfs4")
    with pytest.raises(Unavailable, match="local disk"):
        relet.connect(f"sqlite:///{path_of(tmp_path)}")
    assert list(tmp_path.iterdir()) == []


def test_all_files_of_a_store_are_for_their_owner_alone(db, tmp_path):
    old = os.umask(0)
    try:
        db.submit("q", 1)
        db.claim("q")
        (tmp_path / "deeper").mkdir()
        relet.connect(f"sqlite:///{tmp_path / 'deeper' / 'made.db'}").close()
    finally:
        os.umask(old)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {"relet.db", "relet.db-wal", "relet.db-shm", "relet.db-open", "made.db"} <= {path.name for path in files}
    assert {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in files} == {
        path.name: oct(0o600) for path in files
    }
    assert stat.S_IMODE((tmp_path / "state").stat().st_mode) == 0o700


def test_a_folder_is_refused_with_a_name_for_the_file(tmp_path):
    with pytest.raises(Invalid, match=r"is a folder; name a file in it, such as .*/relet\.db"):
        relet.connect(f"sqlite:///{tmp_path}")


def test_a_folder_that_does_not_exist_is_not_made_by_the_way(tmp_path):
    with pytest.raises(Unavailable, match="its folder does not exist → mkdir -p"):
        relet.connect(f"sqlite:///{tmp_path / 'no' / 'such' / 'relet.db'}")
    assert list(tmp_path.iterdir()) == []


def test_a_name_that_no_file_can_have_is_unavailable_and_not_a_crash(tmp_path):
    with pytest.raises(Unavailable, match="cannot be made: File name too long"):
        relet.connect(f"sqlite:///{tmp_path / ('n' * 300)}")


def full_for(call, refused):
    """As `call`, but there is no room for what is refused."""

    def full(what, *arguments):
        if refused(what):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(what))
        return call(what, *arguments)

    return full


@pytest.mark.parametrize("when", ["open", "pwrite"])
def test_no_room_for_the_file_that_tells_who_has_the_store_open_is_said_clearly(tmp_path, monkeypatch, when):
    url = f"sqlite:///{path_of(tmp_path)}"
    with monkeypatch.context() as full:
        if when == "open":
            full.setattr(marks.os, "open", full_for(os.open, lambda what: str(what).endswith("-open")))
        else:
            full.setattr(marks.os, "pwrite", full_for(os.pwrite, lambda _descriptor: True))
        with pytest.raises(
            Unavailable, match=r"relet\.db-open, .* \(No space left on device\).* Free some space"
        ) as no:
            relet.connect(url)
    assert (no.value.code, no.value.retryable) == ("RELET-FULL", True)
    with relet.connect(url) as db:
        assert db.submit("q", 1).created, "nothing of it stays in the way"
