"""Which kind of file system lies under a folder, by the kernel's own table; and which kinds are shared drives."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

UNKNOWN: Final = "unknown"
_OCTAL = re.compile(rb"\\([0-7]{3})")
"""How the kernel writes blanks and backslashes of a path into its table of mounts."""
# Locks or shared memory of these do not reach other machines, or do not work at all.
NETWORK_FILE_SYSTEMS: Final = frozenset({
    "nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "beegfs",
    "gpfs", "ocfs2", "gfs2", "davfs", "virtiofs", "fuse", "fuse.sshfs", "fuse.s3fs", "fuse.rclone",
    "fuse.glusterfs", "fuse.gcsfuse", "fuse.davfs", "vboxsf", "prl_fs", "drvfs",
})  # fmt: skip


def kind_under(folder: str, table: Iterable[str]) -> str:
    """The kind that is mounted nearest above a real path, from the lines of mountinfo; "unknown" if none is."""
    best, kind = "", UNKNOWN
    for line in table:
        fields, _, rest = line.partition(" - ")
        point = _unescaped(fields.split()[4])
        inside = point in ("/", folder) or folder.startswith(f"{point}/")
        if inside and len(point) >= len(best):
            best, kind = point, rest.split()[0]
    return kind


def _unescaped(path: str) -> str:
    raw = path.encode("utf-8", "surrogateescape")
    return _OCTAL.sub(lambda found: bytes([int(found[1], 8)]), raw).decode("utf-8", "surrogateescape")
