"""The life of one lesson: what it said and when, what it earned, where it is, who was given it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from core.experience import Experience
from core.workspace import Workspace
from core.workspace.dossier import Brought, Dossier, Earning
from core.workspace.provenance import Origin, Said
from core.workspace.reviewing import Reviewing
from core.workspace.shelving import Given, LibraryPages
from pages.parts import charts, evidence, frame, paging, proposals, safe, session, words
from pages.parts.events import when
from pages.parts.safe import Markup, joined, markup

STATES = 10
EARNINGS = 10
FEW = 5
"""Uses with a contrast; fewer say little."""
BEFORE = "given_before"
DECIDED = {"made": "proposed", "undone": "decision taken back", "set_aside": "set aside"}


# --- what it said ---


def history(found: Dossier) -> None:
    """Every state, the newest first, as what changed against the one before; states that only earned are a line."""
    states = found.history
    frame.section("History", f"{words.plural(len(states), 'state')}, the newest first; nothing is erased")
    first = paging.offset("lesson_states", len(states), STATES)
    pairs = list(zip([None, *states[:-1]], states, strict=True))[::-1]
    for before, said in pairs[first : first + STATES]:
        _state(before, said)


def _state(before: Said | None, said: Said) -> None:
    state = said.state
    to = f" to {said.to_version - 1}" if said.to_version is not None else " until now"
    safe.html(
        '<div class="w-chips w-state"><b>Version {start}{to}</b>{status}<span class="w-note">{who}, {when}: {message}'
        "</span></div>",
        start=said.from_version,
        to=to if said.to_version is None or said.to_version - 1 > said.from_version else "",
        status=frame.chip(state.status, "good" if state.status == "live" else "bad"),
        who=said.author,
        when=when(said.created_at),
        message=safe.short(said.message, 120),
    )
    if before is None:
        safe.exact(state.text, key=f"state_{said.from_version}", look="diff")
        return
    was = before.state
    if state.text != was.text:
        safe.html(
            '<div class="w-exact diff" dir="auto">{diff}</div>', diff=safe.word_diff(was.text, state.text)
        )
        safe.warn_hidden(state.text)
    if told := _what_else(was, state):
        frame.note(told)


def _what_else(was: Experience, now: Experience) -> str:
    told = [
        f"{name}: {old} becomes {new}"
        for name, old, new in (
            ("kind", words.KIND[was.kind], words.KIND[now.kind]),
            ("domain", was.domain, now.domain),
            ("confidence", f"{was.confidence:.2f}", f"{now.confidence:.2f}"),
            ("uses", was.uses, now.uses),
            ("wins", was.wins, now.wins),
        )
        if old != new
    ]
    if now.merged_into and now.merged_into != was.merged_into:
        told.append(f"merged into {now.merged_into}")
    return "; ".join(told)


# --- where it came from ---


def origin(found: Dossier, ws: Workspace) -> None:
    """The proposals that made it what it is, the newest first, with what stands behind the newest of them."""
    frame.section("Where it came from")
    if not found.origins:
        frame.note("No proposal is recorded for it.")
    for n, one in enumerate(found.origins):
        if frame.card(one.proposal.id, proposals.summary(one.proposal), f"Open proposal {one.proposal.id}"):
            frame.go("pages/review/review.py", id=one.proposal.id)
        _decided(one)
        if one.outdated:
            evidence.outdated(Reviewing(ws.store).outdated(one.proposal))
        if n == 0:
            _behind(one, ws)
    for brought in found.imported:
        _brought(brought)


def _decided(one: Origin) -> None:
    lines = joined(
        markup(
            "<li><b>{what}</b> by {who}, {when}{why}</li>",
            what=DECIDED.get(d.kind, d.kind),
            who=d.actor,
            when=when(d.at),
            why=f": {d.reason}" if d.reason else "",
        )
        for d in one.decisions[-6:]
    )
    run = (
        markup(
            "<li>drawn from run <b>{run}</b> of {model}, on version {version}</li>",
            run=one.run.id,
            model=one.run.model,
            version=one.run.library_version,
        )
        if one.run
        else Markup()
    )
    safe.html('<ul class="w-decisions">{run}{lines}</ul>', run=run, lines=lines)


def _behind(one: Origin, ws: Workspace) -> None:
    reading = Reviewing(ws.store)
    proposals.counts(one.proposal)
    evidence.strips(one.proposal, reading)
    evidence.quotes(one.proposal, ws, reading)
    if one.gone:
        frame.note(f"No longer kept: {', '.join(one.gone[:8])}{' …' if len(one.gone) > 8 else ''}")
    if one.proposal.rationale:
        with st.expander("Rationale"):
            safe.exact(one.proposal.rationale, key="lesson_rationale", look="prose")


def _brought(one: Brought) -> None:
    whose = f"{one.name}, version {one.version}" if one.name else one.source
    claims = ", ".join(f"{name} {value}" for name, value in one.claimed.items() if value not in (None, "", 0))
    frame.facts(
        [
            ("Said by" if one.joined else "Imported from", whose),
            ("File", f"{one.source} ({one.form}), SHA-256 {one.sha256[:16]}…"),
            ("There", one.their_id or one.place),
            ("By", f"{one.actor}, {when(one.imported_at)}"),
            *([("Claimed there, not taken over", claims)] if claims else []),
        ]
    )


# --- what it earned ---


def earned(found: Dossier, head: int) -> None:
    now, e = found.experience, found.earned
    frame.section("Use")
    frame.stats(
        [(f"{now.confidence:.2f}", "confidence"), (f"{now.uses:,}", "uses"), (f"{now.wins:,}", "wins")]
    )
    decided = e.wins + e.losses
    if e.uses:
        safe.html(
            '<div class="w-versus"><i class="up" style="flex:{wins}">▲ {wins} better</i>'
            '<i class="none" style="flex:{undecided}">{undecided} untold</i>'
            '<i class="down" style="flex:{losses}">▼ {losses} worse</i></div>',
            wins=e.wins,
            losses=e.losses,
            undecided=e.undecided,
        )
        frame.note(
            f"{words.plural(e.followers, 'rollout')} followed it, {e.others:,} of their siblings did not, "
            f"in {words.plural(e.uses, 'contrast')}."
        )
    chips = []
    if decided < FEW:
        chips.append(frame.chip(f"small sample: {words.plural(decided, 'decided contrast')}", "accent"))
    if e.in_sample:
        chips.append(frame.chip(f"{e.in_sample} on tasks that it was learned from: no proof", "quiet"))
    if e.pending:
        chips.append(
            frame.chip(
                f"{words.plural(e.pending, 'use')} pending: {found.pending.confidence:.2f} next", "accent"
            )
        )
    if chips:
        safe.html('<div class="w-chips">{chips}</div>', chips=joined(chips))
    over_time(found.history, head)
    _earnings(found.earnings)


def over_time(states: Sequence[Said], head: int) -> None:
    """Confidence by version, as steps."""
    if len({s.state.confidence for s in states}) < 2:
        return
    import plotly.graph_objects as go

    last = states[-1]
    x = [s.from_version for s in states] + ([head] if last.from_version < head else [])
    y = [round(s.state.confidence, 4) for s in states]
    told = [f"{s.state.uses} uses, {s.state.wins} wins" for s in states]
    more = [-1] if last.from_version < head else []
    figure = go.Figure(
        go.Scatter(
            x=x,
            y=y + [y[i] for i in more],
            customdata=told + [told[i] for i in more],
            mode="lines+markers",
            line={"shape": "hv", "color": charts.GRAIN, "width": 2},
            marker={"size": 6},
            hovertemplate="version %{x}: %{y:.2f}<br>%{customdata}<extra></extra>",
        )
    )
    charts.frame(figure, 190)
    figure.update_xaxes(title="Version", dtick=1 if len(states) < 8 else None, tickformat="d")
    figure.update_yaxes(title="Confidence", range=[0, 1])
    charts.draw(figure, "lesson_confidence", f"Confidence by version: {y[0]:.2f} at first, {y[-1]:.2f} now")


def _earnings(earnings: Sequence[Earning]) -> None:
    used = [e for e in earnings if e.followers][::-1]
    if not used:
        return
    with st.expander(f"Contrasts, {len(used):d}"):
        first = paging.offset("lesson_uses", len(used), EARNINGS)
        rows = joined(_earning(e) for e in used[first : first + EARNINGS])
        safe.html(
            '<div class="w-scroll"><table class="w-table"><tr><th>Group or log</th><th>Followers</th>'
            '<th class="num">followed</th><th class="num">did not</th><th>Counted</th></tr>{rows}</table></div>',
            rows=rows,
        )


def _earning(e: Earning) -> Markup:
    tone = {True: ("▲ better", "good"), False: ("▼ worse", "bad"), None: ("untold", "quiet")}[e.better]
    return markup(
        '<tr><td><b>{source}</b>{own}</td><td>{chip}</td><td class="num">{n}</td><td class="num">{m}</td>'
        "<td>{counted}</td></tr>",
        source=e.source,
        own=markup(" {chip}", chip=frame.chip("in-sample", "quiet")) if e.in_sample else Markup(),
        chip=frame.chip(*tone),
        n=e.followers,
        m=e.others,
        counted="pending" if e.folded_in is None else f"in version {e.folded_in}",
    )


# --- where it is ---


def held_by(found: Dossier) -> None:
    """The versions and labels that hold it."""
    frame.section("In versions")
    if not found.live_in:
        frame.note("No version ever held it.")
    for n, span in enumerate(found.live_in):
        last = "now" if span.to_version is None else f"{span.to_version - 1}"
        content = markup(
            '<div class="w-chips"><b>{start} to {last}</b>{labels}</div>',
            start=span.from_version,
            last=last,
            labels=joined(frame.chip(label, "accent") for label in span.labels),
        )
        frame.way(
            f"span_{n}",
            content,
            f"Version {span.from_version}",
            "pages/review/versions.py",
            id=str(span.from_version),
        )


def waiting(found: Dossier) -> None:
    """What is proposed about it."""
    if not found.waiting:
        return
    frame.section("Proposed about it", "not published yet")
    for proposal in found.waiting[:6]:
        if frame.card(f"waiting_{proposal.id}", proposals.summary(proposal), f"Open {proposal.id}"):
            frame.go("pages/review/review.py", id=proposal.id)
    if len(found.waiting) > 6:
        frame.note(f"and {len(found.waiting) - 6:,} more in the review")


def given(pages: LibraryPages, experience_id: str) -> None:
    """Rollouts that had it in their prompt; a bounded look back, which goes on where it stopped."""
    asked = session.asked(BEFORE)
    start = int(asked) if asked.isdecimal() and len(asked) < 16 else None
    page = pages.given(experience_id, before=start)
    frame.section("Given to", "rollouts that had it in their prompt, the newest first")
    if page.rollouts:
        for one in page.rollouts:
            frame.way(f"given_{one.id}", _given(one), f"Open {one.id}", "pages/learn/rollout.py", id=one.id)
    else:
        where = "the newest" if start is None else "the next"
        frame.note(
            f"None among {where} {page.looked:,} rollouts." if page.before else "No rollout was given it."
        )
    with st.container(horizontal=True):
        if start is not None:
            st.button("From the newest", key="given_first", type="tertiary", on_click=_look_from, args=("",))
        if page.before:
            st.button(
                "Look further back",
                key="given_further",
                type="tertiary",
                icon=":material/arrow_forward:",
                on_click=_look_from,
                args=(str(page.before),),
            )


def _look_from(place: str) -> None:
    if place:
        st.query_params[BEFORE] = place
    elif BEFORE in st.query_params:
        del st.query_params[BEFORE]


def _given(one: Given) -> Markup:
    cited = {True: frame.chip("followed it", "good"), False: frame.chip("did not", "quiet"), None: Markup()}
    return markup(
        '<div class="w-strip"><span class="id">{id}</span><span class="w-chips">{cited}</span>'
        '<span class="end">{label} · reward {reward}{signed}</span></div>',
        id=one.id,
        cited=cited[one.cited],
        label=one.label,
        reward=words.number(one.reward),
        signed="" if one.advantage is None else f", A {one.advantage:+.2f}",
    )
