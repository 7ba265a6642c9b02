"""A fence in Redis: one script, in one step; and what a script cannot give is said."""

import pytest
import redis

import relet
from relet.core import limits
from relet.fences import RedisFence
from tests.valkey import ValkeyServer


@pytest.fixture(params=[True, False], ids=["text", "bytes"])
def client(valkey, request):
    with valkey.client(decode_responses=request.param) as client:
        client.flushall()
        yield client


@pytest.fixture
def fence(client):
    return RedisFence(client)


def text(value):
    return value.decode() if isinstance(value, bytes) else value


def test_commands_are_carried_out_together_at_the_end_of_the_block(fence, client):
    with fence.write("order", 1) as target:
        target.set("state", "paid")
        target.execute("HSET", "order", "total", 7)
        target.execute("INCRBY", "count", 3)
        target.execute("GET", "nothing")
        assert client.exists("state", "order", "count") == 0
    assert [text(client.get("state")), text(client.hget("order", "total"))] == ["paid", "7"]
    assert [text(answer) for answer in target.answers] == ["OK", 1, 3, None]


def test_a_raise_while_the_block_runs_refuses_its_end(fence, client):
    with pytest.raises(relet.StaleToken) as refused, fence.write("order", 1) as target:
        target.set("state", "late")
        fence.raise_to("order", 2)
    assert (refused.value.token, refused.value.current_token) == (1, 2)
    assert client.get("state") is None


def test_an_exception_and_an_empty_block_send_nothing(fence, client):
    with pytest.raises(ValueError, match="midway"), fence.write("order", 1) as target:
        target.set("state", "half")
        raise ValueError("midway")
    with fence.write("order", 1) as target:
        pass
    assert target.answers == []
    assert client.get("state") is None


def test_tokens_are_numbers_and_exact_up_to_the_largest(fence):
    for token in (9, 10, limits.TOKEN_MAX):
        fence.raise_to("order", token)
    with pytest.raises(relet.StaleToken) as refused:
        fence.raise_to("order", limits.TOKEN_MAX - 1)
    assert refused.value.current_token == limits.TOKEN_MAX


def test_the_fence_has_no_time_to_live(fence, client):
    fence.raise_to("order", 1)
    assert client.ttl("relet:fence:order") == -1


def test_a_command_that_fails_after_others_says_how_far_it_came(fence, client):
    client.set("word", "a")
    with (
        pytest.raises(relet.OutcomeUnknown, match=r"INCR under 'order' failed.* 1 commands before it") as refused,
        fence.write("order", 1) as target,
    ):
        target.set("state", "paid")
        target.execute("INCR", "word")
        target.set("more", "no")
    assert refused.value.detail["carried_out"] == 1
    assert text(client.get("state")) == "paid"
    assert client.get("more") is None


def test_a_first_command_that_fails_is_invalid_and_nothing_was_written(fence, client):
    with pytest.raises(relet.Invalid, match=r"command|FROB"), fence.write("order", 1) as target:
        target.execute("FROB", "word")
        target.set("more", "no")
    assert client.get("more") is None


@pytest.mark.parametrize("fails", [False, True])
def test_a_script_that_is_sent_again_is_carried_out_once(fence, client, monkeypatch, fails):
    """As the client does by itself, when an answer was lost."""
    evaluate = client.eval

    def twice(*arguments):
        evaluate(*arguments)
        return evaluate(*arguments)

    client.set("word", "a")
    monkeypatch.setattr(client, "eval", twice)

    def block():
        with fence.write("order", 1) as target:
            target.execute("INCR", "count")
            if fails:
                target.execute("INCR", "word")
        return target

    if fails:
        with pytest.raises(relet.OutcomeUnknown) as refused:
            block()
        assert refused.value.detail["carried_out"] == 1
    else:
        assert block().answers == []
    assert text(client.get("count")) == "1"


def test_a_lost_answer_is_unknown_for_a_write_and_unavailable_for_a_raise(fence, client, monkeypatch):
    def fail(*_):
        raise redis.ConnectionError("the line broke")

    with pytest.raises(relet.OutcomeUnknown) as refused, fence.write("order", 1) as target:
        target.set("state", "paid")
        monkeypatch.setattr(client, "eval", fail)
    assert refused.value.code == "RELET-COMMIT"
    with pytest.raises(relet.Unavailable, match="the line broke"):
        fence.raise_to("order", 1)


def test_a_server_that_is_away_is_unavailable(tmp_path):
    client = redis.Redis(unix_socket_path=str(tmp_path / "nobody"), retry=None)
    with pytest.raises(relet.Unavailable, match="RedisFence failed"):
        RedisFence(client).raise_to("order", 1)


@pytest.mark.parametrize(
    ("policy", "good"),
    [("noeviction", True), ("volatile-lru", True), ("allkeys-lru", False), ("allkeys-random", False)],
)
def test_a_server_that_may_throw_the_fence_away_is_refused(valkey, client, policy, good):
    client.config_set("maxmemory-policy", policy)
    try:
        if good:
            RedisFence(client).raise_to("order", 1)
        else:
            with pytest.raises(relet.Invalid, match=f"maxmemory-policy is {policy}"):
                RedisFence(client).raise_to("order", 1)
            assert client.exists("relet:fence:order") == 0
    finally:
        client.config_set("maxmemory-policy", "noeviction")


def test_a_server_that_does_not_tell_its_policy_is_used(valkey, client):
    client.execute_command("ACL", "SETUSER", "poor", "on", "nopass", "~*", "+@all", "-info")
    with valkey.client(username="poor", password="") as poor:
        RedisFence(poor).raise_to("order", 1)
    client.execute_command("ACL", "DELUSER", "poor")
    assert text(client.hget("relet:fence:order", "token")) == "1"


def test_a_block_has_a_limit(fence, monkeypatch):
    monkeypatch.setattr(limits, "FENCE_ITEMS_MAX", 1)
    with fence.write("order", 1) as target:
        target.set("a", "1")
        with pytest.raises(relet.Invalid, match="a block may have 1 commands"):
            target.set("b", "1")


def test_many_commands_with_many_parts_are_one_step(fence, client):
    with fence.write("order", 1) as target:
        for number in range(20):
            target.execute("RPUSH", "list", *range(6_000 - number))
    assert client.llen("list") == sum(6_000 - number for number in range(20))


def test_an_asynchronous_client_is_refused():
    import redis.asyncio

    with pytest.raises(relet.Invalid, match=r"is no redis.Redis"):
        RedisFence(redis.asyncio.Redis())


def test_a_raise_outlives_a_crash_of_the_server():
    with ValkeyServer() as server:
        with server.client() as client:
            RedisFence(client).raise_to("order", 2)
        server.stop()
        server.start()
        with server.client() as client, pytest.raises(relet.StaleToken):
            RedisFence(client).raise_to("order", 1)
