"""What a network does between programs and a service: one trouble after the other, on one line at a time."""

import contextlib
import random
from collections import Counter

from tests.cut_connection import Proxy

VERBS = (
    "claim", "complete", "submit", "save", "keep_step", "start_effect", "end_effect", "renew", "park", "decide",
    "release", "fail",
)  # fmt: skip
ANSWER_LOST, NEVER_ARRIVED, SAID_TWICE = "cut_reply", "cut_before", "say_twice"
MET_WITHIN_S = 2.0
DELAY_S = (0.01, 0.3)
HALVES = ({}, {"requests": False}, {"replies": False})


class Network:
    """A proxy for each line, so that one program is cut off while the others are not."""

    def __init__(self, front, lines, ttl_s):
        self.counts = Counter()
        self._ttl_s = ttl_s
        with contextlib.ExitStack() as opened:
            self._lines = [opened.enter_context(Proxy(front)) for _ in range(lines)]
            self._opened = opened.pop_all()
        self._troubles = {self._one_request: 8, self._cut: 2, self._delay: 2, self._black_hole: 2, self._refuse: 1}

    def port(self, n):
        return self._lines[n].port

    def trouble(self, chance: random.Random, ended):
        """One, which is over when this returns; `ended` is an event that ends it early."""
        line = chance.choice(self._lines)
        (trouble,) = chance.choices(list(self._troubles), list(self._troubles.values()))
        try:
            self.counts[trouble(line, chance, ended)] += 1
        finally:
            line.pass_on()

    def close(self):
        self._opened.close()

    def _one_request(self, line, chance, ended):
        """Is lost before or after it was obeyed, or arrives twice."""
        how = chance.choice((ANSWER_LOST, NEVER_ARRIVED, SAID_TWICE))
        getattr(line, how)(f"POST /v1/{chance.choice(VERBS)} ".encode())
        return how if line.fired.wait(MET_WITHIN_S) else "not met"

    def _cut(self, line, chance, ended):
        line.cut()
        return "cut"

    def _delay(self, line, chance, ended):
        line.delay(chance.uniform(*DELAY_S))
        ended.wait(chance.uniform(0, self._ttl_s))
        return "delayed"

    def _black_hole(self, line, chance, ended):
        """For less than a ttl, or for more; what it kept comes out of it late, or never."""
        line.black_hole(**chance.choice(HALVES))
        ended.wait(chance.uniform(0, 2) * self._ttl_s)
        if chance.random() < 0.5:
            line.cut()
        return "silent"

    def _refuse(self, line, chance, ended):
        line.drop_new()
        line.cut()
        ended.wait(chance.uniform(0, 1.5) * self._ttl_s)
        return "refused"
