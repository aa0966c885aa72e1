"""Moving the weights of a group's reward: what its rewards and advantages would be, from stored parts alone."""

from __future__ import annotations

import streamlit as st

from core.errors import WinnowError
from core.rollout import Group
from core.settings import Component, RewardConfig
from core.workspace import Workspace
from core.workspace.reweighing import Reweighed, known_components, reweighed, with_weights
from pages.parts import frame, safe, session, words
from pages.parts.charts_rewards import PARTS
from pages.parts.guard import red_line
from pages.parts.safe import Markup, joined, markup

MOST_GROUPS = 1_000
"""Groups of a run that are rescored from a page; more take minutes, and are the command line's."""
SEEN = "w_rescore_seen"
"""What a change of a run's weights would do, as it was last told."""


def panel(ws: Workspace, group: Group, reward: RewardConfig) -> None:
    """Sliders for each part of the reward, and what they would change."""
    st.fragment(_panel)(ws, group, reward)


def _panel(ws: Workspace, group: Group, reward: RewardConfig) -> None:
    said = session.take(session.FLASH)  # of a fragment's own button: the page above is not drawn again
    if isinstance(said, tuple):
        red_line(said[0])
    known = known_components(group)
    scores = sorted({name for r in group.rollouts for name in r.scores})
    if not known:
        frame.note("No part of a reward is stored for this group, so there is nothing to weigh.")
        return
    chosen, of_scores = _sliders(group.run_id, known, scores, reward)
    try:
        found = reweighed(ws.store, group, with_weights(reward, chosen, of_scores))
    except WinnowError as e:
        red_line(e)
        return
    _table(found)
    if not found.changed:
        frame.note("These are the weights of the run, or they change nothing here.")
        return
    _apply(ws, group.run_id, found.reward)


def _sliders(
    run_id: str, known: list[Component], scores: list[str], reward: RewardConfig
) -> tuple[dict[Component, float], dict[str, float]]:
    chosen: dict[Component, float] = {}
    now = reward.by_component
    with st.container(horizontal=True, gap="medium"):
        for part in known:
            chosen[part] = st.slider(
                safe.label(PARTS[part]),
                0.0,
                1.0,
                min(1.0, float(now.get(part, 0.0))),
                0.05,
                key=f"weight_{run_id}_{part}",
                persist_state="session",
                width=220,
            )
        of_scores = {
            name: st.slider(
                safe.label(f"score {name}"),
                0.0,
                2.0,
                min(2.0, float(reward.verifier_weights.get(name, 1.0))),
                0.1,
                key=f"weight_{run_id}_score_{name}",
                persist_state="session",
                width=220,
            )
            for name in (scores if len(scores) > 1 else [])
        }
    for part, weight in now.items():  # a part that this group does not know keeps its weight in the run
        chosen.setdefault(part, weight)
    if any(weight > 1 for weight in now.values()):
        frame.note("The run has weights above 1; here they are cut at 1.")
    return chosen, of_scores


def _table(found: Reweighed) -> None:
    rows = joined(
        markup(
            '<tr><td><b>#{n}</b></td><td class="num was">{r0}</td><td class="num">{r1} {dr}</td>'
            '<td class="num was">{a0}</td><td class="num">{a1} {da}</td></tr>',
            n=old.replicate,
            r0=words.number(old.reward),
            r1=words.number(new.reward),
            dr=_moved(old.reward, new.reward),
            a0=words.number(old.advantage, sign=True),
            a1=words.number(new.advantage, sign=True),
            da=_moved(old.advantage, new.advantage),
        )
        for old, new in sorted(
            zip(found.before.rollouts, found.after.rollouts, strict=True),
            key=lambda pair: (pair[1].reward is None, -(pair[1].reward or 0), pair[1].replicate),
        )
    )
    safe.html(
        '<div class="w-scroll"><table class="w-table w-moves"><tr><th>Rollout</th><th class="num">Reward now</th>'
        '<th class="num">would be</th><th class="num">Advantage now</th><th class="num">would be</th></tr>{rows}'
        "</table></div>",
        rows=rows,
    )
    reason = f": {found.after.reason}" if found.after.reason else ""
    left_out = "; ".join(f"{name} takes no part ({why})" for name, why in found.after.left_out.items())
    safe.html(
        '<div class="w-chips"><span class="w-note">The group is</span>{now}<span class="w-note">and would be</span>'
        '{then}<span class="w-note">{reason}</span></div>{left_out}',
        now=words.group_chip(found.before),
        then=words.group_chip(found.after),
        reason=reason,
        left_out=markup('<p class="w-note">{text}.</p>', text=left_out) if left_out else Markup(),
    )


def _moved(before: float | None, after: float | None) -> Markup:
    if before is None or after is None or abs(after - before) < 0.005:
        return Markup()
    return markup(
        '<span class="{look}">{mark}</span>',
        look="up" if after > before else "down",
        mark="▲" if after > before else "▼",
    )


def _apply(ws: Workspace, run_id: str, reward: RewardConfig) -> None:
    """Write the weights down for the whole run: first what that would change, then the change."""
    groups = len(ws.store.scores.group_ids(run_id))
    frame.note(
        f"Nothing is changed by moving a weight. Applied to {run_id}, the rewards of its {groups:,} groups are made "
        "anew from the parts that are stored: no rollout is touched, no model is asked, and proposals stay as they "
        "were drawn."
    )
    if groups > MOST_GROUPS:
        frame.note(f"That many groups take a while: use the command line, `winnow rescore {run_id}`.")
        return
    seen = session.get(SEEN)
    key = _key(ws, run_id, reward)
    if not isinstance(seen, tuple) or seen[0] != key:
        st.button(
            "See what it would change in the run",
            key="weights_try",
            icon=":material/preview:",
            on_click=_try,
            args=(ws, run_id, reward),
        )
        return
    told = seen[1]
    frame.facts(
        [
            ("Rewards that change", f"{told.rewards_changed:,} rollouts in {told.groups:,} groups"),
            ("Newly informative", f"{len(told.newly_informative):,}"),
            ("No longer informative", f"{len(told.no_longer_informative):,}"),
        ]
    )
    for note in told.notes:
        frame.note(note)
    if st.button(
        safe.label(f"Apply to the whole run {run_id}"),
        key="weights_apply",
        type="primary",
        icon=":material/done_all:",
    ):
        _rescore(ws, run_id, reward)
        st.rerun()  # the charts outside of this fragment show other rewards now


def _key(ws: Workspace, run_id: str, reward: RewardConfig) -> tuple[str, str, str]:
    """What it was told about."""
    return str(ws.folder), run_id, reward.canonical()


def _try(ws: Workspace, run_id: str, reward: RewardConfig) -> None:
    def told() -> None:
        session.put(
            SEEN,
            (_key(ws, run_id, reward), ws.rescoring.rescore(run_id, session.me(), reward, dry_run=True)),
        )

    session.attempt(told)


def _rescore(ws: Workspace, run_id: str, reward: RewardConfig) -> None:
    session.forget(SEEN)
    session.attempt(
        lambda: ws.rescoring.rescore(run_id, session.me(), reward),
        f"The rewards of {run_id} were made anew; no rollout was touched.",
    )
