"""The trial of a token prior: what it did on trial tasks, domain by domain, and the button that starts one."""

from __future__ import annotations

import streamlit as st

from core.experience import GENERAL
from core.workspace import Workspace
from core.workspace.priors import Prior
from core.workspace.trial_gate import LEAST_TASKS, SAMPLES
from pages.parts import alongside, frame, measured, safe, session, words
from pages.parts.safe import joined, markup

WITHIN_S = 24 * 3600.0
KEPT, LEFT_OUT = frame.chip("✓ kept", "good"), frame.chip("left out", "quiet")


def draw(ws: Workspace, prior: Prior) -> None:
    """What was measured of it; else, or below, the way to measure it."""
    command = _command(ws, prior)
    key = f"prior trial {prior.id}"
    frame.section(
        "Tried on trial tasks", "with it against without it: a domain is kept where it was seen to help"
    )
    now = alongside.watched(ws, key, "Trying")
    if now.state == "done":
        alongside.forget(ws, key)
    if found := ws.prior_gate.last(prior.id):
        most = measured.reach([d.effect for d in found.domains])
        rows = joined(
            markup(
                "<tr><th>{domain}</th><td>{strip}</td><td>{said}</td><td>{chip}</td></tr>",
                domain=safe.short(d.domain, 60),
                strip=measured.strip(d.effect, most),
                said=f"{measured.line(d.effect)}; corrected p better {measured.chance(d.p_adjusted)}",
                chip=KEPT if d.kept else LEFT_OUT,
            )
            for d in found.domains
        )
        safe.html(
            '<div class="w-scroll"><table class="w-table"><tbody>{rows}</tbody></table></div>', rows=rows
        )
        with st.container(horizontal=True, vertical_alignment="center", key="prior_tried"):
            if found.gated and found.gated != prior.id:
                st.page_link(
                    "pages/prove/priors.py",
                    label=safe.label(f"What helped: {found.gated}"),
                    icon=":material/verified:",
                    query_params={"id": found.gated},
                )
            st.page_link(
                "pages/prove/evaluation.py",
                label=safe.label(f"The comparison, {found.evaluation_id}"),
                icon=":material/science:",
                query_params={"id": found.evaluation_id},
            )
        if all(d.too_few for d in found.domains):
            frame.note(
                f"Fewer than {LEAST_TASKS} tasks could be scored with and without it: too few to tell."
            )
        elif found.gated is None:
            frame.note("No domain was seen to gain, so nothing of it was kept: leave this prior out.")
        return
    may_pass = {d: n for d, n in ws.prior_gate.tasks(prior).items() if n >= LEAST_TASKS}
    trial = may_pass.get(GENERAL) or sum(may_pass.values())
    refusal = session.refusal("reviewer")
    none = (
        ""
        if trial
        else f"A domain needs {LEAST_TASKS} trial tasks to pass, and none that it weighs has as many."
    )
    if now.state != "running" and st.button(
        "Try it on trial tasks",
        key="prior_try",
        type="primary",
        icon=":material/science:",
        disabled=bool(refusal or none),
        help=frame.refused(refusal or none),
    ):
        alongside.begin(ws, key, *command, within_s=WITHIN_S)
    if none:
        frame.note(f"Not tried yet. {none}")
        return
    frame.note(
        f"Not tried yet, and what winners say is not always a help. It takes {words.plural(trial, 'trial task')}, "
        f"{SAMPLES} rollouts of each with it, {SAMPLES} without; a domain needs {LEAST_TASKS} tasks to pass. "
        "That may take minutes, and goes on where it was stopped. What helped is kept as a prior of its own."
    )
    alongside.in_a_terminal(*command)


def _command(ws: Workspace, prior: Prior) -> tuple[str, ...]:
    """As its rollouts were sampled, where they are here."""
    command = ("eval", "prior", prior.id)
    for run_id in prior.run_ids[:1]:
        run = ws.store.runs.brief(run_id)
        if run.kind == "recorded":  # nobody here knows how it was sampled
            continue
        config = run.config
        command += ("--endpoint", config.endpoint, "--max-tokens", str(config.max_tokens))
        command += ("--temperature", f"{config.temperature:g}")
    return command
