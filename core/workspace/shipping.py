"""What goes out: a version of the library as a pack, a prompt, or a block for an agent's own files."""

from __future__ import annotations

import hashlib

from core.errors import InputError
from core.packs import EXPORTERS, PackContent
from core.record import Record
from core.store import Store


class Exported(Record):
    """One file that is ready to be shipped."""

    name: str
    """Suggested file name."""
    data: bytes
    sha256: str
    version: int
    experiences: int


class Shipping:
    """Exports of one workspace."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def forms(self) -> list[str]:
        """Names of the forms that a version can be exported in."""
        return list(EXPORTERS)

    def content(
        self, version: int | None = None, *, name: str = "winnow", provenance: bool = True
    ) -> PackContent:
        """What a version ships.

        Raises:
            NotFoundError: there is no such version.
            InputError: it has no live experience.
        """
        library = self._store.versions.library(version)
        if not len(library):
            raise InputError(
                f"Version {library.version} has no experiences, so there is nothing to ship; publish some first."
            )
        proposals = {
            e.id: self._store.proposals.get(e.proposal_id) for e in library if provenance and e.proposal_id
        }
        return PackContent(
            name=name,
            version=self._store.versions.get(library.version),
            experiences=tuple(library),
            proposals=proposals,
            include_provenance=provenance,
        )

    def export(
        self, form: str = "pack", version: int | None = None, *, name: str = "winnow", provenance: bool = True
    ) -> Exported:
        """One version in one form; the same version gives the same bytes.

        Raises:
            InputError: there is no such form, or nothing to ship.
            NotFoundError: there is no such version.
        """
        if form not in EXPORTERS:
            raise InputError(f"There is no export form {form!r}; there are: {', '.join(EXPORTERS)}.")
        content = self.content(version, name=name, provenance=provenance)
        exporter = EXPORTERS[form]
        data = exporter.write(content)
        return Exported(
            name=exporter.file_name(content),
            data=data,
            sha256=hashlib.sha256(data).hexdigest(),
            version=content.version.number,
            experiences=len(content.experiences),
        )

    def record(self, exported: Exported, actor: str, target: str) -> None:
        """Remember that a version was shipped."""
        with self._store.writing():
            self._store.events.append(
                actor, "pack.exported", str(exported.version), sha256=exported.sha256, target=target
            )
