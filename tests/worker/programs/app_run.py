"""An app of one handler, run until a signal comes."""

import sys

import relet
from tests.waiting import eventually

app = relet.App()


def say(word):
    sys.stdout.write(f"{word}\n")


@app.task("work")
def work(run: relet.Run, wait: bool) -> str:
    if not wait:
        say("ran")
        return "ran"
    say("waiting")
    eventually(lambda: run.draining)
    say("draining")
    return "drained"


app.run(*sys.argv[1:])
