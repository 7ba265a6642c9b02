"""Put, name, read back: naming.py FOLDER NAMES SEED ROUNDS. Answers how often what was named was not there.

Before each put the artifact is made old and named by nobody, so that a collection may be removing it just then.
"""

import contextlib
import json
import os
import random
import sys

from relet.artifacts.local import LocalArtifacts
from relet.core.errors import NotFound

folder, names, seed, rounds = sys.argv[1:]
store = LocalArtifacts(folder)
chance = random.Random(int(seed))
lost = made_old = 0
for _ in range(int(rounds)):
    data = f"{seed} {chance.randrange(3)}".encode()
    digest = store.put(data).sha256
    with contextlib.suppress(FileNotFoundError):
        os.utime(os.path.join(folder, "sha256", digest[:2], digest[2:]), (1, 1))
        made_old += 1
    store.put(data)
    name = os.path.join(names, digest)
    with open(name, "w"):
        pass
    try:
        assert store.read(f"artifact:{digest}") == data
    except NotFound:
        lost += 1
    os.unlink(name)
sys.stdout.write(json.dumps({"lost": lost, "made old": made_old}) + "\n")
