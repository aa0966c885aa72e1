"""Packs and exports: a library version for others. One file a format; `EXPORTERS` lists them."""

from __future__ import annotations

from core.packs import agent_yaml, agents_md, csv_table, json_map, loader, playbook, prompt, skill_md
from core.packs.check import PackCheck, read_pack, verify_pack
from core.packs.content import Exporter, PackContent
from core.packs.foreign import ForeignLibrary
from core.packs.pack import PACK_SCHEMA, SCHEMA_VERSION, Pack, build_pack, pack_schema, write_pack
from core.packs.reading import READERS, read_library
from core.packs.redaction import Redaction
from core.packs.usage_log import Credit, UsageEntry, read_usage

EXPORTERS: dict[str, Exporter] = {
    exporter.name: exporter
    for exporter in (
        Exporter(
            "pack", ".zip", "one zip with lessons, origin, prompt and checksums", build_pack, tells="origin"
        ),
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
        Exporter(
            "loader",
            ".py",
            "winnow_lessons.py: injects by domain and budget where Winnow is not installed, logs usage",
            loader.write,
            tells="origin",
            fixed_name="winnow_lessons.py",
        ),
        Exporter("agent-yaml", ".yaml", "agent YAML as youtu-agent reads it", agent_yaml.write),
        Exporter("playbook", ".txt", "ACE playbook text", playbook.write, tells="facts"),
        Exporter("csv", ".csv", "a table for spreadsheets", csv_table.write, tells="facts"),
        Exporter("json", ".json", "a JSON object {id: text}", json_map.write),
    )
}

__all__ = [
    "EXPORTERS",
    "PACK_SCHEMA",
    "READERS",
    "SCHEMA_VERSION",
    "Credit",
    "Exporter",
    "ForeignLibrary",
    "Pack",
    "PackCheck",
    "PackContent",
    "Redaction",
    "UsageEntry",
    "build_pack",
    "pack_schema",
    "read_library",
    "read_pack",
    "read_usage",
    "verify_pack",
    "write_pack",
]
