"""One text for both kinds of handlers: a body that awaits its verbs, run as it is or driven without a loop."""

import inspect

from relet.core.drive import drive

VERBS = frozenset({
    "approval", "attach", "check", "effect", "load", "open", "progress", "receive", "save", "sleep", "step", "submit",
})  # fmt: skip


class Awaited:
    """A blocking run whose verbs are awaited."""

    def __init__(self, run):
        self._run = run

    def __getattr__(self, name):
        found = getattr(self._run, name)
        if name not in VERBS:
            return found

        async def verb(*args, **named):
            return found(*args, **named)

        return verb


def blocking(body):
    """The body as a `def` handler."""

    def handler(run):
        return drive(body(Awaited(run)))

    return handler


def awaiting(body):
    """The body as an `async def` handler."""

    async def handler(run):
        return await body(run)

    return handler


STYLES = {"def": blocking, "async def": awaiting}


class Calls(list):
    """A function of a program, and what it was called with."""

    def __init__(self, *answers):
        super().__init__()
        self._answers = list(answers)

    def __call__(self, *args):
        self.append(args)
        answer = self._answers.pop(0) if self._answers else len(self)
        if isinstance(answer, BaseException) or (inspect.isclass(answer) and issubclass(answer, BaseException)):
            raise answer
        return answer(*args) if callable(answer) else answer
