"""What came of looking at files of recorded rollouts: sums that add up, and whatever was guessed or left out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

import streamlit as st

from core.workspace.intake import ImportReport
from pages.parts import frame, safe, tables, tally, words
from pages.parts.safe import Markup, joined, markup

if TYPE_CHECKING:
    from core.workspace.intake import FileRead, RewardSaid

BY = {
    "nobody": ("not said", "bad"),
    "guess": ("a guess", "accent"),
    "user": ("your choice", "good"),
    "format": ("by definition", "good"),
}
"""Who says which score is the reward; what waits for a word comes first."""
MASKED = {
    "key": "keys and tokens",
    "private key": "private keys",
    "password": "passwords",
    "e-mail": "e-mail addresses",
}
SHOWN = 30
_TERMINAL = re.compile(r"(?:(?<=[.;])|^) ?(?:say )?--[a-z][^.]*\.?$")
"""What the core tells those at a command line, at the end of a sentence."""


def sums(report: ImportReport) -> None:
    """Attempts = scored + unscored + errors + what is left out."""
    frame.section("What would come in", _listed(report.formats))
    tally.stacked(
        "attempt",
        report.attempts,
        (
            ("scored", report.scored, "w-grain-fill"),
            ("unscored", report.unscored, "w-wait-fill"),
            ("infrastructure errors", report.errors, "w-bad-fill"),
            ("here already", report.known, "w-chaff-fill"),
            ("repeated", report.duplicates, "w-chaff-fill"),
            ("in conflict", report.conflicts, "w-bad-fill"),
            ("of sub-agents", report.children, "w-chaff-fill"),
        ),
    )
    usage = report.usage
    tokens = usage.prompt_tokens + usage.completion_tokens
    frame.stats(
        [
            (f"{report.tasks:,}", "task" if report.tasks == 1 else "tasks"),
            (f"{report.groups:,}", "group" if report.groups == 1 else "groups"),
            (f"{report.informative:,}", "informative"),
            (f"{report.steps.total:,}", "tool calls"),
            (f"{tokens:,}", "tokens"),
            *([(words.money(usage.cost_usd), "spent")] if usage.cost_usd else []),
            *([(f"{n:,}", "went on since")] if (n := report.went_on - report.retried) else []),
            *([(f"{report.retried:,}", "broken off, now with a result")] if report.retried else []),
            *([(f"{report.regraded:,}", "known with another reward")] if report.regraded else []),
        ]
    )


def said(report: ImportReport) -> None:
    """What is the reward, how attempts were grouped, what was masked: each with who says so."""
    notes = [*_rewards(report.rewards), *_grouping(report), *_masked(report.masked), *_others(report)]
    safe.html('<ul class="w-notes">{notes}</ul>', notes=joined(markup("<li>{n}</li>", n=n) for n in notes))


def _rewards(found: Sequence[RewardSaid]) -> Iterator[Markup]:
    """What formats define is one line, after what waits for a word."""
    defined = [each for each in found if each.by == "format" and each.score is not None]
    told = sorted((each for each in found if each not in defined), key=lambda each: list(BY).index(each.by))
    for each in told[:SHOWN]:
        yield markup("{by} {text}", by=frame.chip(*BY[each.by]), text=_reward(each))
    if len(told) > SHOWN:
        yield markup("{n} more sorts of attempts", n=f"{len(told) - SHOWN:,}")
    if defined:
        yield markup("{by} {text}", by=frame.chip(*BY["format"]), text=_defined(defined))


def _defined(found: Sequence[RewardSaid]) -> str:
    """For example: The reward is “reward” of tau-bench results (airline), Harbor trial; “total” of TRL completions."""
    of: dict[str, list[str]] = {}
    for each in found:
        of.setdefault(str(each.score), []).append(_what(each))
    listed = (
        f"“{score}” of {', '.join(what[:SHOWN])}"
        + (f" and {len(what) - SHOWN:,} more" if len(what) > SHOWN else "")
        for score, what in of.items()
    )
    return f"The reward is {'; '.join(listed)}."


def _what(each: RewardSaid) -> str:
    return each.format + (f" ({each.namespace})" if each.namespace else "")


def _reward(each: RewardSaid) -> str:
    what = _what(each)
    minus = " Less of it is better: the reward is minus the score." if each.lower_is_better else ""
    if each.format == "all" or (each.score is None and each.by != "nobody"):
        return each.sentence
    if each.score is not None:
        why = " It is the only score." if each.by == "guess" else ""
        return f"{what}: the reward is “{each.score}”.{why}{minus}"
    if len(each.candidates) > 1:
        names = ", ".join(each.candidates[:SHOWN])
        return (
            f"{what}: which score is the reward? {names}. Choose below; until then the attempts are unscored."
        )
    if each.candidates:
        return f"{what}: less of “{each.candidates[0]}” seems better, so it is not taken unasked. Choose it below."
    return f"{what}: no score has a number, so the attempts are unscored. Give rewards in a file of their own below."


def _grouping(report: ImportReport) -> Iterator[Markup]:
    if report.group_sizes:
        sizes = ", ".join(
            f"{n:,} with {words.plural(size, 'attempt')}" for size, n in list(report.group_sizes.items())[:12]
        )
        more = f", and {len(report.group_sizes) - 12} more sizes" if len(report.group_sizes) > 12 else ""
        grown = f"; {report.groups_grown:,} are here and grow" if report.groups_grown else ""
        yield markup("Groups: {sizes}", sizes=f"{sizes}{more}{grown}.")
    for sentence in report.grouping:
        if kept := _TERMINAL.sub("", sentence).strip():
            yield markup("{s}", s=kept)


def _masked(counts: Mapping[str, int]) -> Iterator[Markup]:
    if counts:
        listed = ", ".join(f"{MASKED.get(kind, kind)}: {n:,}" for kind, n in counts.items())
        yield markup("Masked: {listed}.", listed=listed)


def _others(report: ImportReport) -> Iterator[Markup]:
    if report.verified:
        n = words.plural(report.verified, "attempt")
        yield markup("{n} without a reward would go to the verifier of the task at the import.", n=n)
    for sentence in report.splits:
        yield markup("{s}", s=sentence)
    if report.moved:
        n = words.plural(len(report.moved), "task")
        yield markup("{n} would go to another split, because a task here asks the same.", n=n)
    if unread := sum(map(_unread, report.files)):
        least = "At least " if report.files_found > len(report.files) else ""
        n = f"{least}{words.plural(unread, 'file')}"
        yield markup("{n} could not be read as rollouts; the list of files below says why.", n=n)
    if report.set_aside_total:
        n = words.plural(report.set_aside_total, "record")
        yield markup("{n} could not be read and would be set aside.", n=n)


def details(report: ImportReport) -> None:
    """Files, scores, tool calls, models; what was not understood; what is set aside."""
    files, scores, steps, noted, aside = st.tabs(
        [
            safe.label(f"Files · {report.files_found:,}"),
            safe.label(f"Scores · {len(report.scores):,}"),
            "Tool calls and models",
            safe.label(f"Not understood · {len(report.remarks):,}"),
            safe.label(f"Set aside · {report.set_aside_total:,}"),
        ],
        key="rollouts_tabs",
    )
    with files:
        _files(report)
    with scores:
        _scores(report)
    with steps:
        _steps(report)
    with noted:
        _noted(report)
    with aside:
        _aside(report)


def _unread(file: FileRead) -> bool:
    return file.became in ("skipped", "not read")


def _files(report: ImportReport) -> None:
    """What could not be read comes first."""
    rows = [
        {
            "File": safe.short(file.name, 200),
            "Became": file.became,
            "Format": file.format,
            "Attempts": file.attempts,
            "Why": safe.short(file.reason, 300),
        }
        for file in sorted(report.files, key=lambda file: not _unread(file))
    ]
    st.dataframe(rows, hide_index=True, key="rollouts_files", lazy=False)
    _more(len(report.files), report.files_found)


def _scores(report: ImportReport) -> None:
    if not report.scores:
        frame.note("The files hold no scores.")
        return
    rows = [
        {
            "Score": safe.short(seen.name, 100),
            "Numbers": seen.numbers,
            "Least": seen.least,
            "Most": seen.most,
            "Read from words": seen.words,
            "No number": seen.unread,
            "Less seems better": seen.lower_is_better,
            "Format": seen.format,
        }
        for seen in report.scores
    ]
    st.dataframe(rows, hide_index=True, key="rollouts_scores", lazy=False)


def _steps(report: ImportReport) -> None:
    steps = report.steps
    tally.stacked(
        "tool call",
        steps.total,
        (
            ("succeeded", steps.succeeded, "w-grain-fill"),
            ("failed", steps.failed, "w-bad-fill"),
            ("without a result", steps.no_result, "w-wait-fill"),
            ("not known", steps.unknown, "w-chaff-fill"),
        ),
    )
    if steps.orphans:
        frame.note(f"Results without a call: {steps.orphans:,}; they stay in the messages.")
    usage = report.usage
    frame.facts(
        [
            ("Models", _listed(report.models) or "none is named"),
            ("Agents", _listed(report.agents) or "none is named"),
            ("Model calls", f"{usage.calls:,}"),
            ("Tokens", f"{usage.prompt_tokens:,} read, {usage.completion_tokens:,} written"),
        ]
    )


def _noted(report: ImportReport) -> None:
    if not report.remarks:
        frame.note("All of the files was understood.")
        return
    lines = (
        markup(
            "<li>{text}{times}</li>",
            text=_TERMINAL.sub("", each.text),
            times=f" ({each.count:,} times)" if each.count > 1 else "",
        )
        for each in report.remarks
    )
    safe.html('<ul class="w-notes">{lines}</ul>', lines=joined(lines))


def _aside(report: ImportReport) -> None:
    if not report.set_aside:
        frame.note("Every record could be read.")
        return
    frame.note("Each with its file, its place and the reason; they stop nothing else.")
    st.download_button(
        "Download as CSV",
        lambda: tables.csv_of(report.set_aside),
        "set-aside.csv",
        "text/csv",
        key="rollouts_aside_csv",
        icon=":material/download:",
        on_click="ignore",
    )
    tables.rejected(report.set_aside, key="rollouts_aside", sources=[row.source for row in report.set_aside])
    _more(len(report.set_aside), report.set_aside_total)


def _more(shown: int, total: int) -> None:
    if total > shown:
        frame.note(f"The first {shown:,} of {total:,}.")


def _listed(counts: Mapping[str, int]) -> str:
    named = [f"{safe.short(name, 60) or 'not named'} {n:,}" for name, n in list(counts.items())[:8]]
    return ", ".join(named) + (f" and {len(counts) - 8} more" if len(counts) > 8 else "")
