"""How recorded rollouts are to be read: what differs from the usual, as the arguments of a command line."""

from __future__ import annotations

from collections.abc import Iterator

import streamlit as st

from core.rollout import SPLITS
from core.workspace import Workspace
from core.workspace.intake import ImportReport
from pages.parts import frame, safe, session, uploads

GROUPINGS = {
    "": "task id and question are the same",
    "task": "the task id is the same",
    "question": "the question is the same",
}
SCORE, LESS = "rollouts_score", "rollouts_less"
KEYS = (SCORE, LESS, "rollouts_group", "rollouts_field", "rollouts_mix", "rollouts_secrets", "rollouts_form",
        "rollouts_domain", "rollouts_split", "rollouts_mapping")  # fmt: skip
MAPPING = "task_id: problem.id\nquestion: problem.text\nmessages: turns\nreward: [score]\nattempt: sample\n"
REWARDS_MB = 20


def forget() -> None:
    """Other files have other scores: begin with the usual."""
    session.forget(*KEYS)


def draw(ws: Workspace, found: ImportReport | None) -> tuple[str, ...]:
    """Ask for it; gives the arguments of `winnow rollouts import`.

    Args:
        ws: the workspace.
        found: what the last look found: its scores can be chosen from.
    """
    frame.section("How it is read", "change what was guessed; the sums above follow")
    return (*_reward(found), *_grouping(), *_secrets(), *_rewards_file(), *_rest(ws))


def _reward(found: ImportReport | None) -> Iterator[str]:
    """Which score is the reward, and which way is up."""
    less = {seen.name: seen.lower_is_better for seen in found.scores if seen.numbers} if found else {}
    before = str(session.get(SCORE) or "")

    def chosen() -> None:
        session.put(LESS, less.get(str(session.get(SCORE)), False))

    left, right = st.columns([2, 1], vertical_alignment="bottom")
    score = left.selectbox(
        "The score that is the reward",
        list(dict.fromkeys(["", *less, *([before] if before else [])])),
        key=SCORE,
        format_func=lambda name: safe.short(name, 80) or "as the files say",
        on_change=chosen,
    )
    lower = right.toggle("Less of it is better", key=LESS, disabled=not score)
    if score:
        yield f"--score={score}"
        if lower:
            yield "--lower-is-better"


def _grouping() -> Iterator[str]:
    """Which attempts are attempts at one task."""
    left, right = st.columns([2, 1], vertical_alignment="bottom")
    group = left.selectbox(
        "Attempts are at one task where",
        list(GROUPINGS),
        key="rollouts_group",
        format_func=GROUPINGS.__getitem__,
    )
    field = right.text_input(
        "Task id from a field", key="rollouts_field", placeholder="the format's own", max_chars=200
    )
    if group:
        yield f"--group-by={group}"
    if field := field.strip():
        yield f"--task-field={field}"
    if st.toggle(
        "Let attempts of different models share a group",
        key="rollouts_mix",
        help="Off, each model and each agent configuration has groups of its own. On, rewards are compared across "
        "them: where the better model wins, lessons tell models apart, and not what to do. Use it for models that "
        "are alike, with few attempts each.",
    ):
        yield "--mix-models"


def _secrets() -> Iterator[str]:
    if st.toggle("Keep keys, passwords and e-mail addresses as they are", key="rollouts_secrets"):
        yield "--keep-secrets"


def _rewards_file() -> Iterator[str]:
    """Rewards that stand in a file of their own."""
    with st.expander("Rewards from another file", icon=":material/attach_file:"):
        file = st.file_uploader(
            "CSV, JSONL or JSON with task_id, reward, and repeat or attempt_id; or a SWE-bench report",
            key="rollouts_rewards",
            max_upload_size=REWARDS_MB,
        )
    if file is not None:
        yield f"--rewards={uploads.kept([uploads.of_upload(file)])}"


def _rest(ws: Workspace) -> Iterator[str]:
    """Format, domain, split, and the columns of a generic file."""
    titles = {form.name: form.title for form in ws.intake.formats()}
    with st.expander("Format, columns, domain and split", icon=":material/tune:"):
        one, two, three = st.columns(3)
        form = one.selectbox(
            "Format",
            ["", *titles],
            key="rollouts_form",
            format_func=lambda name: titles.get(name, "what the content says"),
        )
        domain = two.text_input(
            "Domain of new tasks", key="rollouts_domain", placeholder="what they are named in", max_chars=100
        )
        split = three.selectbox("Split of new tasks", SPLITS, key="rollouts_split")
        mapping = st.text_area(
            "Columns of a generic file, as YAML: what is meant, and the column or path that holds it",
            key="rollouts_mapping",
            placeholder=MAPPING,
            height=150,
        )
    if form:
        yield f"--format={form}"
    if domain := domain.strip():
        yield f"--domain={domain}"
    if split and split != SPLITS[0]:
        yield f"--split={split}"
    if mapping.strip():
        yield f"--mapping={uploads.kept([uploads.of_text('mapping.yaml', mapping)])}"
