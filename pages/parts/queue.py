"""The rail of the review: which proposals are meant, how far one is, and who is looking at what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime

import streamlit as st

from core.errors import WinnowError
from core.experience import KINDS, MAX_WORDS, Proposal, text_of
from core.workspace import Workspace, count_words
from core.workspace.reviewing import Claim, Order, Reviewing, Sieve
from pages.parts import deciding, frame, measured_beside, paging, proposals, safe, session, words
from pages.parts.safe import Markup, joined, markup

RAIL = 12
QUEUES = {
    "Waiting": ("proposed", "deferred"),
    "Staged": ("approved",),
    "Rejected": ("rejected",),
    "Set aside": ("superseded", "quarantined"),
    "Published": ("published",),
}
WAITING = "Waiting"
ORDERS: dict[Order, str] = {
    "evidence": "strongest evidence",
    "newest": "newest first",
    "confidence": "confidence",
    "target": "lesson it changes",
    "effect": "measured effect",
    "uncertainty": "least certain",
}
OPERATIONS = {"add": "add", "modify": "change", "delete": "delete", "merge": "merge"}
STANDS = {"approved": "staged", "deferred": "put off", "superseded": "another took its place, set aside"}
LOOKED_THROUGH = 50
"""So many proposals are tried for one that nobody holds; that many people do not review at once."""
LEASE_MINUTES = 5.0
"""A claim of somebody who closed the page ends after so long; an open page renews it."""
FILTERS = ("review_op", "review_domain", "review_kind", "review_extractor", "review_run")


@dataclass(frozen=True)
class Queue:
    """What is looked through."""

    name: str
    sieve: Sieve
    order: Order

    @property
    def waiting(self) -> bool:
        return self.name == WAITING


def switch(counts: Mapping[str, int], quarantined: int) -> str:
    """The queues with their counts; gives the one that is chosen."""
    numbers = {queue: sum(counts.get(s, 0) for s in statuses) for queue, statuses in QUEUES.items()}
    numbers["Set aside"] += quarantined
    counted("review_queue", list(numbers.values()))
    chosen = st.segmented_control(
        "Queue",
        list(QUEUES),
        default=WAITING,
        required=True,
        key="review_queue",
        label_visibility="collapsed",
        wrap=True,
        bind="query-params",
    )
    return chosen or WAITING


def counted(key: str, numbers: Sequence[int]) -> None:
    """Write a number beside each option of a segmented control.

    By style, and not in the labels: those stand in the address, which must mean the same when the numbers changed.
    """
    rules = joined(
        markup('.st-key-{key} button:nth-of-type({i})::after {{ content: "{n}"; }}', key=key, i=i, n=f"{n:,}")
        for i, n in enumerate(numbers, 1)
    )
    safe.html("<style>{rules}</style>", rules=rules)


def filters(name: str, reading: Reviewing) -> Queue:
    """The filters of the rail, each kept in the address."""
    search = st.text_input(
        "Search",
        key="review_search",
        bind="query-params",
        label_visibility="collapsed",
        placeholder="Words, or an id such as E-0007",
        icon=":material/search:",
        max_chars=200,
    )
    found = reading.queue.values(QUEUES[name])
    active = sum(bool(session.get(key)) for key in FILTERS)
    with st.container(horizontal=True, key="review_filters", gap="small"):
        with st.popover(
            safe.label(f"Filters {active}" if active else "Filters"), icon=":material/tune:", type="tertiary"
        ):
            op = _choice("Operation", "review_op", list(OPERATIONS))
            domain = _choice("Domain", "review_domain", found["domain"])
            kind = _choice("Kind", "review_kind", list(KINDS))
            extractor = _choice("Drawn by", "review_extractor", list(words.EXTRACTOR))
            run = _choice("Run", "review_run", found["run_id"])
            if active:
                st.button("Clear the filters", key="review_clear", on_click=clear)
        order = st.selectbox(
            "Order",
            list(ORDERS),
            key="review_order",
            bind="query-params",
            format_func=lambda o: ORDERS[o],
            label_visibility="collapsed",
            width=190,
        )
    sieve = Sieve(
        statuses=QUEUES[name],
        op=op,
        domain=domain,
        kind=kind,
        extractor=extractor,
        run_id=run,
        search=(search or "").strip(),
    )
    return Queue(name, sieve, order or "evidence")


def clear() -> None:
    for key in (*FILTERS, "review_search"):
        session.put(key, "")


def _choice(label: str, key: str, options: Sequence[str]) -> str:
    chosen = st.selectbox(
        safe.label(label),
        ["", *options],
        key=key,
        bind="query-params",
        format_func=lambda o: o.replace("_", " ") if o else "all",
    )
    return chosen or ""


def filtered(queue: Queue) -> bool:
    s = queue.sieve
    return any((s.op, s.domain, s.kind, s.extractor, s.run_id, s.search))


# --- whose turn it is ---


def next_free(ws: Workspace, reading: Reviewing, queue: Queue, holders: Mapping[str, str]) -> str:
    """Claim the next proposal that nobody else looks at: the one that was to follow, mine, then the first.

    Empty where there is none: all are decided, or others hold what is left.
    """
    me = session.me()
    found, _ = reading.queue.page(queue.sieve, order=queue.order, limit=LOOKED_THROUGH)
    ids = [p.id for p in found]
    wanted = str(session.get(deciding.CURRENT, "") or "")
    if wanted and wanted not in ids and reading.queue.place(queue.sieve, wanted) is None:
        wanted = ""
    mine = [i for i in ids if holders.get(i) == me]
    for proposal_id in dict.fromkeys([*filter(None, [wanted]), *mine, *ids]):
        if holders.get(proposal_id, me) != me:
            continue
        try:
            ws.review.claim(proposal_id, me, minutes=LEASE_MINUTES)
        except WinnowError:
            continue  # somebody was quicker: the next one
        session.put(deciding.CURRENT, proposal_id)
        return proposal_id
    return ""


def hold(ws: Workspace, item: Proposal, holders: Mapping[str, str]) -> None:
    """Claim what is looked at, if it is free, and give back what was looked at before."""
    me, before = session.me(), str(session.get(deciding.CURRENT, "") or "")
    if before not in ("", item.id) and holders.get(before) == me:
        ws.review.release(before, me)
    session.put(deciding.CURRENT, item.id)
    if item.status in QUEUES[WAITING] and holders.get(item.id, me) == me:
        with suppress(WinnowError):  # somebody was quicker: the page says who
            ws.review.claim(item.id, me, minutes=LEASE_MINUTES)


# --- drawing ---


def progress(total: int) -> None:
    """How far this session is: decided, and what is left."""
    done = len(deciding.decided())
    safe.html(
        '<div class="w-so-far"><span class="track"><i class="w-grain-fill" style="width:{share}%"></i></span>'
        "<span>{done} of {all} decided in this session</span></div>",
        share=f"{100 * done / (done + total) if done + total else 0:.1f}",
        done=f"{done:,}",
        all=f"{done + total:,}",
    )


def rail(
    ws: Workspace, reading: Reviewing, queue: Queue, item_id: str, claims: Mapping[str, Claim], total: int
) -> None:
    """One page of the queue as cards."""
    measured_beside.order_note(queue.order)
    cards = st.container(key="review_cards")
    first = paging.offset("review_page", total, RAIL)
    shown, _ = reading.queue.page(queue.sieve, order=queue.order, limit=RAIL, offset=first)
    moved = reading.moved(shown)
    chips = measured_beside.chips(ws, [p.id for p in shown])
    for proposal_id in reading.outdated_among(shown):
        chip = frame.chip("rewards changed", "bad")
        chips[proposal_id] = joined([chips[proposal_id], markup(" "), chip]) if proposal_id in chips else chip
    with cards:
        _cards(shown, moved, item_id, claims, chips)
    if queue.waiting:
        measured_beside.together(ws, [p.id for p in shown])


def _cards(
    shown: Sequence[Proposal],
    moved: Mapping[str, str],
    item_id: str,
    claims: Mapping[str, Claim],
    chips: Mapping[str, Markup],
) -> None:
    for proposal in shown:
        with st.container(key=f"rail_{proposal.id}"):
            effect = chips.get(proposal.id, Markup())
            notes = _notes(proposal, moved.get(proposal.id, ""), claims.get(proposal.id), effect)
            if frame.card(
                proposal.id,
                proposals.summary(proposal, notes),
                f"Show {proposal.id}",
                current=proposal.id == item_id,
            ):
                deciding.show(proposal.id)
                st.rerun()


def _notes(proposal: Proposal, moved: str, claim: Claim | None, effect: Markup) -> Markup:
    found = [effect] if effect else []
    if claim and claim.holder != session.me():
        found.append(frame.chip(f"held by {claim.holder} until {at(claim.until)}", "accent"))
    if moved:
        found.append(frame.chip("stale", "bad"))
    text = text_of(proposal.effective)
    if text and proposal.status in QUEUES[WAITING] and (n := count_words(text)) > MAX_WORDS:
        found.append(frame.chip(f"{n} words", "bad"))
    if deciding.has_draft(proposal):
        found.append(frame.chip("your draft", ""))
    return joined(markup(" {chip}", chip=chip) for chip in found)


def at(utc: str) -> str:
    """The time of day of a UTC time: `10:32`."""
    return utc[11:16] + " UTC" if len(utc) > 16 else utc


def ago(then: str, now: str) -> str:
    """How long ago something was, in words."""
    try:
        seconds = int((datetime.fromisoformat(now) - datetime.fromisoformat(then)).total_seconds())
    except ValueError:
        return then
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "min")):
        if seconds >= size:
            n = seconds // size
            return f"{n} {unit}{'s' if n > 1 and unit != 'min' else ''} ago"
    return "just now"


def standing(ws: Workspace, item: Proposal, held_by: str, until: str) -> None:
    """Who has it, or who decided on it and when: what is decided cannot be overwritten, only undone."""
    if held_by and item.status in QUEUES[WAITING]:
        with st.container(horizontal=True, vertical_alignment="center", key="review_held"):
            safe.html(
                '<div class="w-warn">Held by {who} until {until}: they are looking at it now.</div>',
                who=held_by,
                until=at(until),
            )
            st.button("Take it over", key="take_over", on_click=deciding.take_over, args=(ws, item.id))
    if not item.decided_by or item.status == "proposed":
        return
    who = "you" if item.decided_by == session.me() else item.decided_by
    safe.html(
        '<div class="w-decided {tone}"><b>{what} by {who}</b> <span title="{when}">{ago}</span>{why}</div>',
        tone="bad"
        if item.status == "rejected"
        else "good"
        if item.status in ("approved", "published")
        else "",
        what=STANDS.get(item.status, item.status).capitalize(),
        who=who,
        when=item.decided_at or "",
        ago=ago(item.decided_at or "", ws.store.events.clock()),
        why=markup('<div class="why" dir="auto">{reason}</div>', reason=item.reason)
        if item.reason
        else Markup(),
    )
