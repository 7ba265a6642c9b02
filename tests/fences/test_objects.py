"""A fence in an object store: all objects of a block become visible together, or none."""

import pytest
from obstore.exceptions import AlreadyExistsError, GenericError
from obstore.store import LocalStore, MemoryStore

import relet
from relet.core import limits
from relet.fences import ObjectFence
from tests.fences.subjects import bucket


class Around:
    """A store with a fault at its `put`."""

    def __init__(self, put):
        self._inner, self._put = MemoryStore(), put
        self.puts = []

    def put(self, key, data, *, mode=None, use_multipart=None):
        self.puts.append(key)
        return self._put(self._inner, key, data, mode, len(self.puts))

    def __getattr__(self, name):
        return getattr(self._inner, name)


def plain(inner, key, data, mode, _):
    return inner.put(key, data, mode=mode)


@pytest.fixture(params=["memory", "s3"])
def store(request):
    return MemoryStore() if request.param == "memory" else bucket(request.getfixturevalue("s3"))


@pytest.fixture
def fence(store, request):
    return ObjectFence(store, prefix=f"/{request.node.name}/")


def held(fence, resource="r"):
    found = fence.read(resource)
    return found and {name: found.get(name) for name in found.names}


def test_the_objects_of_a_block_become_visible_together(fence):
    assert held(fence) is None
    with fence.write("r", 1) as target:
        target.put("a.json", b"a")
        target.put("b/ö.json", b"b")
        target.put("a.json", b"a again")
        assert held(fence) is None
    assert held(fence) == {"a.json": b"a again", "b/ö.json": b"b"}
    assert fence.read("r").token == 1
    with pytest.raises(relet.NotFound, match=r"no 'c.json' was published"):
        fence.read("r").get("c.json")


def test_a_block_replaces_all_that_was_there_but_what_it_keeps(fence):
    with fence.write("r", 1) as target:
        target.put("a", b"1")
        target.put("b", b"1")
        target.put("c", b"1")
    with fence.write("r", 2) as target:
        target.keep("a")
        target.put("b", b"2")
        with pytest.raises(relet.NotFound, match="the version before has no 'z'"):
            target.keep("z")
    assert held(fence) == {"a": b"1", "b": b"2"}
    fence.raise_to("r", 3)
    assert held(fence) == {"a": b"1", "b": b"2"}
    assert fence.read("r").token == 2


def test_a_raise_while_the_block_runs_refuses_its_end(fence):
    with fence.write("r", 1) as target:
        target.put("a", b"old")
    with pytest.raises(relet.StaleToken) as refused, fence.write("r", 1) as target:
        target.put("a", b"late")
        fence.raise_to("r", 2)
    assert (refused.value.token, refused.value.current_token) == (1, 2)
    assert held(fence) == {"a": b"old"}


def test_the_store_itself_refuses_who_has_not_seen_the_newest_pointer(store, fence, monkeypatch):
    """Between the look at the pointer and its move: the look is not what protects."""
    fence.raise_to("r", 1)
    look = fence._read

    def late(resource):
        monkeypatch.setattr(fence, "_read", look)
        seen = look(resource)
        ObjectFence(store, prefix=fence._prefix).raise_to("r", 2)
        return seen

    monkeypatch.setattr(fence, "_read", late)
    with pytest.raises(relet.StaleToken):
        fence._move("r", 1, {"a": "late"})
    assert held(fence) is None


def test_an_exception_leaves_what_was_visible(fence):
    with pytest.raises(ValueError, match="midway"), fence.write("r", 1) as target:
        target.put("a", b"half")
        raise ValueError("midway")
    assert held(fence) is None


def test_what_says_the_same_never_is_the_same(store, fence):
    """An etag is made of the bytes: a pointer that came back to what it said would pass for the one before."""
    for _ in range(3):
        with fence.write("r", 1):
            pass
    seen = set()
    for token in (1, 1, 2, 2):
        with fence.write("r", token):
            pass
        seen.add(bytes(store.get(fence._key("r")).bytes()))
    assert len(seen) == 4


def test_a_good_store_passes_the_probe_and_keeps_nothing_of_it(store, fence, request):
    fence.probe()
    assert store.list(request.node.name).collect() == []


def test_a_local_folder_is_refused_with_the_way_out(tmp_path):
    with pytest.raises(relet.Invalid, match=r"store: LocalStore offers no conditional update.*use FileFence"):
        ObjectFence(LocalStore(tmp_path)).raise_to("r", 1)
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []


@pytest.mark.parametrize("ignored", ["create", "update"])
def test_a_store_that_does_not_keep_its_conditions_is_refused(ignored):
    def put(inner, key, data, mode, _):
        careless = (mode == "create") == (ignored == "create")
        return inner.put(key, data, mode="overwrite" if careless else mode)

    for verb in (lambda fence: fence.probe(), lambda fence: fence.raise_to("r", 1)):
        store = Around(put)
        with pytest.raises(relet.Invalid, match="store: Around took a") as refused:
            verb(ObjectFence(store))
        assert refused.value.detail["field"] == "store"
        assert store.list().collect() == []


def test_a_store_that_cannot_be_reached_is_unavailable():
    def put(*_):
        raise GenericError("no route\n\nDebug source: …")

    with pytest.raises(relet.Unavailable, match=r"ObjectFence failed \(no route\)"):
        ObjectFence(Around(put)).raise_to("r", 1)


def lost(fault):
    """A fence whose store fails at puts of the pointer, after it has let the first raise through."""

    def put(inner, key, data, mode, _):
        if fault and key.endswith("pointer.json"):
            return fault[0](inner, key, data, mode)
        return inner.put(key, data, mode=mode)

    return ObjectFence(Around(put))


def arrives(inner, key, data, mode):
    inner.put(key, data, mode=mode)
    raise GenericError("the answer was lost")


def arrives_and_is_sent_again(inner, key, data, mode):
    inner.put(key, data, mode=mode)
    raise AlreadyExistsError("it is there")


def does_not_arrive(inner, key, data, mode):
    raise GenericError("the request was lost")


@pytest.mark.parametrize("fault", [arrives, arrives_and_is_sent_again])
def test_an_answer_that_was_lost_is_looked_for(fault):
    faults = []
    fence = lost(faults)
    with fence.write("r", 1) as target:
        target.put("a", b"1")
        faults.append(fault)
    assert held(fence) == {"a": b"1"}


def test_a_request_that_may_still_arrive_is_unknown():
    faults = []
    fence = lost(faults)
    with (
        pytest.raises(relet.OutcomeUnknown, match="the request was lost") as refused,
        fence.write("r", 1) as target,
    ):
        target.put("a", b"1")
        faults.append(does_not_arrive)
    assert refused.value.code == "RELET-COMMIT"
    faults.clear()
    assert held(fence) is None


def test_a_data_object_that_is_sent_again_is_there():
    def put(inner, key, data, mode, _):
        inner.put(key, data, mode=mode)
        if "/1/" in key:
            raise AlreadyExistsError("it is there")
        return inner.head(key)

    fence = ObjectFence(Around(put))
    with fence.write("r", 1) as target:
        target.put("a", b"1")
    assert held(fence) == {"a": b"1"}


def test_a_resource_that_never_stands_still_is_unavailable_in_time():
    faults = []
    fence = lost(faults)
    fence.raise_to("r", 1)

    def overtaken(inner, key, data, mode):
        inner.put(key, data.replace(b'"nonce":"', b'"nonce":"other-'))
        raise AlreadyExistsError("somebody was faster")

    faults.append(overtaken)
    with (
        pytest.raises(relet.Unavailable, match=f"changed {limits.FENCE_TRIES} times") as refused,
        fence.write("r", 1),
    ):
        pass
    assert refused.value.code == "RELET-FENCE-BUSY"


def test_what_is_no_pointer_is_left_as_it_is():
    store = MemoryStore()
    store.put("r/pointer.json", b"mine")
    with pytest.raises(relet.Unavailable, match=r"r/pointer.json is no pointer of relet") as refused:
        ObjectFence(store).raise_to("r", 1)
    assert refused.value.code == "RELET-DAMAGED"
    assert bytes(store.get("r/pointer.json").bytes()) == b"mine"


def test_a_block_has_a_limit(monkeypatch):
    monkeypatch.setattr(limits, "FENCE_ITEMS_MAX", 2)
    with ObjectFence(MemoryStore()).write("r", 1) as target:
        for name in ("a", "b", "a"):
            target.put(name, b"")
        with pytest.raises(relet.Invalid, match="name: is one more than the 2 objects"):
            target.put("c", b"")
        with pytest.raises(relet.Invalid, match="name: "):
            target.put("", b"")
