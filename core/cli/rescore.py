"""`winnow rescore`: rewards and advantages made anew; no rollout is touched, none is sampled."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from core.cli.desk import MAX_CONFIG_BYTES, Desk, plural, verb
from core.errors import InputError
from core.importers.source import bytes_of
from core.settings import PRESETS, RewardConfig

if TYPE_CHECKING:
    from core.workspace.rescoring import Rescored

COMPONENTS = tuple(dict.fromkeys(name for preset in PRESETS.values() for name in preset))
SHOWN = 20


@verb(None, "rescore")
@click.argument("run_id")
@click.option(
    "--reward", "preset", type=click.Choice(list(PRESETS)), help="Which preset; see docs/rewards.md."
)
@click.option(
    "--weight",
    "weights",
    metavar="NAME=X",
    multiple=True,
    help="Weight of a component (verified, tools, accepted, epistemic), or of a score in `verified`; 0 takes it out.",
)
@click.option(
    "--verifier",
    "verifiers",
    metavar="NAME=KIND",
    multiple=True,
    help="Have a verifier without options score every rollout, under this name.",
)
@click.option(
    "--config",
    "file",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A TOML or JSON file with the whole reward, options of verifiers included; its verifiers score anew.",
)
@click.option(
    "--silence-accepts/--silence-says-nothing", default=None, help="After 120 s without a rejection."
)
@click.option("--dry-run", is_flag=True, help="Say what would change, and write nothing.")
def rescore(
    desk: Desk,
    run_id: str,
    preset: str | None,
    weights: tuple[str, ...],
    verifiers: tuple[str, ...],
    file: Path | None,
    silence_accepts: bool | None,
    dry_run: bool,
) -> None:
    """Make the rewards and advantages of RUN_ID anew, from stored parts or with other verifiers.

    Scores stay under their verifier's name; one is replaced only where the same name scores anew. Proposals that were
    drawn before stay as they are. Without an option rewards are made as before, from what is known now.
    """
    if file and (verifiers or preset or weights or silence_accepts is not None):
        raise InputError("--config gives the whole reward; give it without the other options.")
    if file:
        reward = _read(file)
        anew: tuple[str, ...] = tuple(reward.verifiers)
    else:
        named = dict(_pair(v, "--verifier") for v in verifiers)
        data = desk.workspace.store.runs.get(run_id).config.reward.model_dump(mode="json")
        reward = RewardConfig.read(_changed(data, preset, weights, named, silence_accepts), where="reward")
        anew = tuple(named)
    found = desk.workspace.rescoring.rescore(
        run_id, desk.who, reward, anew=anew, dry_run=dry_run, progress=desk.progress
    )
    desk.answer(found, *_told(found))


def _changed(
    data: dict[str, Any],
    preset: str | None,
    weights: tuple[str, ...],
    verifiers: dict[str, str],
    silence_accepts: bool | None,
) -> dict[str, Any]:
    if preset:
        data |= {"preset": preset, "weights": {}}
    for name, value in (_pair(w, "--weight") for w in weights):
        if name not in COMPONENTS:
            data["verifier_weights"] = {**data["verifier_weights"], name: value}
        else:
            own = data["weights"] if data["preset"] == "own" else PRESETS[data["preset"]]
            data |= {"preset": "own", "weights": {**own, name: value}}
    data["verifiers"] |= {name: {"kind": kind} for name, kind in verifiers.items()}
    return data if silence_accepts is None else data | {"silence_accepts": silence_accepts}


def _pair(text: str, option: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not (name and equals and value):
        raise InputError(f"{option} {text}: write NAME=VALUE.")
    return name, value


def _read(file: Path) -> RewardConfig:
    try:
        text = bytes_of(file, MAX_CONFIG_BYTES).decode()
        data = json.loads(text) if file.suffix.lower() == ".json" else tomllib.loads(text)
    except ValueError as e:  # neither JSON nor TOML nor UTF-8
        raise InputError(f"{file} cannot be read: {e}.") from e
    return RewardConfig.read(data, where=str(file))


def _told(found: Rescored) -> list[str]:
    would = "would be" if found.dry_run else "are"
    reward = found.reward
    lines = [
        f"{plural(found.rewards_changed, 'reward')} of {found.run_id} {would} different; "
        f"{plural(found.status_changed, 'group')} of {found.groups:,} {'would change' if found.dry_run else 'changed'} "
        "status.",
        f"Reward: {reward.preset} ("
        + ", ".join(f"{weight:g} {name}" for name, weight in reward.by_component.items())
        + ").",
        f"Groups: {_groups(found, 'before')} before, {_groups(found, 'after')} now.",
    ]
    for title, ids in (
        ("Newly informative", found.newly_informative),
        ("No longer informative", found.no_longer_informative),
    ):
        if ids:
            more = f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else ""
            lines.append(f"{title}: {', '.join(ids[:SHOWN])}{more}.")
    for name, count in found.judged.items():
        told = f", {found.undecided[name]:,} of them could not be told" if name in found.undecided else ""
        lines.append(f"Scored anew as {name}: {plural(count, 'rollout')}{told}.")
    return [*lines, *found.notes, *(["Nothing was written."] if found.dry_run else [])]


def _groups(found: Rescored, when: str) -> str:
    tally = found.before if when == "before" else found.after
    return f"{tally.informative} informative, {tally.uninformative} uninformative, {tally.failed} failed"
