"""What is known of a rollout besides its course: verdict, reward, lessons, what it took, and what nobody recorded."""

from __future__ import annotations

import streamlit as st

from core.rollout import Group, Rollout, Task
from core.settings import RewardConfig
from core.workspace import Workspace
from core.workspace.lessons_given import LessonGiven, lessons_given
from core.workspace.reading import Reading
from core.workspace.reweighing import Rightness, rollout_parts, sources, told_right
from pages.parts import frame, gated, safe, words
from pages.parts.safe import Markup, joined, markup

SHOWN_LESSONS = 8
RIGHT: dict[Rightness, tuple[str, str]] = {
    "right": ("good", "All"),
    "partly right": ("accent", "Some"),
    "wrong": ("bad", "Nothing"),
}
"""Tone, and how much was right."""


def verdict(rollout: Rollout, reward: RewardConfig) -> tuple[str, str, str]:
    """(word, tone, why) of how it came out; right and wrong only where a verifier of ours said so."""
    said = {True: ", and a person accepted it", False: ", but a person rejected it", None: ""}[
        rollout.accepted
    ]
    if rollout.error is not None:
        return "broke off", "bad", "There is no outcome to score."
    if rollout.reward is None:
        if not rollout.scores:
            return "not scored", "", f"No verifier looked at it{said}."
        return "not to be scored", "", f"Its verifier could not tell{said}."
    word = told_right(rollout, reward)
    if word is None:
        by = words.reward(reward, sources([rollout], reward))
        return "scored", "accent", f"Its reward is {by}; only the number tells how good it is{said}."
    tone, what = RIGHT[word]
    return word, tone, f"{what} of what is checked was right{said}."


def chips(ws: Workspace, group: Group, rollout: Rollout) -> Markup:
    word, tone, _ = verdict(rollout, ws.store.figures.reward_of(group.run_id).reward)
    found = [frame.chip(word, tone), *words.rollout_chips(rollout)]
    if rollout.accepted is not None:
        found.append(
            frame.chip("✓ accepted", "good") if rollout.accepted else frame.chip("✗ rejected", "bad")
        )
    return joined(found)


def figures(ws: Workspace, group: Group, rollout: Rollout) -> None:
    """The verdict with its reward in parts, and what the attempt took, in one row of cards."""
    usage = rollout.usage
    scored, ran, given = st.columns(3, gap="medium")
    with scored:
        _reward(ws, group, rollout)
    with ran:
        measured = usage.calls or usage.prompt_tokens or usage.completion_tokens
        frame.section("How it ran")
        frame.facts(
            [
                ("Model", rollout.model or "not recorded"),
                ("Ended by", rollout.trajectory.finish_reason or "not recorded"),
                (
                    "Tokens",
                    f"{usage.prompt_tokens:,} in, {usage.completion_tokens:,} out"
                    if measured
                    else "not recorded",
                ),
                ("Cost", words.money(usage.cost_usd) if measured else "not recorded"),
                ("Took", f"{rollout.duration_s:.1f} s" if rollout.duration_s is not None else "not recorded"),
                ("Library", f"version {group.library_version}"),
            ]
        )
    with given:
        _lessons(ws, group, rollout)


def _reward(ws: Workspace, group: Group, rollout: Rollout) -> None:
    config = ws.store.figures.reward_of(group.run_id).reward
    _, _, why = verdict(rollout, config)
    frame.section("Outcome")
    frame.note(why)
    parts = rollout_parts(rollout, group, config)
    items: list[tuple[str, object]] = [
        ("Reward", words.number(rollout.reward)),
        *(
            (f"from {name}", words.number(value, sign=True))
            for name, value in parts.items()
            if len(parts) > 1
        ),
        ("Advantage", _advantage(rollout)),
    ]
    for name, score in rollout.scores.items():
        items.append((f"{safe.short(name, 40)} says", words.number(score.value)))
        items += [(f"its {safe.short(part, 40)}", words.number(value)) for part, value in score.parts.items()]
        if score.reason:
            items.append(("because", safe.short(score.reason, 400)))
    frame.facts(items)
    if group.left_out:
        frame.note("Left out of the reward: " + "; ".join(f"{n}, {why}" for n, why in group.left_out.items()))


def _advantage(rollout: Rollout) -> str:
    if rollout.advantage is None:
        return "none: nothing to compare it with"
    side = "better than" if rollout.advantage > 0 else "worse than" if rollout.advantage < 0 else "equal to"
    return f"{rollout.advantage:+.2f}, {side} the mean of its group"


@st.cache_data(show_spinner=False, max_entries=32, ttl=300)
def _given(
    _ws: Workspace,
    folder: str,
    rollout_id: str,
    stamp: str,
    _rollout: Rollout,
    version: int,
    _task: Task | None,
) -> list[LessonGiven]:
    return lessons_given(_ws.store, _rollout, version, _task)


def _lessons(ws: Workspace, group: Group, rollout: Rollout) -> None:
    """What it was given, and what of it it used: cited by its summary, or counted in what it did."""
    if not rollout.injected:
        frame.section("Lessons given", "none")
        frame.note("Its prompt held no lesson of the library.")
        return
    stamp = (
        f"{ws.store.trajectories.mark(rollout.id)} {ws.store.figures.stamp(group.run_id)} {rollout.summary}"
    )
    task = ws.store.tasks.find(group.task_id)
    given = _given(ws, str(ws.folder), rollout.id, stamp, rollout, group.library_version, task)
    used = sum(one.used is True for one in given)
    frame.section("Lessons given", f"{used} of {len(rollout.injected)} used")
    safe.html('<div class="w-given">{rows}</div>', rows=joined(map(_lesson, given[:SHOWN_LESSONS])))
    if len(given) > SHOWN_LESSONS:
        with st.expander(f"{len(given) - SHOWN_LESSONS:d} more"):
            safe.html('<div class="w-given">{rows}</div>', rows=joined(map(_lesson, given[SHOWN_LESSONS:])))
    if group.not_injected:
        frame.note(f"{words.plural(len(group.not_injected), 'lesson')} did not fit into the prompt.")


def _lesson(one: LessonGiven) -> Markup:
    how, tone = {
        True: (f"✓ used ({one.told_by})", "good"),
        False: (f"✗ not used ({one.told_by})", "bad"),
        None: ("? not known whether it was used", ""),
    }[one.used]
    return markup(
        '<div><span class="id">[{label}] {id}</span> <span class="{tone}">{how}</span>'
        '<span class="text" dir="auto">{text}</span></div>',
        label=safe.short(one.label, 20),
        id=safe.short(one.experience_id, 40),
        tone=tone,
        how=how,
        text=safe.short(one.text, 300) or "its text is not known any more",
    )


def words_of_it(rollout: Rollout) -> None:
    """What a model said of it, where one was asked."""
    for title, text in (("Summary", rollout.summary), ("Why, in words", rollout.semantic)):
        if text:
            frame.section(title, "by a model")
            safe.exact(text, key=f"trace_{title.split(',')[0].lower()}", look="prose")


def answer(reading: Reading, rollout: Rollout, find: str, shown_above: bool) -> None:
    """The final answer, unless it is the last message, which stands above."""
    if shown_above and reading.answer_is_last:
        return
    key = f"{rollout.id}_answer"
    text = reading.answer(head=gated.head(key))
    frame.section("Answer", f"{text.size:,} characters" if text.size else "empty")
    if text.size:
        gated.show(text, key, find=find)


def not_recorded(ws: Workspace, group: Group, rollout: Rollout, reading: Reading) -> None:
    """Say what is missing, and why."""
    kind, note = ws.store.trajectories.origin(group.run_id)
    came = f" It was imported ({safe.short(note, 120)})." if kind == "recorded" and note else ""
    if not reading.lines and not reading.messages:
        if rollout.error is not None:
            why = "It broke off before anything came back."
        elif kind == "recorded":
            why = f"The file that it came from holds neither steps nor messages.{came}"
        else:
            why = "Neither steps nor messages were kept."
        safe.html(
            '<div class="w-nosignal"><h3>Not recorded</h3><p>{why}</p></div>',
            why=why,
        )
    elif reading.lines and not reading.messages:
        frame.note(f"Its messages were not recorded.{came}")
    elif kind == "recorded" and not reading.lines:
        frame.note(f"No tool calls were recorded, only messages.{came}")
