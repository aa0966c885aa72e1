"""Packs and exports: a library version for others. One file a format; `EXPORTERS` lists them."""

from __future__ import annotations

from core.packs import agents_md, csv_table, json_map, prompt, skill_md
from core.packs.check import PackCheck, read_pack, verify_pack
from core.packs.content import Exporter, PackContent
from core.packs.pack import PACK_SCHEMA, SCHEMA_VERSION, Pack, build_pack, pack_schema, write_pack

EXPORTERS: dict[str, Exporter] = {
    exporter.name: exporter
    for exporter in (
        Exporter("pack", ".zip", "one zip with lessons, origin, prompt and checksums", build_pack),
        Exporter(
            "prompt", ".txt", "the text for a system prompt, as runs are injected with it", prompt.write
        ),
        Exporter(
            "agents-md",
            ".md",
            "a marked region in AGENTS.md, replaced in place",
            agents_md.write,
            place=agents_md.place,
            fixed_name="AGENTS.md",
        ),
        Exporter("skill", ".md", "SKILL.md with front matter", skill_md.write, fixed_name="SKILL.md"),
        Exporter("csv", ".csv", "a table for spreadsheets", csv_table.write),
        Exporter("json", ".json", "a JSON object {id: text}", json_map.write),
    )
}

__all__ = [
    "EXPORTERS",
    "PACK_SCHEMA",
    "SCHEMA_VERSION",
    "Exporter",
    "Pack",
    "PackCheck",
    "PackContent",
    "build_pack",
    "pack_schema",
    "read_pack",
    "verify_pack",
    "write_pack",
]
