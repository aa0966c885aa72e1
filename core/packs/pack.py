"""The experience pack: one zip of `pack.json`, `README.md`, `prompt.txt` and `SHA256SUMS`; with a token prior,
`logit_bias.json`, too.

The same content gives the same bytes on every machine: nothing in it depends on when or where it was written,
and the files are stored, not deflated, since two builds of zlib may deflate differently.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from core.errors import PackError
from core.experience import Experience, Extractor, Kind, Proposal, check_text
from core.packs import logit_bias
from core.packs.content import PackContent, check_strings, lessons_of
from core.packs.logit_bias import PackedPrior
from core.packs.prompt import prompt_text
from core.packs.readme import readme_text
from core.packs.redaction import without_homes
from core.record import Record, canonical_json

SCHEMA_VERSION = "1.0"
"""Major: a reader of another one refuses. Minor: fields were added that an older reader may ignore."""

WITH_PRIOR = "1.1"
"""Of a pack that holds a token prior."""

KNOWN = (SCHEMA_VERSION, WITH_PRIOR)

PACK_SCHEMA = Path(__file__).with_name("pack.schema.json")
"""The JSON Schema of `pack.json`, shipped with the project."""

MAX_TEXT = 10_000
"""Characters of a lesson, far above what 32 words take."""
MAX_EXPERIENCES = 10_000
MAX_PACK_BYTES = 32 * 2**20

FILES = ("pack.json", "README.md", "prompt.txt")
SUMS = "SHA256SUMS"

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time that a zip can name


class Provenance(Record):
    """Where a lesson's present text came from."""

    proposal_id: str
    extractor: Extractor
    evidence: str = ""
    """The counts in one line."""
    run_id: str | None = None
    group_ids: tuple[str, ...] = ()
    rollout_ids: tuple[str, ...] = ()
    reviewer: str | None = None
    version: int | None = None
    """The version that it was published in."""


class PackedExperience(Record):
    """One lesson as it is shipped."""

    id: str = Field(min_length=1, max_length=100)
    text: str = Field(max_length=MAX_TEXT)
    kind: Kind
    domain: str
    confidence: float = Field(ge=0.05, le=0.95)
    uses: int = Field(ge=0)
    wins: int = Field(ge=0)
    learned_on: str
    """The model that the evidence came from; using the lesson with another one should be said."""
    provenance: Provenance | None = None

    @field_validator("text")
    @classmethod
    def _checked(cls, value: str) -> str:
        return check_text(value)


class PackedVersion(Record):
    """The library version that was exported; without a time, so that equal histories give equal bytes."""

    number: int = Field(ge=0)
    author: str = ""
    """Empty where provenance was redacted, as is the message."""
    message: str = ""


class Pack(Record):
    """The content of `pack.json`."""

    schema_version: str = SCHEMA_VERSION
    winnow: str
    """Version of the program that wrote it."""
    name: str = Field(min_length=1, max_length=100)
    version: PackedVersion
    provenance: Literal["included", "redacted"]
    experiences: tuple[PackedExperience, ...] = Field(max_length=MAX_EXPERIENCES)
    prior: PackedPrior | None = None
    """From 1.1 on, and only where there is one."""

    @model_validator(mode="after")
    def _says_that_it_has_one(self) -> Self:
        if self.schema_version in KNOWN and (self.schema_version == WITH_PRIOR) != (self.prior is not None):
            raise ValueError(f"a token prior and the format {WITH_PRIOR} belong together")
        return self

    @model_validator(mode="after")
    def _redacted_is_redacted(self) -> Self:
        told = any(e.provenance for e in self.experiences) or self.version.author or self.version.message
        if self.provenance == "redacted" and told:
            raise ValueError("it says that its origin was left out, and tells it")
        return self

    def canonical(self) -> str:
        """The content of `pack.json`, without a field for the prior that is not there."""
        return canonical_json(self.model_dump(mode="json", exclude={"prior"} if self.prior is None else None))

    def as_experiences(self) -> tuple[Experience, ...]:
        """The lessons as records of the library, e.g. to render or to propose them."""
        fields = ("id", "text", "kind", "domain", "confidence", "uses", "wins", "learned_on")
        return tuple(Experience(**{f: getattr(e, f) for f in fields}) for e in self.experiences)


def make_pack(content: PackContent) -> Pack:
    """Put together what `pack.json` says.

    Raises:
        PackError: something cannot or must not be exported.
    """
    told = content.include_provenance
    version = content.version
    try:
        pack = Pack(
            schema_version=WITH_PRIOR if content.prior else SCHEMA_VERSION,
            winnow=content.winnow,
            name=content.name,
            version=PackedVersion(
                number=version.number,
                author=without_homes(version.author) if told else "",
                message=without_homes(version.message) if told else "",
            ),
            provenance="included" if told else "redacted",
            experiences=tuple(_packed(e, content) for e in lessons_of(content)),
            prior=logit_bias.packed(content.prior) if content.prior else None,
        )
    except ValidationError as e:
        first = e.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise PackError(f"This library cannot be packed: {where}: {first['msg']}.") from e
    check_strings(pack.model_dump(mode="json"), "The pack")
    return pack


def _packed(experience: Experience, content: PackContent) -> PackedExperience:
    proposal = content.proposals.get(experience.proposal_id or "")
    if content.include_provenance and experience.proposal_id and proposal is None:
        raise PackError(
            f"The origin of {experience.id} ({experience.proposal_id}) was not handed over; nothing was packed."
        )
    told = content.include_provenance and proposal is not None
    return PackedExperience(
        id=experience.id,
        text=experience.text,
        kind=experience.kind,
        domain=experience.domain,
        confidence=experience.confidence,
        uses=experience.uses,
        wins=experience.wins,
        learned_on=experience.learned_on,
        provenance=_provenance(proposal) if told and proposal else None,
    )


def _provenance(proposal: Proposal) -> Provenance:
    return Provenance(
        proposal_id=proposal.id,
        extractor=proposal.extractor,
        evidence=without_homes(proposal.evidence.sentence),
        run_id=proposal.run_id,
        group_ids=proposal.evidence.group_ids,
        rollout_ids=proposal.evidence.rollout_ids,
        reviewer=without_homes(proposal.decided_by) if proposal.decided_by else None,
        version=proposal.published_in,
    )


def write_pack(pack: Pack) -> bytes:
    """The zip of a pack. `write_pack(read_pack(data)) == data` for every pack that Winnow wrote."""
    contents = {
        "pack.json": pack.canonical().encode(),
        "README.md": readme_text(pack).encode(),
        "prompt.txt": prompt_text(pack.as_experiences()).encode(),
    }
    if pack.prior:
        contents[logit_bias.NAME] = logit_bias.write(pack.prior)
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in contents.items())
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name, data in (*contents.items(), (SUMS, sums.encode())):
            entry = zipfile.ZipInfo(name, date_time=_EPOCH)
            entry.create_system = 3  # as on Unix, also when written on Windows
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, data)
    return out.getvalue()


def build_pack(content: PackContent) -> bytes:
    """Export a library version as one zip, byte for byte the same for the same content.

    Raises:
        PackError: something cannot or must not be exported (NUL, an id twice, what looks like a secret).
    """
    data = write_pack(make_pack(content))
    if len(data) > MAX_PACK_BYTES:
        raise PackError(f"The pack would have {len(data)} bytes; at most {MAX_PACK_BYTES} can be read again.")
    return data


def pack_schema() -> dict[str, Any]:
    """The JSON Schema of `pack.json`, draft 2020-12."""
    schema: dict[str, Any] = json.loads(PACK_SCHEMA.read_text(encoding="utf-8"))
    return schema
