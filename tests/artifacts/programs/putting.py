"""Store artifacts until killed: putting.py FOLDER SEED [BYTES_MAX]; each is told once it is stored."""

import random
import sys

from relet.artifacts.local import LocalArtifacts

folder, seed, *options = sys.argv[1:]
store = LocalArtifacts(folder)
chance = random.Random(int(seed))
most = int(options[0]) if options else 3 << 20
while True:
    data = chance.randbytes(chance.choice([10, 5_000, most]))
    sys.stdout.write(f"{store.put(data).uri}\n")
