"""A process with a group of its own to be killed when it dies; its warden can be killed meanwhile.

With an argument, that is the warden's program; and a fork holds all files of this process when it dies.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

from relet.worker import warden as room
from relet.worker.warden import Warden
from tests.waiting import eventually

if sys.argv[1:]:
    room.PROGRAM = Path(sys.argv[1])

warden = Warden()
first = warden.pid
group = subprocess.Popen(["sleep", "300"], stdout=subprocess.DEVNULL, start_new_session=True).pid
warden.watch(group)
if sys.argv[1:] and os.fork() == 0:
    os.close(1)
    time.sleep(300)
sys.stdout.write(f"{group} {warden.pid}\n")
input()
eventually(lambda: warden.pid != first)
sys.stdout.write("watched again\n")
input()
