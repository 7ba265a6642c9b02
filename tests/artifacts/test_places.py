"""What every place does alike."""

import hashlib
import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from relet.artifacts.place import Stored
from relet.core.errors import Invalid, NotFound
from tests.artifacts.places import BIG, sha256, uri


def test_bytes_come_back_and_are_named_by_what_they_are(place):
    stored = place.put(b"a page")
    assert stored == Stored(uri(b"a page"), sha256(b"a page"), 6)
    assert place.read(stored.uri) == b"a page"
    with place.open(stored.uri) as file:
        assert file.read() == b"a page"


def test_a_large_file_comes_back(place, tmp_path):
    (tmp_path / "source").write_bytes(BIG)
    stored = place.put(tmp_path / "source")
    assert stored == Stored(uri(BIG), sha256(BIG), len(BIG))
    assert place.read(stored.uri) == BIG
    known = hashlib.sha256()
    with place.open(stored.uri) as file:
        while piece := file.read(100_000):
            known.update(piece)
    assert known.hexdigest() == stored.sha256


def test_a_path_may_be_given_as_text(place, tmp_path):
    (tmp_path / "source").write_bytes(b"in a file")
    assert place.put(str(tmp_path / "source")).uri == uri(b"in a file")


def test_nothing_at_all_can_be_stored(place, tmp_path):
    (tmp_path / "empty").touch()
    assert place.put(b"") == place.put(tmp_path / "empty") == Stored(uri(b""), sha256(b""), 0)
    assert place.read(uri(b"")) == b""
    with place.open(uri(b"")) as file:
        assert (file.read(), file.read(1)) == (b"", b"")


def test_the_same_bytes_twice_are_one_artifact(place, tmp_path):
    (tmp_path / "source").write_bytes(b"same")
    assert place.put(b"same") == place.put(tmp_path / "source") == place.put(bytearray(b"same"))
    assert list(place.list(0)) == [Stored(uri(b"same"), sha256(b"same"), 4)]


def test_a_small_artifact_can_seek(place):
    place.put(b"0123456789")
    with place.open(uri(b"0123456789")) as file:
        file.seek(7)
        assert file.read() == b"789"


def test_a_large_artifact_is_a_stream_of_lines_as_well(place):
    data = b"a line of text\n" * 700_000
    place.put(data)
    with place.open(uri(data)) as file:
        assert not file.seekable()
        assert sum(1 for _ in io.TextIOWrapper(file)) == 700_000


def test_what_was_never_stored_is_missing(place):
    place.put(b"another")
    for look in (place.open, place.read):
        with pytest.raises(NotFound, match=uri(b"this")) as missing:
            look(uri(b"this"))
        assert missing.value.code == "RELET-ARTIFACT-MISSING"
        assert missing.value.detail["uri"] == uri(b"this")
    assert not place.exists(uri(b"this"))


def test_nothing_is_in_a_place_that_was_never_used(place):
    assert not place.exists(uri(b"this"))
    assert list(place.list(0)) == []
    place.delete(uri(b"this"))
    with pytest.raises(NotFound):
        place.read(uri(b"this"))


def test_what_is_deleted_is_gone_and_may_be_deleted_again(place):
    place.put(b"this")
    place.put(b"that")
    assert place.exists(uri(b"this"))
    place.delete(uri(b"this"))
    place.delete(uri(b"this"))
    assert not place.exists(uri(b"this"))
    assert place.read(uri(b"that")) == b"that"
    assert place.put(b"this").size == 4
    assert place.read(uri(b"this")) == b"this"


def test_a_read_has_a_limit(place):
    place.put(b"12345")
    assert place.read(uri(b"12345"), limit=5) == b"12345"
    with pytest.raises(Invalid, match="5 bytes, more than 4") as refused:
        place.read(uri(b"12345"), limit=4)
    assert refused.value.detail["field"] == "limit"


def test_bytes_that_are_not_what_was_announced_are_refused_and_not_stored(place, tmp_path):
    (tmp_path / "source").write_bytes(BIG)
    for source in (b"this", tmp_path / "source"):
        with pytest.raises(Invalid, match="nothing was stored") as refused:
            place.put(source, sha256=sha256(b"that"))
        assert refused.value.detail["field"] == "sha256"
    assert list(place.list(0)) == []
    assert place.put(b"this", sha256=sha256(b"this")).uri == uri(b"this")


@pytest.mark.parametrize("wrong", ["", "0" * 63, "A" * 64, "0" * 64 + "\n", 7, b"0" * 64])
def test_a_digest_that_is_none_is_refused(place, wrong):
    with pytest.raises(Invalid, match="64 digits") as refused:
        place.put(b"this", sha256=wrong)
    assert refused.value.detail["field"] == "sha256"


def test_the_list_tells_what_was_put_long_enough_ago(place, clock):
    place.put(b"old")
    clock.advance(100)
    assert [one.uri for one in place.list(100)] == [uri(b"old")]
    assert list(place.list(101)) == []


def test_a_second_put_makes_an_artifact_young_again(place, clock):
    place.put(b"again")
    place.put(b"once")
    clock.advance(3600)
    place.put(b"again")
    clock.advance(1)
    assert [one.uri for one in place.list(3600)] == [uri(b"once")]
    before_s = clock() - 3600
    assert place.delete_older(uri(b"once"), before_s) == (1, 4)
    place.delete_older(uri(b"again"), before_s)
    assert not place.exists(uri(b"once"))
    assert place.read(uri(b"again")) == b"again"


@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(max_size=3 << 16))
def test_any_bytes_come_back(place, data):
    assert place.read(place.put(data).uri) == data
