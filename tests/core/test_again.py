"""A request whose outcome is unknown is sent once more, and marked, where that is safe; where not, it is told."""

import pytest

from relet.core.again import again, surely
from relet.core.errors import Conflict, Forbidden, OutcomeUnknown, Unavailable
from relet.core.rules.claim import Claim
from relet.core.rules.complete import Complete
from relet.core.rules.requeue import Requeue
from relet.core.rules.sweep import Sweep

CLAIM = Claim(holder="A", queues=["q"])


class Told:
    """Answers in turn; keeps what it was asked."""

    def __init__(self, *answers):
        self.answers, self.asked = list(answers), []

    def __call__(self, ask):
        self.asked.append(ask)
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def test_an_answer_is_asked_for_once():
    told = Told("answer")
    assert surely(told, CLAIM) == "answer"
    assert told.asked == [CLAIM]


def test_an_unknown_outcome_is_asked_for_again_and_marked():
    told = Told(OutcomeUnknown("lost"), "answer")
    assert surely(told, CLAIM) == "answer"
    assert told.asked == [CLAIM, again(CLAIM)]
    assert told.asked[1].again


def test_what_is_not_safe_to_repeat_is_not_repeated():
    told = Told(OutcomeUnknown("lost"))
    with pytest.raises(OutcomeUnknown, match="lost"):
        surely(told, Requeue(task_id="t"))
    assert len(told.asked) == 1


@pytest.mark.parametrize("second", [Unavailable("away"), Forbidden("revoked", engine="42501")])
def test_a_repetition_that_does_not_get_through_says_nothing_of_the_first(second):
    with pytest.raises(OutcomeUnknown, match="It was repeated at once") as unknown:
        surely(Told(OutcomeUnknown("lost", code="RELET-COMMIT"), second), CLAIM)
    assert unknown.value.code == "RELET-COMMIT"


def test_a_refusal_of_the_repetition_is_the_answer():
    with pytest.raises(Conflict):
        surely(Told(OutcomeUnknown("lost"), Conflict("done")), CLAIM)


def test_what_grants_is_marked_and_what_grants_nothing_is_the_same():
    both = Complete(completions=[], next=CLAIM)
    assert again(both).next.again
    alone = Complete(completions=[])
    assert again(alone) is alone
    assert again(ask := Sweep()) is ask
