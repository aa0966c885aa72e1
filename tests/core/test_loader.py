"""The shipped Python loader: the standard library alone, and the very text that Winnow injects."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.experience import KINDS, Experience
from core.injection import estimate_tokens, render
from core.memory import select
from core.packs import EXPORTERS, read_usage, winnow_lessons
from core.packs.loader import SOURCE
from core.packs.pack import make_pack
from core.packs.prompt import prompt_text
from tests.core.test_packs import HOSTILE, TEXTS, content, small

DOMAINS = ("general", "capitals", "sums")

LESSONS = st.tuples(TEXTS, st.sampled_from(KINDS), st.sampled_from(DOMAINS), st.integers(5, 95))
SHORT = st.tuples(
    st.sampled_from(HOSTILE), st.sampled_from(KINDS), st.sampled_from(DOMAINS[:2]), st.integers(5, 95)
)
LIBRARIES = st.one_of(st.lists(LESSONS, max_size=8), st.lists(SHORT, min_size=51, max_size=56))
"""Small ones, which go in whole, and such that must be chosen from."""


def loaded(experiences: tuple[Experience, ...]) -> winnow_lessons.Lessons:
    pack = make_pack(content().model_copy(update={"experiences": experiences, "include_provenance": False}))
    return winnow_lessons.Lessons(json.loads(pack.canonical()), "0" * 64)


@given(st.lists(TEXTS, max_size=5))
def test_the_loader_renders_what_the_renderer_renders(texts: list[str]) -> None:
    made = content(*texts)
    injection = loaded(made.experiences).inject()
    expected = render(made.experiences)
    assert injection.text == expected.text
    assert {label: lesson.id for label, lesson in injection.labels.items()} == expected.labels


@settings(max_examples=60, deadline=None)
@given(LIBRARIES, st.sampled_from(DOMAINS), st.one_of(st.integers(0, 300), st.just(10**6)))
def test_the_loader_selects_what_memory_selects_by_domain_and_budget(
    drawn: list[tuple[str, str, str, int]], domain: str, budget: int
) -> None:
    experiences = tuple(
        Experience(id=f"E-{i:04}", text=text, kind=kind, domain=of, confidence=c / 100)  # type: ignore[arg-type]
        for i, (text, kind, of, c) in enumerate(drawn, 1)
    )
    expected = select(experiences, "", domain=domain, budget_tokens=budget).injection
    injection = loaded(experiences).inject(domain=domain, budget_tokens=budget)
    assert injection.text == expected.text
    assert {label: lesson.id for label, lesson in injection.labels.items()} == expected.labels


@pytest.mark.parametrize("budget", [30, 60, 100, 1_000])
def test_the_loader_finds_the_short_lessons_behind_many_long_ones_as_memory_does(budget: int) -> None:
    texts = [f"Lesson number {i} says " + ("very " * 28 if i < 80 else "hi") for i in range(120)]
    experiences = tuple(Experience(id=f"E-{i:04}", text=text) for i, text in enumerate(texts, 1))
    expected = select(experiences, "", domain="sums", budget_tokens=budget).injection
    assert loaded(experiences).inject(domain="sums", budget_tokens=budget).text == expected.text


@given(TEXTS)
def test_the_loader_estimates_the_same_number_of_tokens(text: str) -> None:
    assert winnow_lessons.estimate_tokens(text) == estimate_tokens(text)


def test_a_tokenizer_of_ones_own_decides_about_the_budget() -> None:
    lessons = loaded(content("a b c", "d").experiences)
    assert lessons.inject(budget_tokens=1, count_tokens=lambda text: 1).text
    assert not lessons.inject(budget_tokens=1, count_tokens=lambda text: 2).text


def test_the_loader_needs_nothing_but_the_standard_library_of_python_3_9() -> None:
    tree = ast.parse(SOURCE.read_text(encoding="utf-8"), feature_version=(3, 9))
    imported = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    imported |= {str(n.module) for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)}
    assert imported
    assert {name.partition(".")[0] for name in imported} <= sys.stdlib_module_names


def run_alone(folder: Path, script: str) -> str:
    """Run a script beside the loader without site-packages and without Winnow; gives what it printed."""
    (folder / "main.py").write_text(script, encoding="utf-8")
    command = [sys.executable, "-S", "-W", "error", "-X", "utf8", str(folder / "main.py")]
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_the_exported_file_alone_gives_the_prompt_of_the_version(tmp_path: Path) -> None:
    made = content(*HOSTILE)
    (tmp_path / "winnow_lessons.py").write_bytes(EXPORTERS["loader"].write(made))
    script = "import winnow_lessons as w\nimport json\nprint(json.dumps(w.load().inject().text))\n"
    assert json.loads(run_alone(tmp_path, script)) == prompt_text(made.experiences)


def test_the_plain_file_reads_the_pack_json_beside_it(tmp_path: Path) -> None:
    (tmp_path / "winnow_lessons.py").write_bytes(SOURCE.read_bytes())
    (tmp_path / "pack.json").write_text(make_pack(small()).canonical(), encoding="utf-8", newline="")
    script = "import winnow_lessons as w\nprint(w.load().version, len(w.load().lessons), w.load().name)\n"
    assert run_alone(tmp_path, script).split() == ["3", "2", "Demo"]


def test_the_zip_of_a_pack_is_read_as_its_pack_json_is(tmp_path: Path) -> None:
    (tmp_path / "demo.zip").write_bytes(EXPORTERS["pack"].write(small()))
    (tmp_path / "pack.json").write_text(make_pack(small()).canonical(), encoding="utf-8", newline="")
    zipped, plain = (winnow_lessons.load(tmp_path / name) for name in ("demo.zip", "pack.json"))
    assert (zipped.lessons, zipped.sha256, zipped.version) == (plain.lessons, plain.sha256, 3)


def test_what_is_no_pack_is_refused_with_the_command_that_makes_one(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "nothing")
    (tmp_path / "cut.zip").write_bytes(EXPORTERS["pack"].write(small())[:300])
    (tmp_path / "latin.txt").write_bytes(b"\xff\xfe")
    (tmp_path / "list.json").write_bytes(b"[]")
    for name in ("other.zip", "cut.zip", "latin.txt", "list.json"):
        with pytest.raises(ValueError, match=f"{name} is .*winnow pack export --form loader"):
            winnow_lessons.load(tmp_path / name)
    for missing in (tmp_path / "none.zip", tmp_path):
        with pytest.raises(FileNotFoundError, match=r"there is no file .*winnow pack export --form loader"):
            winnow_lessons.load(missing)


def test_a_pack_json_that_unpacks_to_more_than_is_read_is_refused(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "bomb.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("pack.json", b" " * (winnow_lessons.MAX_BYTES + 1))
    with pytest.raises(ValueError, match="more than"):
        winnow_lessons.load(tmp_path / "bomb.zip")


def test_the_exported_file_is_ascii_and_the_same_bytes_each_time() -> None:
    made = content(*HOSTILE)
    data = EXPORTERS["loader"].write(made)
    assert data == EXPORTERS["loader"].write(made)
    assert data.isascii()


def test_another_major_version_is_refused() -> None:
    pack = json.loads(make_pack(small()).canonical()) | {"schema_version": "2.0"}
    with pytest.raises(ValueError, match="format 1"):
        winnow_lessons.Lessons(pack)


def test_a_logged_attempt_is_read_back_as_it_was(tmp_path: Path) -> None:
    lessons = loaded(small().experiences)
    injection = lessons.inject(domain="capitals")
    assert injection.cited("As [G1] says, and [G1] again, not [G7].") == ["G1"]
    log = tmp_path / "usage.jsonl"
    lessons.log(log, injection, task="t-1", outcome=1, followed=["G1", "E-0002"], model="m")
    lessons.log(log, injection)
    first, second = read_usage(log.read_bytes()).entries
    assert list(first.injected) == ["E-0001", "E-0002"]
    assert (first.followed, first.outcome, first.task, first.model) == (("E-0002",), 1.0, "t-1", "m")
    assert (first.pack.name, first.pack.version, first.domain) == ("Demo", 3, "capitals")
    assert (second.followed, second.outcome) == (None, None)
    assert first.key != second.key


@pytest.mark.parametrize("outcome", [-0.1, 1.1, float("nan")])
def test_an_outcome_outside_its_range_is_refused_and_nothing_is_logged(
    tmp_path: Path, outcome: float
) -> None:
    lessons = loaded(small().experiences)
    with pytest.raises(ValueError, match="outcome"):
        lessons.log(tmp_path / "usage.jsonl", lessons.inject(), outcome=outcome)
    assert not (tmp_path / "usage.jsonl").exists()


def test_the_log_holds_neither_texts_nor_prompts(tmp_path: Path) -> None:
    lessons = loaded(small().experiences)
    lessons.log(tmp_path / "usage.jsonl", lessons.inject(), outcome=0.5, followed=["G0"])
    logged = (tmp_path / "usage.jsonl").read_text()
    assert not any(word in logged for word in ("Name the city", "Read `{file}`"))


def test_several_processes_write_whole_lines_to_one_log(tmp_path: Path) -> None:
    (tmp_path / "winnow_lessons.py").write_bytes(EXPORTERS["loader"].write(small()))
    script = "import winnow_lessons as w\nx = w.load()\nfor _ in range(50): x.log('u.jsonl', x.inject())\n"
    (tmp_path / "main.py").write_text(script, encoding="utf-8")
    started = [subprocess.Popen([sys.executable, "-S", "main.py"], cwd=tmp_path) for _ in range(3)]
    assert [process.wait() for process in started] == [0, 0, 0]
    log = read_usage((tmp_path / "u.jsonl").read_bytes())
    assert (len({e.key for e in log.entries}), log.aside) == (150, ())
