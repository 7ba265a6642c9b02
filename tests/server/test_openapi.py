"""The OpenAPI document is whole: every operation, every path beside them, and all that it refers to."""

import json
import re

import pytest

from relet.core.catalog import OPERATIONS
from relet.core.fields import Name
from relet.server.openapi import WAYS, document

METHODS = {"get", "put", "post", "head"}
SCHEMA_KEYS = {"type", "anyOf", "$ref", "enum", "const"}


def parts(value):
    """Every object of the document, however deep."""
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            yield from parts(inner)


def followed(reference):
    found = document()
    for step in reference.removeprefix("#/").split("/"):
        found = found[step]
    return found


def asked(name):
    schema = document()["paths"][f"/v1/{name}"]["post"]["requestBody"]["content"]["application/json"]["schema"]
    return followed(schema["$ref"])


def answered(name):
    content = document()["paths"][f"/v1/{name}"]["post"]["responses"]["200"]["content"]
    return content["application/json"]["schema"]


def test_it_is_json_of_the_version_that_it_says():
    assert json.loads(json.dumps(document())).keys() == document().keys()
    assert document()["openapi"] == "3.1.0"
    assert document()["info"].keys() >= {"title", "version"}


def test_every_reference_leads_somewhere():
    references = {part["$ref"] for part in parts(document()) if isinstance(part.get("$ref"), str)}
    assert len(references) > 50
    for reference in references:
        assert followed(reference)


def test_every_operation_is_a_path_and_nothing_else_is_but_the_ways_beside_them():
    operations = {("post", f"/v1/{one.name}") for one in OPERATIONS}
    told = {(method, path) for path, methods in document()["paths"].items() for method in methods}
    assert told == operations | {(way.method, way.path) for way in WAYS}
    assert {method for method, _ in told} == METHODS


def test_each_has_an_id_of_its_own_a_summary_and_answers():
    every = [one for methods in document()["paths"].values() for one in methods.values()]
    assert len({one["operationId"] for one in every}) == len(every)
    for one in every:
        assert one["summary"].endswith(".")
        assert all("$ref" in answer or answer["description"] for answer in one["responses"].values())


def test_what_a_path_names_is_among_its_parameters():
    for path, methods in document()["paths"].items():
        for one in methods.values():
            given = {each["name"]: each for each in one.get("parameters", []) if each["in"] == "path"}
            assert set(given) == set(re.findall(r"\{(\w+)\}", path))
            assert all(each["required"] for each in given.values())


def test_a_key_is_asked_for_everywhere_but_at_two_exact_paths():
    assert document()["security"] == [{"key": []}]
    assert document()["components"]["securitySchemes"]["key"] == {"type": "http", "scheme": "bearer"}
    free = {path for path, methods in document()["paths"].items() for one in methods.values() if "security" in one}
    assert free == {"/healthz", "/readyz"}


def test_everything_that_may_be_refused_says_how_a_refusal_looks():
    for path, methods in document()["paths"].items():
        for one in methods.values():
            told = one["responses"].get("default")
            assert (told is None) == (path in ("/healthz", "/readyz"))
    problem = followed("#/components/responses/Problem")["content"]["application/problem+json"]["schema"]
    assert set(followed(problem["$ref"])["properties"]) == {
        "type", "title", "status", "detail", "family", "code", "retryable", "facts",
    }  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_a_request_is_closed_and_has_all_of_its_fields(operation):
    schema = asked(operation.name)
    assert schema["additionalProperties"] is False
    assert set(schema["properties"]) == set(operation.request.__struct_fields__)


def test_the_bounds_of_a_field_are_shown():
    name = {"type": "string", "minLength": 1, "maxLength": 200, **only(Name)}
    assert asked("submit")["properties"]["queue"] == name
    assert asked("submit")["properties"]["priority"] | {"description": ""} == {
        "type": "integer", "minimum": -1_000_000, "maximum": 1_000_000, "default": 0, "description": "",
    }  # fmt: skip
    assert asked("decide")["properties"]["kind"]["enum"] == ["accept", "edit", "respond", "ignore", "deny"]
    assert asked("claim")["properties"]["queues"]["uniqueItems"] is True


def only(kind):
    (meta,) = kind.__metadata__
    return {"pattern": meta.pattern, "description": meta.description}


def test_an_error_within_an_answer_stands_there_as_plain_data():
    failure = {"$ref": "#/components/schemas/Failure"}
    assert answered("renew")["items"]["anyOf"] == [{"$ref": "#/components/schemas/Renewed"}, failure]
    completed = followed(answered("complete")["$ref"])
    assert completed["properties"]["outcomes"]["items"]["anyOf"] == [{"$ref": "#/components/schemas/Ended"}, failure]
    assert completed["properties"]["grants"]["anyOf"][1] == failure


def test_an_error_in_place_of_an_answer_is_no_part_of_it():
    assert answered("task") == {"$ref": "#/components/schemas/Task"}
    assert answered("load") == {}
    assert answered("tasks") == {"type": "array", "items": {"$ref": "#/components/schemas/Task"}}


def test_every_schema_says_something_but_those_of_any_json():
    for name, schema in document()["components"]["schemas"].items():
        assert SCHEMA_KEYS & schema.keys(), name
