"""The one list of operations is whole, and says of each what transports must know."""

import inspect

import msgspec
import pytest

from relet.core.backend import Request
from relet.core.catalog import BY_NAME, BY_REQUEST, OPERATIONS
from relet.core.operation import operation_of

READS = {
    "load", "look", "task", "tasks", "history", "changes", "stats", "rejections", "memo", "read_step", "attached",
    "steps", "checkpoints", "artifacts", "waits", "effects", "referenced", "condition", "advise", "glance", "queues",
}  # fmt: skip
NOT_REPLAY_SAFE = {"requeue"}
NOT_DURABLE = {"renew"}
OPERATORS = {
    "cancel", "cancel_many", "requeue", "requeue_many", "sweep", "set_queue", "decide", "reconcile", "referenced",
    "condition", "glance", "prune",
}  # fmt: skip


def test_names_and_requests_are_unique():
    assert len(BY_NAME) == len(BY_REQUEST) == len(OPERATIONS)
    assert list(BY_NAME.values()) == list(BY_REQUEST.values()) == list(OPERATIONS)


def test_an_operation_is_found_by_its_request_though_no_other_rule_is_loaded():
    assert [operation_of(operation.request) for operation in OPERATIONS] == list(OPERATIONS)


def test_every_request_that_is_defined_is_in_the_catalog():
    assert set(Request.__subclasses__()) == set(BY_REQUEST)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_each_operation_has_a_frozen_request_a_rule_for_it_and_an_answer(operation):
    assert issubclass(operation.request, Request)
    config = operation.request.__struct_config__
    assert config.frozen
    assert config.forbid_unknown_fields
    assert inspect.iscoroutinefunction(operation.rule)
    signature = inspect.signature(operation.rule, eval_str=False)
    assert list(signature.parameters) == ["tx", "ask"]
    assert signature.parameters["ask"].annotation == operation.request.__name__
    assert operation.answer is not None
    assert operation.summary.endswith(".")
    assert operation.name.isidentifier()


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda operation: operation.name)
def test_each_answer_has_a_schema_unless_it_is_any_json_or_names_errors(operation):
    if operation.answer is not msgspec.Raw and operation.name != "complete":
        msgspec.json.schema(operation.answer)
    msgspec.json.schema(operation.request)


def test_reads_are_marked_as_reads_and_nothing_else_is():
    assert {operation.name for operation in OPERATIONS if not operation.writes} == READS


def test_only_a_renewal_may_be_lost():
    assert {operation.name for operation in OPERATIONS if not operation.durable} == NOT_DURABLE


def test_whatever_is_not_safe_to_repeat_says_so():
    assert {operation.name for operation in OPERATIONS if not operation.replay_safe} == NOT_REPLAY_SAFE


def test_agents_are_not_shown_the_verbs_of_operators():
    assert {operation.name for operation in OPERATIONS if not operation.for_agents} == OPERATORS
