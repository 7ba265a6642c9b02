"""What names an artifact, a source or a place is parsed strictly, and refused in words."""

import os
import socket
import subprocess
import sys

import pytest

from relet.artifacts import source
from relet.artifacts.opening import folder_beside, open_artifacts
from relet.core.errors import Invalid
from tests.artifacts.places import drafts

HEX = "0123456789abcdef" * 4
NO_URIS = [
    "", HEX, "artifact:", f"artifact:{HEX[:-1]}", f"artifact:{HEX}0", f"artifact:{HEX.upper()}", f"Artifact:{HEX}",
    f"artifact:{HEX}\n", f" artifact:{HEX}", f"artifact://{HEX}", f"artifact:sha256/{HEX}",
    "artifact:../../etc/passwd",
    f"artifact:..%2f{HEX[5:]}", f"artifact:/{HEX[1:]}", f"artifact:\0{HEX[1:]}", f"artifact:\ud800{HEX[1:]}",
    f"artifact:\uffff{HEX[1:]}", f"artifact:\u0661{HEX[1:]}", f"file:///{HEX}", "s3://bucket/key", None, 7,
    f"artifact:{HEX}".encode(), ["artifact"],
]  # fmt: skip


@pytest.mark.parametrize("uri", NO_URIS, ids=ascii)
def test_pl_01_what_is_no_uri_is_refused_by_every_verb_and_reaches_no_path(local, uri):
    verbs = [local.open, local.read, local.exists, local.delete, lambda uri: local.delete_older(uri, 0)]
    for verb in verbs:
        with pytest.raises(Invalid, match="64 digits of lower-case hex") as refused:
            verb(uri)
        assert refused.value.detail["field"] == "uri"
    assert not os.path.exists(local.folder)


SOURCES = {
    "missing": (lambda folder: folder / "none", "no file"),
    "below a file": (lambda folder: made(folder / "file") / "none", "no file"),
    "a folder": (lambda folder: folder, "folder"),
    "a FIFO": (lambda folder: fifo(folder / "pipe"), "FIFO"),
    "a device": (lambda _folder: "/dev/zero", "device"),
    "a socket": (lambda folder: listening(folder / "socket"), "not a file"),
    "nothing": (lambda _folder: "", "no file"),
    "with a NUL": (lambda _folder: "a\0b", "no path"),
    "with a lone surrogate": (lambda _folder: "a\ud800b", "no path"),
    "bytes of a name": (lambda _folder: BytesPath(), "neither bytes nor a path"),
    "None": (lambda _folder: None, "neither bytes nor a path"),
    "a number": (lambda _folder: 7, "neither bytes nor a path"),
}


class BytesPath:
    def __fspath__(self):
        return b"/etc/hostname"


def made(path):
    path.touch()
    return path


def fifo(path):
    os.mkfifo(path)
    return path


def listening(path):
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(os.path.relpath(path))  # a name of a socket may not be long
    return path


@pytest.mark.parametrize("kind", SOURCES)
def test_a_source_that_cannot_be_stored_is_refused_by_name_and_changes_nothing(local, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    make, told = SOURCES[kind]
    with pytest.raises(Invalid, match=told) as refused:
        local.put(make(tmp_path))
    assert refused.value.detail["field"] == "source"
    assert not os.path.exists(local.folder)


def test_a_source_that_may_not_be_read_is_refused(local, monkeypatch):
    def forbidden(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(source.os, "open", forbidden)
    with pytest.raises(Invalid, match="cannot be opened: Permission denied"):
        local.put("/root/secret")


def test_a_source_that_fails_while_it_is_read_leaves_nothing(local, tmp_path, monkeypatch):
    (tmp_path / "source").write_bytes(b"this")

    def broken(*_):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(source.os, "read", broken)
    with pytest.raises(Invalid, match=r"source.*cannot be read: Input/output error"):
        local.put(tmp_path / "source")
    assert drafts(local) == []


def test_a_link_to_the_source_is_followed(local, tmp_path):
    (tmp_path / "source").write_bytes(b"this")
    os.symlink(tmp_path / "source", tmp_path / "link")
    assert local.put(tmp_path / "link").size == 4


@pytest.mark.parametrize("given", ["bytes", "path", "path that grows"])
def test_more_than_an_artifact_may_have_is_refused(local, tmp_path, monkeypatch, given):
    monkeypatch.setattr(source, "ARTIFACT_BYTES_MAX", 10)
    monkeypatch.setattr(source, "PIECE_BYTES", 4)
    (tmp_path / "source").write_bytes(b"x" * 10)
    assert local.put(b"x" * 10) == local.put(tmp_path / "source")
    (tmp_path / "source").write_bytes(b"x" * 11)
    if given == "path that grows":
        real = os.fstat
        monkeypatch.setattr(source.os, "fstat", lambda descriptor: stat_of_size(real(descriptor), 10))
    with pytest.raises(Invalid, match="more than 10 bytes, the most") as refused:
        local.put(b"x" * 11 if given == "bytes" else tmp_path / "source")
    assert refused.value.detail["field"] == "source"
    assert (len(list(local.list(0))), drafts(local)) == (1, [])


def stat_of_size(found, size):
    return os.stat_result([*found[:6], size, *found[7:10]])


def test_a_file_that_changes_while_it_is_stored_is_stored_as_it_was_read(local, tmp_path, monkeypatch):
    path = tmp_path / "source"
    path.write_bytes(b"x" * 100)
    monkeypatch.setattr(source, "PIECE_BYTES", 10)
    real, reads = os.read, []

    def read(descriptor, n):
        reads.append(n)
        if len(reads) == 4:
            with open(path, "r+b") as file:
                file.write(b"y" * 60)
                file.truncate(80)
        return real(descriptor, n)

    monkeypatch.setattr(source.os, "read", read)
    stored = local.put(path)
    assert local.read(stored.uri) == b"x" * 30 + b"y" * 30 + b"x" * 20
    assert stored.size == 80


def test_a_place_beside_a_database_is_named_after_it(tmp_path):
    assert folder_beside(tmp_path / "work.db") == tmp_path / "work.db-artifacts"


def test_a_folder_may_be_named_in_three_ways(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a b").mkdir()
    for name in ("a b/here", tmp_path / "a b" / "here", f"file://{tmp_path}/a%20b/here"):
        assert open_artifacts(name).folder == f"{tmp_path}/a b/here"


NO_PLACES = [
    "", None, 7, b"/srv", "a\0b", "\ud800", "file://host/srv", "file:///", "file:///srv?x=1", "file:///srv#x",
    "file:///%00", "http://host/x", "ftp://host/x", "sqlite:///work.db", "s3://", "s3:///prefix", "s3://bucket?key=x",
]  # fmt: skip


@pytest.mark.parametrize("name", NO_PLACES, ids=ascii)
def test_what_is_no_place_is_refused(name):
    with pytest.raises(Invalid) as refused:
        open_artifacts(name)
    assert refused.value.detail["field"] == "artifacts"


@pytest.mark.parametrize("name", ["s3://key:canary@bucket/x", "az://container/x?sig=canary", "gs://bucket/x#canary"])
def test_a_secret_in_the_url_is_refused_and_not_repeated(name):
    with pytest.raises(Invalid, match="credentials or options") as refused:
        open_artifacts(name)
    assert "canary" not in f"{refused.value} {refused.value.detail}"


def test_a_bucket_without_its_settings_is_refused_in_words(monkeypatch):
    monkeypatch.delenv("AZURE_STORAGE_ACCOUNT_NAME", raising=False)
    with pytest.raises(Invalid, match="Account must be specified"):
        open_artifacts("az://container/prefix")


WITHOUT_OBSTORE = """
import sys
sys.modules["obstore"] = None
from relet.artifacts.opening import open_artifacts
open_artifacts("/srv/artifacts")
try:
    open_artifacts("s3://bucket")
except Exception as refused:
    print(type(refused).__name__, refused)
"""


def test_a_bucket_without_its_extra_names_the_extra():
    done = subprocess.run([sys.executable, "-c", WITHOUT_OBSTORE], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Invalid artifacts")
    assert "pip install 'relet[objects]'" in done.stdout


def test_a_folder_needs_no_package_beyond_those_of_the_core():
    program = (
        "import sys; from relet.artifacts.opening import open_artifacts; open_artifacts('x'); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"obstore", "apsw", "click"} & set(done.stdout.split())


FORKED = """
import os
from relet.artifacts.opening import open_artifacts
store = open_artifacts("memory://")
store.put(b"this")
if (child := os.fork()) == 0:
    try:
        store.put(b"that")
    except Exception as refused:
        print(refused.code, flush=True)
    os._exit(0)
os.waitpid(child, 0)
"""


def test_a_bucket_in_a_forked_child_is_refused_instead_of_hanging():
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split() == ["RELET-FORKED"]
