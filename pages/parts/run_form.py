"""The settings of a new run as a form: what matters is open, the rest is folded, and a problem stands at its field."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, get_args

import streamlit as st

from core.errors import NotFoundError
from core.rollout import SPLITS
from core.settings import PRESETS as WEIGHTED
from core.settings import Component, Preset, RewardConfig, RunConfig
from core.workspace import Workspace
from pages.parts import safe, session, words

if TYPE_CHECKING:
    from streamlit.delta_generator import DeltaGenerator

PRESETS: list[Preset] = [*WEIGHTED, "own"]
PARTS = get_args(Component)
TOOLS = ["python", "fetch", "files"]
FILLED = "w_run_filled"
"""The run that the form was filled from."""

PLACES = {
    "max_tokens": "max_tokens",
    "The gate ": "gate",
    "A cap on money": "max_cost_usd",
    "There are no ": "domains",
    "run: reward": "reward",
    "run: agent": "agent",
}
"""Beginnings of what may be wrong, each with the field that it stands at."""

WITHOUT_FIELD = {"top_p", "stop", "library_version"}
"""Settings that the form has no field for: a run again keeps those of the first one."""

Settings = dict[str, object]


class Form:
    """The form of one drawing; `problem` puts a sentence at the field that it is about."""

    def __init__(self, ws: Workspace, domains: Sequence[str]) -> None:
        self._roles = ws.models.roles()
        self._names = [e.name for e in ws.models.all()]
        self._domains = domains
        self._spots: dict[str, DeltaGenerator] = {}
        self._fill(ws)

    def problem(self, message: str) -> None:
        """Say what is wrong, at its field where it has one."""
        field = next((field for start, field in PLACES.items() if message.startswith(start)), "")
        if spot := self._spots.get(field):
            with spot:
                safe.html('<div class="w-field-error">{message}</div>', message=plainly(message))

    def draw(self) -> Settings:
        """Draw all fields; gives what a `RunConfig` is read from."""
        settings = self._essentials()
        with self._fold("Epochs and gate", "repeat"):
            settings |= self._epochs(bool(settings["extraction_endpoint"]))
        with self._fold("Reward", "star"):
            settings |= self._reward()
        with self._fold("Sampling", "casino"):
            settings |= self._sampling()
        with self._fold("Caps", "savings"):
            settings |= self._caps()
        with self._fold("Agent with tools", "construction"):
            settings |= self._agent()
        return settings

    def _essentials(self) -> Settings:
        one, two = st.columns(2)
        endpoint = self._choice(one, "Endpoint", self._names, "run_endpoint")
        extraction = two.selectbox(
            "Lessons drawn by",
            ["", *self._names],
            key="run_extraction",
            persist_state="session",
            format_func=lambda n: f"evidence and {n}" if n else "counted evidence alone",
        )
        one, two = st.columns([1, 2])
        split = self._choice(one, "Split", SPLITS, "run_split")
        domains = two.multiselect(
            "Domains", list(self._domains), key="run_domains", placeholder="All", persist_state="session"
        )
        self._spot("domains", two)
        one, two = st.columns(2)
        group_size = one.number_input(
            "Rollouts a task",
            2,
            64,
            key="run_group_size",
            persist_state="session",
            help="More of them tell better what made the difference; each costs a reply.",
        )
        limit = two.number_input(
            "Tasks a domain, at most",
            1,
            None,
            None,
            key="run_limit",
            placeholder="all",
            persist_state="session",
        )
        return {
            "endpoint": endpoint,
            "extraction_endpoint": extraction or None,
            "judge_endpoint": self._base.judge_endpoint or self._roles["judge"],
            **self._base.model_dump(mode="json", include=WITHOUT_FIELD),
            "split": split,
            "domains": tuple(domains),
            "group_size": group_size,
            "limit": limit,
        }

    def _epochs(self, taught: bool) -> Settings:
        one, two, three = st.columns([1, 1, 2])
        epochs = one.number_input("Epochs", 1, 100, key="run_epochs", persist_state="session")
        batch_size = two.number_input("Tasks a batch", 1, None, key="run_batch_size", persist_state="session")
        gate = three.selectbox(
            "Between batches",
            list(words.GATE),
            key="run_gate",
            format_func=words.GATE.__getitem__,
            persist_state="session",
        )
        self._spot("gate", three)
        withhold = st.checkbox(
            "Withhold right answers from the model that draws lessons",
            key="run_withhold",
            disabled=not taught,
            persist_state="session",
        )
        return {
            "epochs": epochs,
            "batch_size": batch_size,
            "gate": gate,
            "withhold_answer": bool(withhold and taught),
        }

    def _reward(self) -> Settings:
        preset = st.selectbox(
            "Made of", PRESETS, key="run_reward", format_func=_named, persist_state="session"
        )
        weights: dict[str, float] = {}
        if preset == "own":
            for part, column in zip(PARTS, st.columns(len(PARTS)), strict=True):
                weights[part] = column.number_input(
                    safe.label(part), 0.0, None, step=0.1, key=f"run_weight_{part}", persist_state="session"
                )
        self._spot("reward", st.container())
        given = {part: weight for part, weight in weights.items() if weight}
        kept = self._base.reward.model_dump(mode="json", exclude={"preset", "weights"})
        return {"reward": {**kept, "preset": preset, "weights": given}}

    def _sampling(self) -> Settings:
        one, two, three = st.columns(3)
        temperature = one.number_input(
            "Temperature", 0.0, 2.0, step=0.1, key="run_temperature", persist_state="session"
        )
        max_tokens = two.number_input(
            "Tokens a reply, at most", 1, None, key="run_max_tokens", persist_state="session"
        )
        self._spot("max_tokens", two)
        seed = three.number_input("Seed", 0, 2**31 - 1, key="run_seed", persist_state="session")
        one, two, three = st.columns(3)
        again = one.number_input(
            "Sample anew, times",
            0,
            8,
            key="run_again",
            persist_state="session",
            help="Where all rollouts of a task got the same reward.",
        )
        again_at = two.number_input(
            "At temperature",
            0.0,
            2.0,
            step=0.1,
            key="run_again_at",
            disabled=not again,
            persist_state="session",
        )
        patience = three.number_input(
            "Seconds a rollout, at most",
            1.0,
            None,
            None,
            key="run_patience",
            placeholder="no cap",
            persist_state="session",
        )
        return {
            "temperature": temperature,
            "max_tokens": max_tokens,
            "seed": seed,
            "resample": {"attempts": again, "temperature": again_at} if again else None,
            "rollout_timeout_s": patience,
        }

    def _caps(self) -> Settings:
        one, two, three = st.columns(3)
        calls = one.number_input(
            "Calls, at most",
            0,
            None,
            None,
            key="run_max_calls",
            placeholder="no cap",
            persist_state="session",
        )
        tokens = two.number_input(
            "Tokens, at most",
            0,
            None,
            None,
            key="run_all_tokens",
            placeholder="no cap",
            persist_state="session",
        )
        money = three.number_input(
            "US dollars, at most",
            0.0,
            None,
            None,
            key="run_max_cost",
            placeholder="no cap",
            persist_state="session",
        )
        self._spot("max_cost_usd", three)
        return {"max_calls": calls, "max_tokens_total": tokens, "max_cost_usd": money}

    def _agent(self) -> Settings:
        tools = st.multiselect(
            "Tools",
            TOOLS,
            key="run_tools",
            placeholder="None: a rollout is one reply",
            accept_new_options=True,
            persist_state="session",
            help="A tool server that the trust file names goes in as mcp:NAME.",
        )
        one, two = st.columns([1, 2])
        steps = one.number_input(
            "Tool calls, at most", 1, 200, key="run_steps", disabled=not tools, persist_state="session"
        )
        hosts = two.multiselect(
            "Hosts that fetch may ask",
            [],
            key="run_hosts",
            placeholder="example.org",
            accept_new_options=True,
            disabled="fetch" not in tools,
            persist_state="session",
        )
        self._spot("agent", two)
        if not tools:
            return {"agent": None}
        fetched = tuple(hosts) if "fetch" in tools else ()
        kept = self._base.agent.model_dump(mode="json") if self._base.agent else {}
        return {"agent": {**kept, "tools": tuple(tools), "max_steps": steps, "fetch_hosts": fetched}}

    # --- parts ---

    def _choice(self, place: DeltaGenerator, label: str, options: Sequence[str], key: str) -> str:
        return place.selectbox(safe.label(label), options, key=key, persist_state="session")

    @contextmanager
    def _fold(self, name: str, icon: str) -> Iterator[None]:
        with st.expander(safe.label(name), icon=f":material/{icon}:"):
            yield

    def _spot(self, field: str, place: DeltaGenerator) -> None:
        self._spots[field] = place.empty()

    def _fill(self, ws: Workspace) -> None:
        """Begin with the run that the address names, with what was typed before, or with what is usual."""
        asked = session.asked("from")
        first = _begun(ws, asked) if asked else None
        self._base = first or usual(ws)
        anew = first is not None and asked != session.get(FILLED)
        session.put(FILLED, asked)
        for key, value in _values(self._base).items():
            if anew or key not in st.session_state:
                session.put(key, value)
        for key, known in (("run_endpoint", self._names), ("run_extraction", ["", *self._names])):
            if session.get(key) not in known:
                session.put(key, known[0])
        kept = session.get("run_domains")
        if isinstance(kept, list) and (gone := set(kept) - set(self._domains)):
            session.put("run_domains", [d for d in kept if d not in gone])


def usual(ws: Workspace) -> RunConfig:
    """What a run begins with where nothing was chosen."""
    roles, caps = ws.models.roles(), ws.preferences.caps
    plain = RunConfig()
    return plain.model_copy(
        update={
            "endpoint": roles["rollout"] or plain.endpoint,
            "extraction_endpoint": roles["extraction"],
            **caps.model_dump(),
        }
    )


def _begun(ws: Workspace, run_id: str) -> RunConfig | None:
    """The settings of a run that was sampled here; None where there is none of that id."""
    with suppress(NotFoundError):
        run = ws.store.runs.brief(run_id)
        return run.config if run.kind == "sampled" else None
    return None


def _values(config: RunConfig) -> Mapping[str, object]:
    """What each widget shows of a configuration."""
    weights = config.reward.weights if config.reward.preset == "own" else {"verified": 1.0}
    agent, again = config.agent, config.resample
    return {
        "run_endpoint": config.endpoint,
        "run_extraction": config.extraction_endpoint or "",
        "run_split": config.split,
        "run_domains": list(config.domains),
        "run_group_size": config.group_size,
        "run_limit": config.limit,
        "run_epochs": config.epochs,
        "run_batch_size": config.batch_size,
        "run_gate": config.gate,
        "run_withhold": config.withhold_answer,
        "run_reward": config.reward.preset,
        **{f"run_weight_{part}": float(weights.get(part, 0.0)) for part in PARTS},
        "run_temperature": config.temperature,
        "run_max_tokens": config.max_tokens,
        "run_seed": config.seed,
        "run_again": again.attempts if again else 0,
        "run_again_at": again.temperature if again else 1.0,
        "run_patience": config.rollout_timeout_s,
        "run_max_calls": config.max_calls,
        "run_all_tokens": config.max_tokens_total,
        "run_max_cost": config.max_cost_usd,
        "run_tools": list(agent.tools) if agent else [],
        "run_steps": agent.max_steps if agent else 12,
        "run_hosts": list(agent.fetch_hosts) if agent else [],
    }


def plainly(message: str) -> str:
    """A sentence of the core without the dashes of a command line."""
    return re.sub(r"--([a-z][a-z-]*)", lambda m: m[1].replace("-", " "), message.removeprefix("run: "))


def _named(preset: Preset) -> str:
    return "own weights" if preset == "own" else words.reward(RewardConfig(preset=preset))
