"""A scripted agent that succeeds more often when it follows a known habit: lessons that are there to be found.

No model is involved. There are twenty domains, each with one planted habit, which moves the chance of success by the
*effect*, and one decoy, which varies as much and moves nothing. Both come in five kinds: which tool, in which order,
with which parameter, in which form the answer, and what after an error. Half of the decoys go with the difficulty of
the task (the harder, the more often), half with nothing. Whoever contrasts good attempts with bad ones should find the
planted habits and only these.

1. A task has a base chance of success, drawn evenly from `BASE`. An attempt that follows the planted habit succeeds
   with base + effect / 2, one that does not with base - effect / 2; so the effect is the same for every task.
2. A habit for after an error matters only where the error was met (`MEETS`); who did not fares as who recovers.
3. Every attempt also does things that are neither: it jots something down at any place, and words its answer freely.
4. Whether a text is right is read from the text alone (`Habit.verdict`), so that any extractor can be judged. What is
   neither right nor wrong about the planted habit of its domain is a false lesson, whatever it is about.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from core.experience import GENERAL
from core.rollout import Group, Rollout, Score, Step, Task, Trajectory
from core.settings import RewardConfig, VerifierSpec
from core.settling import settle

HabitKind = Literal["tool", "order", "parameter", "form", "recovery"]
KINDS: tuple[HabitKind, ...] = ("tool", "order", "parameter", "form", "recovery")

BASE = (0.3, 0.7)
"""Chance of success of the hardest and of the easiest task, at the middle of the effect."""
SHARE = (0.35, 0.65)
"""How often a habit is followed; drawn for each habit."""
MEETS = 0.75
"""How often the error of a recovery is met."""
LEAN = 2.0
"""How steeply a decoy goes with the difficulty: .4 more often on the hardest task, .4 less on the easiest."""

NAMES = (
    "Arden", "Bexley", "Calder", "Dorset", "Elgin", "Fenwick", "Garston", "Halden", "Ilford", "Jarrow", "Kelso",
    "Lorne", "Malton", "Norwood", "Oakham", "Penrith", "Quorn", "Ripon", "Selby", "Thirsk",
)  # fmt: skip
"""Right answers, and wrong ones: the name of another task."""

Calls = list[Step]
Act = Callable[[bool, str, bool], Calls]
"""From whether the habit is followed, the reference of the task and whether the error is met, to calls."""


@dataclass(frozen=True)
class Habit:
    """Something that an attempt does or does not do."""

    kind: HabitKind
    what: str
    """The lesson in words."""
    act: Act = lambda follows, ref, met: []
    forms: tuple[str, str] = ("", "")
    """How the answer is worded by who follows the habit, and by who does not; empty where that is not its matter."""
    right: tuple[str, ...] = ()
    """Patterns of texts that advise it."""
    wrong: tuple[str, ...] = ()
    """Patterns of texts that advise against it."""

    def verdict(self, text: str) -> int:
        """1 where a text advises the habit, -1 where it advises against it, 0 where it does neither, or both."""
        found = [any(re.search(p, text, re.IGNORECASE) for p in side) for side in (self.right, self.wrong)]
        return found[0] - found[1]


# --- the five kinds ------------------------------------------------------------------------------------

_NOT = r"\b(?:do not|never|leave out|without|instead of)\b[^.;:]*"
_NO_NOT = rf"^(?!.*{_NOT})[^.]*"


def step(tool: str, ref: str, error: str = "", **parameters: Any) -> Step:
    return Step(
        tool=tool,
        parameters={"ref": ref, **parameters},
        output="" if error else "done",
        success=not error,
        error=error or None,
        duration_s=None,
    )


def tool(good: str, bad: str | None) -> Habit:
    """One tool and not another, or one that can also be left unused."""

    def act(follows: bool, ref: str, met: bool) -> Calls:
        chosen = good if follows else bad
        return [step(chosen, ref)] if chosen else []

    right, wrong = [rf"{_NO_NOT}`{good}`"], [rf"{_NOT}`{good}`"]
    if bad:
        right, wrong = [*right, rf"{_NOT}`{bad}`"], [*wrong, rf"{_NO_NOT}`{bad}`"]
    return Habit("tool", f"use {good}", act, right=tuple(right), wrong=tuple(wrong))


def order(first: str, then: str, *also: str) -> Habit:
    """One call before another; both are made in any case."""

    def act(follows: bool, ref: str, met: bool) -> Calls:
        return [step(t, ref) for t in ((first, then) if follows else (then, first))]

    def told(a: str, b: str) -> tuple[str, ...]:
        plain = (rf"call `{a}` before `{b}`", rf"call `{b}` right after `{a}`", rf"call `{a}` first")
        return (*plain, rf"finish with `{b}`", rf"do not start with `{b}`")

    return Habit(
        "order", f"{first} before {then}", act, right=told(first, then) + also, wrong=told(then, first)
    )


def parameter(name: str, key: str, good: Any, bad: Any) -> Habit:
    """A parameter with one value and not another; None: not passed."""

    def act(follows: bool, ref: str, met: bool) -> Calls:
        value = good if follows else bad
        return [step(name, ref, **({} if value is None else {key: value}))]

    def shown(value: Any) -> str:
        return f"`{key}={str(value).lower() if isinstance(value, bool) else value}`"

    right = [rf"{_NO_NOT}{shown(good)}", rf"pass `{key}`" if bad is None else rf"{_NOT}{shown(bad)}"]
    wrong = [rf"{_NOT}{shown(good)}", rf"leave out `{key}`" if bad is None else rf"{_NO_NOT}{shown(bad)}"]
    return Habit("parameter", f"{name} with {key}={good}", act, right=tuple(right), wrong=tuple(wrong))


def form(what: str, good: str, bad: str, right: tuple[str, ...] = (), wrong: tuple[str, ...] = ()) -> Habit:
    """One wording of the answer and not another; {} stands for the answer."""
    return Habit("form", what, forms=(good, bad), right=right, wrong=wrong)


def recovery(
    name: str,
    error: str,
    good: str,
    bad: str,
    right: tuple[str, ...] = (),
    wrong: tuple[str, ...] = (),
) -> Habit:
    """What is done after a failed call: "retry", "retry in vain", "fix", "give up", or the name of another tool."""

    def act(follows: bool, ref: str, met: bool) -> Calls:
        if not met:
            return [step(name, ref)]
        failed, done = step(name, ref, error), good if follows else bad
        answers: Mapping[str, Calls] = {
            "retry": [step(name, ref)],
            "retry in vain": [failed],
            "fix": [step(name, f"{ref}/1")],
            "give up": [],
        }
        return [failed, *answers.get(done, [step(done, ref)])]

    return Habit("recovery", f"after {error} from {name}: {good}", act, right=right, wrong=wrong)


# --- what is planted, and what is a decoy ----------------------------------------------------------------

_BRIEF = (
    r"answer with (?!the json)[^.]*\b(?:alone|one word)\b",
    r"\bat most\b",
    r"\bunder ten words\b",
    r"\bdo not repeat the question\b",
)
_CORRECT = (r"\bcorrect (?:its|the) parameters\b", r"\bdo not repeat the same call\b")

PLANTED: Mapping[HabitKind, tuple[tuple[str, str, Habit], ...]] = {
    "tool": (
        ("invoices", "Which office issued invoice {}?", tool("parse_table", "read_text")),
        ("journals", "Which host wrote entry {}?", tool("grep_lines", "tail_lines")),
        ("maps", "Which county is parcel {} in?", tool("lookup_gazetteer", "web_search")),
        ("payroll", "Which branch pays account {} the most?", tool("calculator", None)),
    ),
    "order": (
        ("stock", "Which store keeps item {}?", order("check_shelf", "reserve_item")),
        ("reports", "Which region leads report {}?", order("read_schema", "run_report")),
        ("freight", "Which carrier takes load {}?", order("convert_units", "sum_column")),
        (
            "ledgers",
            "Which book holds entry {}?",
            order("post_entry", "verify_total", r"check the result with another call after"),
        ),
    ),
    "parameter": (
        ("mail", "Who sent message {}?", parameter("search_mail", "scope", "all", "inbox")),
        ("queries", "Which table answers query {}?", parameter("run_query", "strict", True, None)),
        ("rates", "Which bank quotes rate {}?", parameter("fetch_rates", "limit", 100, 10)),
        ("images", "Which camera took image {}?", parameter("measure_image", "mode", "exact", "fast")),
    ),
    "form": (
        (
            "stations",
            "Which station serves line {}?",
            form(
                "one word alone",
                "{}",
                "The station on that line is {}",
                _BRIEF,
                (r"repeats the words of the question",),
            ),
        ),
        (
            "plants",
            "Which garden grows plant {}?",
            form(
                "no final period",
                "It grows in {}",
                "It grows in {}.",
                (r"without (?:a period|punctuation)", r"no final period"),
                (r"end the answer with a period",),
            ),
        ),
        (
            "ships",
            'Name the harbour of ship {} as JSON like {{"harbour": "..."}}.',
            form(
                "the JSON alone",
                '{{"harbour": "{}"}}',
                'Here it is: {{"harbour": "{}"}}',
                (r"the JSON alone",),
                (r"\bin a sentence\b",),
            ),
        ),
        (
            "exhibits",
            "Which hall shows exhibit {}?",
            form(
                "no explanation",
                "It stands in {}",
                "It stands in {} because that hall was made for such things long ago",
                (r"without an explanation", r"\bunder ten words\b", r"no explanation"),
                (r"add a short reason",),
            ),
        ),
    ),
    "recovery": (
        (
            "pages",
            "Which site hosts page {}?",
            recovery(
                "fetch_page",
                "TimeoutError: no reply",
                "retry",
                "search_cache",
                (r"try the same call once more", r"call `fetch_page` again", rf"{_NOT}`search_cache`"),
                (*_CORRECT, r"use another tool", rf"{_NO_NOT}`search_cache`"),
            ),
        ),
        (
            "records",
            "Which archive holds record {}?",
            recovery(
                "read_record",
                "KeyError: 'entry'",
                "fix",
                "retry in vain",
                _CORRECT,
                (r"try the same call once more",),
            ),
        ),
        (
            "folders",
            "Which drive keeps folder {}?",
            recovery(
                "open_folder",
                "FileNotFoundError: no such folder",
                "list_folders",
                "retry in vain",
                (rf"{_NO_NOT}`list_folders`", r"do not repeat the same call", r"use another tool"),
                (rf"{_NOT}`list_folders`", r"try the same call once more"),
            ),
        ),
        (
            "exports",
            "Which team made export {}?",
            recovery(
                "export_sheet",
                "PermissionError: read only",
                "fix",
                "give up",
                (r"correct (?:its|the) parameters", r"\bdo not stop\b"),
            ),
        ),
    ),
}
"""By kind: domain, how its tasks ask, and the habit that matters there."""

DECOYS: Mapping[HabitKind, tuple[Habit, ...]] = {
    "tool": (
        tool("summarise_page", "outline_page"),
        tool("detect_language", None),
        tool("count_rows", "sample_rows"),
        tool("translate_title", None),
    ),
    "order": (
        order("load_glossary", "load_calendar"),
        order("open_index", "open_legend"),
        order("note_source", "note_date"),
        order("ping_server", "list_units"),
    ),
    "parameter": (
        parameter("format_output", "width", 80, 120),
        parameter("open_view", "theme", "dark", "light"),
        parameter("sort_rows", "stable", True, None),
        parameter("load_page", "encoding", "utf-8", "latin-1"),
    ),
    "form": (
        form("a preamble", "Certainly, it is {}", "It is {}"),
        form("quotes", '"{}"', "{}"),
        form("lower case", "it is {lower}", "It is {}"),
        form("two sentences", "It is {}. That is all", "It is {}"),
    ),
    "recovery": (
        recovery("ping_mirror", "ConnectionError: reset", "retry", "list_mirrors"),
        recovery("load_font", "OSError: no such font", "fix", "retry in vain"),
        recovery("warm_cache", "MemoryError: full", "retry", "give up"),
        recovery("sync_clock", "RuntimeError: drift", "list_clocks", "fix"),
    ),
}
"""By kind; the first and the third go with nothing, the second and the fourth with the difficulty of the task."""

FREE = ("The answer is {}", "It is {}", "{}", "I would say {}")
"""How an answer is worded where that is nobody's habit."""


class Domain(NamedTuple):
    """Where one habit is planted beside one decoy."""

    name: str
    ask: str
    planted: Habit
    decoy: Habit
    with_difficulty: bool
    """Whether the decoy goes with the difficulty of the task."""


def domains() -> list[Domain]:
    """The twenty: each planted kind meets the decoys of the four other kinds once."""
    found = []
    for k, kind in enumerate(KINDS):
        for j, (name, ask, planted) in enumerate(PLANTED[kind]):
            decoy = DECOYS[KINDS[(k + 1 + j) % len(KINDS)]][j]
            found.append(Domain(name, ask, planted, decoy, with_difficulty=j % 2 == 1))
    return found


# --- the agent --------------------------------------------------------------------------------------------


@dataclass
class Agent:
    """The agent in one domain; what it does is drawn from the seed, the domain, the task and the attempt."""

    domain: Domain
    effect: float
    seed: int
    shares: tuple[float, float] = field(init=False)
    """How often the planted habit and the decoy are followed."""

    def __post_init__(self) -> None:
        rng = random.Random(f"{self.seed} {self.domain.name} shares")
        self.shares = (rng.uniform(*SHARE), rng.uniform(*SHARE))

    def task(self, number: int) -> Task:
        name = self.domain.name
        ref = f"{name[0]}-{self.seed}{number:03}"
        return Task(
            id=f"{name}-{self.seed}-{number}",
            question=self.domain.ask.format(ref),
            answer=NAMES[number % len(NAMES)],
            verifier=VerifierSpec(kind="text"),
            domain=name,
            metadata={"ref": ref},
        )

    def base(self, task: Task) -> float:
        """The chance of success of a task, in `BASE`."""
        return random.Random(f"{task.id} base").uniform(*BASE)

    def attempt(
        self,
        task: Task,
        replicate: int,
        planted: bool | None = None,
        decoy: bool | None = None,
        *,
        arm: str = "",
    ) -> tuple[Trajectory, float]:
        """One attempt and its reward, 0 or 1.

        Args:
            task: of this domain.
            replicate: of the attempt.
            planted: whether the planted habit is followed; None: as the agent happens to.
            decoy: the same for the decoy.
            arm: attempts of different arms are independent.
        """
        rng, base = random.Random(f"{task.id} {replicate} {arm}"), self.base(task)
        leaning = self.shares[1] + LEAN * (0.5 - base) * self.domain.with_difficulty
        drawn = (rng.random() < self.shares[0], rng.random() < min(max(leaning, 0.05), 0.95))
        follows = drawn[0] if planted is None else planted
        also = drawn[1] if decoy is None else decoy
        met = (rng.random() < MEETS, rng.random() < MEETS)
        helped = follows or (self.domain.planted.kind == "recovery" and not met[0])
        won = rng.random() < base + self.effect * (0.5 if helped else -0.5)
        said = task.answer or ""
        if not won:
            said = rng.choice([n for n in NAMES if n != said])
        return self._trajectory(task, follows, also, met, said, rng), float(won)

    def _trajectory(
        self, task: Task, follows: bool, also: bool, met: tuple[bool, bool], said: str, rng: random.Random
    ) -> Trajectory:
        ref = str(task.metadata["ref"])
        habits = [(self.domain.planted, follows, met[0]), (self.domain.decoy, also, met[1])]
        habits.sort(key=lambda h: h[0].kind == "recovery")  # who gives up makes no further call
        steps = [call for habit, does, hit in habits for call in habit.act(does, ref, hit)]
        if rng.random() < 0.4:
            last = len(steps) - (
                habits[-1][0].kind == "recovery"
            )  # a note does not part an error and its recovery
            steps.insert(rng.randint(0, max(0, last - 1)), step("jot_down", ref, kind=rng.choice("abc")))
        wording = rng.choice(FREE)
        for habit, does, _ in habits:
            wording = habit.forms[0 if does else 1] or wording
        return Trajectory(
            steps=tuple(steps), answer=wording.format(said, lower=said.lower()), finish_reason="stop"
        )

    def group(self, number: int, size: int) -> tuple[Task, Group]:
        """A task and its attempts, scored and settled."""
        task = self.task(number)
        identity = f"g-{task.id}"
        rollouts = []
        for i in range(size):
            trajectory, reward = self.attempt(task, i)
            rollouts.append(
                Rollout(
                    id=f"{identity}-{i}",
                    group_id=identity,
                    task_id=task.id,
                    replicate=i,
                    trajectory=trajectory,
                    scores={"text": Score(value=reward)},
                    model="scripted-agent",
                )
            )
        group = Group(id=identity, run_id="R1", task_id=task.id, rollouts=tuple(rollouts))
        return task, settle(group, RewardConfig())


def groups(effect: float, seed: int, *, tasks: int = 40, size: int = 8) -> Iterator[tuple[Task, Group]]:
    """The groups of all twenty domains."""
    for domain in domains():
        agent = Agent(domain, effect, seed)
        for number in range(tasks):
            yield agent.group(number, size)


# --- judging ------------------------------------------------------------------------------------------------


@dataclass
class Judged:
    """What became of the planted habits, and of what was proposed."""

    found: dict[str, list[str]] = field(default_factory=dict)
    """Domains whose planted habit was found, with the texts that say it."""
    false: list[tuple[str, str]] = field(default_factory=list)
    """Domain and text of what is not true."""

    @property
    def recall(self) -> float:
        """Share of the planted habits that were found, in [0, 1]."""
        return len(self.found) / len(domains())

    @property
    def proposed(self) -> int:
        return sum(map(len, self.found.values())) + len(self.false)

    @property
    def precision(self) -> float | None:
        """Share of the proposed lessons that are true, in [0, 1]; None where nothing was proposed."""
        return None if not self.proposed else 1 - len(self.false) / self.proposed


def judge(lessons: list[tuple[str, str]]) -> Judged:
    """Hold lessons, each a domain and a text, against what was planted.

    A lesson for all domains is true if it is right of at least one and wrong of none; it finds those it is right of.
    """
    planted = {d.name: d.planted for d in domains()}
    judged = Judged()
    for domain, text in lessons:
        concerned = planted if domain == GENERAL else {domain: planted[domain]}
        verdicts = {name: habit.verdict(text) for name, habit in concerned.items()}
        right = [name for name, verdict in verdicts.items() if verdict > 0]
        if not right or min(verdicts.values()) < 0:
            judged.false.append((domain, text))
            continue
        for i, name in enumerate(right):
            texts = judged.found.setdefault(name, [])
            if i == 0:  # one lesson counts once
                texts.append(text)
    return judged
