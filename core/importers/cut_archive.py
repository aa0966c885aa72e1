"""A zip archive whose end is missing: the members that are whole are found by their own headers.

Source: APPNOTE 6.3.10, 4.3.7 (local file header) and 4.5.3 (Zip64 sizes).
"""

from __future__ import annotations

import io
import struct
import sys
from typing import IO, NamedTuple

from core.importers.opened import DAMAGED

if sys.version_info >= (3, 14):
    import zipfile
else:
    from backports.zstd import zipfile

MEMBER, LISTED, NO_MEMBERS = b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06" + bytes(18)
SIZES_FOLLOW, UTF_8 = 0x0008, 0x0800
"""Flags of a member: its sizes are told after it, its name is UTF-8."""
_HEADER = struct.Struct("<4sHHHHHLLLHH")
_ZIP64 = 0xFFFFFFFF


class Whole(NamedTuple):
    """What is left of an archive."""

    archive: zipfile.ZipFile
    """The members that are whole."""
    cut: str | None
    """The member that the archive ends in; empty where it has no name, None where no member is missing."""


def whole_members(file: IO[bytes]) -> Whole:
    """Walk through an archive from member to member, as far as that goes."""
    found, at = list[zipfile.ZipInfo](), 0
    cut: str | None = ""
    try:
        while _bytes(file, at, 4) == MEMBER:
            cut = ""
            member, end = _member(file, at)
            cut = member.filename
            if member.flag_bits & SIZES_FOLLOW or not _bytes(file, end - 1, 1):
                break
            found.append(member)
            at = end
        else:
            cut = None if _bytes(file, at, 4) == LISTED else ""
    except (*DAMAGED, ValueError, struct.error):
        pass
    archive = zipfile.ZipFile(io.BytesIO(NO_MEMBERS))
    archive.fp = file
    archive.filelist += found
    archive.NameToInfo |= {member.filename: member for member in found}
    return Whole(archive, cut)


def _member(file: IO[bytes], at: int) -> tuple[zipfile.ZipInfo, int]:
    """The member whose header stands at a place, and where it ends."""
    _, _, flags, method, _, _, crc, packed, size, name, extra = _HEADER.unpack(_bytes(file, at, _HEADER.size))
    called = _bytes(file, at + _HEADER.size, name).decode("utf-8" if flags & UTF_8 else "cp437")
    member = zipfile.ZipInfo(called)
    member.flag_bits, member.compress_type, member.CRC, member.header_offset = flags, method, crc, at
    start = at + _HEADER.size + name + extra
    if packed == _ZIP64:
        size, packed = _long_sizes(_bytes(file, start - extra, extra))
    member.file_size, member.compress_size = size, packed
    return member, start + packed


def _long_sizes(extra: bytes) -> tuple[int, int]:
    """(size, packed size) of a member of 4 GB and more."""
    while extra:
        kind, length = struct.unpack_from("<HH", extra)
        if kind == 1:
            size, packed = struct.unpack_from("<QQ", extra, 4)
            return size, packed
        extra = extra[4 + length :]
    raise ValueError("no sizes")


def _bytes(file: IO[bytes], at: int, count: int) -> bytes:
    file.seek(at)
    return file.read(count)
