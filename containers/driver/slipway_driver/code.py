"""Unpacks the user's code: one archive in the `code` channel, whose digest is checked before anything is unpacked."""

from __future__ import annotations

import codecs
import errno
import hashlib
import os
import tarfile
import zlib
from pathlib import Path, PurePosixPath
from typing import List, Optional

from slipway_driver.exit_codes import ENVIRONMENT, DriverError

_CHUNK = 1 << 20
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES)


def sha256_of(path: Path) -> str:
    """Hexadecimal SHA-256 of a file."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        for chunk in iter(lambda: handle.read(_CHUNK), b""):
            digest.update(chunk)
    return digest.hexdigest()


def bare_digest(digest: str) -> str:
    """Returns `<hex>` for both `sha256:<hex>` and `<hex>`."""
    return digest.split(":", 1)[-1].lower()


def _outside(name: str) -> bool:
    path = PurePosixPath(name)
    return path.is_absolute() or ".." in path.parts


def unsafe_members(archive: tarfile.TarFile) -> List[str]:
    """Names of members that would be unpacked outside the target folder, or that are not a regular file, folder or link."""
    bad: List[str] = []
    for member in archive.getmembers():
        places = [member.name, *([member.linkname] if member.islnk() else [])]
        if member.issym():
            places.append(os.path.normpath(str(PurePosixPath(member.name).parent / member.linkname)))
        if any(map(_outside, places)) or not (member.isfile() or member.isdir() or member.issym() or member.islnk()):
            bad.append(member.name)
    return bad


def unpack(archive: Path, target: Path) -> None:
    """Unpacks into `target`. Raises DriverError (77) for an archive that is corrupt or contains members outside `target`."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        with tarfile.open(str(archive), "r:gz") as opened:
            bad = unsafe_members(opened)
            if bad:
                raise DriverError(ENVIRONMENT, "code archive: must stay inside its folder, got %s" % ", ".join(bad[:5]))
            opened.extractall(str(target), **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # type: ignore[arg-type]
    except (OSError, EOFError, ValueError, zlib.error, tarfile.TarError) as error:
        if isinstance(error, OSError) and error.errno in _CANNOT_WRITE:
            why = "code archive: must be unpacked to %s, got %s; compute.volumeSizeGiB makes room" % (target, error)
            raise DriverError(ENVIRONMENT, why)
        raise DriverError(ENVIRONMENT, "code archive: must be a readable tar.gz (%s)" % error)


def prepare_code(channel: Path, digest: Optional[str], target: Path) -> None:
    """Checks and unpacks the user's code. Raises DriverError (77) unless the archive has the digest of the launched code."""
    archives = sorted(path for path in channel.glob("*.tar.gz") if path.is_file())
    if len(archives) > 1:
        raise DriverError(ENVIRONMENT, "channel code: must contain one archive, got %s" % ", ".join(path.name for path in archives))
    if digest is None:
        raise DriverError(ENVIRONMENT, "job.json digests.code: must be set for user code; unverified code is not started")
    if not archives:
        raise DriverError(ENVIRONMENT, "channel code: must contain the archive %s.tar.gz, got none" % bare_digest(digest))
    found = sha256_of(archives[0])
    if found != bare_digest(digest):
        raise DriverError(ENVIRONMENT, "code archive: must have digest %s, got %s; launch it again" % (bare_digest(digest), found))
    unpack(archives[0], target)


def refuse_windows_text(entry_point: str, folder: Path) -> None:
    """Raises DriverError (77) for a shell script with Windows line endings or a byte order mark: for bash, the `\\r` is a part of the last
    word of each line, and the mark a part of the first word, which it then does not find."""
    script = folder / entry_point
    if not entry_point.endswith(".sh") or not script.is_file():
        return
    text = script.read_bytes().split(b"\0")[0]  # An installer may have binary data behind its script.
    first = next((number for number, line in enumerate(text.split(b"\n"), 1) if line.endswith(b"\r")), None)
    if first is not None:
        raise DriverError(
            ENVIRONMENT,
            "code.entryPoint: must have Unix line endings, got \\r\\n on line %d of %s; convert it with dos2unix or sed -i 's/\\r$//'"
            % (first, entry_point),
        )
    words = text[len(codecs.BOM_UTF8) :].split(None, 1) if text.startswith(codecs.BOM_UTF8) else []
    if words and not words[0].startswith(b"#"):
        word = words[0].decode("utf-8", "replace")
        raise DriverError(
            ENVIRONMENT,
            "code.entryPoint: must have no byte order mark, got one before %s in %s; remove it with sed -i '1s/^\\xEF\\xBB\\xBF//'"
            % (word, entry_point),
        )
