"""A process with a group of its own to be killed when it dies; its warden can be killed meanwhile."""

import subprocess
import sys

from relet.worker.warden import Warden
from tests.waiting import eventually

warden = Warden()
first = warden.pid
group = subprocess.Popen(["sleep", "300"], start_new_session=True).pid
warden.watch(group)
sys.stdout.write(f"{group} {warden.pid}\n")
input()
eventually(lambda: warden.pid != first)
sys.stdout.write("watched again\n")
input()
