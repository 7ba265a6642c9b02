"""Run a program under libfaketime, where time.sleep is an error: unsleeping.py SCRIPT [ARGUMENT]..."""

import runpy
import sys
import threading
import time

time.sleep = lambda seconds: threading.Event().wait(seconds)
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
