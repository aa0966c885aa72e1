"""Which score of a file is the reward: what its format defines, what the user says, or a single one.

Among several nobody guesses: the attempts are ungraded until the user says which.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from core.errors import InputError
from core.importers.formats.messages import Messages
from core.importers.report import ImportOptions, RewardSaid
from core.importers.rewards_file import Rewards
from core.store.spool import Block, Said, Spool

_LESS = re.compile(
    r"loss(es)?|errors?|err|wer|cer|r?mse|mae|perplexity|ppl|regret|penalt(y|ies)|costs?|price|latency|duration|time"
    r"|seconds|ms|tokens|steps|turns|toxic(ity)?|hallucinations?|bias|risk|harm(ful)?|violations?|distance|failures?"
    r"|mistakes|refusals?"
)
_MORE = re.compile(r"no|non|without|free|success")


def less_is_better(name: str) -> bool:
    """Whether the name of a score sounds as if less of it were better.

    >>> less_is_better("toxicity"), less_is_better("errorRate"), less_is_better("accuracy"), less_is_better("no_errors")
    (True, True, False, False)
    """
    words = set(re.findall(r"[a-z]+", re.sub(r"([a-z])([A-Z])", r"\1 \2", name).lower()))
    return any(map(_LESS.fullmatch, words)) and not any(map(_MORE.fullmatch, words))


def choose(spool: Spool, options: ImportOptions, side: Rewards | None) -> list[RewardSaid]:
    """Decide for all attempts of a spool which score is the reward, and write it into the spool.

    Raises:
        InputError: the score or the field that the user named is in none of the files.
    """
    _check(spool, options)
    if side is not None:
        said = [_by_file(spool, side)]
    else:
        _find_kin(spool)
        blocks = spool.blocks()
        several = {a.title for a, b in pairwise(sorted(blocks, key=_place)) if _place(a) == _place(b)}
        said = [_of(spool, block, options, block.title in several) for block in blocks]
    spool.judge()
    return said


def _place(block: Block) -> tuple[str, str]:
    return block.title, block.namespace


def _find_kin(spool: Spool) -> None:
    """Without a namespace, files with the same scores are decided on together; so are those that share a group,
    whose rewards must be the same score.
    """
    names: dict[int, set[str]] = {}
    for file, name in spool.score_names():
        names.setdefault(file, set()).add(name)
    root = {file: file for file in names}

    def first(file: int) -> int:
        while root[file] != file:
            root[file] = root[root[file]]
            file = root[file]
        return file

    for a, b in spool.files_with_one_group():
        root[first(a)] = first(b)
    together: dict[int, set[str]] = {}
    for file, scores in names.items():
        together.setdefault(first(file), set()).update(scores - {""})
    numbers = {these: number for number, these in enumerate(dict.fromkeys(map(frozenset, together.values())))}
    spool.set_kin((file, numbers[frozenset(together[first(file)])]) for file in names)


def _check(spool: Spool, options: ImportOptions) -> None:
    if options.score is not None and options.score not in (names := spool.all_names()):
        there = (
            f"the scores with numbers are: {', '.join(names[:30])}"
            if names
            else "there is no score with a number"
        )
        if spool.rows("SELECT 1 FROM attempts WHERE title = ? LIMIT 1", Messages.title):
            there += f"; a column becomes a score by a mapping that says reward: {options.score}"
        raise InputError(f"No attempt has a number under the score {options.score!r}; {there}.")
    if options.task_field is not None:
        tasks = spool.rows("SELECT count(*) AS n, count(own_id) AS named FROM tasks")[0]
        if tasks["n"] and not tasks["named"]:
            raise InputError(
                f"No attempt has {options.task_field!r} in its metadata: name one that is there as the task, or none."
            )


def _of(spool: Spool, block: Block, options: ImportOptions, by_file: bool) -> RewardSaid:
    names = tuple(spool.names(block))
    of = block.namespace or (f"{block.file} and its like" if by_file and block.named is None else "")
    score, by, sentence = _chosen(block, names, options, block.title + (f" ({of})" if of else ""))
    asked = score is not None and by == "user" and score == options.score
    turns = asked if options.score is not None else by in ("guess", "user")
    minus = options.lower_is_better and score is not None and turns
    if score is not None:
        mapped: Said = "changed" if by == "user" else "none"  # the same mapping again says nothing anew
        spool.reward_by(block, score, -1.0 if minus else 1.0, "all" if asked or minus else mapped)
    if minus:
        sentence += " Less of it is better, so the reward is minus the score."
    elif options.lower_is_better and options.score is None and score is not None:
        sentence += f" It stands as it is; --lower-is-better turns it with --score {score}."
    return RewardSaid(
        format=block.title,
        namespace=block.namespace,
        score=score,
        by=by,  # type: ignore[arg-type]  # one of them
        attempts=block.attempts,
        sentence=sentence,
        candidates=names,
        lower_is_better=minus,
    )


def _chosen(
    block: Block, names: Sequence[str], options: ImportOptions, what: str
) -> tuple[str | None, str, str]:
    """(score, who says so, the sentence for people, which begins with what it is about)."""
    if options.score is not None and (options.score in names or options.score == block.named):
        return options.score, "user", f"{what}: the reward is {options.score!r}, as you said."
    if block.named is not None and block.title == Messages.title:  # which defines nothing by itself
        return block.named, "user", f"{what}: the reward is {block.named!r}, by the mapping."
    if block.named is not None:
        return (
            block.named,
            "format",
            f"{what}: the reward is {block.named!r}, by the definition of the format.",
        )
    if block.own:
        return (
            None,
            "format",
            f"{what}: no reward was recorded; their scores are weighed, or their task's verifier asked.",
        )
    if options.verifier is not None and options.score is None and len(names) != 1:
        none = "no score has a number" if not names else "which of several scores is the reward was not said"
        return None, "user", f"{what}: {none}; the verifier of each task is asked, where it has one."
    if not names:
        column = ", or name their column by a mapping" if block.title == Messages.title else ""
        return (
            None,
            "nobody",
            f"{what}: no score has a number, so they are ungraded; give rewards with --rewards FILE{column}.",
        )
    if len(names) > 1:
        listed = ", ".join(map(repr, names[:20])) + (
            f" and {len(names) - 20} more" if len(names) > 20 else ""
        )
        return (
            None,
            "nobody",
            f"{what}: which score is the reward? {listed}. Say it with --score NAME; until then ungraded.",
        )
    turned = options.lower_is_better and options.score is None
    if less_is_better(names[0]) and not turned:
        sentence = (
            f"{what}: less of {names[0]!r} seems to be better, so it is not taken as the reward unasked; say"
        )
        return None, "nobody", f"{sentence} --score {names[0]} --lower-is-better, or --score {names[0]}."
    return names[0], "guess", f"{what}: the reward is {names[0]!r}: a guess, since it is the only score."


def _by_file(spool: Spool, side: Rewards) -> RewardSaid:
    """Take the rewards from a side file, by attempt, by task and number, or by task."""
    rows = spool.rows(
        "SELECT seq, own_id, repeat, task_id AS task, namespace FROM attempts"
        " WHERE fate IN ('new', 'known') ORDER BY seq"
    )
    given = [
        (row["seq"], _reward(side, row["task"], row["namespace"], row["repeat"], row["own_id"]))
        for row in rows
    ]
    spool.set_rewards(given)
    found = sum(value is not None for _, value in given)
    sentence = f"The rewards are those of {side.name}: {found:,} of {len(given):,} attempts have one in it"
    if side.unused:
        sentence += f"; {side.unused:,} of its {len(side):,} rows fit no attempt"
    if side.unread:
        sentence += f"; {side.unread:,} of its rows have no number as the reward"
    return RewardSaid(
        format="all", namespace="", score=side.name, by="user", attempts=len(given), sentence=sentence + "."
    )


def _reward(
    side: Rewards, task: str | None, namespace: str, repeat: int | None, own: str | None
) -> float | None:
    reward = side.of(task, repeat, own)
    if reward is None and task is not None and namespace:  # as the task is called here
        reward = side.of(f"{namespace}/{task}", repeat, None)
    return reward
