"""The command line as a script sees it: standard output, standard error, exit codes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import click
import pytest
from click.testing import CliRunner

from core.cli import COMMANDS, main
from core.settings import Endpoint
from core.worker import seat
from core.workspace import Workspace
from tests.make import add_stub, add_tasks, make_tasks, propose
from tests.stub_server import TEACHER, StubServer, by_stage


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def winnow(folder: Path, *words: str) -> Done:
    result = CliRunner().invoke(main, [*words, "--workspace", str(folder)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return Done(result.exit_code, result.stdout, result.stderr)


def test_help_reads_like_a_manual_and_loads_nothing_heavy() -> None:
    script = (
        "import sys, runpy\n"
        "sys.argv = ['winnow', '--help']\n"
        "try: runpy.run_module('core', run_name='__main__')\n"
        "except SystemExit: pass\n"
        "heavy = {'openai', 'numpy', 'pandas', 'pyarrow', 'streamlit', 'sqlite_utils', 'onnxruntime', 'plotly'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    assert "HEAVY []" in done.stdout
    for command in COMMANDS:
        assert f"\n  {command} " in done.stdout


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_command_explains_itself(command: str) -> None:
    result = CliRunner().invoke(main, [command, "--help"])
    assert result.exit_code == 0
    assert result.output.count("\n") > 4


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_lists_in_the_help_keep_their_lines(command: str) -> None:
    """What tells click to keep the lines is a backspace, which a raw string does not hold."""
    found = [command]
    with click.Context(main) as context:
        node = main.get_command(context, command)
        if isinstance(node, click.Group):
            found += [f"{command} {verb}" for verb in node.list_commands(context)]
    for path in found:
        told = CliRunner().invoke(main, [*path.split(), "--help"])
        assert told.exit_code == 0, path
        assert "\\b" not in told.output, path


def test_python_dash_m_core_is_winnow(tmp_path: Path) -> None:
    Workspace(tmp_path / "w")
    done = subprocess.run(
        [sys.executable, "-m", "core", "tasks", "list", "--json"],
        capture_output=True,
        text=True,
        env=os.environ | {"WINNOW_WORKSPACE": str(tmp_path / "w")},
        cwd=Path(__file__).parents[2],
        check=False,
    )
    assert (done.returncode, json.loads(done.stdout)) == (0, {"total": 0, "tasks": []})


def test_a_list_of_lessons_loads_nothing_heavy_either(tmp_path: Path) -> None:
    Workspace(tmp_path / "w")
    code = (
        "import sys\n"
        "from core.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'openai', 'pandas', 'pyarrow', 'streamlit', 'onnxruntime', 'plotly'}\n"
        "print('HEAVY', sorted(heavy & set(sys.modules)))\n"
    )
    words = ["library", "list", "--workspace", str(tmp_path / "w")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "HEAVY []", done.stdout


def test_an_import_ends_with_0_when_all_came_in_and_with_1_when_something_was_set_aside(
    tmp_path: Path,
) -> None:
    good, bad = tmp_path / "good.jsonl", tmp_path / "bad.jsonl"
    good.write_text('{"question": "1+1?", "answer": "2"}\n', encoding="utf-8")
    bad.write_text('{"question": "2+2?", "answer": "4"}\n{broken\n', encoding="utf-8")
    assert winnow(tmp_path / "w", "tasks", "import", str(good)).code == 0
    done = winnow(tmp_path / "w", "tasks", "import", str(bad), "--json")
    assert done.code == 1
    assert done.json["added"] == 1
    assert done.json["set_aside"][0]["line"] == 2


def test_refused_input_ends_with_2_and_one_sentence_and_leaves_everything_as_it_was(tmp_path: Path) -> None:
    before = Workspace(tmp_path / "w").store.dump()
    for words in (
        ["tasks", "import", "no-such-file.jsonl"],
        ["review", "approve", "P-0099"],
        ["publish"],
        ["rollback", "7"],
        ["run"],
        ["library", "show", "E-0001"],
        ["pack", "export"],
        ["runs", "show", "R9"],
        ["endpoints", "test", "nobody"],
        ["endpoints", "add", "x y", "--base-url", "http://127.0.0.1:1/v1", "--model", "m"],
        ["endpoints", "add", "x", "--base-url", "http://127.0.0.1:1/v1", "--model", "m", "--key-env", "HOME"],
    ):
        done = winnow(tmp_path / "w", *words)
        assert done.code == 2, (words, done)
        assert done.err.startswith("winnow: "), (words, done)
        assert done.err.count("\n") == 1, (words, done.err)
        assert "Traceback" not in done.err
    assert Workspace(tmp_path / "w").store.dump() == before


def test_the_whole_loop_by_commands(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text("".join(t.canonical() + "\n" for t in make_tasks(10)), encoding="utf-8")
    with StubServer() as stub:
        assert winnow(folder, "tasks", "import", str(tasks)).code == 0
        added = winnow(
            folder,
            "endpoints",
            "add",
            "stub",
            "--base-url",
            stub.base_url,
            "--model",
            "stub-model",
            "--sends-n",
        )
        assert added.code == 0
        assert winnow(folder, "endpoints", "role", "rollout", "stub").code == 0
        run = winnow(folder, "run", "--group-size", "4", "--max-tokens", "32", "--json")
        assert run.code == 0
        assert run.json["tally"]["informative"] + run.json["tally"]["uninformative"] == 10
        assert "groups: 10 of 10" in run.err, "progress goes to standard error"
        assert stub.stats()["calls"] == 10, "one request for each group"
    propose(Workspace(folder), "Answer with the number alone.")
    waiting = winnow(folder, "review", "list", "--json").json
    proposal_id = waiting["proposals"][-1]["id"]
    assert "Answer with the number alone." in winnow(folder, "review", "show", proposal_id).out
    assert winnow(folder, "review", "approve", proposal_id).code == 0
    dry = winnow(folder, "publish", "--dry-run")
    assert "+ Answer with the number alone." in dry.out
    assert Workspace(folder).store.versions.head() == 0
    assert winnow(folder, "publish", "-m", "First lessons", "--json").json["number"] == 1
    assert "P-0001" in winnow(folder, "library", "show", "E-0001").out
    exported = winnow(folder, "pack", "export", "-o", str(tmp_path / "lessons.zip"), "--json")
    assert exported.code == 0
    checked = winnow(folder, "pack", "verify", str(tmp_path / "lessons.zip"), "--json")
    assert (checked.code, checked.json["version"], checked.json["experiences"]) == (0, 1, 1)
    assert winnow(folder, "rollback", "0").code == 0


def test_a_pack_that_was_tampered_with_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    workspace = Workspace(folder)
    workspace.review.approve(propose(workspace, "Answer with the number alone.")[0], "ann")
    workspace.review.publish("", "ann")
    winnow(folder, "pack", "export", "-o", str(tmp_path / "p.zip"))
    data = (tmp_path / "p.zip").read_bytes()
    (tmp_path / "p.zip").write_bytes(data.replace(b"number alone", b"number twice"))
    assert winnow(folder, "pack", "verify", str(tmp_path / "p.zip")).code == 2


def test_lessons_go_into_a_marked_region_of_agents_md_and_nothing_else_is_touched(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    workspace = Workspace(folder)
    workspace.review.approve(propose(workspace, "Answer with the number alone.")[0], "ann")
    workspace.review.publish("", "ann")
    target = tmp_path / "AGENTS.md"
    target.write_bytes(b"# Mine\r\nkeep  this\n")
    for _ in range(2):
        assert winnow(folder, "pack", "export", "--form", "agents-md", "-o", str(target)).code == 0
    text = target.read_bytes()
    assert text.startswith(b"# Mine\r\nkeep  this\n")
    assert text.count(b"Answer with the number alone.") == 1


def test_an_endpoint_that_is_not_there_ends_with_3_and_the_same_command_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    workspace = Workspace(folder)
    add_tasks(workspace, make_tasks(2))
    with StubServer(key="right-key-1234567") as stub:
        add_stub(workspace, stub.base_url)
        done = winnow(folder, "run", "--endpoint", "stub", "-g", "2")
        assert done.code == 3
        assert done.err.rstrip().splitlines()[-1].startswith("winnow: ")
        stub.key = None
        assert winnow(folder, "run", "--endpoint", "stub", "-g", "2").code == 0


def test_a_newer_workspace_is_refused_and_not_touched(tmp_path: Path) -> None:
    import sqlite3

    workspace = Workspace(tmp_path / "w")
    path = workspace.folder / "winnow.db"
    with sqlite3.connect(path) as database:
        database.execute(
            "INSERT INTO _sqlite_migrations (migration_set, name, applied_at) VALUES ('winnow', 'm999_future', '')"
        )
    done = winnow(tmp_path / "w", "tasks", "list")
    assert done.code == 2
    assert "newer Winnow" in done.err


def test_a_file_that_is_no_database_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "winnow.db").write_bytes(b"my precious notes, not a database" * 50)
    done = winnow(tmp_path / "w", "tasks", "list")
    assert done.code == 2
    assert (tmp_path / "w" / "winnow.db").read_bytes().startswith(b"my precious")


def test_resume_takes_other_caps_and_nothing_else_and_a_dry_run_does_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    workspace = Workspace(folder)
    add_tasks(workspace, make_tasks(4))
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        stopped = winnow(folder, "run", "--endpoint", "stub", "-g", "2", "--max-calls", "3")
        assert stopped.code == 3
        assert winnow(folder, "run", "--resume", "R1", "--dry-run").code == 0
        assert winnow(folder, "run", "--resume", "R1", "--seed", "5").code == 2
        assert stub.stats()["calls"] == 3
        assert winnow(folder, "run", "--resume", "R1", "--max-calls", "100").code == 0
        assert stub.stats()["calls"] == 8
        assert Workspace(folder).store.runs.get("R1").spent.calls == 8


@pytest.fixture
def stubbed(tmp_path: Path) -> Iterator[tuple[Path, StubServer]]:
    """A workspace with a few tasks and a stub endpoint in the role of all."""
    folder = tmp_path / "w"
    workspace = Workspace(folder)
    add_tasks(workspace, make_tasks(6))
    with StubServer(by_stage) as stub:
        add_stub(workspace, stub.base_url, name="stub", concurrency=2)
        teacher = Endpoint(name="teacher", base_url=stub.base_url, model=TEACHER, context_length=16_000)
        workspace.models.save(teacher, "test")
        workspace.models.set_role("rollout", "stub", "test")
        yield folder, stub


def test_a_job_is_listed_shown_resumed_and_worked_on(stubbed: tuple[Path, StubServer]) -> None:
    folder, _ = stubbed
    assert winnow(folder, "run", "-g", "2", "--max-calls", "3").code == 3
    [job] = winnow(folder, "jobs", "list", "--json").json
    assert (job["id"], job["subject"], job["state"]) == ("J1", "R1", "paused")
    assert "The cap of 3 calls is reached" in winnow(folder, "jobs", "show", "R1").out
    with seat(folder):  # else a worker would be started in the background
        assert winnow(folder, "jobs", "resume", "J1", "--json").json["state"] == "waiting"
        assert "waiting" in winnow(folder, "jobs", "list").out
    assert winnow(folder, "worker", "--once", "--json").json[0]["state"] == "paused", "its cap is still 3"
    with seat(folder):
        assert winnow(folder, "run", "--resume", "R1", "--max-calls", "50", "--detach", "--json").code == 0
    done = winnow(folder, "worker", "--once")
    assert (done.code, done.out) == (0, "1 job worked on.\n")
    assert Workspace(folder).store.runs.get("R1").status == "done"


def test_a_job_is_cancelled_and_what_it_made_is_kept_or_taken_away(stubbed: tuple[Path, StubServer]) -> None:
    folder, _ = stubbed
    winnow(folder, "run", "-g", "2", "--max-calls", "4")
    assert winnow(folder, "jobs", "cancel", "R1", "--json").json["state"] == "cancelled"
    assert Workspace(folder).store.runs.get("R1").usage.calls == 4
    with seat(folder):
        assert winnow(folder, "jobs", "requeue", "J1", "--json").json["state"] == "waiting"
    assert winnow(folder, "jobs", "cancel", "R1", "--discard").code == 0
    assert Workspace(folder).store.runs.get("R1").usage.calls == 0


def test_commands_on_jobs_that_do_not_fit_are_refused_with_one_sentence(
    stubbed: tuple[Path, StubServer],
) -> None:
    folder, _ = stubbed
    assert winnow(folder, "run", "-g", "2").code == 0
    for words in (
        ["jobs", "pause", "J1"],
        ["jobs", "resume", "R1"],
        ["jobs", "cancel", "J1", "--discard"],
        ["jobs", "requeue", "R1"],
        ["jobs", "show", "J9"],
        ["jobs", "pause", "R9"],
        ["run", "--resume", "R1", "--gate", "auto"],
        ["run", "--config", "nowhere.toml"],
        ["run", "--verifier", "short"],
        ["run", "--weight", "verified=much"],
        ["run", "--weight", "verified=1", "--reward", "ASO"],
    ):
        done = winnow(folder, *words)
        assert (done.code, done.err.count("\n")) == (2, 1), (words, done)


def test_a_run_whose_gate_waits_for_a_person_says_what_to_do_and_goes_on_afterwards(
    stubbed: tuple[Path, StubServer],
) -> None:
    folder, _ = stubbed
    words = ["run", "-g", "4", "--max-tokens", "32", "--batch-size", "3", "--gate", "review"]
    words += ["--extraction-endpoint", "teacher"]
    done = winnow(folder, *words)
    assert done.code == 3
    assert "winnow review list" in done.out
    assert "winnow run --resume R1" in done.out
    assert winnow(folder, "jobs", "list", "--json").json[0]["state"] == "paused"
    shown = winnow(folder, "runs", "show", "R1").out
    assert "its gate waits for you" in shown
    assert "epoch 1, batch 2: not begun" in shown
    for _ in range(2):
        for proposal in winnow(folder, "review", "list", "--json").json["proposals"]:
            winnow(folder, "review", "reject", proposal["id"], "--reason", "no")
        done = winnow(folder, *words)
    assert done.code in (0, 1)
    assert Workspace(folder).store.runs.get("R1").status == "done"


def test_a_file_holds_the_settings_of_a_run_and_options_go_over_it(
    stubbed: tuple[Path, StubServer], tmp_path: Path
) -> None:
    folder, _ = stubbed
    (tmp_path / "run.toml").write_text(
        'group_size = 3\nepochs = 2\n[reward]\npreset = "ASO"\n[agent]\ntools = ["files"]\nmax_steps = 5\n'
    )
    (tmp_path / "more.json").write_text('{"brief": {"kind": "regex", "options": {"pattern": "^.{1,20}$"}}}')
    done = winnow(
        folder, "run", "--config", str(tmp_path / "run.toml"), "--dry-run", "--json", "--epochs", "3",
        "--verifier", str(tmp_path / "more.json"), "--verifier", "same=exact", "--max-steps", "7",
        "--resample-attempts", "2", "--withhold-answer", "--rollout-timeout", "9",
    )  # fmt: skip
    config = done.json["config"]
    assert (config["group_size"], config["epochs"], config["endpoint"]) == (3, 3, "stub")
    assert config["reward"]["preset"] == "ASO"
    assert {n: v["kind"] for n, v in config["reward"]["verifiers"].items()} == {
        "brief": "regex",
        "same": "exact",
    }
    assert (config["agent"]["tools"], config["agent"]["max_steps"]) == (["files"], 7)
    assert (config["resample"]["attempts"], config["withhold_answer"]) == (2, True)
    assert config["rollout_timeout_s"] == 9
    weighed = winnow(folder, "run", "--dry-run", "--json", "--weight", "verified=2", "--weight", "tools=0.5")
    assert weighed.json["config"]["reward"]["weights"] == {"verified": 2, "tools": 0.5}
    assert "tokens" in winnow(folder, "run", "--dry-run").out


def test_another_setting_of_the_endpoint_is_another_run(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    workspace = Workspace(folder)
    add_tasks(workspace, make_tasks(1))
    with StubServer() as stub:
        add_stub(workspace, stub.base_url)
        winnow(folder, "run", "--endpoint", "stub", "-g", "2")
        add_stub(workspace, stub.base_url, extra={"top_k": 5})
        assert winnow(folder, "run", "--endpoint", "stub", "-g", "2", "--json").json["id"] == "R2"
        add_stub(workspace, stub.base_url, extra={"top_k": 5}, price_in=3.0)
        assert winnow(folder, "run", "--endpoint", "stub", "-g", "2", "--json").json["id"] == "R2"


@pytest.mark.parametrize(
    "url", ["http://me:pw@127.0.0.1/v1", "http://127.0.0.1/v1?key=sk-1", "ftp://x", "http://"]
)
def test_an_address_with_a_password_or_a_key_in_it_is_refused_and_not_stored(
    tmp_path: Path, url: str
) -> None:
    done = winnow(tmp_path / "w", "endpoints", "add", "x", "--base-url", url, "--model", "m")
    assert done.code == 2
    assert len(Workspace(tmp_path / "w").models.all()) == 1


def test_a_fault_of_winnow_itself_is_not_taken_for_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    Workspace(tmp_path / "w")
    monkeypatch.setattr("core.store.tasks.Tasks.page", broken)
    done = winnow(tmp_path / "w", "tasks", "list", "--json")
    assert done.code == 4
    assert "a bug" in done.json["error"]


def test_an_existing_folder_is_used_as_a_workspace_without_hiding_what_is_in_it(tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.jsonl"
    tasks.write_text('{"question": "1+1?", "answer": "2"}\n', encoding="utf-8")
    (tmp_path / "mine").mkdir()
    assert winnow(tmp_path / "mine", "tasks", "import", str(tasks)).code == 0
    assert not (tmp_path / "mine" / ".gitignore").exists()
    assert winnow(tmp_path / "new", "tasks", "import", str(tasks)).code == 0
    assert (tmp_path / "new" / ".gitignore").read_text() == "*\n"


def test_an_export_does_not_write_over_a_file_that_holds_something_else(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    workspace = Workspace(folder)
    workspace.review.approve(propose(workspace, "Answer with the number alone.")[0], "ann")
    workspace.review.publish("", "ann")
    target = tmp_path / "notes.md"
    target.write_text("mine", encoding="utf-8")
    words = ["pack", "export", "--form", "prompt", "-o", str(target)]
    assert winnow(folder, *words).code == 2
    assert target.read_text(encoding="utf-8") == "mine"
    assert winnow(folder, *words, "--force").code == 0
    assert winnow(folder, *words).code == 0, "the same again is no other content"
    assert winnow(folder, "pack", "export", "--domain", "elsewhere", "-o", str(tmp_path / "x.zip")).code == 2
    assert winnow(folder, "pack", "export", "--domain", "sums", "-o", str(tmp_path / "x.zip")).code == 0


def test_an_invisible_character_is_named_before_it_is_approved(tmp_path: Path) -> None:
    folder = tmp_path / "w"
    propose(Workspace(folder), "zero\u200bwidth")
    assert "U+200B" in winnow(folder, "review", "show", "P-0001").out
    assert "U+200B" in winnow(folder, "review", "approve", "P-0001").out


def test_a_wrong_verifier_is_one_refusal_and_not_a_reason_for_each_row(tmp_path: Path) -> None:
    (tmp_path / "t.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n', encoding="utf-8")
    done = winnow(tmp_path / "w", "tasks", "import", str(tmp_path / "t.jsonl"), "--verifier", "nope")
    assert (done.code, done.err.count("\n")) == (2, 1)


NOT_UTF_8 = "caf\udce9"  # what Python makes of the bytes "caf\xe9" in an argument


@pytest.mark.parametrize(
    "words",
    [
        ("tasks", "list", "--domain"),
        ("tasks", "import"),
        ("publish", "-m"),
        ("library", "propose", "-r", "x", "--text"),
        ("library", "propose", "--text", "x", "-r"),
        ("library", "propose", "--merge", "E-0001", "--text", "x"),
        ("review", "approve"),
        ("pack", "export", "--name"),
        ("label", "set", "production"),
        ("run", "--endpoint"),
    ],
)
def test_an_argument_that_is_not_utf_8_is_refused_and_is_no_fault_of_winnow(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    done = winnow(tmp_path / "w", *words, NOT_UTF_8, "--json")
    assert (done.code, done.err.count("\n")) == (2, 1), done.err
    assert "is not UTF-8 text" in done.json["error"]
    assert not (tmp_path / "w").exists()


def test_every_text_that_a_command_takes_is_looked_at(tmp_path: Path) -> None:
    """Whatever the option is called: bytes that are no text never end as a fault."""
    import click

    def commands(
        group: click.Group, ctx: click.Context, above: tuple[str, ...] = ()
    ) -> Iterator[tuple[str, ...]]:
        for name in group.list_commands(ctx):
            found = group.get_command(ctx, name)
            if isinstance(found, click.Group):
                yield from commands(found, ctx, (*above, name))
            elif found is not None:
                for option in found.params:
                    if isinstance(option, click.Option) and type(option.type) in (
                        click.Path,
                        click.types.StringParamType,
                    ):
                        needed = [
                            NOT_UTF_8 for p in found.params if isinstance(p, click.Argument) and p.required
                        ]
                        yield (*above, name, *needed, option.opts[0], NOT_UTF_8)

    tried = [words for words in commands(main, click.Context(main)) if "--workspace" not in words]
    assert len(tried) > 40
    assert {words: code for words in tried if (code := winnow(tmp_path / "w", *words).code) != 2} == {}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("pack", "export", "--nope"), "--nope"),
        (("label", "set", "production"), "VERSION"),
        (("library", "versions", "--limit", "x"), "--limit"),
        (("label", "remove", "production", "--from", "x"), "--from"),
        (("pack", "nope"), "nope"),
        (("nope",), "nope"),
        (("--nope",), "--nope"),
    ],
)
def test_a_wrong_option_or_argument_is_told_as_json_too_where_that_is_asked_for(
    tmp_path: Path, words: tuple[str, ...], told: str
) -> None:
    done = winnow(tmp_path / "w", *words, "--json")
    assert done.code == 2
    assert told in done.json["error"]
    assert told in done.err
    assert winnow(tmp_path / "w", *words).out == ""


def test_json_that_is_an_argument_does_not_ask_for_json(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["pack", "verify", "--nope", "--", "--json"])
    assert (result.exit_code, result.stdout) == (2, "")
