"""Where a verdict cache may live: SQLite's locks and shared memory need a disk of this node.

One design choice: the file system's type is read from the kernel's mount table, because a lock that
seems to work on NFS or Lustre still corrupts a write-ahead log written from two nodes.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
import tempfile
from pathlib import Path

MOUNTS = Path("/proc/mounts")
NETWORK_TYPES = frozenset(
    (
        *("nfs", "nfs4", "lustre", "gpfs", "beegfs", "beegfs_nodev", "ceph", "cifs", "smb3"),
        *("smbfs", "afs", "panfs", "pvfs2", "orangefs", "wekafs", "glusterfs", "fuse.glusterfs"),
        *("fuse.sshfs", "fuse.ceph-fuse", "fuse.juicefs", "fuse.daos", "fuse.s3fs", "fuse.gcsfuse"),
    )
)
NODE_LOCAL = (Path("/tmp"), Path("/dev/shm"))
"""Tried after $TMPDIR, in this order."""

_log = logging.getLogger(__name__)


def place(path: Path) -> Path | None:
    """`path` where it lies on a disk of this node, else a file for it on one that does.

    A move is logged with both paths; a cache that lies at `path` already is copied along, so that
    its verdicts are not asked for again. None where no node-local folder can be used.
    """
    path = path.expanduser().resolve()
    kind = file_system(path)
    if kind not in NETWORK_TYPES:
        return path
    local = _local_file(path)
    if local is None:
        _log.warning(
            "verdict cache %s lies on %s and this node has no local disk to use instead; verdicts "
            "are kept in memory only; set TMPDIR to a local folder",
            *(path, kind),
        )
        return None
    if path.is_file() and not local.exists():
        shutil.copyfile(path, local)
    _log.warning(
        "verdict cache %s lies on %s, which SQLite cannot lock safely; using %s on this node. To "
        "keep the verdicts for other nodes, copy that file back after the run",
        *(path, kind, local),
    )
    return local


def file_system(path: Path) -> str:
    """Type of the file system that holds `path` (which need not exist); "" where unknown."""
    try:
        lines = MOUNTS.read_text(errors="surrogateescape").splitlines()
    except OSError:
        return ""
    best, kind = -1, ""
    for line in lines:
        fields = line.split(" ")
        if len(fields) < 3:
            continue
        mount = Path(_unescape(fields[1]))
        depth = len(mount.parts)
        # The last of several mounts on one point is the one that is seen.
        if depth >= best and path.is_relative_to(mount):
            best, kind = depth, fields[2]
    return kind


def _unescape(mount: str) -> str:
    """The kernel writes space, tab, newline and backslash as octal."""
    for octal, character in (("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")):
        mount = mount.replace(octal, character)
    return mount


def _local_file(path: Path) -> Path | None:
    digest = hashlib.blake2b(os.fsencode(path), digest_size=8).hexdigest()
    for base in (Path(tempfile.gettempdir()), *NODE_LOCAL):
        if not base.is_dir() or file_system(base.resolve()) in NETWORK_TYPES:
            continue
        folder = base / f"longrl-{os.getuid()}"
        try:
            folder.mkdir(mode=0o700, exist_ok=True)
            if _is_ours(folder):
                (folder / digest).mkdir(exist_ok=True)
                return folder / digest / path.name
        except OSError:
            continue
    return None


def _is_ours(folder: Path) -> bool:
    """A folder in /tmp that somebody else made could hold verdicts of their choice."""
    status = folder.stat(follow_symlinks=False)
    return folder.is_dir() and not folder.is_symlink() and status.st_uid == os.getuid()
