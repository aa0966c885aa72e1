"""What an evaluation was set to, its arms' lessons, and how it is counted."""

from __future__ import annotations

import streamlit as st

from core.proof import Report
from pages.parts import frame, safe, words

LESSONS = 50
"""Lessons of one arm that are shown."""


def draw(report: Report) -> None:
    config = report.config
    caps = [
        f"{value:,} {name}"
        for name, value in (("calls", config.max_calls), ("tokens", config.max_tokens_total))
        if value is not None
    ]
    if config.max_cost_usd is not None:
        caps.append(words.money(config.max_cost_usd))
    frame.facts(
        [
            ("Tasks", f"{config.split}, {', '.join(config.domains) or 'all domains'}"),
            (
                "Tasks a domain",
                f"{config.limit or 'all'}{f', after the first {config.skip}' if config.skip else ''}",
            ),
            ("Rollouts a task", config.samples),
            ("Seeds", ", ".join(map(str, config.seeds))),
            ("Endpoint", f"{config.endpoint} · {report.model}"),
            ("Temperature", config.temperature),
            ("Tokens a reply", config.max_tokens),
            ("Reward", words.reward(config.reward)),
            ("Tools", ", ".join(config.agent.tools) if config.agent else "none"),
            (
                "Looks",
                f"after every {config.look_every} tasks, "
                + ("for what is hopeless" if config.stop_when == "hopeless" else f"level {config.level:g}")
                if config.look_every
                else "none",
            ),
            ("Caps", ", ".join(caps) or "none"),
        ]
    )
    for number, arm in enumerate(config.arms, 1):
        if arm.lessons:
            with st.expander(f"Lessons of arm {number:d}, {len(arm.lessons):d}"):
                frame.note(arm.name)
                for lesson in arm.lessons[:LESSONS]:
                    safe.html(
                        '<div class="w-strip"><span class="id">{domain}</span><span>{text}</span></div>',
                        domain=lesson.domain,
                        text=lesson.text,
                    )
                if len(arm.lessons) > LESSONS:
                    frame.note(f"The first {LESSONS} of {len(arm.lessons):,}; the JSON has all.")
    frame.note(report.method)
