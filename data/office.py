"""The files that the scripted agent works on, and the questions about them.

Every file is made from the seed; what is right is counted from the same rows that are written out. People,
buildings and machines are made up.
"""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

Area = Literal["tables", "settings", "logs"]


@dataclass(frozen=True)
class Errand:
    """One question about one file, and what a careless agent would assume without looking."""

    area: Area
    file: str
    guessed_file: str
    """A likely name that is not there."""
    question: str
    answer: str
    key: str
    """Column, dotted key or word that leads to the answer."""
    guessed_key: str
    """A likely one that is not there."""
    where: tuple[str, str] = ("", "")
    """For a table: column and value that choose the rows."""


TABLES = (
    ("orders-2024-03.csv", "orders.csv", "customer", "total_eur", "amount",
     ("Alder", "Birch", "Cedar", "Hazel"), "What do the orders of {} add up to, in euros?"),
    ("stock-east.csv", "stock.csv", "item", "pieces", "quantity",
     ("bolt", "hinge", "washer", "bracket"), "How many pieces of the item {} does the eastern store hold?"),
    ("travel-costs.csv", "travel.csv", "person", "cost_eur", "amount",
     ("Brook", "Field", "Moss", "Reed"), "What do the journeys of {} cost together, in euros?"),
    ("energy-2024.csv", "energy.csv", "building", "kwh", "consumption",
     ("library", "school", "theatre", "depot"), "How many kilowatt hours did the {} use in the whole year?"),
    ("working-hours-may.csv", "hours.csv", "person", "minutes", "time",
     ("Finch", "Heron", "Swift", "Wren"), "How many minutes did {} work in May altogether?"),
)  # fmt: skip
"""File, guess, chooser column, value column, guessed column, values to choose from, question."""

SETTINGS = (
    ("mail-server.json", "mail.json", "connections.encrypted.port", "port", (465, 587, 993, 2525),
     "Which port does the mail server use for encrypted connections?"),
    ("backup-plan.json", "backup.json", "schedule.nightly.keep_days", "keep_days", (14, 21, 45, 60),
     "For how many days is a nightly backup kept?"),
    ("print-queue.json", "printer.json", "limits.guests.pages_per_day", "pages", (15, 25, 40, 75),
     "How many pages may a guest print in a day?"),
    ("door-system.json", "doors.json", "access.visitors.valid_hours", "hours", (4, 6, 10, 12),
     "For how many hours is the badge of a visitor valid?"),
    ("room-booking.json", "rooms.json", "rules.large_hall.max_people", "capacity", (80, 120, 150, 220),
     "How many people may be booked into the large hall at most?"),
)  # fmt: skip
"""File, guess, dotted key, guessed key, values to draw from, question."""

LOGS = (
    ("web-server.log", "server.log", "timeout", "How many lines of the web server's log report a timeout?"),
    (
        "lift-north.log",
        "lift.log",
        "overload",
        "How many lines of the northern lift's log report an overload?",
    ),
    ("pump-3.log", "pump.log", "leak", "How many lines of the log of pump 3 report a leak?"),
    ("parking-gate.log", "gate.log", "blocked", "How many lines of the parking gate's log report blocked?"),
    ("greenhouse.log", "climate.log", "frost", "How many lines of the greenhouse's log report frost?"),
)
"""File, guess, word, question."""


def furnish(folder: Path, rng: random.Random) -> list[Errand]:
    """Write all files into a folder and return the errands about them."""
    errands = [_table(folder, rng, *row) for row in TABLES]
    errands += [_settings(folder, rng, *row) for row in SETTINGS]
    errands += [_log(folder, rng, *row) for row in LOGS]
    return errands


def write(folder: Path, name: str, text: str) -> None:
    (folder / name).write_bytes(text.encode())


def _table(
    folder: Path,
    rng: random.Random,
    file: str,
    guess: str,
    chooser: str,
    column: str,
    guessed: str,
    values: tuple[str, ...],
    question: str,
) -> Errand:
    rows = [(value, rng.randint(11, 480)) for value in values for _ in range(rng.randint(3, 5))]
    rng.shuffle(rows)
    wanted = rng.choice(values)
    body = [f"{i},{value},{number}" for i, (value, number) in enumerate(rows, start=1)]
    write(folder, file, "\n".join([f"row,{chooser},{column}", *body]) + "\n")
    total = sum(number for value, number in rows if value == wanted)
    return Errand(
        "tables", file, guess, question.format(wanted), str(total), column, guessed, where=(chooser, wanted)
    )


def _settings(
    folder: Path,
    rng: random.Random,
    file: str,
    guess: str,
    key: str,
    guessed: str,
    values: tuple[int, ...],
    question: str,
) -> Errand:
    first, second, third = key.split(".")
    value = rng.choice(values)
    spare = {f"option_{i}": {"enabled": rng.random() < 0.5, "level": rng.randint(1, 99)} for i in range(1, 9)}
    content: dict[str, Any] = {
        "about": f"Settings of {file.removesuffix('.json')}, revision {rng.randint(2, 30)}",
        **spare,
        first: {"default": {third: rng.randint(100, 999)}, second: {third: value}},
    }
    write(folder, file, json.dumps(content, indent=1) + "\n")
    return Errand("settings", file, guess, question, str(value), key, guessed)


def _log(folder: Path, rng: random.Random, file: str, guess: str, word: str, question: str) -> Errand:
    notes = ("started", "check passed", "value stored", "door closed", "report sent")
    lines = [f"{8 + i // 12:02}:{5 * (i % 12):02} info {rng.choice(notes)}" for i in range(72)]
    hits = sorted(rng.sample(range(72), rng.randint(7, 19)))
    for i in hits:
        spelt = rng.choice((word, word.upper(), word.capitalize()))
        lines[i] = f"{lines[i][:5]} warning {spelt} reported"
    write(folder, file, "\n".join(lines) + "\n")
    return Errand("logs", file, guess, question, str(len(hits)), word, word)
