"""What spans say of a task."""

from relet.core.span_facts import span_facts


def test_a_span_says_what_is_known_and_nothing_else():
    assert span_facts("t", 7) == {"relet.task_id": "t", "relet.token": 7}
    assert span_facts("t", 7, "q", 1) == {
        "relet.task_id": "t", "relet.token": 7, "relet.queue": "q", "relet.attempt": 1
    }  # fmt: skip
