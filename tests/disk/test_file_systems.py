"""What kind of file system a folder is on, by the table of mounts; shared drives are refused."""

import pytest

from relet.core.errors import Unavailable
from relet.disk.file_systems import kind_of, refuse_network

MOUNTS = r"""
21 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
22 21 0:40 / /mnt/share rw shared:2 - nfs4 server:/x rw
23 21 0:41 / /mnt/my\040share rw - cifs //server/x rw
24 21 0:42 / /mnt/données rw - nfs server:/y rw
25 22 8:2 / /mnt/share/local rw - xfs /dev/sdb rw
26 21 0:43 / /srv rw - tmpfs none rw
27 21 0:44 / /srv rw - fuse.sshfs host: rw
""".lstrip()


@pytest.mark.parametrize(
    ("folder", "kind"),
    [
        ("/home/a", "ext4"),
        ("/mnt/share", "nfs4"),
        ("/mnt/share/deep/er", "nfs4"),
        ("/mnt/shared", "ext4"),
        ("/mnt/my share", "cifs"),
        ("/mnt/données", "nfs"),
        ("/mnt/share/local", "xfs"),
        ("/srv", "fuse.sshfs"),
    ],
)
@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_the_innermost_and_newest_mount_over_a_folder_says_what_it_is_on(
    tmp_path, monkeypatch, folder, kind, platform
):
    monkeypatch.setattr("sys.platform", platform)
    (tmp_path / "mounts").write_text(MOUNTS, encoding="utf-8")
    found = kind_of(folder, str(tmp_path / "mounts"))
    assert found == (kind if platform == "linux" else "unknown")


def test_a_shared_drive_is_refused_and_told_with_what_does_not_hold_there(tmp_path):
    with pytest.raises(Unavailable, match="is on a nfs4 file system, where nothing holds; go") as refused:
        refuse_network(tmp_path, "nfs4", "nothing holds; go elsewhere")
    assert refused.value.code == "RELET-NETWORK-FILE"
    assert refused.value.detail == {"path": str(tmp_path), "file_system": "nfs4"}
    refuse_network(tmp_path, "ext4", "nothing holds")
    refuse_network(tmp_path, "unknown", "nothing holds")
