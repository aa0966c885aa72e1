"""Read a pack that comes from anywhere: trusted for nothing until all of it was checked.

In this order, and the first fault ends it: size, zip structure, names of the files, sizes and ratios, checksums,
JSON, format version, schema, records, and that `prompt.txt` (and `logit_bias.json`) is what `pack.json` renders to.

To verify is more than to read: nothing may lie in the file that is not told by `pack.json`. So there is no byte around,
between or behind the four files, no comment, and `README.md` is the one that `pack.json` renders to. How the files are
stored, and their times, are another tool's affair. Of a later minor version the files that are not known are named.
"""

from __future__ import annotations

import hashlib
import io
import json
import re
import stat
import struct
import zipfile
import zlib
from collections.abc import Mapping
from typing import Any, NoReturn

from core.errors import InputError, PackError
from core.packs import logit_bias
from core.packs.content import check_text_only, no_key_twice
from core.packs.pack import (
    FILES,
    KNOWN,
    MAX_PACK_BYTES,
    SCHEMA_VERSION,
    SUMS,
    Pack,
    PackedExperience,
    PackedVersion,
    Provenance,
    pack_schema,
    write_pack,
)
from core.packs.prompt import prompt_text
from core.packs.readme import readme_text
from core.record import Record

MAX_CONTENT_BYTES = 64 * 2**20
"""Of all files together, unpacked."""
MAX_RATIO = 100
"""Unpacked to packed bytes of one file; text deflates to a tenth or so."""
MAX_FILES = 16

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_SUM_LINE = re.compile(r"([0-9a-f]{64}) [ *](\S+)")
_VERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")
_UNREADABLE = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    OSError,
    ValueError,
    RuntimeError,  # NotImplementedError, too: a compression or zip version that zipfile does not know
    EOFError,
    OverflowError,
    LookupError,
    struct.error,
    zlib.error,
)


class PackCheck(Record):
    """What a pack that passed every check says about itself."""

    name: str
    version: int
    schema_version: str
    winnow: str
    experiences: int
    provenance: str
    sha256: str
    """Of the whole zip."""
    files: dict[str, int]
    """Bytes of each file."""
    unknown: tuple[str, ...] = ()
    """What a later minor version of the format put in, and nobody here can check."""


def verify_pack(data: bytes) -> PackCheck:
    """Check all of a pack, and that nothing hides in it; keep nothing of it.

    Raises:
        PackError: one sentence with the first fault.
    """
    files, pack = _checked(data)
    unknown: tuple[str, ...] = ()
    if write_pack(pack) != data:
        _check_bytes(data)
        unknown = _check_files(files, pack)
    return PackCheck(
        name=pack.name,
        version=pack.version.number,
        schema_version=pack.schema_version,
        winnow=pack.winnow,
        experiences=len(pack.experiences),
        provenance=pack.provenance,
        sha256=hashlib.sha256(data).hexdigest(),
        files={name: len(content) for name, content in files.items()},
        unknown=unknown,
    )


def read_pack(data: bytes) -> Pack:
    """The content of a pack that passes every check.

    Raises:
        PackError: one sentence with the first fault.
    """
    return _checked(data)[1]


def _checked(data: bytes) -> tuple[dict[str, bytes], Pack]:
    if len(data) > MAX_PACK_BYTES:
        raise PackError(f"The pack has {len(data)} bytes; at most {MAX_PACK_BYTES} are read.")
    files = _unzip(data)
    _check_sums(files)
    pack = _read_json(files["pack.json"])
    if files["prompt.txt"] != prompt_text(pack.as_experiences()).encode():
        raise PackError("The pack's prompt.txt is not the text that its pack.json renders to.")
    if pack.prior and files.get(logit_bias.NAME) != logit_bias.write(pack.prior):
        raise PackError(f"The pack's {logit_bias.NAME} is not what its pack.json renders to.")
    return files, pack


def _check_bytes(data: bytes) -> None:
    """Refuse a zip with a byte that is neither in a file nor needed to find it."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        entries = archive.infolist()
        if archive.comment or any(entry.comment for entry in entries):
            raise PackError("The pack's zip archive holds a comment; a pack of Winnow has none.")
        names = sum(len(entry.orig_filename.encode()) for entry in entries)
        needed = sum(entry.compress_size for entry in entries) + len(entries) * (30 + 46) + 2 * names + 22
    if len(data) != needed:
        raise PackError(
            f"The pack's zip archive has {len(data)} bytes where its files take {needed}: something else lies in it."
        )


def _check_files(files: Mapping[str, bytes], pack: Pack) -> tuple[str, ...]:
    """Refuse a file that does not follow from pack.json; of a later version, name it."""
    own = {*FILES, SUMS, *([logit_bias.NAME] if pack.prior else [])}
    more = sorted(files.keys() - own)
    changed = files["README.md"] != readme_text(pack).encode()
    if pack.schema_version in KNOWN:
        if more:
            raise PackError(f"The pack holds a file that no pack of its format has: {more[0]}.")
        if changed:
            raise PackError("The pack's README.md is not the text that its pack.json renders to.")
        if files["pack.json"] != pack.canonical().encode():
            raise PackError("The pack's pack.json is not in the form that Winnow writes.")
    return tuple(more) + (("README.md",) if changed else ())


def _unzip(data: bytes) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            entries = archive.infolist()
            _check_entries(entries)
            return {entry.filename: _content(archive, entry) for entry in entries}
    except _UNREADABLE as e:
        raise PackError("This is not a pack: its zip archive is damaged, or none at all.") from e


def _content(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> bytes:
    with archive.open(entry) as file:
        content = file.read(entry.file_size + 1)
    if len(content) != entry.file_size:
        raise PackError(f"The pack's file {entry.filename} does not have the size that it claims.")
    return content


def _check_entries(entries: list[zipfile.ZipInfo]) -> None:
    if len(entries) > MAX_FILES:
        raise PackError(f"The pack holds {len(entries)} files; at most {MAX_FILES} are read.")
    names: set[str] = set()
    for entry in entries:
        name = entry.orig_filename
        if not _NAME.fullmatch(name) or name != entry.filename:
            raise PackError(f"The pack holds a file with a name that is refused: {name[:60]!r}.")
        if name.lower() in names:
            raise PackError(f"The pack holds the file {name} twice.")
        names.add(name.lower())
        if stat.S_IFMT(entry.external_attr >> 16) not in (0, stat.S_IFREG):
            raise PackError(f"The pack's file {name} is a link or a device, not a file.")
        if entry.flag_bits & 1:
            raise PackError(f"The pack's file {name} is encrypted.")
        if entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise PackError(f"The pack's file {name} is compressed in a way that is not read.")
        if entry.file_size > 1000 + MAX_RATIO * entry.compress_size:
            raise PackError(f"The pack's file {name} would unpack to more than {MAX_RATIO} times its size.")
    if (total := sum(entry.file_size for entry in entries)) > MAX_CONTENT_BYTES:
        raise PackError(f"The pack would unpack to {total} bytes; at most {MAX_CONTENT_BYTES} are read.")
    for wanted in (*FILES, SUMS):
        if wanted not in {entry.filename for entry in entries}:
            raise PackError(f"This is not a pack: {wanted} is missing.")


def _check_sums(files: Mapping[str, bytes]) -> None:
    try:
        lines = files[SUMS].decode("ascii").splitlines()
    except UnicodeDecodeError as e:
        raise PackError(f"The pack's {SUMS} cannot be read.") from e
    sums: dict[str, str] = {}
    for line in lines:
        match = _SUM_LINE.fullmatch(line)
        if match is None or match[2] in sums:
            raise PackError(f"The pack's {SUMS} has a line that is not a checksum, or one twice.")
        sums[match[2]] = match[1]
    if sums.keys() != files.keys() - {SUMS}:
        raise PackError(f"The pack's {SUMS} does not list exactly the files of the pack.")
    for name, expected in sums.items():
        if hashlib.sha256(files[name]).hexdigest() != expected:
            raise PackError(f"The pack's file {name} does not have its checksum: it was changed or damaged.")


def _read_json(content: bytes) -> Pack:
    try:
        data = json.loads(content.decode(), object_pairs_hook=no_key_twice, parse_constant=_no_constant)
    except (ValueError, RecursionError) as e:
        raise PackError("The pack's pack.json is not valid JSON.") from e
    if not isinstance(data, dict):
        raise PackError("The pack's pack.json is not a JSON object.")
    _check_format(data.get("schema_version"))
    _check_schema(data)
    check_text_only(data, "The pack's pack.json")
    if data["schema_version"] not in KNOWN:
        data = _without_later_fields(data)
    try:
        pack = Pack.read(data, where="pack.json")
    except InputError as e:
        raise PackError(f"The pack does not fit its format: {e}") from e
    ids = [experience.id for experience in pack.experiences]
    if len(set(ids)) != len(ids):
        raise PackError("The pack holds two experiences with the same id.")
    return pack


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _check_format(version: Any) -> None:
    match = _VERSION.fullmatch(version) if isinstance(version, str) else None
    if match is None:
        raise PackError("The pack does not say which version of the pack format it has.")
    if match[1] != SCHEMA_VERSION.split(".")[0]:
        raise PackError(f"The pack has format version {version}; this Winnow reads {SCHEMA_VERSION}.")


def _check_schema(data: dict[str, Any]) -> None:
    from jsonschema import Draft202012Validator

    try:
        error = next(Draft202012Validator(pack_schema()).iter_errors(data), None)
    except RecursionError as e:
        raise PackError("The pack's pack.json is nested too deep.") from e
    if error is not None:
        where = ".".join(str(part) for part in error.absolute_path) or "the object"
        rule = f"{error.validator} {error.validator_value!r}"
        raise PackError(f"The pack does not fit its format: {where[:80]} breaks the rule {rule[:120]}.")


def _without_later_fields(data: dict[str, Any]) -> dict[str, Any]:
    """What is known here of a pack of a later minor version; a prior in it is left out with what it brings along."""
    known = _known(Pack, data)
    known.pop("prior", None)
    known["version"] = _known(PackedVersion, data["version"])
    known["experiences"] = [_known(PackedExperience, e) for e in data["experiences"]]
    for experience in known["experiences"]:
        if experience["provenance"] is not None:
            experience["provenance"] = _known(Provenance, experience["provenance"])
    return known


def _known(record: type[Record], data: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if name in record.model_fields}
