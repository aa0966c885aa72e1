"""Every format under the same faults: one clear line each, nothing lost, nothing invented, no trace of Python."""

from __future__ import annotations

import gzip
import importlib
import json
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from core.errors import InputError
from core.importers.formats import FORMATS
from core.importers.gathering import recognised
from core.importers.source import MAX_LINE
from core.ports import silent
from core.workspace import Workspace
from core.workspace.bringing import look
from core.workspace.intake import ImportOptions, ImportReport
from tests.importers.making import Counts, attempts_of, opened
from tests.importers.mutating import as_stored, mutations

Maker = Callable[[Path, int], Counts]

MAKERS: dict[str, Maker] = {
    path.stem.removeprefix("make_"): importlib.import_module(f"tests.importers.{path.stem}").make
    for path in sorted(Path(__file__).parent.glob("make_*.py"))
}
BINARY = {"inspect", "trl", "youtu"}
"""Archives, Parquet files and databases: they have no lines."""
LINES = sorted(MAKERS.keys() - BINARY - {"tau2"})
"""Formats whose makers write a record, or an event, on each line."""
ONE_RECORD = sorted({*LINES} - {"claude_code", "codex", "otel", "openai_agents", "langfuse", "langsmith"})
"""Of these, those whose attempts are not put together from several lines."""
A_LINE = {"columnar": 4}
"""Attempts on a line, where that is not one."""
ATTEMPTS = 12
EVERY = 25
"""Of the many values with junk in one place, one in so many is tried."""

every = pytest.mark.parametrize("name", MAKERS)
by_lines = pytest.mark.parametrize("name", LINES)


def made(name: str, tmp_path: Path) -> tuple[Path, Counts]:
    path = tmp_path / ("dump.eval" if name == "inspect" else "dump.jsonl")
    return path, MAKERS[name](path, ATTEMPTS)


def seen(path: Path) -> ImportReport:
    """What a dry run tells; its sums hold, and it has no fault of ours in it."""
    report = look(None, [path], ImportOptions(), silent)
    left_out = report.known + report.duplicates + report.conflicts + report.children
    assert report.attempts == report.added + left_out
    assert sum(size * n for size, n in report.group_sizes.items()) == report.added
    assert "its reader failed" not in report.model_dump_json()
    return report


def refusal(path: Path) -> str:
    """The sentence that a file is refused with; empty where it is not."""
    said = ""
    try:
        seen(path)
    except InputError as e:
        said = str(e)
    assert "\n" not in said
    assert "its reader failed" not in said
    return said


def test_every_format_has_a_maker() -> None:
    names = {f.name.replace("-", "_") for f in FORMATS} - {"winnow_jsonl"}
    without = {name for name in names if not any(name.startswith(m) or m.startswith(name) for m in MAKERS)}
    assert without <= {"openhands"}


@every
def test_a_file_comes_in_as_a_person_counts_it(name: str, tmp_path: Path, workspace: Workspace) -> None:
    path, counts = made(name, tmp_path)
    report = workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    assert (report.added, report.tasks, report.errors) == (counts.attempts, counts.tasks, counts.errors)
    assert (report.steps.total, report.steps.succeeded, report.steps.failed) == (
        counts.steps,
        counts.succeeded,
        counts.failed,
    )
    assert (report.usage.prompt_tokens, report.usage.completion_tokens) == (
        counts.prompt_tokens,
        counts.completion_tokens,
    )
    assert (report.children, report.set_aside_total) == (counts.sub_agents, counts.aside)
    chosen = all(len(said.candidates) < 2 or said.by != "nobody" for said in report.rewards)
    assert (report.scored, report.unscored) == (
        (counts.scored, counts.unscored) if chosen else (0, counts.scored + counts.unscored)
    )


@every
def test_the_same_file_again_brings_nothing_new(name: str, tmp_path: Path, workspace: Workspace) -> None:
    path, counts = made(name, tmp_path)
    workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    before = workspace.store.dump()
    again = workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    assert (again.nothing_new, again.known) == (True, counts.attempts)
    assert workspace.store.dump() == before


@every
def test_a_file_that_is_compressed_is_read_as_the_file(name: str, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    plain = seen(path)
    path.write_bytes(gzip.compress(path.read_bytes()))
    if name in BINARY:
        assert refusal(path) or seen(path).added == plain.added
    else:
        assert seen(path).model_dump(exclude={"usage"}) == plain.model_dump(exclude={"usage"})


@every
def test_a_file_that_was_compressed_since_brings_nothing_new(
    name: str, tmp_path: Path, workspace: Workspace
) -> None:
    path, counts = made(name, tmp_path)
    workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes()))
    path.unlink()
    if name == "inspect":  # an archive of its own, whose members are compressed already
        return
    again = workspace.intake.add_rollouts([path.with_name(f"{path.name}.gz")], ImportOptions(), "ann")
    assert (again.nothing_new, again.known, again.set_aside_total) == (True, counts.attempts, counts.aside)


@pytest.mark.parametrize("name", sorted({*ONE_RECORD} - {"codex_exec", "openclaw"}))
def test_a_file_that_grew_is_known_whether_it_or_its_folder_is_named(
    name: str, tmp_path: Path, workspace: Workspace
) -> None:
    (tmp_path / "logs" / "monday").mkdir(parents=True)
    path, counts = made(name, tmp_path / "logs" / "monday")
    whole = path.read_bytes()
    path.write_bytes(b"".join(whole.splitlines(keepends=True)[:-1]))
    before = workspace.intake.add_rollouts([tmp_path / "logs"], ImportOptions(), "ann")
    path.write_bytes(whole)
    after = workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    assert (before.added + after.added, after.known) == (counts.attempts, before.added)


@every
def test_a_file_that_is_cut_off_invents_nothing_and_says_so(name: str, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    whole, data = seen(path), path.read_bytes()
    path.write_bytes(data[: len(data) * 6 // 10 - 7])
    if refusal(path):
        return
    report = seen(path)
    assert report.added <= whole.added
    assert report.scored <= whole.scored
    told = report.set_aside_total + len(report.remarks) + sum(bool(f.reason) for f in report.files)
    assert told > 0


@every
def test_compression_that_is_cut_off_loses_nothing_that_came_before(name: str, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    whole = seen(path)
    data = gzip.compress(path.read_bytes() * 1)
    path.write_bytes(data[: len(data) * 6 // 10])
    if not refusal(path):
        report = seen(path)
        assert 0 < report.added <= whole.added
        assert report.set_aside_total + sum(bool(f.reason) for f in report.files) > 0


@pytest.mark.parametrize("name", ["tau_bench", "messages", "otel"])
def test_of_a_compressed_list_whose_end_is_missing_all_that_was_packed_is_read(
    name: str, tmp_path: Path
) -> None:
    path, _ = made(name, tmp_path)
    whole, lines = seen(path), path.read_text().splitlines()
    path.write_bytes(gzip.compress(("[\n" + ",\n".join(lines) + "\n]").encode())[:-8])  # without its checksum
    report = seen(path)
    assert (report.added, report.set_aside_total) == (whole.added, whole.set_aside_total + 1)


@by_lines
@pytest.mark.parametrize("junk", [b'{"oops": ', b"Killed by signal 9", b'{"a": "\xff\xfe"}', b"\x00\x01\x02"])
def test_garbage_between_the_records_is_set_aside_alone(name: str, junk: bytes, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    whole, lines = seen(path), path.read_bytes().splitlines(keepends=True)
    middle = len(lines) // 2
    path.write_bytes(b"".join([*lines[:middle], junk, b"\n", *lines[middle:]]))
    report = seen(path)
    assert (report.added, report.scored, report.errors, report.steps) == (
        whole.added,
        whole.scored,
        whole.errors,
        whole.steps,
    )
    assert report.set_aside_total == whole.set_aside_total + 1
    assert report.set_aside[0].line == middle + 1


@by_lines
def test_a_value_of_any_type_in_any_record_fails_no_reader(name: str, tmp_path: Path) -> None:
    path = tmp_path / "dump.jsonl"
    MAKERS[name](path, 4)
    form, lines = recognised(opened(path)), path.read_text().splitlines()
    assert form is not None
    for place in (0, len(lines) // 2, len(lines) - 1):
        for changed in islice(mutations(json.loads(lines[place])), 0, None, EVERY):
            path.write_text("\n".join([*lines[:place], json.dumps(changed), *lines[place + 1 :]]))
            found = attempts_of(form, path)
            assert as_stored(found) == found


@by_lines
def test_bytes_in_another_encoding_cost_their_record_alone(name: str, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    whole, lines = seen(path), path.read_bytes().splitlines(keepends=True)
    middle = len(lines) // 2
    words = list(re.finditer(rb"(?<=: \")[A-Za-z ]{4,}", lines[middle]))
    at = words[-1].start() + 1 if words else lines[middle].rindex(b"}") - 2
    lines[middle] = lines[middle][:at] + b"\xe9" + lines[middle][at + 1 :]
    path.write_bytes(b"".join(lines))
    report = seen(path)
    lost = 4 if name == "columnar" else 1  # a line of that format is a task with all its attempts
    assert whole.added - lost <= report.added <= whole.added
    assert report.set_aside_total == whole.set_aside_total + 1


@by_lines
def test_a_byte_order_mark_and_line_ends_of_another_system_change_nothing(name: str, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    plain = seen(path)
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert seen(path) == plain


@by_lines
@pytest.mark.parametrize("indent", [None, 1])
def test_a_list_of_the_records_reads_as_their_lines(name: str, indent: int | None, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    plain, records = seen(path), [json.loads(line) for line in path.read_bytes().splitlines()]
    path.write_text(json.dumps(records, indent=indent))
    assert seen(path) == plain


@by_lines
def test_records_that_are_spread_over_lines_read_as_if_each_had_its_own(name: str, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    plain, records = seen(path), [json.loads(line) for line in path.read_bytes().splitlines()]
    path.write_text("\n".join(json.dumps(record, indent=2) for record in records))
    assert seen(path) == plain


@pytest.mark.parametrize("name", ["atif", "swe_agent", "messages"])
def test_records_that_are_spread_over_lines_may_begin_beside_their_brace(name: str, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    plain, records = seen(path), [json.loads(line) for line in path.read_bytes().splitlines()]
    path.write_text("\n".join(json.dumps(record, indent=2).replace("{\n", "{", 1) for record in records))
    assert seen(path) == plain


@by_lines
def test_a_line_that_begins_with_a_comma_is_set_aside_alone(name: str, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    plain, lines = seen(path), path.read_text().splitlines()
    path.write_text("\n".join([lines[0], ", 1", *lines[1:]]))
    report = seen(path)
    assert (report.added, report.set_aside_total) == (plain.added, plain.set_aside_total + 1)


@by_lines
def test_a_first_line_that_was_cut_to_its_brace_is_set_aside_alone(name: str, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    plain = seen(path)
    path.write_bytes(b"{\n" + path.read_bytes())
    report = seen(path)
    assert (report.added, report.steps) == (plain.added, plain.steps)
    assert report.set_aside_total == plain.set_aside_total + 1


@by_lines
def test_zero_bytes_between_the_records_are_set_aside_alone(name: str, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    whole, lines = seen(path), path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"\0" * 4096, b"\n", *lines[1:]]))
    report = seen(path)
    assert (report.added, report.steps) == (whole.added, whole.steps)
    assert report.set_aside_total == whole.set_aside_total + 1


@by_lines
def test_nesting_without_end_costs_its_record_alone_and_a_member_that_is_not_read_nothing(
    name: str, tmp_path: Path
) -> None:
    path, _ = made(name, tmp_path)
    whole, lines = seen(path), path.read_bytes().splitlines(keepends=True)
    middle = len(lines) // 2
    lines[middle] = b'{"zz": ' + b"[" * 500 + b"]" * 500 + b", " + lines[middle].lstrip()[1:]
    lines.insert(1, b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}\n")
    path.write_bytes(b"".join(lines))
    report = seen(path)
    assert (report.added, report.scored, report.steps) == (whole.added, whole.scored, whole.steps)
    assert [a.reason for a in report.set_aside] == [
        *(a.reason for a in whole.set_aside),
        "the JSON is nested too deeply",
    ]


IN_LISTS = ["tau_bench", "langfuse", "otel", "openai_agents", "messages", "nemo_gym", "claude_code"]


@pytest.mark.parametrize("name", IN_LISTS)
@pytest.mark.parametrize(
    ("start", "between", "end"),
    [
        ("[\n", "\n,", "\n]"),
        ("[\n", ",\n", "\n\n]\n"),
        ("\n\n[\n\n", ",\n\n", "\n]"),
        ("[", ",\n", "]"),
    ],
)
def test_a_list_reads_the_same_however_its_members_stand_on_lines(
    name: str, start: str, between: str, end: str, tmp_path: Path
) -> None:
    path, _ = made(name, tmp_path)
    plain, lines = seen(path), path.read_text().splitlines()
    path.write_text(start + between.join(lines) + end)
    assert seen(path) == plain


@pytest.mark.parametrize("name", IN_LISTS)
@pytest.mark.parametrize(
    ("end", "reason"),
    [("", "its JSON is cut off: it ends in the middle"), (",\n]", "nothing follows the comma")],
)
def test_of_a_list_that_ends_badly_after_a_member_all_members_are_read(
    name: str, end: str, reason: str, tmp_path: Path
) -> None:
    path, _ = made(name, tmp_path)
    plain, lines = seen(path), path.read_text().splitlines()
    path.write_text("[\n" + ",\n".join(lines) + end)
    report = seen(path)
    assert (report.added, report.steps) == (plain.added, plain.steps)
    assert report.set_aside_total == plain.set_aside_total + 1
    assert reason in report.set_aside[-1].reason


@pytest.mark.parametrize("name", IN_LISTS)
@pytest.mark.parametrize("junk", [b"", b"\0" * 600, b'{"a": 1}', b", 3"])
def test_what_follows_a_list_is_read_or_set_aside(name: str, junk: bytes, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    plain, lines = seen(path), path.read_bytes().splitlines()
    parts = lines[: len(lines) // 2], lines[len(lines) // 2 :]
    path.write_bytes(b"".join(b"[" + b", ".join(part) + b"]\n" for part in parts) + junk)
    report = seen(path)
    told = ("added", "scored", "steps", "usage", "children")
    assert report.model_dump(include={*told}) == plain.model_dump(include={*told})
    assert report.set_aside_total == plain.set_aside_total + bool(junk)
    if junk and not junk.startswith(b"{"):
        assert "something follows its JSON" in report.set_aside[-1].reason


WHOLE = ["atif", "harbor", "langfuse", "langsmith", "openhands", "swe_agent", "terminal_bench"]


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("indent", [None, 1])
def test_one_record_in_another_encoding_is_set_aside_and_not_read_with_holes(
    name: str, indent: int | None, tmp_path: Path
) -> None:
    path, _ = made(name, tmp_path)
    record = path.read_bytes().splitlines()[0]
    text = json.dumps(json.loads(record) | {"zz": "caf\xe9"}, ensure_ascii=False, indent=indent)
    path.write_text(text, encoding="utf-8")
    assert seen(path).added == 1
    path.write_text(text, encoding="latin-1")
    assert "not UTF-8" in refusal(path)


@pytest.mark.parametrize("name", ["atif", "swe_agent", "openhands", "terminal_bench"])
def test_lines_in_another_encoding_are_told_as_such(name: str, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    lines = path.read_bytes().splitlines()
    path.write_bytes(b"\n".join(b'{"zz": "caf\xe9", ' + line.lstrip()[1:] for line in lines))
    assert "line 1: the line is not UTF-8 (byte 12 of it)" in refusal(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ('{"a": {"b": [1, 2', "it is cut off: its JSON ends in the middle"),
        ('{"a": ' + "[" * 5_000 + "]" * 5_000 + "}", "it holds JSON that is nested too deeply"),
        ('{"a": 1} oops', "it is not one JSON value: something follows in line 1"),
    ],
)
def test_a_file_that_no_format_knows_since_it_is_damaged_says_so(
    text: str, reason: str, tmp_path: Path
) -> None:
    (tmp_path / "a.json").write_text(text)
    assert refusal(tmp_path / "a.json").endswith(f"Winnow knows; {reason}.")


@pytest.mark.parametrize(
    "end", [b"tr", b"nul", b"fals", b"-", b"1.", b"2e", b"2e-", b'"wor', b"", b"Na", b"[3, "]
)
def test_a_line_that_ends_in_a_word_or_a_number_is_cut_off(end: bytes, tmp_path: Path) -> None:
    path, _ = made("nemo_gym", tmp_path)
    with path.open("ab") as file:
        file.write(b'{"reward": ' + end)
    assert [a.reason for a in seen(path).set_aside] == ["the line is cut off: its JSON ends in the middle"]


def test_a_table_that_is_cut_off_says_so_and_no_zeros_are_read(tmp_path: Path) -> None:
    path, _ = made("trl", tmp_path)
    path.write_bytes(path.read_bytes()[:-3])
    assert "it is a Parquet file that is damaged or cut off; copy it again" in refusal(path)
    path.unlink()
    path, _ = made("youtu", tmp_path)
    size = path.stat().st_size
    path.write_bytes(path.read_bytes()[:-3])
    assert f"is cut off: of its {size:,} bytes {size - 3:,} are there; copy it again" in refusal(path)


@pytest.mark.parametrize("name", ["claude_code", "messages", "verl"])
def test_a_line_that_is_too_long_is_set_aside_alone(name: str, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    whole, lines = seen(path), path.read_bytes().splitlines(keepends=True)
    lines.insert(5, b'{"a": "' + b"x" * (MAX_LINE + 10) + b'"}\n')
    path.write_bytes(b"".join(lines))
    report = seen(path)
    assert (report.added, report.set_aside_total) == (whole.added, whole.set_aside_total + 1)
    assert f"at most {MAX_LINE}" in report.set_aside[0].reason


@pytest.mark.parametrize("name", ONE_RECORD)
def test_records_that_come_twice_are_told(name: str, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    whole = seen(path)
    path.write_bytes(path.read_bytes() * 2)
    report = seen(path)
    assert report.attempts == 2 * whole.attempts
    assert report.conflicts == 0
    repeated = sum(
        r.count for r in report.remarks if "repeats another one of the file word for word" in r.text
    )
    earlier = sum(r.count for r in whole.remarks if "repeats another one of the file word for word" in r.text)
    assert report.duplicates + repeated - earlier >= whole.attempts


@by_lines
def test_rewards_that_are_no_numbers_are_no_zeros(name: str, tmp_path: Path, workspace: Workspace) -> None:
    path, _ = made(name, tmp_path)
    whole = seen(path)
    numbers = rb'("[a-z_]*(?:reward|score|value)[a-z_]*": )-?[\d.]+'
    data, replaced = re.subn(numbers, rb"\1NaN", path.read_bytes())
    path.write_bytes(data)
    report = workspace.intake.add_rollouts([path], ImportOptions(), "ann")
    assert report.added == whole.added
    if replaced and whole.scored:
        assert report.scored < whole.scored
    assert "NaN" not in report.model_dump_json()
    for score in report.scores:
        assert score.least is None or score.numbers
    assert not re.search(r'"recorded":\s*NaN', workspace.store.dump())


@every
def test_a_pointer_and_an_empty_file_are_refused_in_one_line(name: str, tmp_path: Path) -> None:
    path, _ = made(name, tmp_path)
    path.write_bytes(
        b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 4466\n"
    )
    assert "only a Git LFS pointer (sha256:000000000000…, 4466 bytes)" in refusal(path)
    path.write_bytes(b" \n")
    assert "it is empty" in refusal(path)


def test_a_pretty_printed_file_of_any_other_json_is_refused_in_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    for value in (
        {"a": 1},
        [1, 2],
        "x",
        None,
        [[]],
        {"messages": 3},
        {"samples": {"a": []}},
        [{"trial": []}],
    ):
        path.write_text(json.dumps(value, indent=2))
        assert "in no format of recorded rollouts that Winnow knows" in refusal(path)
