"""What servers of the tests run as, in and on: a user without rights, a folder, a port that stays free."""

import os
import pwd
import random
import shutil
import socket
import tempfile
from functools import cache
from pathlib import Path

from tests.servers.afterwards import clear_afterwards

NOBODY = "nobody"
# Below the ports that outgoing connections are given, so that none of those takes it while a server is down.
PORTS = range(15_000, 32_000)
# Settings of whoever runs the tests are not meant for their servers.
OTHERS = ("ETCD_", "LD_PRELOAD", "PATRONI", "PG", "PYTHON", "VIRTUAL_ENV")


def unprivileged():
    """Arguments of Popen. PostgreSQL, PgBouncer and Patroni do not run as root, so there they are nobody's."""
    if os.geteuid():
        return {}
    return {"user": NOBODY, "group": pwd.getpwnam(NOBODY).pw_gid, "extra_groups": []}


def new_folder(prefix, within=None):
    """A new folder that belongs to that user; what it is left with is cleared when this process has ended."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir=within)).resolve()
    if not os.geteuid():
        shutil.chown(folder, NOBODY, pwd.getpwnam(NOBODY).pw_gid)
    clear_afterwards(folder)
    return folder


@cache
def kept_folder():
    """For what servers of this process have in common; removed when it has ended."""
    return new_folder("relet-servers-")


def environment(home):
    kept = {name: value for name, value in os.environ.items() if not name.startswith(OTHERS)}
    return {**kept, "HOME": str(home)}


def free_port():
    """A port of the loopback that nobody listens at."""
    while True:
        port = random.choice(PORTS)
        with socket.socket() as tried:
            # As servers do it: a connection that ended a moment ago takes no port.
            tried.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                tried.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def installed(program, package):
    """Where a program of the system is."""
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/usr/local/sbin"])
    found = shutil.which(program, path=places)
    assert found, f"this test needs {program} → sudo apt-get install -y --no-install-recommends {package}"
    return found
