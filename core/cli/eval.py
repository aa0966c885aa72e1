"""`winnow eval`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import click

from core.cli.desk import Desk, foreign_file, one_line, plural, table, verb
from core.cli.eval_told import effect_line, measured_line, tasks_told, told
from core.cli.run import failed, see_through
from core.cli.run_options import given, read_options, refuse_but_caps
from core.errors import InputError, WinnowError
from core.proof import Evaluation, EvaluationConfig, Purpose
from core.settings import RunConfig
from core.workspace.evaluation_plans import EvaluationPlan
from core.workspace.prior_gate import DomainTried
from core.workspace.trial_gate import LEAST_TASKS

MAX_FILE_BYTES = 32 * 2**20
"""Of a pack or a hand-written file that is an arm."""

OPTIONS = (
    click.option("--config", "file", metavar="FILE", type=click.Path(path_type=Path),
                 help="TOML or JSON with the settings of an evaluation; options override it."),
    click.option("--endpoint", help="Who is asked; default: the endpoint with the role 'rollout'."),
    click.option("--judge-endpoint", help="Who is asked by verifiers of the kind 'judge'; default: the role."),
    click.option("--samples", "-n", type=int, show_default="4", help="Rollouts of each task, arm and seed."),
    click.option("--seed", "seeds", type=int, multiple=True, help="May be repeated; the same for all arms."),
    click.option("--limit", type=int, help="At most so many tasks of each domain."),
    click.option("--temperature", type=float, show_default="0.7"),
    click.option("--top-p", type=float, show_default="0.95"),
    click.option("--max-tokens", type=int, show_default="64", help="Tokens of one reply."),
    click.option("--stop", multiple=True, help="Stop a reply at this text (may be repeated)."),
    click.option("--look-every", type=int, metavar="N",
                 help="Look after every N tasks, and stop arms that are decided."),
    click.option("--max-calls", type=int, help="Cap on requests, of all arms together."),
    click.option("--max-tokens-total", type=int, help="Cap on tokens."),
    click.option("--max-cost-usd", type=float, help="Cap on money."),
    click.option("--detach", is_flag=True, help="Leave it to a worker in the background."),
    click.option("--dry-run", is_flag=True, help="Only say what would be done."),
)  # fmt: skip


def sampling_options(function: Callable[..., None]) -> Callable[..., None]:
    """Put the options of every command that samples before it."""
    for option in reversed(OPTIONS):
        function = option(function)
    return function


@click.group("eval")
def evaluation() -> None:
    """Measure what lessons are worth: the same tasks with and without them, on splits that taught nothing.

    The split `trial` selects; the split `final` only reports. Every number goes with its sample size.
    """


@verb(evaluation, "start")
@click.argument("arms", nargs=-1, metavar="[ARM]...")
@click.option("--split", type=click.Choice(("trial", "final")), show_default="trial")
@click.option("--domain", "domains", multiple=True, help="Only tasks of this domain (may be repeated).")
@click.option(
    "--resume", metavar="EV", help="Go on with this evaluation; only the caps may be given besides."
)
@click.option("--retry-failed", is_flag=True, help="Make up for rollouts that broke off.")
@sampling_options
def start(
    desk: Desk,
    arms: tuple[str, ...],
    resume: str | None,
    retry_failed: bool,
    file: Path | None,
    detach: bool,
    dry_run: bool,
    **options: object,
) -> None:
    """Compare arms on the same tasks; the first is the baseline, and `none version:newest` the default.

    \b
    none               no lesson
    version:N          a version, by number or label; version:newest
    random:N           as many lessons of each domain as version N, but those of its other domains, drawn with the
                       first seed; where these are too few, the domain's own with their words shuffled
    text:FILE          lessons written by hand, one on each line; a heading `# sums` names their domain
    pack:FILE          a pack, or a library in any form that `winnow pack import` reads
    without:E-ID[@N]   version N (default: the newest) but for one lesson
    with:P-ID[@N]      version N and one proposal that nobody published
    majority:ARM       the most frequent answer of an arm's replies; best_of:ARM the best by the verifier
    NAME=ARM           the same under a name of its own; ARM+prior:ID with a token prior on top

    An evaluation is its configuration: the same command again goes on where it stopped, pays for nothing twice, and
    once it is done shows its report.
    """  # noqa: D301  (a backspace is how click is told to keep the lines)
    evaluating = desk.workspace.evaluating
    caps: RunConfig | None = None
    if resume:
        if arms or dry_run:
            raise InputError(
                "--resume goes on with an evaluation as it is: leave --dry-run and the arms out."
            )
        wanted = refuse_but_caps(file, options)
        found = desk.workspace.store.evaluations.get(resume.upper())
        if wanted:
            caps = RunConfig.read({**_caps(found.config), **wanted}, where="eval")
        if retry_failed:
            evaluating.retry(found.id, desk.who)
        _carry_out(desk, desk.workspace.store.evaluations.get(found.id), detach, caps)
        return
    config = _config(desk, file, options, [*(arms or (() if file else ("none", "version:newest")))])
    _begin(desk, config, "compare", detach=detach, dry_run=dry_run, retry_failed=retry_failed)


@verb(evaluation, "lesson")
@click.argument("ids", nargs=-1, required=True, metavar="E-ID...")
@sampling_options
def lesson(
    desk: Desk, ids: tuple[str, ...], file: Path | None, detach: bool, dry_run: bool, **options: object
) -> None:
    """Measure what lessons of the newest version are worth each: the version with it against without it.

    On trial tasks that the lesson is given for. What comes of it stands beside the lesson, and moves its confidence.
    """
    config = _config(desk, file, options, ["none"])
    found = desk.workspace.measuring.of_lessons([i.upper() for i in ids], config)
    _begin(desk, found, "lesson", detach=detach, dry_run=dry_run)


@verb(evaluation, "trial")
@click.argument("ids", nargs=-1, required=True, metavar="P-ID...")
@sampling_options
def trial(
    desk: Desk, ids: tuple[str, ...], file: Path | None, detach: bool, dry_run: bool, **options: object
) -> None:
    """Try proposals before a person decides on them: the newest version with each against without it, on trial tasks.

    Nothing is approved or published. What comes of it stands beside the proposal; `winnow review list` can be ordered
    by it.
    """
    config = _config(desk, file, options, ["none"])
    found = desk.workspace.measuring.of_proposals([i.upper() for i in ids], config)
    _begin(desk, found, "trial", detach=detach, dry_run=dry_run)


@verb(evaluation, "prior")
@click.argument("prior_id", metavar="PR-ID")
@click.option("--version", "named", help="Beside this version of the library; default: the newest.")
@sampling_options
def prior(
    desk: Desk,
    prior_id: str,
    named: str | None,
    file: Path | None,
    detach: bool,
    dry_run: bool,
    **options: object,
) -> None:
    """Try a token prior on trial tasks, domain by domain, and keep what was seen to help as a prior of its own.

    A version with it against the same version without it; at least 40 tasks x 4 rollouts of each domain. The same
    command again goes on where it stopped.
    """
    workspace = desk.workspace
    version = workspace.store.versions.resolve(named) if named else None
    config = workspace.prior_gate.of_prior(prior_id, _config(desk, file, options, ["none"]), version)
    if dry_run:
        plan = workspace.evaluating.plan(config)
        desk.answer(plan, *_planned(plan))
        return
    started = workspace.evaluating.start(config, desk.who, "trial")
    if not _worked(desk, started, detach, RunConfig.read(_caps(config), where="eval")):
        return
    tried = workspace.prior_gate.decide(workspace.store.evaluations.get(started.id), desk.who)
    if tried.gated:
        where = f"What helped is {tried.gated}: winnow run --prior {tried.gated}"
    elif all(d.too_few for d in tried.domains):
        where = "Too few tasks could be scored to tell whether it helps, so nothing was kept."
    else:
        where = "Nothing of it was seen to help, so nothing was kept."
    desk.answer(tried, *map(_prior_line, tried.domains), where)


def _prior_line(tried: DomainTried) -> str:
    """What was measured of the factors of one domain, and why they are kept or left out."""
    from core.evaluation.markup import chance

    if tried.too_few:
        return (
            f"{tried.domain}: {effect_line(tried.effect)}: left out, as fewer than {LEAST_TASKS} tasks were scored "
            "both with and without it"
        )
    became = "kept" if tried.kept else "left out"
    return f"{tried.domain}: {effect_line(tried.effect)}; corrected {chance(tried.p_adjusted)}: {became}"


@verb(evaluation, "list")
@click.option("--limit", type=click.IntRange(1, 100_000), default=20, show_default=True)
def list_evaluations(desk: Desk, limit: int) -> None:
    """List evaluations, the newest first."""
    found, total = desk.workspace.store.evaluations.page(limit=limit)
    rows = [
        (
            e.id,
            e.purpose,
            e.state,
            e.split,
            f"{e.groups - e.waiting:,}/{e.groups:,}",
            e.model,
            ", ".join(e.arms),
        )
        for e in found
    ]
    lines = table(rows, ("evaluation", "for", "state", "split", "groups", "model", "arms"))
    more = [f"{total - len(found):,} more."] if total > len(found) else []
    none = "No evaluations yet: winnow eval start none version:newest"
    desk.answer(found, *([*lines, *more] if found else [none]))


@verb(evaluation, "show")
@click.argument("name", metavar="EV")
@click.option("--tasks", "with_tasks", is_flag=True, help="List what came of each task, too.")
def show(desk: Desk, name: str, with_tasks: bool) -> None:
    """Show an evaluation as it stands: its arms, and each against the baseline."""
    report = desk.workspace.evaluating.report(name.upper())
    desk.answer(
        report, *told(report), *_proposed(desk, report.id), *(tasks_told(report) if with_tasks else ())
    )


@verb(evaluation, "report")
@click.argument("name", metavar="EV")
@click.option(
    "--html",
    "html",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write one self-contained HTML file.",
)
@click.option("--success", type=float, default=1.0, show_default=True, help="Reward that passes in pass@k.")
@click.option("--force", is_flag=True, help="Write over a file that is there.")
def report(desk: Desk, name: str, html: Path | None, success: float, force: bool) -> None:
    """Report an evaluation: as lines, as JSON (--json), or as one HTML file to share, without any script.

    Counted anew from stored scores; no model is asked.
    """
    if html is None:
        found = desk.workspace.evaluating.report(name.upper(), success)
        desk.answer(found, *told(found), *tasks_told(found))
        return
    _write(html, desk.workspace.evaluating.html(name.upper(), success), force)
    desk.answer({"file": str(html), "evaluation": name.upper()}, f"Wrote {html}.")


@verb(evaluation, "measured")
@click.argument("subject", metavar="E-ID|P-ID|VERSION")
def measured(desk: Desk, subject: str) -> None:
    """Show what was measured of a lesson, a proposal or a version, the newest first."""
    found = desk.workspace.measuring.of(subject.upper())
    lines = [measured_line(one, subject.upper()) for one in found]
    desk.answer(found, *(lines or [f"Nothing was measured of {subject.upper()} yet."]))


@verb(evaluation, "size")
@click.option(
    "--effect", type=float, required=True, help="The smallest difference that is to be found, e.g. .05."
)
@click.option("--from", "source", metavar="EV", help="Take how much differences vary from this evaluation.")
@click.option("--arm", default="", help="With --from: of this arm against the baseline; default: the first.")
@click.option("--between", type=float, default=0.15, show_default=True,
              help="Standard deviation, over tasks, of the true difference of a task.")  # fmt: skip
@click.option("--within", type=float, default=0.4, show_default=True,
              help="Standard deviation of one rollout's reward around the mean of its task.")  # fmt: skip
@click.option("--samples", "-n", type=click.IntRange(1, 64), default=4, show_default=True)
@click.option("--level", type=float, default=0.05, show_default=True)
@click.option("--power", "wanted", type=float, default=0.8, show_default=True)
@click.option("--one-sided", is_flag=True, help="Only a better arm counts, as in the gate `trial`.")
def size(
    desk: Desk,
    effect: float,
    source: str | None,
    arm: str,
    between: float,
    within: float,
    samples: int,
    level: float,
    wanted: float,
    one_sided: bool,
) -> None:
    """Say how many tasks find an effect, from how much differences vary (assumed, or seen in an evaluation)."""
    from core.effect import Spread
    from core.workspace.preparing import size as sized

    spread: Spread | None = Spread(between, within)
    came = "assumed"
    if source:
        config = desk.workspace.store.evaluations.get(source.upper()).config
        arm = arm or next((one.name for one in config.arms[1:] if one.sampled), "")
        came = f"seen in {source.upper()}, {arm} against {config.arms[0].name}"
        spread = desk.workspace.evaluating.spread(source.upper(), arm)
        if spread is None:
            raise InputError(f"{source.upper()} has too few rollouts to tell how much differences vary.")
    found = sized(effect, spread, samples=samples, level=level, wanted=wanted, sides=1 if one_sided else 2)
    desk.answer(
        found,
        f"{plural(found.tasks, 'task')} x {samples} rollouts in each arm find a difference of {effect:g} with a chance "
        f"of {wanted:.0%} (level {level:g}, {'one' if one_sided else 'two'}-sided).",
        f"Standard deviation of a task's true difference {found.between:.3f}, of one rollout {found.within:.3f} "
        f"({came}).",
        "Power at " + ", ".join(f"{n} tasks: {p:.0%}" for n, p in found.power_at.items()) + ".",
    )


@verb(evaluation, "overlap")
def overlap(desk: Desk) -> None:
    """Check that train, trial and final share no task: by text, and list near-duplicates by embedding."""
    from core.workspace.overlapping import overlaps

    found = overlaps(desk.workspace.store, desk.workspace.comparing)
    counts = ", ".join(f"{n:,} {split}" for split, n in found.tasks.items())
    lines = [f"{counts}: {plural(len(found.same), 'pair')} with the same text, {len(found.near)} near."]
    rows = [
        (o.by, f"{o.similarity:.2f}", f"{o.a} ({o.a_split})", f"{o.b} ({o.b_split})", one_line(o.text, 60))
        for o in (*found.same, *found.near)
    ]
    if rows:
        lines += table(rows, ("by", "similarity", "task", "and", "question"))
    lines += [found.note] if found.note else []
    desk.answer(found, *lines, set_aside=bool(found.same))


# --- doing it ---


def _config(
    desk: Desk, file: Path | None, options: dict[str, object], arms: Sequence[str]
) -> EvaluationConfig:
    """The evaluation that is asked for: the file, options over it, and the endpoints' roles where neither says."""
    from core.evaluation import parse_arm

    workspace = desk.workspace
    fields = read_options(file) if file else {}
    fields |= given(options)
    seeds = fields.get("seeds") or (0,)
    first = int(seeds[0]) if isinstance(seeds, list | tuple) and str(seeds[0]).isdigit() else 0
    if arms:
        fields["arms"] = [
            parse_arm(
                said,
                read=lambda path: foreign_file(path, MAX_FILE_BYTES),
                version_of=workspace.store.versions.resolve,
                seed=first,
            )
            for said in arms
        ]
    roles = workspace.models.roles()
    fields.setdefault("endpoint", roles["rollout"])
    fields.setdefault("judge_endpoint", roles["judge"])
    return EvaluationConfig.read(fields, where=str(file) if file else "eval")


def _begin(
    desk: Desk,
    config: EvaluationConfig,
    purpose: Purpose,
    *,
    detach: bool,
    dry_run: bool,
    retry_failed: bool = False,
) -> None:
    evaluating = desk.workspace.evaluating
    plan = evaluating.plan(config)
    if dry_run:
        desk.answer(plan, *_planned(plan))
        return
    found = evaluating.start(config, desk.who, purpose)
    if retry_failed:
        evaluating.retry(found.id, desk.who)
        found = desk.workspace.store.evaluations.get(found.id)
    for note in plan.notes if found.status != "done" else ():
        click.echo(note, err=True)
    _carry_out(desk, found, detach, RunConfig.read(_caps(config), where="eval"))


def _caps(config: EvaluationConfig) -> dict[str, object]:
    return config.model_dump(include={"max_calls", "max_tokens_total", "max_cost_usd"})


def _worked(desk: Desk, found: Evaluation, detach: bool, caps: RunConfig | None) -> bool:
    """Do what is missing of an evaluation; whether it is done. Where it is not, the answer says so."""
    if found.status == "done":
        return True
    job = desk.workspace.jobs.enqueue(found.id, desk.who, caps)
    if detach:
        desk.workspace.ensure_worker()
        desk.answer(job, f"{job.id} ({job.subject}) is {job.state}. See: winnow eval show {found.id}")
        return False
    came = see_through(desk, job)
    if came is None or failed(desk, came):
        return False
    if came.job.state != "done":
        why = f" {came.job.error}" if came.job.error else ""
        desk.refuse(WinnowError(f"{came.job.id} ({came.job.subject}) is {came.job.state}.{why}"))
    return True


def _carry_out(desk: Desk, found: Evaluation, detach: bool, caps: RunConfig | None) -> None:
    if not _worked(desk, found, detach, caps):
        return
    report = desk.workspace.evaluating.report(found.id)
    incomplete = any(arm.errors or arm.unscored for arm in report.arms)
    desk.answer(report, *told(report), *_proposed(desk, report.id), set_aside=incomplete)


def _proposed(desk: Desk, evaluation_id: str) -> list[str]:
    """The rollback that an evaluation proposes, in a line."""
    return [
        f"Version {one.subject} does worse than version {one.version}, so a rollback is proposed: "
        f"winnow rollback {one.version}. Nothing is rolled back by itself."
        for one in desk.workspace.measuring.alarms()
        if one.evaluation_id == evaluation_id
    ]


def _planned(plan: EvaluationPlan) -> list[str]:
    config = plan.config
    tasks = ", ".join(f"{n} {domain}" for domain, n in plan.by_domain.items())
    state = f"goes on with {plan.resumes}" if plan.resumes else "is a new evaluation"
    return [
        f"{plural(len(plan.tasks), config.split + ' task')} ({tasks}), {plural(len(config.arms), 'arm')} "
        f"({', '.join(arm.name for arm in config.arms)}), {plan.rollouts:,} rollouts with {plan.model}: at most "
        f"{plural(plan.calls, 'call')}; it {state}. Nothing was done.",
        *plan.notes,
    ]


def _write(path: Path, text: str, force: bool) -> None:
    try:
        with path.open("w" if force else "x", encoding="utf-8", newline="\n") as out:
            out.write(text)
    except FileExistsError as e:
        raise InputError(f"There is a file {path} already; --force writes over it.") from e
    except OSError as e:
        raise InputError(f"{path} cannot be written: {e.strerror or e}.") from e
