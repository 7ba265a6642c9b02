"""Collect without a pause, until a line comes: collecting.py FOLDER NAMES. Answers how much was removed."""

import os
import select
import sys

from relet.artifacts.collect import collect
from relet.artifacts.local import LocalArtifacts

folder, names = sys.argv[1:]
store = LocalArtifacts(folder)
removed = 0
sys.stdout.write("ready\n")
while not select.select([sys.stdin], [], [], 0)[0]:
    removed += collect(
        store, lambda uris: {uri for uri in uris if os.path.exists(os.path.join(names, uri.partition(":")[2]))}
    ).n
sys.stdout.write(f"{removed}\n")
