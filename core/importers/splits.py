"""Train, trial and final: which task goes where (DESIGN 2.10)."""

from __future__ import annotations

import math
import random
import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence

from core.errors import InputError
from core.rollout import SPLITS, Split

SHARES = (0.4, 0.3, 0.3)
"""Shares of train, trial and final where a file names no splits."""

SPLIT_NAMES: dict[str, Split] = {
    "train": "train",
    "training": "train",
    "trial": "trial",
    "dev": "trial",
    "development": "trial",
    "val": "trial",
    "valid": "trial",
    "validation": "trial",
    "final": "final",
    "test": "final",
    "testing": "final",
    "eval": "final",
    "evaluation": "final",
    "heldout": "final",
    "holdout": "final",
}
"""What splits are called elsewhere, without dashes and underscores."""


def split_named(name: str) -> Split:
    """The split that a name stands for.

    Raises:
        ValueError: none.
    """
    found = SPLIT_NAMES.get(re.sub(r"[\s_-]+", "", name.casefold()))
    if found is None:
        raise ValueError(
            f"the split {name[:40]!r} is unknown; use train, trial (dev, validation) or final (test)"
        )
    return found


def text_key(question: str) -> str:
    """What two questions share that are the same text: capitals, spacing and final punctuation ignored.

    Punctuation inside counts ("5-3" is not "5/3").
    """
    text = unicodedata.normalize("NFKC", question).casefold()
    text = re.sub(r"\s*([^\w\s])\s*", r"\1", " ".join(text.split()))
    return text.rstrip(".?!: ") or text


def assign_splits(
    keys: Sequence[str],
    domains: Sequence[str],
    given: Sequence[Split | None],
    *,
    shares: tuple[float, float, float] = SHARES,
    seed: int = 0,
) -> list[Split]:
    """A split for every task, tasks of one text together, the shares kept within each domain and over all.

    A text whose tasks name several splits goes to the earliest of them: what teaches must not prove. The result
    depends on the seed and the tasks, not on their order.

    Args:
        keys: `text_key` of each task, shape [n].
        domains: domain of each task, shape [n].
        given: the split that the file names for it, or None, shape [n].
        shares: of train, trial and final; they are scaled to sum to 1.
        seed: of the shuffle within each domain.

    Raises:
        InputError: shares that are negative, not finite, or all zero.
    """
    if not all(math.isfinite(s) and s >= 0 for s in shares) or not sum(shares):
        raise InputError("The shares of train, trial and final must be numbers from 0, not all of them 0.")
    scale = [s / sum(shares) for s in shares]
    fixed: dict[str, Split] = {}
    home: dict[str, str] = {}
    for key, domain, split in zip(keys, domains, given, strict=True):
        home[key] = min(home.get(key, domain), domain)
        if split is not None:
            fixed[key] = min(fixed.get(key, split), split, key=SPLITS.index)
    by_domain: dict[str, list[str]] = defaultdict(list)
    for key in sorted(home.keys() - fixed.keys()):
        by_domain[home[key]].append(key)
    chosen = dict(fixed)
    owed = [0.0, 0.0, 0.0]
    for domain in sorted(by_domain):
        texts = by_domain[domain]
        random.Random(f"{seed}:{domain}").shuffle(texts)
        counts = [int(s * len(texts) + 1e-9) for s in scale]
        owed = [o + s * len(texts) - c for o, s, c in zip(owed, scale, counts, strict=True)]
        for _ in range(len(texts) - sum(counts)):
            most = max(range(3), key=lambda i: round(owed[i], 9))  # the first of equals: train before trial
            counts[most] += 1
            owed[most] -= 1
        names = [name for name, count in zip(SPLITS, counts, strict=True) for _ in range(count)]
        chosen.update(zip(texts, names, strict=True))
    return [chosen[key] for key in keys]
