"""A client in another process: asked by lines, answers by lines, and can be killed at the commit of a verb."""

import json
import random
import time
from pathlib import Path

PROGRAMS = Path(__file__).parent / "programs"
READY = "ready"


class Actor:
    """One process of `programs/actor.py`. With `FAULT` in its environment it runs under `programs/faulty.py`."""

    def __init__(self, start, place, environment):
        script = [PROGRAMS / "actor.py"]
        if "FAULT" in environment:
            script.insert(0, PROGRAMS / "faulty.py")
        self.program = start(*script, place, environment=environment)
        assert self.program.line() == READY

    def __call__(self, verb, *arguments, **named):
        """What the verb answers there; an error is answered as a mapping."""
        self.tell(verb, *arguments, **named)
        return self.answer()

    def tell(self, verb, *arguments, at=0, **named):
        """Ask, and do not wait; it begins at the instant given, as nearly as it can."""
        self.program.tell(json.dumps({"verb": verb, "arguments": arguments, "named": named, "at": at}))

    def answer(self):
        return self.program.value()


def refusal(answer):
    """The name of the error that was answered; None for anything else."""
    return answer.get("error") if isinstance(answer, dict) else None


def together(*asks, lead_s=0.005, offsets_s=None):
    """Ask several actors for the same instant; their answers, in order.

    On a busy machine who is told first begins first; so the order of telling is by chance.
    """
    at = time.monotonic_ns() + int(lead_s * 1e9)
    offsets_s = offsets_s or [0] * len(asks)
    told = list(zip(asks, offsets_s, strict=True))
    random.shuffle(told)
    for (who, *ask), offset_s in told:
        who.tell(*ask, at=at + int(offset_s * 1e9))
    return [who.answer() for who, *_ in asks]
