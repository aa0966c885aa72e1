"""Why a proposal should be believed: its groups rollout by rollout, its counts, the step it points at, its rivals."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.experience import Delete, Proposal
from core.rollout import Step
from core.workspace import Workspace
from core.workspace.reviewing import Dot, Reviewing
from pages.parts import deciding, events, frame, proposals, safe, words
from pages.parts.safe import Markup, joined, markup

STRIPS = 5
FEW_ROLLOUTS = 20
FEW_GROUPS = 3
SIGNIFICANT = 0.05
QUOTED = 2
LOGGED = 50
BIGGEST_BODY = 400_000
"""Bytes of a stored trajectory from which no step is quoted beside a proposal."""


def draw(proposal: Proposal, ws: Workspace, reading: Reviewing) -> None:
    frame.section("Evidence")
    flags(proposal)
    outdated(reading.outdated(proposal))
    proposals.counts(proposal)
    strips(proposal, reading)
    quotes(proposal, ws, reading)
    if proposal.rationale:
        frame.section("Rationale")
        safe.exact(proposal.rationale, key="rationale", look="prose")
    if proposal.raw_reply:
        with st.expander("The model's raw reply"):
            safe.exact(proposal.raw_reply, key="raw_reply")


def flags(proposal: Proposal) -> None:
    """What weakens the evidence, as chips."""
    found = proposal.evidence
    chips = []
    if found.findings:
        first = found.findings[0]
        n, groups = first.winners + first.losers, len(found.group_ids) or first.groups
        if n < FEW_ROLLOUTS or groups < FEW_GROUPS:
            chips.append(frame.chip(f"small sample: {n} rollouts, {words.plural(groups, 'group')}", "accent"))
        if (p := min(f.p_corrected for f in found.findings)) >= SIGNIFICANT:
            chips.append(frame.chip(f"could be chance: p = {p:.2f}", "bad"))
    elif found.group_ids:
        chips.append(frame.chip("nothing was counted", "quiet"))
    if chips:
        safe.html('<div class="w-chips">{chips}</div>', chips=joined(chips))


def outdated(told: str) -> None:
    """That rewards behind it changed since it was drawn, where they did."""
    if told:
        safe.html('<div class="w-warn">{told}</div>', told=told)


def strips(proposal: Proposal, reading: Reviewing) -> None:
    """One row a group, one dot a rollout, the best reward first; each row leads to its group."""
    ids = proposal.evidence.group_ids
    dots = reading.dots(ids[:STRIPS])
    if not dots:
        return
    frame.section("Groups", "● winner  ○ loser  – par  × unscored; the best reward first")
    for group_id, rollouts in dots.items():
        if frame.card(f"strip_{group_id}", _strip(group_id, rollouts), f"Open group {group_id}"):
            st.switch_page("pages/learn/group.py", query_params={"id": group_id})
    if len(ids) > STRIPS:
        frame.note(
            f"and {len(ids) - STRIPS} more groups: {', '.join(ids[STRIPS : STRIPS + 8])}"
            + (" …" if len(ids) > STRIPS + 8 else "")
        )


def _strip(group_id: str, rollouts: Sequence[Dot]) -> Markup:
    known = [r.reward for r in rollouts if r.reward is not None]
    return markup(
        '<div class="w-strip"><span class="id">{id}</span><span class="dots">{dots}</span>'
        '<span class="end">{mean}</span></div>',
        id=group_id,
        dots=joined(_dot(r) for r in rollouts),
        mean=f"mean {sum(known) / len(known):.2f}" if known else "unscored",
    )


def _dot(rollout: Dot) -> Markup:
    if rollout.reward is None:
        look, sign = "none", "×"
    elif rollout.advantage is None or rollout.advantage == 0:
        look, sign = "par", "–"
    else:
        look, sign = ("win", "●") if rollout.advantage > 0 else ("loss", "○")
    advantage = "" if rollout.advantage is None else f", advantage {rollout.advantage:+.2f}"
    return markup(
        '<i class="{look}" title="{id}: reward {reward}{advantage}">{sign}</i>',
        look=look,
        id=rollout.id,
        reward=words.number(rollout.reward),
        advantage=advantage,
        sign=sign,
    )


def quotes(proposal: Proposal, ws: Workspace, reading: Reviewing) -> None:
    """What a winner and a loser did: the step that the evidence points at, else the answer."""
    rows = reading.queue.examples(proposal.evidence.rollout_ids[:12])
    winner = next((r for r in rows if (r["advantage"] or 0) > 0), None)
    loser = next((r for r in rows if (r["advantage"] or 0) < 0), None)
    shown = [r for r in (winner, loser) if r] or rows[:QUOTED]
    if not shown:
        return
    frame.section("Examples", f"{len(proposal.evidence.rollout_ids)} named")
    for row in shown:
        number, step = _step_of(proposal, ws, row["id"]) if _readable(row) else (0, None)
        signed = "" if row["advantage"] is None else f", A {row['advantage']:+.2f}"
        content = markup(
            '<div class="top"><span class="id">{id}</span>{chip}<span class="end">reward {reward}{signed}</span></div>'
            '<div class="w-exact bare quote" dir="auto">{said}</div>',
            id=f"{row['id']}, step {number}" if step else row["id"],
            chip=frame.chip(*_side(row["advantage"])),
            reward=words.number(row["reward"]),
            signed=signed,
            said=_call(step) if step else safe.short(row["answer"], 220) or "(no answer)",
        )
        if frame.card(f"example_{row['id']}", content, f"Open rollout {row['id']}"):
            query = {"id": row["id"], **({"step": str(number)} if step else {})}
            st.switch_page("pages/learn/rollout.py", query_params=query)


def _readable(row: dict[str, object]) -> bool:
    return bool(row["steps"]) and int(str(row["bytes"] or 0)) < BIGGEST_BODY


def _side(advantage: float | None) -> tuple[str, str]:
    if not advantage:
        return ("par", "quiet") if advantage == 0 else ("not compared", "quiet")
    return ("winner", "good") if advantage > 0 else ("loser", "bad")


def _step_of(proposal: Proposal, ws: Workspace, rollout_id: str) -> tuple[int, Step | None]:
    """The step that it points at or whose tool the first finding names, else one that went wrong, else the first."""
    steps = ws.store.groups.rollout(rollout_id).trajectory.steps
    named = proposal.evidence.findings[0].feature if proposal.evidence.findings else ""
    numbered = list(enumerate(steps, 1))
    if 1 <= (at := proposal.evidence.steps.get(rollout_id, 0)) <= len(steps):
        return at, steps[at - 1]
    telling = [pair for pair in numbered if pair[1].tool and pair[1].tool in named]
    wrong = [pair for pair in numbered if pair[1].success is False or pair[1].error]
    return next(iter(telling or wrong or numbered), (0, None))


def _call(step: Step) -> str:
    """A step as one line: tool, parameters, and what came of it."""
    told = ", ".join(
        f"{name}={safe.short(str(value), 60)}" for name, value in list(step.parameters.items())[:6]
    )
    came = step.error or step.output
    how = "failed" if step.success is False or step.error else "gave"
    return safe.short(f"{step.tool}({told}) {how}: {safe.short(came, 120) or 'nothing'}", 320)


def conflicts(proposal: Proposal, rivals: Sequence[Proposal]) -> None:
    """Other proposals that change the same lesson: what is decided here settles them, too."""
    if not rivals:
        return
    deletes = isinstance(proposal.operation, Delete)
    frame.section("Conflicts", "they change the same lesson")
    staged = [p for p in rivals if p.status == "approved"]
    if staged:
        told = f"{staged[0].id} is staged already: publish or undo it before this one can be approved."
    elif deletes:
        told = "Once this delete is published, these have nothing to change any more."
    else:
        told = "Once this one is published, these are stale: they have to be rebased on the new text."
    safe.html('<div class="w-warn">{told}</div>', told=told)
    for other in rivals[:6]:
        with st.container(key=f"rival_{other.id}"):
            if frame.card(f"rival_{other.id}", proposals.summary(other), f"Show {other.id}"):
                deciding.show(other.id)
                st.rerun()


def origin(proposal: Proposal) -> None:
    """Who or what proposed it, and a way there."""
    frame.section("Origin")
    of = {"person": "written by hand", "pack": "an imported pack or library"}.get(
        proposal.extractor, words.EXTRACTOR[proposal.extractor]
    )
    frame.facts(
        [
            ("Drawn by", of),
            ("Run", f"{proposal.run_id}, epoch {proposal.epoch + 1}" if proposal.run_id else "none"),
            ("Model", proposal.learned_on or "not recorded"),
            ("Based on", f"version {proposal.base_version}"),
            ("Starts with confidence", f"{proposal.confidence:.2f}"),
        ]
    )
    if proposal.run_id and st.button(
        safe.label(f"Open run {proposal.run_id}"),
        key="to_run",
        type="tertiary",
        icon=":material/play_circle:",
    ):
        st.switch_page("pages/learn/run.py", query_params={"id": proposal.run_id})


def log(proposal: Proposal, ws: Workspace) -> None:
    """Every decision on it, the newest first."""
    entries = ws.store.events.newest(LOGGED, subject=proposal.id)
    if len(entries) < 2:
        return
    with st.expander(f"History, {len(entries):d} entries"):
        events.lines(entries)
