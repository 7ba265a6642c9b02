"""The mount nearest above a folder says which file system it is on."""

import pytest

from relet.core.mounts import NETWORK_FILE_SYSTEMS, kind_under

TABLE = [
    "21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw",
    "22 21 0:40 / /mnt/share rw shared:2 - nfs4 server:/x rw",
    r"23 21 0:41 / /mnt/my\040share rw - cifs //server/x rw",
    "24 21 0:43 / /srv rw - tmpfs none rw",
    "25 21 0:44 / /srv rw - fuse.sshfs host: rw",
]


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/", "ext4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/deep/er", "nfs4"),
        ("/mnt/shared", "ext4"),
        ("/mnt/my share/a", "cifs"),
        ("/srv", "fuse.sshfs"),
    ],
)
def test_the_nearest_and_newest_mount_counts(folder, kind):
    assert kind_under(folder, TABLE) == kind


def test_without_any_mount_the_kind_is_unknown():
    assert kind_under("/srv", []) == "unknown"
    assert kind_under("/home", TABLE[1:]) == "unknown"


def test_shared_drives_are_told_from_local_disks():
    assert {"nfs4", "cifs", "fuse.sshfs"} <= NETWORK_FILE_SYSTEMS
    assert not {"ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs", "unknown"} & NETWORK_FILE_SYSTEMS
