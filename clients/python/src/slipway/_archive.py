"""The code archive of a run: the same bytes, and so the same digest, as the command line makes of the same folder.

A tar whose headers depend on names, contents and the executable bit alone, inside a gzip file that stores without compressing: zlib
compresses differently from release to release. lib/shared/archive writes the same format; test/clients/archive.test.ts compares the two.
"""

from __future__ import annotations

import hashlib
import os
import struct
import zlib
from dataclasses import dataclass
from pathlib import Path

from ._code_files import code_files
from .errors import UsageError

_RECORD = 512
#: Bytes of a stored block at most: RFC 1951, 3.2.4.
_BLOCK = 65535


@dataclass(frozen=True)
class Archive:
    """A .tar.gz and its sha256 in hexadecimal."""

    content: bytes
    sha256: str


def archive_folder(folder: str | os.PathLike[str]) -> Archive:
    """The archive of a folder. Raises UsageError with a line for each reason why it cannot be packed, such as a link that leaves it."""
    root = Path(folder)
    names, problems = code_files(root)
    if problems:
        raise UsageError("\n".join(problems))
    entries = [_entry(name, root / name) for name in names]
    content = _stored_gzip(b"".join(entries) + bytes(2 * _RECORD))
    return Archive(content, hashlib.sha256(content).hexdigest())


def _entry(name: str, file: Path) -> bytes:
    content = file.read_bytes()
    mode = 0o755 if file.stat().st_mode & 0o100 else 0o644
    header = _header(name, mode, len(content), b"0")
    if header is not None:
        return header + _padded(content)
    pax = _pax_record("path", name)
    first = _header("PaxHeader", mode, len(pax), b"x")
    second = _header("PaxHeader", mode, len(content), b"0")
    assert first is not None and second is not None
    return first + _padded(pax) + second + _padded(content)


def _padded(content: bytes) -> bytes:
    return content + bytes(-len(content) % _RECORD)


def _pax_record(key: str, value: str) -> bytes:
    body = f" {key}={value}\n".encode()
    digits = len(str(len(body)))
    if len(body) + digits >= 10**digits:
        digits += 1
    return str(len(body) + digits).encode() + body


def _octal(value: int, digits: int) -> bytes:
    return f"{value:0{digits}o} ".encode()


def _header(name: str, mode: int, size: int, kind: bytes) -> bytes | None:
    """A ustar header; None where the name does not fit one, and a pax record must say it."""
    if not name.isascii():
        return None
    prefix = ""
    while len(name) > 100:
        head, slash, name = name.partition("/")
        if not slash:
            return None
        prefix = f"{prefix}/{head}" if prefix else head
    if len(prefix) > 155:
        return None
    fields = (
        (0, name.encode()),
        (100, _octal(mode, 6)),
        (108, _octal(0, 6)),
        (116, _octal(0, 6)),
        (124, _octal(size, 11)),
        (136, _octal(0, 11)),
        (156, kind),
        (257, b"ustar\x0000"),
        (329, _octal(0, 6)),
        (337, _octal(0, 6)),
        (345, prefix.encode()),
    )
    block = bytearray(_RECORD)
    for offset, value in fields:
        block[offset : offset + len(value)] = value
    checksum = sum(block) + 8 * ord(" ")
    block[148:155] = _octal(checksum, 6)
    return bytes(block)


def _stored_gzip(content: bytes) -> bytes:
    parts = [bytes((0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255))]
    for at in range(0, max(len(content), 1), _BLOCK):
        block = content[at : at + _BLOCK]
        is_last = at + _BLOCK >= len(content)
        parts += [struct.pack("<BHH", is_last, len(block), len(block) ^ 0xFFFF), block]
    parts.append(struct.pack("<II", zlib.crc32(content), len(content) & 0xFFFFFFFF))
    return b"".join(parts)
