"""The library as a list: its filters, which the address holds, and a dense row for each lesson."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import streamlit as st

from core.experience import KINDS, Experience
from core.workspace import Workspace
from core.workspace.shelving import Earnings, Hit, LibraryPages, Shelf, ShelfOrder, injected_tokens
from pages.parts import frame, safe, session, words
from pages.parts.safe import Markup, joined, markup

ORDERS: dict[ShelfOrder, str] = {
    "newest": "newest, or best match",
    "changed": "changed last",
    "confidence": "confidence",
    "uses": "uses",
    "wins": "wins",
    "domain": "domain",
    "id": "oldest",
}
USED = {"": "all", "used": "used at least once", "unused": "never used"}
PROOF = {
    "": "all",
    "elsewhere": "followed on other tasks, too",
    "in-sample": "followed only where it was learned",
}
FEW_USES = 5
"""Of so many uses or fewer a share of wins says little."""
NARROWING = ("library_kind", "library_model", "library_used", "library_proof")
CONFIDENCE = "library_confidence"
ANY = (0.0, 1.0)


def chosen(ws: Workspace, pages: LibraryPages) -> tuple[Shelf, int]:
    """The filter that the widgets and the address hold, and the number of the version that is meant.

    Raises:
        NotFoundError: there is no such version or label.
    """
    head = ws.store.versions.head()
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="library_filters"):
        search = st.text_input(
            "Search",
            key="library_search",
            bind="query-params",
            placeholder='Words, a "phrase in quotes", or an id',
            max_chars=2_000,
            icon=":material/search:",
            width=330,
        )
        named = st.text_input(
            "Version",
            _old_address(),
            key="library_version",
            bind="query-params",
            placeholder=f"{head}, the newest",
            max_chars=64,
            help="A number, or a label such as production. Empty is the newest.",
            width=130,
        )
        number = ws.store.versions.resolve(named.strip()) if named and named.strip() else head
        version = None if number == head else number
        facets = pages.facets(version)
        domain = _choice("Domain", "library_domain", facets.domain, width=170)
        active = sum(bool(session.get(key)) for key in NARROWING) + (session.get(CONFIDENCE, ANY) != ANY)
        with st.popover(
            safe.label(f"Filters {active}" if active else "Filters"), icon=":material/tune:", type="tertiary"
        ):
            kind = _choice("Kind", "library_kind", {k: facets.kind.get(k, 0) for k in KINDS})
            model = _choice("Learned on", "library_model", {m: n for m, n in facets.learned_on.items() if m})
            low, high = st.slider("Confidence", *ANY, ANY, 0.05, key=CONFIDENCE, bind="query-params")
            used = _named("Use", "library_used", USED)
            proof = _named("Proof", "library_proof", PROOF)
            if active:
                st.button("Clear the filters", key="library_clear", on_click=clear)
        order = st.selectbox(
            "Order",
            list(ORDERS),
            key="library_order",
            bind="query-params",
            format_func=ORDERS.__getitem__,
            width=190,
        )
    shelf = Shelf.read(
        {
            "version": version,
            "text": (search or "").strip(),
            "kind": kind,
            "domain": domain,
            "learned_on": model,
            "confidence_from": low,
            "confidence_to": high,
            "used": used,
            "proof": proof,
            "order": order or "newest",
        }
    )
    return shelf, number


def _old_address() -> str:
    """`?version=3`, as older links have it."""
    return session.asked("version")


def clear() -> None:
    for key in NARROWING:
        session.put(key, "")
    session.put(CONFIDENCE, ANY)


def clear_all() -> None:
    clear()
    session.put("library_search", "")
    session.put("library_domain", "")


def narrowed(shelf: Shelf) -> bool:
    return shelf != Shelf(version=shelf.version, order=shelf.order)


def _choice(label: str, key: str, options: Mapping[str, int], width: int | None = None) -> str:
    found = st.selectbox(
        safe.label(label),
        ["", *options],
        key=key,
        bind="query-params",
        format_func=lambda o: words.KIND.get(o, o) or "all",
        width=width or "stretch",
    )
    return found or ""


def _named(label: str, key: str, options: Mapping[str, str]) -> str:
    found = st.selectbox(
        safe.label(label), list(options), key=key, bind="query-params", format_func=options.__getitem__
    )
    return found or ""


# --- numbers ---


def size(ws: Workspace, number: int) -> None:
    """Lessons against what the library may hold, and tokens."""
    lessons, most = ws.store.versions.get(number).size, ws.auditing.n_max
    labels = ws.store.labels.of(number)
    full = 100 * lessons / most
    safe.html(
        '<div class="w-size"><span>Version <b>{number}</b>{labels}</span><span><b>{lessons}</b> of at most {most} '
        'lessons</span><span class="track" title="{share}% of what the library may hold"><i class="{look}" '
        'style="width:{share}%"></i></span><span>about <b>{tokens}</b> tokens when all of it is injected</span></div>',
        number=number,
        labels=joined(markup(" {chip}", chip=frame.chip(name, "accent")) for name in labels),
        lessons=f"{lessons:,}",
        most=f"{most:,}",
        share=f"{min(100.0, full):.1f}",
        look="w-bad-fill" if full > 100 else "w-grain-fill",
        tokens=f"{injected_tokens(ws.store, number):,}",
    )
    if full > 100:
        safe.html(
            '<div class="w-warn">{n} more than the library may hold: Tidy up, below, proposes which can go.</div>',
            n=f"{lessons - most:,}",
        )


# --- rows ---


def rows(hits: Sequence[Hit], earned: Mapping[str, Earnings]) -> None:
    """One line a lesson; each is a link to its page."""
    with st.container(key="library_rows", gap=None):
        safe.html(
            '<div class="w-lesson-row head" aria-hidden="true"><span>Lesson</span><span></span><span>Domain</span>'
            "<span>Confidence</span><span>Uses</span><span>Wins, losses</span><span>Learned on</span></div>"
        )
        for hit in hits:
            of = hit.experience.id
            frame.way(
                of,
                _row(hit, earned.get(of, Earnings())),
                f"Open lesson {of}",
                "pages/review/experience.py",
                id=of,
            )


def _row(hit: Hit, earned: Earnings) -> Markup:
    lesson = hit.experience
    notes = []
    if earned.waiting:
        notes.append(frame.chip(f"{words.plural(earned.waiting, 'proposal')} about it", "accent"))
    if earned.pending:
        notes.append(frame.chip(f"{words.plural(earned.pending, 'use')} to be counted", "quiet"))
    if found := safe.hidden(lesson.text):
        notes.append(
            frame.chip(f"{words.plural(sum(n for _, n in found), 'character')} that cannot be seen", "bad")
        )
    return markup(
        '<div class="w-lesson-row"><span class="which"><b>{id}</b><small>{kind}</small></span>'
        '<span class="said"><span dir="auto">{text}</span>{notes}</span><span class="where">{domain}</span>'
        '{confidence}<span class="num" data-name="uses">{uses}</span>{sides}<span class="model">{model}</span></div>',
        id=lesson.id,
        kind=words.KIND[lesson.kind],
        text=marked(hit),
        notes=markup('<span class="w-chips">{chips}</span>', chips=joined(notes)) if notes else Markup(),
        domain=lesson.domain,
        confidence=confidence(lesson.confidence),
        uses=f"{lesson.uses:,}",
        sides=_sides(lesson, earned),
        model=lesson.learned_on or "—",
    )


def marked(hit: Hit) -> Markup:
    """The text with what was looked for marked; its characters stay what they are."""
    text, parts, end = hit.experience.text, [], 0
    for start, stop in hit.marks:
        parts += [markup("{t}", t=text[end:start]), markup("<mark>{t}</mark>", t=text[start:stop])]
        end = stop
    return joined([*parts, markup("{t}", t=text[end:])])


def confidence(value: float) -> Markup:
    return markup(
        '<span class="w-trust" title="confidence {value}"><span class="track"><i style="width:{share}%"></i></span>'
        "{value}</span>",
        value=f"{value:.2f}",
        share=f"{100 * value:.0f}",
    )


def _sides(lesson: Experience, earned: Earnings) -> Markup:
    if not (lesson.uses or earned.worse):
        return markup('<span class="num sides">—</span>')
    few = markup(' <small title="too few uses to tell">few</small>') if lesson.uses < FEW_USES else Markup()
    return markup(
        '<span class="num sides"><b class="up">▲ {better}</b> <b class="down">▼ {worse}</b>{few}</span>',
        better=lesson.wins,
        worse=earned.worse,
        few=few,
    )
