"""A bucket: copies that are written once, uploads that end whole or not at all, errors in words."""

import obstore
import pytest

from relet.artifacts import objects
from relet.artifacts.collect import collect
from relet.artifacts.opening import open_artifacts
from relet.artifacts.source import Source
from relet.core.errors import Invalid, NotFound, Unavailable
from tests.artifacts.places import BIG, make_bucket, s3_settings, sha256, uri

QUARTER_S = 15 * 60
DAY_S = 86_400


def copies(place):
    return sorted(one["path"] for page in obstore.list(place._bucket) for one in page)


def test_a_copy_has_a_name_of_its_own_below_its_digest(memory):
    memory.put(b"this")
    (path,) = copies(memory)
    root, digest, name = path.split("/")
    assert (root, digest, len(name)) == ("sha256", sha256(b"this"), 32)


def test_a_copy_that_is_young_enough_for_a_commit_to_follow_is_relied_on(memory, clock):
    memory.put(b"this")
    clock.advance(QUARTER_S - 1)
    memory.put(b"this")
    assert len(copies(memory)) == 1


def test_an_older_one_is_never_written_again_but_gets_another_beside_it(memory, clock):
    memory.put(b"this")
    (old,) = copies(memory)
    clock.advance(QUARTER_S)
    memory.put(b"this")
    assert len(copies(memory)) == 2
    obstore.delete(memory._bucket, old)  # by whoever had decided to, however long ago
    assert memory.read(uri(b"this")) == b"this"


def test_a_collection_leaves_the_newest_copy_of_what_is_named(bucket, clock):
    newest = None
    for _ in range(3):
        before = copies(bucket)
        bucket.put(b"this")
        (newest,) = set(copies(bucket)) - set(before)
        clock.advance(QUARTER_S)
    bucket.put(b"that")
    clock.advance(DAY_S)
    assert len(copies(bucket)) == 4
    assert collect(bucket, set) == (2, 8)
    assert len(copies(bucket)) == 2
    assert newest in copies(bucket)
    assert bucket.read(uri(b"this")) == b"this"


def test_a_copy_of_the_wrong_size_is_not_relied_on(memory):
    memory.put(b"this")
    (path,) = copies(memory)
    obstore.put(memory._bucket, path, b"thi")
    memory.put(b"this")
    assert len(copies(memory)) == 2


def test_a_copy_that_is_removed_between_the_look_and_the_read_is_looked_for_again(memory, clock, monkeypatch):
    memory.put(b"this")
    (old,) = copies(memory)
    clock.advance(QUARTER_S)
    memory.put(b"this")
    monkeypatch.setattr(memory, "_copies", stale(memory, old))
    assert memory.read(uri(b"this")) == b"this"


def test_a_copy_that_is_gone_at_each_look_is_missing_in_the_end(memory, monkeypatch):
    monkeypatch.setattr(memory, "_copies", lambda _digest: [objects.Copy("sha256/none", 4, 0.0)])
    with pytest.raises(NotFound):
        memory.read(uri(b"this"))


def stale(memory, old):
    """The first look still sees the old copy alone, which is then removed."""
    real, looks = memory._copies, []

    def look(digest):
        looks.append(digest)
        if len(looks) > 1:
            return real(digest)
        obstore.delete(memory._bucket, old)
        return [objects.Copy(old, 4, 0.0)]

    return look


@pytest.mark.parametrize("change", ["other bytes", "longer", "shorter"])
def test_a_large_file_that_changes_while_it_is_uploaded_is_refused_and_nothing_is_visible(
    memory, tmp_path, monkeypatch, change
):
    path = tmp_path / "source"
    path.write_bytes(BIG)
    real = Source.known

    def known(source):
        answer = real(source)
        with open(path, "r+b") as file:
            if change == "shorter":
                file.truncate(len(BIG) - 1)
            else:
                file.seek(-1 if change == "other bytes" else 0, 2)
                file.write(b"!")
        return answer

    monkeypatch.setattr(Source, "known", known)
    with pytest.raises(Invalid, match="changed while it was stored") as refused:
        memory.put(path)
    assert refused.value.detail["field"] == "source"
    assert copies(memory) == []


def test_an_upload_that_took_so_long_that_it_is_old_already_is_made_young(memory, monkeypatch, clock, bucket_time):
    """Some services count from the beginning of the upload."""
    real = obstore.put

    def slow(bucket, path, *arguments, **named):
        answer = real(bucket, path, *arguments, **named)
        bucket_time[path] = clock() - QUARTER_S
        return answer

    monkeypatch.setattr(obstore, "put", slow)
    memory.put(BIG)
    (path,) = copies(memory)
    assert bucket_time.get(path, clock()) > clock() - QUARTER_S
    assert memory.read(uri(BIG)) == BIG


def test_a_bucket_that_kept_less_than_it_was_given_is_found_out(memory, monkeypatch):
    real = obstore.put
    monkeypatch.setattr(obstore, "put", lambda bucket, path, data, **named: real(bucket, path, data[:-1], **named))
    with pytest.raises(Unavailable, match="kept 3 of 4 bytes"):
        memory.put(b"this")
    assert copies(memory) == []


def test_a_name_is_written_once(memory, monkeypatch):
    modes, real = [], obstore.put

    def spied(*arguments, mode=None, **named):
        modes.append(mode)
        return real(*arguments, mode=mode, **named)

    monkeypatch.setattr(obstore, "put", spied)
    memory.put(b"this")
    assert modes == ["create"]


def test_a_repeated_request_that_finds_its_own_object_is_done(memory, monkeypatch):
    real = obstore.put

    def twice(*arguments, **named):
        real(*arguments, **named)
        return real(*arguments, **named)

    monkeypatch.setattr(obstore, "put", twice)
    assert memory.put(b"this").size == 4
    assert memory.read(uri(b"this")) == b"this"


def test_objects_that_are_none_of_ours_are_left_alone(memory, clock):
    others = ["other", "sha256/other", f"sha256/{sha256(b'this')}/other", f"sha256/{'A' * 64}/{'0' * 32}"]
    for path in others:
        obstore.put(memory._bucket, path, b"theirs")
    clock.advance(DAY_S)
    assert not memory.exists(uri(b"this"))
    assert collect(memory, lambda _uris: set()) == (0, 0)
    memory.delete(uri(b"this"))
    assert copies(memory) == sorted(others)


def test_objects_are_kept_below_the_prefix_of_the_url(address):
    make_bucket(address, "shared")
    one, other = (open_artifacts(f"s3://shared/{name}", config=s3_settings(address)) for name in ("one", "other"))
    one.put(b"this")
    assert one.exists(uri(b"this"))
    assert not other.exists(uri(b"this"))
    everything = open_artifacts("s3://shared", config=s3_settings(address))
    assert [path.split("/")[0] for path in copies(everything)] == ["one"]


@pytest.mark.parametrize("verb", ["put", "put large", "read", "exists", "delete", "list", "tidy"])
def test_a_bucket_that_is_not_there_is_unavailable(address, verb, tmp_path):
    place = open_artifacts("s3://never-made/x", config=s3_settings(address))
    is_unavailable(place, verb, "NoSuchBucket|no such bucket|could not be reached")


@pytest.mark.parametrize("verb", ["put", "put large", "read", "exists", "delete", "list", "tidy"])
def test_a_service_that_is_away_is_unavailable(verb):
    place = open_artifacts("s3://bucket", config=s3_settings("http://127.0.0.1:1"))
    is_unavailable(place, verb, "could not be reached")


def is_unavailable(place, verb, told):
    verbs = {
        "put": lambda: place.put(b"this"), "put large": lambda: place.put(BIG),
        "read": lambda: place.read(uri(b"this")), "exists": lambda: place.exists(uri(b"this")),
        "delete": lambda: place.delete(uri(b"this")), "list": lambda: list(place.list(0)),
        "tidy": lambda: place.tidy(0),
    }  # fmt: skip
    with pytest.raises(Unavailable, match=told) as failed:
        verbs[verb]()
    assert (failed.value.code, failed.value.retryable) == ("RELET-ARTIFACT-PLACE", True)
    assert failed.value.detail["place"] == place.place
    assert "Debug source" not in str(failed.value)


@pytest.mark.parametrize("kind", ["PermissionDeniedError", "UnauthenticatedError"])
def test_credentials_that_do_not_allow_it_are_said_to_and_no_signature_is_repeated(memory, monkeypatch, kind):
    def refuses(*_arguments, **_named):
        raise getattr(obstore.exceptions, kind)("PUT https://host/key?sig=canary failed\nmore")

    monkeypatch.setattr(obstore, "put", refuses)
    with pytest.raises(Unavailable, match="these credentials may not do this") as refused:
        memory.put(b"this")
    assert "canary" not in str(refused.value)
