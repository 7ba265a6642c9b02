"""Bytes that are not what they were are never handed out to the end."""

import io
import os

import pytest

from relet.core.errors import Error, Unavailable
from tests.artifacts.places import BIG, path_of, sha256, uri


def flipped(data, at):
    changed = bytearray(data)
    changed[at] ^= 1
    return bytes(changed)


DAMAGES = {
    "first bit": lambda data: flipped(data, 0),
    "last bit": lambda data: flipped(data, -1),
    "cut": lambda data: data[:-1],
    "empty": lambda _data: b"",
    "longer": lambda data: data + b"\0",
}


def put_and_damage(local, data, damage):
    local.put(data)
    bad = DAMAGES[damage](data)
    with open(path_of(local, data), "wb") as file:
        file.write(bad)
    return bad


def is_named(damaged, data, bad):
    assert damaged.code == "RELET-ARTIFACT-DAMAGED"
    assert not damaged.retryable
    assert damaged.detail["uri"] == uri(data)
    assert damaged.detail["expected"] == sha256(data)
    assert damaged.detail["found"] == sha256(bad)
    assert all(text in str(damaged) for text in (uri(data), sha256(bad)))


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_small_artifact_that_is_damaged_is_not_opened(local, damage):
    bad = put_and_damage(local, b"a page", damage)
    for look in (local.open, local.read):
        with pytest.raises(Error) as damaged:
            look(uri(b"a page"))
        is_named(damaged.value, b"a page", bad)


@pytest.mark.parametrize("damage", ["first bit", "last bit", "cut", "longer"])
@pytest.mark.parametrize("n", [-1, 1 << 20, 1000, 777_777])
def test_a_large_artifact_that_is_damaged_never_reaches_its_last_byte(local, damage, n):
    bad = put_and_damage(local, BIG, damage)
    got = []
    with local.open(uri(BIG)) as file:
        with pytest.raises(Error) as damaged:
            got.extend(iter(lambda: file.read(n), b""))
        is_named(damaged.value, BIG, bad)
        assert sum(map(len, got)) < len(bad)
        with pytest.raises(Error):  # what follows is not taken for the end
            file.read(1)


def test_a_reader_that_knows_the_size_and_asks_for_no_more_is_told_as_well(local):
    put_and_damage(local, BIG, "last bit")
    with local.open(uri(BIG)) as file, pytest.raises(Error, match="damaged"):
        file.read(len(BIG))


def test_an_artifact_that_is_cut_while_it_is_read_is_damaged(local):
    local.put(BIG)
    with local.open(uri(BIG)) as file:
        file.read(1)
        os.truncate(path_of(local, BIG), 5 << 20)
        with pytest.raises(Error, match="damaged"):
            file.read()


def test_an_artifact_that_grows_while_it_is_read_is_damaged(local):
    local.put(BIG)
    with local.open(uri(BIG)) as file:
        file.read(1)
        with open(path_of(local, BIG), "ab") as other:
            other.write(b"more")
        with pytest.raises(Error, match="damaged"):
            file.read()


def test_a_damaged_artifact_in_a_bucket_is_not_handed_out(memory, monkeypatch):
    import obstore

    for data in (b"a page", BIG):
        memory.put(data)
        (path,) = [
            one["path"] for page in obstore.list(memory._bucket) for one in page if sha256(data) in one["path"]
        ]
        obstore.put(memory._bucket, path, flipped(data, -1))
        with pytest.raises(Error) as damaged:
            memory.open(uri(data)).read()
        is_named(damaged.value, data, flipped(data, -1))


def test_storing_the_bytes_again_mends_a_damaged_artifact(local):
    put_and_damage(local, b"a page", "last bit")
    local.put(b"a page")
    assert local.read(uri(b"a page")) == b"a page"


def test_a_reader_goes_on_with_what_it_opened_when_the_artifact_is_stored_again_or_deleted(local):
    local.put(BIG)
    with local.open(uri(BIG)) as file:
        start = file.read(10)
        local.put(BIG)
        local.delete(uri(BIG))
        assert start + file.read() == BIG


def test_a_disk_that_fails_while_it_is_read_is_said_to(local, monkeypatch):
    class BadSector(io.FileIO):
        def readinto(self, _buffer):
            raise OSError(5, "Input/output error")

    local.put(BIG)
    monkeypatch.setattr(io, "FileIO", BadSector)
    with local.open(uri(BIG)) as file, pytest.raises(Unavailable, match="the disk failed") as failed:
        file.read()
    assert failed.value.code == "RELET-IO"
