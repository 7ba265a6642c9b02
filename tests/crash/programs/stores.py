"""Stores that are broken on purpose: each stands between holders and the real one."""

from relet.core.rules import save as rule
from relet.core.rules import start_effect as effect_rule
from relet.core.rules.effect import Next, Verdict
from relet.core.rules.save import Save, Saved


class Between:
    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)


def late(backend):
    """Takes a save under any token, however old."""

    async def lenient(tx, handle):
        return await tx.lock_lease(handle.token)

    rule.hold, rule.move = lenient, lambda state, cause: state
    return backend


def retrying(backend):
    """Lets every effect of which nobody knows be tried again, whatever its contract."""
    effect_rule.verdict = lambda effect, contract, at, timeout_ms: Verdict(Next.GO)
    return backend


def forgetful(backend):
    """Acknowledges every second save and writes nothing."""

    class Forgetful(Between):
        saves = 0

        def call(self, ask, *, patience_ms=None):
            if isinstance(ask, Save):
                self.saves += 1
                if self.saves % 2 == 0:
                    return Saved(version=self.saves)
            return self._inner.call(ask, patience_ms=patience_ms)

    return Forgetful(backend)
