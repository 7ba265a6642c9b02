"""Begins and ends what stands beside a worker, and says how many files are open then; nothing else runs here."""

import os
import sys

import relet
from relet.client.beside.sidecar import Sidecar
from relet.worker.children import Children
from relet.worker.warden import Warden
from tests.waiting import eventually


def begin_and_end(db):
    sidecar, warden = Sidecar(db.backend, None), Warden()
    children = Children(db, None, warden)
    children.give_back(children.take())
    children.close()
    warden.close()
    sidecar.close()
    eventually(lambda: {sidecar._board._memory.closed, children._board._memory.closed} == {True})
    eventually(lambda: sidecar.process.poll() is not None)
    return len(os.listdir("/dev/fd"))


def main(url):
    with relet.connect(url) as db:
        for _ in range(4):
            sys.stdout.write(f"{begin_and_end(db)}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
