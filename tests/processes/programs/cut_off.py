"""Works under a lease over HTTP, says when it stopped, and tries to write once it is told that it may."""

import contextlib
import sys
import time

import relet


def main(url):
    with relet.connect(url, holder="cut off") as db:
        lease = db.claim("q", wait="10s")
        say(lease.token)
        say(*work_until_lost(lease))
        sys.stdin.readline()
        for late in (lambda: lease.save("late"), lambda: lease.complete("late")):
            try:
                late()
            except relet.LeaseLost as lost:
                say("refused", lost.current_token)
            else:
                say("taken")


def say(*words):
    sys.stdout.write(" ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def work_until_lost(lease):
    """Why it was, when it was at work last, and when it had stopped."""
    at_work = None
    try:
        with lease.keep():
            while True:
                with contextlib.suppress(relet.Unavailable, relet.OutcomeUnknown):  # in doubt nobody works
                    lease.check()
                    at_work = time.monotonic()
                time.sleep(0.001)
    except relet.LeaseLost as lost:
        return lost.reason, at_work, time.monotonic()


if __name__ == "__main__":
    main(*sys.argv[1:])
