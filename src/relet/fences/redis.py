"""A fence in Redis (or Valkey): one script compares the token and carries out the block's commands, in one step.

The block collects commands and sends them at its end, so nothing is held while it runs and a stopped holder blocks
nobody. What one primary has seen is safe; a fail-over to a replica that lags behind forgets it.
"""

from __future__ import annotations

import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import redis
from redis.exceptions import ConnectionError as Disconnected
from redis.exceptions import RedisError, ResponseError
from redis.exceptions import TimeoutError as TooLate

from relet.core import border, limits
from relet.core.errors import Error, Invalid, OutcomeUnknown
from relet.core.holding import check_held
from relet.fences.admission import admitted, stale, undone

WHERE: Final = "RedisFence"
SCRIPT: Final = Path(__file__).with_name("fence.lua").read_text(encoding="utf-8")
LOST: Final = (Disconnected, TooLate)
PREFIX: Final = "relet:fence:"
PARTS_MAX: Final = 7_000
"""Parts of all commands of one block; Lua unpacks no more than some 8,000."""


class RedisTarget:
    """What a block writes into: commands, which the server carries out together at the end of the block."""

    def __init__(self) -> None:
        self.commands: list[list[Any]] = []
        self.answers: list[Any] = []
        """What the commands answered, in order; filled at the end of the block, unless the first answer was lost."""

    def set(self, key: str | bytes, value: str | bytes | float) -> None:
        """SET, as the most common command."""
        self.execute("SET", key, value)

    def execute(self, command: str, *parts: str | bytes | float) -> None:
        """Any command that a script may give, such as `execute("HSET", "order:7", "state", "paid")`."""
        if len(self.commands) >= limits.FENCE_ITEMS_MAX or len(parts) >= PARTS_MAX:
            raise border.invalid(
                "command", f"a block may have {limits.FENCE_ITEMS_MAX} commands of {PARTS_MAX} parts; make it shorter"
            )
        self.commands.append([command, *parts])


class RedisFence:
    """Guards resources in the Redis of a blocking client of redis-py.

    The fence is the key `relet:fence:RESOURCE`. In a cluster a resource such as `{order-7}` keeps it in the slot of
    the keys with that tag. Raises `Invalid` for a server that may evict keys which have no time to live.
    """

    def __init__(self, client: redis.Redis | redis.RedisCluster) -> None:
        if not isinstance(client, (redis.Redis, redis.RedisCluster)):
            raise border.invalid("client", f"{border.shown(client)} is no redis.Redis; an asynchronous one is not")
        self._client = client
        self._looked = False

    def raise_to(self, resource: str, token: int) -> None:
        """Accept nothing smaller than this token from now on. Raises `StaleToken`, `Unavailable`, `Invalid`."""
        resource, token = admitted(resource, token)
        try:
            self._run(resource, token, [])
        except RedisError as wrong:
            raise undone(WHERE, wrong) from wrong

    @contextlib.contextmanager
    def write(self, resource: str, token: int) -> Iterator[RedisTarget]:
        """A target that collects commands; they are carried out at the end of the block, all in one step.

        Raises `StaleToken` before the block or at its end, `OutcomeUnknown` when the answer was lost, or when a
        command failed after others had been carried out: Redis undoes nothing (`.detail["carried_out"]`).
        """
        self.raise_to(resource, token)
        target = RedisTarget()
        yield target
        try:
            target.answers = self._run(resource, token, target.commands)
        except LOST as wrong:
            raise OutcomeUnknown(
                f"{WHERE}: the answer about {resource!r} was lost ({wrong}); look at the target before you repeat",
                code="RELET-COMMIT", resource=resource,
            ) from wrong  # fmt: skip
        except RedisError as wrong:
            raise undone(WHERE, wrong) from wrong

    def _run(self, resource: str, token: int, commands: list[list[Any]]) -> list[Any]:
        if not self._looked:
            self._refuse_eviction()
        check_held(token)
        nonce = secrets.token_hex(16) if commands else ""
        values = [token, nonce, *(part for command in commands for part in (len(command), *command))]
        outcome, *told = self._client.eval(SCRIPT, 1, f"{PREFIX}{resource}", *values)
        match _text(outcome):
            case "stale":
                raise stale(WHERE, resource, token, int(told[0]))
            case "failed":
                raise self._half_done(resource, commands, *told)
            case "repeated":
                return []
        return list(told)

    def _half_done(self, resource: str, commands: list[list[Any]], count: int, problem: Any) -> Error:
        what = f"{WHERE}: {commands[count][0]} under {resource!r} failed: {_text(problem)}"
        if not count:
            return Invalid(f"{what}. It was the first, so nothing was written; mend the command", field="command")
        return OutcomeUnknown(
            f"{what}. The {count} commands before it were carried out and stay, the ones after it were not",
            code="RELET-FENCE-HALF", resource=resource, carried_out=count,
        )  # fmt: skip

    def _refuse_eviction(self) -> None:
        """A fence that the server throws away to make room is forgotten; keys without a time to live must stay."""
        policy = self._policy()
        if policy.startswith("allkeys"):
            raise border.invalid(
                "client", f"the server's maxmemory-policy is {policy}, under which it may throw the fence away; set "
                "it to noeviction, or to one of volatile-*, or use another server for what is guarded",
            )  # fmt: skip
        self._looked = True

    def _policy(self) -> str:
        try:
            facts: Any = self._client.info("memory")
        except ResponseError:
            return ""  # hosts that do not tell: the page of fences says what to ask them
        except RedisError as wrong:
            raise undone(WHERE, wrong) from wrong
        if "maxmemory_policy" not in facts and facts:  # of a cluster: by node
            facts = next(iter(facts.values()))
        return str(facts.get("maxmemory_policy", "")) if isinstance(facts, dict) else ""


def _text(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
