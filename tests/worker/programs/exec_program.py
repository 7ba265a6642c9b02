"""`relet exec`, without its command line: exec_program.py URL QUEUE OPTIONS PROGRAM [ARGUMENT]..."""

import json
import os
import sys

import relet
from relet.store.sqlite import lane
from relet.worker.program import run_program

url, queue, options, *command = sys.argv[1:]
lane.PATIENCE_MS = int(os.environ.get("PATIENCE_MS", lane.PATIENCE_MS))
with relet.connect(url, holder="exec") as db:
    try:
        code = run_program(db, queue, command, **json.loads(options))
    except relet.Error as refused:
        sys.stderr.write(f"{refused.code}: {refused}\n")
        code = 2
sys.exit(code)
