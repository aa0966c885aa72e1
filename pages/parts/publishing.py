"""Publishing on the screen: the whole difference by what it does, the numbers, a label, and what came of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import streamlit as st

from core.errors import StaleVersionError, WinnowError
from core.experience import Add, Proposal, targets_of, text_of
from core.workspace import Difference, Preview, Workspace
from core.workspace.reviewing import Reviewing, Seen
from pages.parts import diffs, frame, paging, queue, safe, session, words
from pages.parts.guard import red_line
from pages.parts.safe import joined, markup

MESSAGE = "publish_message"
LABEL = "publish_label"
SURE = "publish_label_sure"
PARENT = "w_publish_parent"
PREVIEW = "w_publish_preview"
PAGE = 20
GROUPS = {"add": "New", "modify": "Changed", "delete": "Taken out", "merge": "Merged"}
TONES = {"add": "good", "modify": "accent", "delete": "bad", "merge": "accent"}


# --- what would happen ---


def preview(ws: Workspace, reading: Reviewing, staged: Sequence[Proposal]) -> Preview:
    """What publishing what is `staged` would do; made anew when something was decided or published.

    Raises:
        InputError: one of them is not approved any more.
        ApplyError: what is staged does not fit; the first that does not is named.
    """
    budget = ws.models.injection_budget
    only = tuple(p.id for p in staged)
    key = (str(ws.folder), only, reading.queue.decided_stamp(), ws.store.credits.stamp(), budget)
    kept = session.get(PREVIEW)
    if isinstance(kept, tuple) and kept[0] == key and isinstance(kept[1], Preview):
        return kept[1]
    made = ws.review.preview(only=only, budget_tokens=budget)
    session.put(PREVIEW, (key, made))
    return made


def moved_on(ws: Workspace, parent: int) -> str:
    """What somebody published since version `parent`, which this person looked at; empty where nothing was."""
    try:
        if ws.store.versions.head() != parent:
            ws.review.preview(parent=parent, only=())
    except StaleVersionError as e:
        return str(e)
    except WinnowError:
        return "The library moved on since."
    return ""


def look_again() -> None:
    session.forget(PARENT, PREVIEW)


# --- commands ---


def publish(ws: Workspace, parent: int, shown: Sequence[Seen]) -> None:
    """Publish what was looked at and nothing else, then move the label that was chosen."""
    message = str(session.get(MESSAGE, "") or "")
    name = str(session.get(LABEL) or "")
    label = ws.store.labels.find(name) if name else None
    if label and label.protected and not session.get(SURE):
        session.flash(f"{name} is protected: tick that you mean to move it, or choose no label.", "bad")
        return
    only = {one.proposal_id: one.revision for one in shown}
    now = ws.review.staged()
    if anew := [p.id for p in now if only.get(p.id, p.revision) != p.revision]:
        session.flash(f"Decided anew meanwhile: {_some(anew)}. Look again, then publish.", "bad")
        return
    later = [p.id for p in now if p.id not in only]
    stays = f" Approved meanwhile, and still staged: {_some(later)}." if later else ""
    made: list[int] = []
    if not session.attempt(
        lambda: made.append(ws.review.publish(message, session.me(), parent=parent, only=tuple(only)).number),
        f"Version {parent + 1} is published.{stays}",
    ):
        return
    session.forget(PARENT, PREVIEW, MESSAGE, LABEL, SURE)
    st.query_params["done"] = str(made[0])
    if name:
        session.attempt(
            lambda: ws.review.set_label(
                name, made[0], session.me(), force=True, expected=label.version if label else "nothing"
            ),
            f"Version {made[0]} is published, and {name} points at it.{stays}",
        )


def _some(ids: Sequence[str]) -> str:
    return ", ".join(ids[:5]) + (f" and {len(ids) - 5:,} more" if len(ids) > 5 else "")


def undo(ws: Workspace, of: str, revision: int) -> None:
    session.attempt(
        lambda: ws.review.undo(of, session.me(), revision=revision), f"{of} waits for review again."
    )


def undo_all(ws: Workspace, seen: Sequence[Seen]) -> None:
    session.attempt(
        lambda: ws.review.decide_all("undo", seen, session.me()),
        f"{words.plural(len(seen), 'proposal')} back in the queue.",
    )


def roll_back(ws: Workspace, to: int, parent: int) -> None:
    if session.attempt(
        lambda: ws.review.rollback(to, session.me(), parent=parent),
        f"Version {parent + 1} reads as version {to} did.",
    ):
        st.query_params["done"] = str(parent + 1)
        look_again()


# --- drawing ---


def numbers(made: Preview, staged: Sequence[Proposal], reading: Reviewing) -> None:
    """Changes, tokens before and after, and lines by domain."""
    change = made.tokens_after - made.tokens_before
    most = max(made.tokens_before, made.tokens_after, 1)
    frame.stats([(f"{len(staged):,}", "proposals"), (f"{len(made.differences):,}", "lessons touched")])
    bars = joined(
        markup(
            '<span>{name} <b>{n}</b></span><span class="track"><i class="{look}" style="width:{share}%"></i></span>',
            name=name,
            n=f"{n:,}",
            look=look,
            share=f"{100 * n / most:.1f}",
        )
        for name, n, look in (
            ("now", made.tokens_before, "w-chaff-fill"),
            ("after", made.tokens_after, "w-grain-fill"),
        )
    )
    safe.html(
        '<div class="w-tokens"><span>Tokens when the whole library is injected, about: <b>{change}</b></span>'
        "{bars}</div>",
        change=f"{change:+,}",
        bars=bars,
    )
    _lines_by_domain(made, staged, reading)


def _lines_by_domain(made: Preview, staged: Sequence[Proposal], reading: Reviewing) -> None:
    now = Counter(reading.queue.live_by_domain())
    by_proposal = {p.id: p for p in staged}
    there = reading.queue.experiences({d.experience_id for d in made.differences})
    after = Counter(now)
    for d in made.differences:
        lesson = there.get(d.experience_id)
        if d.before is not None and lesson is not None:
            after[lesson.domain] -= 1
        if d.after is not None:
            after[_domain_after(d, by_proposal, lesson.domain if lesson else "general")] += 1
    tokens = {one.domain: one for one in made.tokens_by_domain}
    names = [n for n in sorted({*now, *after}) if now[n] != after[n] or n in tokens] or sorted(now)[:8]
    rows = joined(
        markup(
            '<tr><td>{name}</td><td class="num">{now}</td><td class="num">{after}</td>'
            '<td class="num">{change}</td><td class="num">{tokens}</td></tr>',
            name=name,
            tokens=f"{tokens[name].before:,} → {tokens[name].after:,}" if name in tokens else "",
            now=f"{now[name]:,}",
            after=f"{after[name]:,}",
            change=f"{after[name] - now[name]:+,}",
        )
        for name in names[:12]
    )
    safe.html(
        '<table class="w-table"><tr><th>Domain</th><th class="num">lines now</th><th class="num">after</th>'
        '<th class="num"></th><th class="num">tokens a task</th></tr>{rows}</table>',
        rows=rows,
    )
    if tokens:
        frame.note(
            f"Tokens a task: what is injected for a task of the domain, of the {made.budget_tokens:,} that lessons may "
            "take at the endpoint that makes rollouts."
        )


def _domain_after(d: Difference, staged: Mapping[str, Proposal], now: str) -> str:
    proposal = staged.get(d.proposal_id or "")
    if d.before is None and proposal is not None and isinstance(proposal.operation, Add):
        return proposal.operation.domain
    return d.fields["domain"][1] if "domain" in d.fields else now


def changes(made: Preview, staged: Sequence[Proposal], ws: Workspace) -> None:
    """The whole difference, grouped by what it does, a page at a time."""
    counts: Counter[str] = Counter(p.operation.op for p in staged)
    choices = ["all", *(op for op in GROUPS if counts[op])]
    queue.counted("publish_show", [len(staged), *(counts[op] for op in choices[1:])])
    shown = st.segmented_control(
        "Show",
        choices,
        default=choices[0],
        required=True,
        key="publish_show",
        bind="query-params",
        label_visibility="collapsed",
        format_func=lambda op: GROUPS.get(op, "All"),
    )
    order = list(GROUPS)
    listed = sorted(
        (p for p in staged if shown in ("all", None, p.operation.op)),
        key=lambda p: (order.index(p.operation.op), len(p.id), p.id),
    )
    first = paging.offset("publish_page", len(listed), PAGE)
    mine: dict[str, list[Difference]] = {}
    for d in made.differences:
        mine.setdefault(d.proposal_id or "", []).append(d)
    group = ""
    for proposal in listed[first : first + PAGE]:
        if proposal.operation.op != group:
            group = proposal.operation.op
            frame.section(GROUPS[group], f"{counts[group]:,}")
        _change(proposal, mine.get(proposal.id, []), ws)
    if shown in ("all", None):
        _earned(mine.get("", []))


def _earned(found: Sequence[Difference]) -> None:
    """Lessons that no proposal touches: what they earned since the newest version is counted in the next one."""
    if not found:
        return
    frame.section("Earned", f"{len(found):,}; since the newest version, by what came of tasks")
    first = paging.offset("publish_earned", len(found), PAGE)
    for d in found[first : first + PAGE]:
        with st.container(key=f"earned_{d.experience_id}", gap="small"):
            safe.html('<div class="w-chips"><b class="id">{id}</b></div>', id=d.experience_id)
            safe.exact(d.after or d.before or "", key=f"text_{d.experience_id}")
            _fields(d)


def _change(proposal: Proposal, own: Sequence[Difference], ws: Workspace) -> None:
    with st.container(key=f"change_{proposal.id}", gap="small"):
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            edited = " · edited" if proposal.edited_text is not None else ""
            safe.html(
                '<div class="w-chips"><b class="id">{id}</b>{chip}<span class="w-note">{of}, approved by {who}{edited}'
                "</span></div>",
                id=", ".join(targets_of(proposal.operation)) or ", ".join(d.experience_id for d in own),
                chip=frame.chip(GROUPS[proposal.operation.op].lower(), TONES[proposal.operation.op]),
                of=proposal.id,
                who=proposal.decided_by or "somebody",
                edited=edited,
            )
            _undo_button(proposal, ws)
        if not own:
            frame.note("It changes nothing: the library reads so already.")
        for d in own:
            if d.merged_into is None:
                _texts(d)
        for d in own:
            if d.merged_into is not None:
                frame.note(
                    f"{d.experience_id} is merged into {d.merged_into}; words that are lost are struck out"
                )
                safe.html(
                    '<div class="w-exact diff" dir="auto">{text}</div>',
                    text=diffs.lost_words(d.before or "", text_of(proposal.effective) or ""),
                )


def _texts(d: Difference) -> None:
    if d.before is not None and d.after is not None:
        safe.html('<div class="w-exact diff" dir="auto">{diff}</div>', diff=safe.word_diff(d.before, d.after))
        safe.warn_hidden(d.after)
    else:
        safe.exact(
            d.after or d.before or "", look="diff" if d.after else "diff gone", key=f"text_{d.experience_id}"
        )
    _fields(d)


def _fields(d: Difference) -> None:
    """What else changed of a lesson: kind and domain, and what it earned."""
    if d.fields:
        chips = joined(frame.chip(f"{name} {was} → {now}", "quiet") for name, (was, now) in d.fields.items())
        safe.html('<div class="w-chips">{chips}</div>', chips=chips)


def _undo_button(proposal: Proposal, ws: Workspace) -> None:
    st.button(
        "Undo",
        key=f"undo_{proposal.id}",
        on_click=undo,
        args=(ws, proposal.id, proposal.revision),
        type="tertiary",
    )


def unfit(staged: Sequence[Proposal], ws: Workspace, reading: Reviewing) -> None:
    """What is staged but cannot be published: each can be taken back, all that are stale at once."""
    moved = reading.moved(staged)
    stale = [p for p in staged if p.id in moved]
    if len(stale) > 1:
        st.button(
            f"Send the {len(stale):d} stale ones back to the queue",
            key="undo_stale",
            type="primary",
            on_click=undo_all,
            args=(ws, [Seen(p.id, p.revision) for p in stale]),
        )
    frame.section("Staged", f"{len(staged):,}; nothing is published before all of them fit")
    listed = [*stale, *(p for p in staged if p.id not in moved)]
    first = paging.offset("publish_page", len(listed), PAGE)
    for proposal in listed[first : first + PAGE]:
        with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
            why = f": {moved[proposal.id]}" if proposal.id in moved else ""
            frame.note(
                f"{proposal.id}, {words.operation(proposal)}, approved by {proposal.decided_by or 'somebody'}{why}"
            )
            _undo_button(proposal, ws)


def form(ws: Workspace) -> None:
    """The message, and a label that is to point at the new version."""
    st.text_input("Message", key=MESSAGE, placeholder="What is this version about?", max_chars=300)
    labels = {label.name: label for label in ws.store.labels.all()}
    names = list(dict.fromkeys([*labels, "production"]))
    name = st.selectbox(
        "Label to move to it",
        names,
        index=None,
        key=LABEL,
        accept_new_options=True,
        placeholder="none: labels stay where they are",
    )
    if name and (label := labels.get(name)):
        frame.note(f"{name} points at version {label.version} now.")
        if label.protected:
            st.checkbox("It is protected: I mean to move it", key=SURE)


def done(number: int, ws: Workspace) -> None:
    """What was published, and the ways on."""
    version = ws.store.versions.get(number)
    head = ws.store.versions.head()
    labels = ws.store.labels.of(number)
    safe.html(
        '<div class="w-decided good"><b>Version {n} is published</b> <span>{size}, {from_}{labels}</span>'
        '<div class="why" dir="auto">{message}</div></div>',
        n=number,
        size=words.plural(version.size, "lesson"),
        from_=words.plural(len(version.proposal_ids), "proposal"),
        labels=f", labelled {', '.join(labels)}" if labels else "",
        message=version.message,
    )
    with st.container(horizontal=True):
        if st.button("Read it", key="done_read", icon=":material/menu_book:", type="primary"):
            st.switch_page("pages/review/library.py", query_params={"version": str(number)})
        if st.button("What changed", key="done_versions", icon=":material/history:"):
            frame.go("pages/review/versions.py")
        if st.button("Export a pack", key="done_packs", icon=":material/package_2:"):
            frame.go("pages/ship/packs.py")
        if number == head and version.parent is not None:
            st.button(
                f"Undo by rollback to version {version.parent:d}",
                key="done_rollback",
                type="tertiary",
                icon=":material/undo:",
                help="Makes a new version that reads as the one before did; nothing is erased.",
                on_click=roll_back,
                args=(ws, version.parent, number),
            )


def stale_card(why: str) -> None:
    """Somebody published meanwhile: what moved, and one button to look at the difference again."""
    red_line(why)
    st.button(
        "Look at it again on the newest version",
        key="look_again",
        type="primary",
        on_click=look_again,
    )
