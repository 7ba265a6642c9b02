"""The interface of the service as an OpenAPI document: made from the catalog, and from the few paths beside it."""

from __future__ import annotations

import inspect
from functools import cache
from types import UnionType
from typing import Annotated, Any, Final, NamedTuple, get_args, get_origin, get_type_hints

import msgspec

from relet.core.border import DURATION_TEXT
from relet.core.catalog import OPERATIONS
from relet.core.errors import Error
from relet.core.fields import AuditSeq, Cursor, Name, PageItems, Sha256, TaskId
from relet.core.operation import Operation
from relet.core.problem import MEDIA_TYPE, Problem
from relet.core.rules.audit import AuditEntry
from relet.core.rules.claim import CLAIM
from relet.core.whoami import API, PATIENCE, PREFIX, Whoami
from relet.core.wire import Failure, fields_with_errors
from relet.server.answers import BYTES, JSON
from relet.server.numbers import WHOLE_MAX

EVENTS: Final = "text/event-stream"
_REF: Final = "#/components/schemas/{name}"
_CHOICE: Final = "choice"
_PROBLEM: Final = {"$ref": "#/components/responses/Problem"}


class Given(NamedTuple):
    """Something that is said beside the body."""

    place: str
    name: str
    kind: Any
    says: str


class Way(NamedTuple):
    """One method of one path that is no operation of the catalog."""

    method: str
    path: str
    summary: str
    answers: tuple[tuple[int, str, str, Any], ...]
    """Status, what it means, media type (empty for no body), type of the body."""
    given: tuple[Given, ...] = ()
    takes: str = ""
    """The media type of the body, where there is one."""
    open: bool = False
    """Asked without a key."""


class StreamEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a stream, whose `data` is JSON; what has neither that nor an `event` only moves the `id` on."""

    id: str = ""
    event: str = ""
    data: str = ""


_BYTES_AT: Final = f"{PREFIX}/artifacts/{{sha256}}"
_DIGEST: Final = (Given("path", "sha256", Sha256, "The SHA-256 of the bytes."),)
_WELL: Final = ((200, "Yes.", "", None), (503, "No.", "", None))
Wait = Annotated[str, msgspec.Meta(pattern=DURATION_TEXT)]
PatienceMs = Annotated[int, msgspec.Meta(ge=0, le=WHOLE_MAX)]
WAIT: Final = Given("query", "wait", Wait, "How long to wait for a task, such as `30s`; a minute at most.")
HURRY: Final = Given("header", PATIENCE.title(), PatienceMs, "How many milliseconds to wait for a busy store.")
WAYS: Final = (
    Way("get", "/healthz", "Does the service reach its store.", _WELL, open=True),
    Way("get", "/readyz", "May work be sent here.", _WELL, open=True),
    Way("get", "/openapi.json", "This document.", ((200, "The document.", JSON, dict[str, Any]),)),
    Way("get", "/metrics", "Figures in the text format of Prometheus.", ((200, "The figures.", "text/plain", str),)),
    Way("get", f"{PREFIX}/whoami", "Who the key is, and which store it reaches.", ((200, "Both.", JSON, Whoami),)),
    Way(
        "get", f"{PREFIX}/news", "A word each time that somebody has committed something.",
        ((200, "Events without content; they end with the key.", EVENTS, StreamEvent),),
    ),
    Way(
        "get", f"{PREFIX}/changes/stream", "What changes, as it happens.",
        ((200, "Each event of the history, under its `seq` as id.", EVENTS, StreamEvent),),
        (
            Given("query", "after", Cursor, "The `seq` of the last event that was seen; none begins at the end."),
            Given("query", "queue", Name, "Events of this queue alone."),
            Given("query", "task_id", TaskId, "Events of this task alone."),
            Given("header", "Last-Event-ID", Cursor, "As `after`, and before it; clients send it by themselves."),
        ),
    ),
    Way(
        "get", f"{PREFIX}/audit", "What was done with keys, newest first.",
        ((200, "A page of the log of the key's tenant.", JSON, list[AuditEntry]),),
        (
            Given("query", "before", AuditSeq, "The last `seq` of the page before."),
            Given("query", "after", Cursor, "Go on behind this `seq`, oldest first; 0 for the first line."),
            Given("query", "limit", PageItems, "How many lines at the most."),
        ),
    ),
    Way("put", _BYTES_AT, "Store bytes.", ((204, "They are stored.", "", None),), _DIGEST, BYTES),
    Way("get", _BYTES_AT, "Read bytes.", ((200, "The bytes.", BYTES, None),), _DIGEST),
    Way("head", _BYTES_AT, "Are these bytes stored.", ((200, "They are.", "", None),), _DIGEST),
)  # fmt: skip
"""Every path that is no operation, and what it answers."""


@cache
def document() -> dict[str, Any]:
    """All of it; the same at each call."""
    kinds = _Kinds()
    paths: dict[str, Any] = {f"{PREFIX}/{one.name}": {"post": _operation(kinds, one)} for one in OPERATIONS}
    for way in WAYS:
        paths.setdefault(way.path, {})[way.method] = _way(kinds, way)
    problem = {MEDIA_TYPE: {"schema": kinds.schema(Problem)}}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "relet", "version": str(API), "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
            "description": "Leases, heartbeats and fencing tokens for long-running agent work.",
        },
        "security": [{"key": []}],
        "paths": dict(sorted(paths.items())),
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "responses": {"Problem": {"description": inspect.getdoc(Error), "content": problem}},
            "schemas": kinds.resolved(),
        },
    }  # fmt: skip


class _Kinds:
    """The types that the document speaks of. Their schemas are made together, so that each stands there once."""

    def __init__(self) -> None:
        self._asked: list[tuple[Any, dict[str, Any]]] = []
        self._choices: list[list[dict[str, Any]]] = []

    def schema(self, kind: Any) -> dict[str, Any]:
        """A schema, which is filled in when all types are known."""
        empty: dict[str, Any] = {}
        self._asked.append((self._plain(kind), empty))
        return empty

    def resolved(self) -> dict[str, Any]:
        """Fill in what was asked for; the schemas that they refer to, by name."""
        schemas, named = msgspec.json.schema_components([kind for kind, _ in self._asked], ref_template=_REF)
        for (_, empty), schema in zip(self._asked, schemas, strict=True):
            empty.update(self._mended(schema))
        return {name: self._mended(named[name]) for name in sorted(named)}

    def _plain(self, kind: Any) -> Any:
        """A type in which errors stand as plain data: `Failure`, or the value that was expected."""
        if kind is Error:
            return Failure
        if get_origin(kind) is list:
            return list.__class_getitem__(self._plain(get_args(kind)[0]))
        if get_origin(kind) is UnionType and Error in get_args(kind):
            # msgspec tells no two structs apart without a tag, so the choice is put in afterwards.
            self._choices.append([self.schema(arm) for arm in get_args(kind)])
            return Annotated[Any, msgspec.Meta(extra_json_schema={_CHOICE: len(self._choices) - 1})]
        if not (hints := fields_with_errors(kind)):
            return kind
        fields = [(name, self._plain(hint)) for name, hint in hints.items()]
        return msgspec.defstruct(kind.__name__, fields, namespace={"__doc__": kind.__doc__})

    def _mended(self, schema: Any) -> Any:
        if isinstance(schema, list):
            return [self._mended(inner) for inner in schema]
        if not isinstance(schema, dict):
            return schema
        if _CHOICE in schema:
            return {"anyOf": self._choices[schema[_CHOICE]]}
        return {name: self._mended(inner) for name, inner in schema.items()}


def _operation(kinds: _Kinds, one: Operation) -> dict[str, Any]:
    given = (WAIT, HURRY) if one is CLAIM else (HURRY,)
    return {
        "operationId": one.name,
        "summary": one.summary,
        "description": inspect.getdoc(one.request),
        "parameters": [_parameter(kinds, each) for each in given],
        "requestBody": {"required": True, "content": {JSON: {"schema": kinds.schema(one.request)}}},
        "responses": {
            "200": {
                "description": inspect.getdoc(one.rule), "content": {JSON: {"schema": kinds.schema(answered(one))}},
            },
            "default": _PROBLEM,
        },
    }  # fmt: skip


def _way(kinds: _Kinds, way: Way) -> dict[str, Any]:
    name = way.path.partition(PREFIX)[2] or way.path
    words = "_".join(part for part in name.replace(".", "/").split("/") if part and "{" not in part)
    made: dict[str, Any] = {"operationId": f"{way.method}_{words}", "summary": way.summary}
    if way.given:
        made["parameters"] = [_parameter(kinds, one) for one in way.given]
    if way.takes:
        made["requestBody"] = {"required": True, "content": {way.takes: {}}}
    made["responses"] = {str(status): _answer(kinds, *answer) for status, *answer in way.answers}
    if way.open:
        return made | {"security": []}
    made["responses"]["default"] = _PROBLEM
    return made


def _answer(kinds: _Kinds, says: str, media: str, kind: Any) -> dict[str, Any]:
    if not media:
        return {"description": says}
    return {"description": says, "content": {media: {} if kind is None else {"schema": kinds.schema(kind)}}}


def _parameter(kinds: _Kinds, one: Given) -> dict[str, Any]:
    return {
        "in": one.place, "name": one.name, "required": one.place == "path", "description": one.says,
        "schema": kinds.schema(one.kind),
    }  # fmt: skip


def answered(one: Operation) -> Any:
    """The type of its answer. An error in place of it is a problem document, and no part of this."""
    told = get_type_hints(one.rule)["return"]
    if get_origin(told) is UnionType:
        (told,) = (arm for arm in get_args(told) if arm is not Error)
    return told
