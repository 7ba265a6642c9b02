"""As `python -m MODULE [ARGUMENT]...`: run_module.py MODULE [ARGUMENT]..."""

import runpy
import sys

sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
