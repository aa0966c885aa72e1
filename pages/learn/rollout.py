"""One rollout: what was sent, what was done, what came back."""

import json

import streamlit as st

from core.rollout import Step
from pages.parts import frame, paging, safe, session, words
from pages.parts.guard import guard, red_line
from pages.parts.safe import joined

STEPS = 30

ws = session.workspace()
if not (rollout_id := session.asked()):
    frame.back("Groups", "pages/learn/groups.py")
    frame.page("Rollout", "One attempt at one task.")
    frame.empty("No rollout chosen", "Choose one from its group.", "All groups", "pages/learn/groups.py")
    st.stop()
with guard(stop=True):
    rollout = ws.store.groups.rollout(rollout_id)
    siblings = [r.id for r in ws.store.groups.get(rollout.group_id, trajectories=False).rollouts]
trajectory = rollout.trajectory

frame.back(f"Group {rollout.group_id}", "pages/learn/group.py", id=rollout.group_id)
frame.page(
    f"{rollout.group_id} #{rollout.replicate}",
    f"One attempt at task {rollout.task_id} by {rollout.model or 'an unnamed model'}.",
    crumb="Rollout",
)
safe.html('<div class="w-chips">{chips}</div>', chips=joined(words.rollout_chips(rollout)))
at = siblings.index(rollout.id)
with st.container(horizontal=True):
    if st.button(
        "Previous", key="rollout_previous", shortcut="k", disabled=at == 0, icon=":material/arrow_back:"
    ):
        st.switch_page("pages/learn/rollout.py", query_params={"id": siblings[at - 1]})
    if st.button(
        "Next",
        key="rollout_next",
        shortcut="j",
        disabled=at == len(siblings) - 1,
        icon=":material/arrow_forward:",
    ):
        st.switch_page("pages/learn/rollout.py", query_params={"id": siblings[at + 1]})
if rollout.error is not None:
    red_line(rollout.error)


def show_step(number: int, step: Step) -> None:
    failed = step.success is False or step.error is not None
    mark = ":material/error:" if failed else ":material/check_circle:" if step.success else ":material/help:"
    took = f" · {step.duration_s:.1f} s" if step.duration_s is not None else ""
    how = "failed" if failed else "worked" if step.success else "no result recorded"
    with st.expander(safe.label(f"{number}. {step.tool} · {how}{took}"), icon=mark):
        if step.error:
            red_line(safe.short(step.error, 2_000))
        frame.note("Parameters")
        safe.exact(
            json.dumps(step.parameters, ensure_ascii=False, indent=2, default=str),
            key=f"parameters_{number}",
            name=f"step-{number}-parameters.json",
        )
        frame.note(f"Output, {len(step.output):,} characters")
        safe.exact(step.output, key=f"output_{number}", name=f"step-{number}-output.txt")


left, right = st.columns([3, 2], gap="large")
with left:
    if trajectory.steps:
        failed = [i for i, s in enumerate(trajectory.steps, 1) if s.success is False or s.error is not None]
        frame.section(
            "Steps",
            words.plural(len(trajectory.steps), "tool call")
            + (f"; failed: {', '.join(map(str, failed[:20]))}" if failed else ", none failed"),
        )
        first = paging.offset("rollout_steps", len(trajectory.steps), STEPS)
        for number, step in enumerate(trajectory.steps[first : first + STEPS], first + 1):
            show_step(number, step)
    if trajectory.messages:
        frame.section("Messages", "as they were sent and received")
        first = paging.offset("rollout_messages", len(trajectory.messages), STEPS)
        for number, message in enumerate(trajectory.messages[first : first + STEPS], first + 1):
            safe.html(
                '<div class="w-chips">{role}<span class="w-note">{n} of {all}{name}</span></div>',
                role=frame.chip(message.role, "accent" if message.role == "assistant" else ""),
                n=number,
                all=len(trajectory.messages),
                name=f" · {message.name}" if message.name else "",
            )
            safe.exact(message.content, key=f"message_{number}", name=f"message-{number}.txt")
    frame.section("Answer", f"{len(trajectory.answer):,} characters")
    safe.exact(trajectory.answer, key="rollout_answer", name=f"{rollout.id}-answer.txt")
with right:
    frame.section("Scores")
    for name, score in rollout.scores.items():
        frame.facts(
            [
                (name, words.number(score.value)),
                *((f"— {part}", words.number(value)) for part, value in score.parts.items()),
                *([("because", score.reason)] if score.reason else []),
            ]
        )
    if not rollout.scores:
        frame.note("No verifier scored it: it broke off, or its reward was recorded elsewhere.")
    frame.section("How it ran")
    usage = rollout.usage
    frame.facts(
        [
            ("Finish reason", trajectory.finish_reason or "not recorded"),
            ("Tokens", f"{usage.prompt_tokens:,} in, {usage.completion_tokens:,} out"),
            ("Cost", words.money(usage.cost_usd)),
            ("Took", f"{rollout.duration_s:.1f} s" if rollout.duration_s is not None else "not recorded"),
        ]
    )
    frame.section("Injected lessons", "" if rollout.injected else "none")
    for label, experience_id in rollout.injected.items():
        if st.button(safe.label(f"[{label}] {experience_id}"), key=f"injected_{label}", type="tertiary"):
            st.switch_page("pages/review/experience.py", query_params={"id": experience_id})
    if rollout.semantic:
        frame.section("Why, in words")
        safe.exact(rollout.semantic, key="rollout_semantic", look="prose")
    st.download_button(
        "Download the whole rollout",
        rollout.model_dump_json(indent=2).encode("utf-8", "replace"),
        f"{rollout.id}.json",
        "application/json",
        key="rollout_download",
        on_click="ignore",
    )
