"""What differs between two libraries, as lines; the same for every command that shows it."""

from __future__ import annotations

from collections.abc import Sequence

from core.cli.desk import visible
from core.review import Difference, DomainTokens


def difference_lines(found: Sequence[Difference]) -> list[str]:
    """Exact texts, before and after, and what else changed of each experience."""
    if not found:
        return ["Nothing differs."]
    lines = []
    for d in found:
        by = f" ({d.proposal_id})" if d.proposal_id else ""
        lines.append(f"{d.experience_id}{by}{f': merged into {d.merged_into}' if d.merged_into else ''}")
        if d.before == d.after and d.before is not None:
            lines.append(f"    {visible(d.before)}")
        else:
            lines += [f"  - {visible(d.before)}"] if d.before is not None else []
            lines += [f"  + {visible(d.after)}"] if d.after is not None else []
        lines += [f"    {name}: {old} -> {new}" for name, (old, new) in d.fields.items()]
    return lines


def token_lines(whole: tuple[int, int], domains: Sequence[DomainTokens]) -> list[str]:
    """Estimated tokens of the injected text, before and after: of each domain, and of the whole library."""
    if not domains:
        return []
    lines = [f"  {one.domain}: {one.before:,} before, {one.after:,} after" for one in domains]
    before, after = whole
    return [
        "Injected for a task, about so many tokens by its domain:",
        *lines,
        f"  (the whole library: {before:,} before, {after:,} after)",
    ]
