"""`winnow rollouts import` and `formats`: what is printed, and how the command ends."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from click.testing import CliRunner

from core.cli import main
from tests.importers.make_messages import line
from tests.importers.make_tau_bench import crashed, record, write


def winnow(folder: Path, *words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, [*words, "--workspace", str(folder)])
    return done.exit_code, done.stdout, done.stderr


def tau(tmp_path: Path) -> Path:
    path = tmp_path / "gpt-x-airline.json"
    write(path, [record(0, 0, 1.0), record(0, 1, 0.0, fails=True), crashed(0, 2)])
    return path


def test_a_dry_run_tells_what_would_come_in_and_makes_no_workspace(tmp_path: Path) -> None:
    code, out, _ = winnow(tmp_path / "w", "rollouts", "import", str(tau(tmp_path)), "--dry-run")
    assert code == 0
    assert out.splitlines()[:5] == [
        "3 attempts at 1 task in 1 group would come in from gpt-x-airline.json; 1 informative; nothing was imported.",
        "  formats:  tau-bench results 3",
        "  rewards:  2 scored, 0 unscored, 1 infrastructure error",
        "  groups:   1 with 3 attempts",
        "  tasks:    1, 1 of them new",
    ]
    assert (
        "  reward:   tau-bench results (tau-bench airline): the reward is 'reward', by the definition" in out
    )
    assert not (tmp_path / "w").exists()


def test_an_import_tells_the_same_with_its_run_and_again_that_nothing_changed(tmp_path: Path) -> None:
    path = str(tau(tmp_path))
    code, out, err = winnow(tmp_path / "w", "rollouts", "import", path)
    assert (code, out.splitlines()[0]) == (
        0,
        "3 attempts at 1 task in 1 group came in from gpt-x-airline.json as R1; 1 informative.",
    )
    assert "groups: 1 of 1" in err
    code, out, _ = winnow(tmp_path / "w", "rollouts", "import", path)
    assert (code, out.splitlines()[0]) == (
        0,
        "gpt-x-airline.json was imported before, as R1; nothing was changed.",
    )


def test_known_attempts_that_are_graded_anew_are_told_in_the_dry_run_as_in_the_import(tmp_path: Path) -> None:
    path = str(tau(tmp_path))
    winnow(tmp_path / "w", "rollouts", "import", path)
    words = ("rollouts", "import", path, "--score", "reward", "--lower-is-better")
    lines = [winnow(tmp_path / "w", *words, *more)[1].splitlines()[0] for more in (("--dry-run",), ())]
    here = "Nothing of gpt-x-airline.json is new (it is in R1); 1 known attempt"
    assert lines == [
        f"{here} would get another reward; nothing was changed.",
        f"{here} got another reward.",
    ]


def test_what_recorded_rollouts_took_was_not_sent_by_us(tmp_path: Path) -> None:
    winnow(tmp_path / "w", "rollouts", "import", str(tau(tmp_path)))
    _, out, _ = winnow(tmp_path / "w", "runs", "show", "R1")
    assert "Recorded: 4 calls, 0 prompt and 0 completion tokens" in out
    assert "Sent" not in out
    assert "cache" not in out


def test_a_rollout_tells_where_it_came_from_and_what_the_file_said_of_it(tmp_path: Path) -> None:
    winnow(tmp_path / "w", "rollouts", "import", str(tau(tmp_path)))
    _, out, _ = winnow(tmp_path / "w", "runs", "rollout", "R1-0001-1")
    assert out.splitlines()[-2:] == [
        "came from: gpt-x-airline.json, record 2",
        "scores of the file: r_actions 0.00, reward 0.00",
    ]


def test_a_call_with_a_result_is_not_said_to_have_none(tmp_path: Path) -> None:
    """The import counts it as not known, and so is it told everywhere."""
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(line(0, 0, 1.0)) + "\n" + json.dumps(line(0, 1, 0.0)) + "\n")
    _, told, _ = winnow(tmp_path / "w", "rollouts", "import", str(path))
    assert "1 failed, 0 without a result, 1 not known" in told
    _, out, _ = winnow(tmp_path / "w", "runs", "rollout", "R1-0001-0")
    assert "step 1: seats ended nobody knows how\n" in out
    assert "gave 4A, 4B" in out
    assert "no result" not in out


def test_json_gives_the_whole_report(tmp_path: Path) -> None:
    _, out, _ = winnow(tmp_path / "w", "rollouts", "import", str(tau(tmp_path)), "--json")
    told = json.loads(out)
    assert (told["scored"], told["errors"], told["run_id"], told["group_sizes"]) == (2, 1, "R1", {"3": 1})
    assert told["rewards"][0]["by"] == "format"


def test_rows_set_aside_end_with_one_and_nothing_with_two(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps(line(0, 0, 1.0)) + "\n{torn\n" + json.dumps(line(0, 1, 0.0)) + "\n")
    code, out, _ = winnow(tmp_path / "w", "rollouts", "import", str(path))
    assert code == 1
    assert "  set aside: a.jsonl line 2: not JSON" in out
    path.write_text("hello\n")
    code, out, err = winnow(tmp_path / "w", "rollouts", "import", str(path))
    assert (code, out) == (2, "")
    assert err.splitlines()[-1].startswith("winnow: a.jsonl holds no rollout that could be imported.")


def test_records_that_are_no_lines_are_listed_by_their_place(tmp_path: Path) -> None:
    path = tau(tmp_path)
    path.write_text(path.read_text("utf-8")[:-10], "utf-8")
    winnow(tmp_path / "w", "rollouts", "import", str(path))
    code, out, _ = winnow(tmp_path / "w", "tasks", "aside")
    assert (code, out.startswith("gpt-x-airline.json: record 3: ")) == (0, True)


def test_an_import_that_was_interrupted_is_not_said_to_go_on_as_a_run_does(tmp_path: Path) -> None:
    winnow(tmp_path / "w", "rollouts", "import", str(tau(tmp_path)))
    with sqlite3.connect(tmp_path / "w" / "winnow.db") as db:
        db.execute("UPDATE runs SET status = 'running'")
    _, out, _ = winnow(tmp_path / "w", "runs", "list")
    assert "interrupted (the same import goes on)" in out


def test_a_mapping_file_says_which_columns_hold_what(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("q,said,points,who\nHow?,So.,3,m1\nHow?,Thus.,1,m1\n")
    (tmp_path / "m.yaml").write_text("question: q\ncompletion: said\nreward: points\nmodel: who\n")
    words = ("rollouts", "import", str(tmp_path / "a.csv"), "--mapping", str(tmp_path / "m.yaml"), "--json")
    code, out, _ = winnow(tmp_path / "w", *words)
    told = json.loads(out)
    assert (code, told["scored"], told["models"], told["group_sizes"]) == (0, 2, {"m1": 2}, {"2": 1})
    (said,) = told["rewards"]
    assert (said["by"], said["sentence"].endswith("the reward is 'points', by the mapping.")) == (
        "user",
        True,
    )


def test_a_column_of_the_mapping_that_is_nowhere_is_refused_in_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("q,said,points\nHow?,So.,3\n")
    (tmp_path / "m.yaml").write_text("question: q\ncompletion: said\nreward: point\n")
    words = ("rollouts", "import", str(tmp_path / "a.csv"), "--mapping", str(tmp_path / "m.yaml"))
    code, _, err = winnow(tmp_path / "w", *words)
    assert (code, "a.csv: the mapping says that reward stands in 'point', but no record has it" in err) == (
        2,
        True,
    )


def test_a_mapping_that_is_none_is_refused(tmp_path: Path) -> None:
    for content, reason in (
        ("- a\n", "holds no mapping"),
        ("a: &x 1\nb: *x\n", "aliases"),
        ("a: [", "no YAML"),
    ):
        (tmp_path / "m.yaml").write_text(content)
        words = ("rollouts", "import", str(tau(tmp_path)), "--mapping", str(tmp_path / "m.yaml"))
        code, _, err = winnow(tmp_path / "w", *words)
        assert code == 2
        assert reason in err


def test_formats_are_listed_with_what_they_bring(tmp_path: Path) -> None:
    code, out, _ = winnow(tmp_path / "w", "rollouts", "formats")
    assert code == 0
    assert out.splitlines()[0].split() == ["--format", "what", "it", "is", "reward", "repeats", "steps"]
    assert "tau_bench" in out
    assert not (tmp_path / "w").exists()
