"""The call of an effect through httpx2: its key on the way, and what the answer says about its having happened."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, overload

from relet.core.border import invalid, shown
from relet.core.errors import Invalid, LeaseLost, NotApplied, StaleToken
from relet.fences.http import fence_headers, refusal_of

if TYPE_CHECKING:
    import httpx2

    from relet.client.durable.effects import EffectCall

REFUSALS: Final = frozenset({
    400, 401, 402, 403, 404, 405, 406, 410, 411, 412, 413, 414, 415, 417, 422, 425, 426, 428, 429, 431, 451,
})  # fmt: skip
"""Statuses by which a service says that it did not do it. 409 is none: an earlier call may be in progress."""
FENCE_AWAY: Final = frozenset({"RELET-FENCE-BUSY", "RELET-FENCE-TARGET", "RELET-CANNOT-OPEN"})
"""Codes by which a fence says that it let nothing through, though it could not judge."""
KEY: Final = "Idempotency-Key"
OURS: Final = ("follow_redirects", "timeout")
SAID_CHARS: Final = 200
TEXT_CHARS: Final = 1_000

Receipt = Callable[["httpx2.Response"], Any]


@overload
def send(
    client: httpx2.Client, effect: EffectCall, method: str, url: str, *, receipt: Receipt | None = None,
    refusals: Collection[int] = REFUSALS, resource: str | None = None, **options: Any,
) -> Any: ...  # fmt: skip
@overload
def send(
    client: httpx2.AsyncClient, effect: EffectCall, method: str, url: str, *, receipt: Receipt | None = None,
    refusals: Collection[int] = REFUSALS, resource: str | None = None, **options: Any,
) -> Awaitable[Any]: ...  # fmt: skip
def send(
    client: httpx2.Client | httpx2.AsyncClient, effect: EffectCall, method: str, url: str, *,
    receipt: Receipt | None = None, refusals: Collection[int] = REFUSALS, resource: str | None = None, **options: Any,
) -> Any:  # fmt: skip
    """Make the call of an effect; its receipt, or with an AsyncClient an awaitable of it.

    It carries the effect's key as `Idempotency-Key`, and the effect's timeout; `options` are those of httpx2's
    `request`. With `resource`, for a service behind `FenceMiddleware`, it carries the token too. A 2xx answer is the
    receipt: its JSON, or what `receipt(response)` makes of it.
    Raises `NotApplied` where the service cannot have been reached, for the statuses in `refusals`, and where a fence
    let nothing through: one that has seen a later holder raises `Superseded`, a `StaleToken`. Whatever else it raises
    (httpx2's errors: timeouts, resets, 409, 5xx, redirects) leaves the outcome unknown.
    """
    http = _httpx2()
    call = _Call(http, effect, method, url, receipt or body, refusals, resource)
    given = call.options(options)
    if isinstance(client, http.AsyncClient):
        return _awaited(client, call, given)
    if not isinstance(client, http.Client):
        raise invalid("client", f"{shown(client)} is none of httpx2; give an httpx2.Client or httpx2.AsyncClient")
    with call.judged():
        return call.receipt(client.request(method, url, **given))


async def _awaited(client: httpx2.AsyncClient, call: _Call, given: dict[str, Any]) -> Any:
    with call.judged():
        return call.receipt(await client.request(call.method, call.url, **given))


def body(response: httpx2.Response) -> Any:
    """The JSON of an answer; of one without, its status, where it points to, and the beginning of its text."""
    if "json" in response.headers.get("content-type", ""):
        return response.json()
    facts = {"status": response.status_code, "location": response.headers.get("location")}
    return {**facts, "text": response.text[:TEXT_CHARS]} if response.content else facts


class Superseded(StaleToken, NotApplied):
    """The service's fence has seen a later holder: the call was not carried out, and no later one will be."""


class _Call:
    """One call, and the judgement of what came of it."""

    def __init__(
        self, http: Any, effect: EffectCall, method: str, url: str, receipt: Receipt, refusals: Collection[int],
        resource: str | None,
    ) -> None:  # fmt: skip
        self.method = method
        self.url = url
        self._http = http
        self._effect = effect
        self._receipt = receipt
        self._refusals = refusals
        self._resource = resource

    def options(self, options: dict[str, Any]) -> dict[str, Any]:
        """What httpx2 is given. Raises `Invalid` for what the effect decides."""
        for name in OURS:
            if name in options:
                raise invalid(name, _OURS[name])
        headers = self._http.Headers(options.get("headers"))
        if KEY in headers:
            raise invalid("headers", f"{KEY} is the effect's own key; leave it out")
        headers.update(self._effect.headers)
        if self._resource is not None:
            try:
                headers.update(fence_headers(self._resource, self._effect.token))
            except LeaseLost as lost:
                raise NotApplied(f"{self._said()}: nothing was sent: {lost}") from lost
        return {**options, "headers": headers, "timeout": self._effect.timeout, "follow_redirects": False}

    @contextmanager
    def judged(self) -> Iterator[None]:
        """Turn what was raised before anything was sent into `NotApplied`."""
        http = self._http
        # No LocalProtocolError: it is raised as well after the whole request went out, while the answer is read.
        unsent = (http.ConnectError, http.ConnectTimeout, http.PoolTimeout, http.UnsupportedProtocol, http.InvalidURL)
        try:
            yield
        except unsent as wrong:
            raise NotApplied(f"{self._said()}: nothing was sent: {type(wrong).__name__}: {wrong}") from wrong

    def receipt(self, response: httpx2.Response) -> Any:
        """What a good answer says. Raises `NotApplied` for a refusal, and httpx2's error for what tells nothing."""
        if response.is_success:
            return self._receipt(response)
        said = f"{self._said()}: {response.status_code} {response.reason_phrase}: {response.text[:SAID_CHARS]}"
        self._hear_fence(response, said)
        if response.status_code in self._refusals:
            raise NotApplied(said)
        raise self._http.HTTPStatusError(said, request=response.request, response=response)

    def _hear_fence(self, response: httpx2.Response, said: str) -> None:
        """Raise what a fence before the service has refused. Without a resource none was shown the token."""
        if self._resource is None:
            return
        refusal = refusal_of(response, self._resource, self._effect.token)
        if isinstance(refusal, StaleToken):
            raise Superseded(str(refusal), **refusal.detail)
        if refusal is not None and (isinstance(refusal, Invalid) or refusal.code in FENCE_AWAY):
            raise NotApplied(said) from refusal

    def _said(self) -> str:
        # Without its query, which may hold what is nobody's business.
        return f"{self.method} {str(self.url).partition('?')[0]}"


_OURS: Final = {
    "timeout": "is the effect's: give it to run.effect(…, timeout=…), which also bounds the whole of the call",
    "follow_redirects": "cannot be chosen: a redirect may answer a call that was carried out, so it tells nothing",
}


def _httpx2() -> Any:
    try:
        import httpx2
    except ModuleNotFoundError as missing:
        raise Invalid("http: needs the package httpx2 → pip install 'relet[http]'", field="http") from missing
    return httpx2
