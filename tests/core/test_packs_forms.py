"""Agent YAML, playbook, redaction: what other systems read is what was measured, and nothing private goes out."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from core.errors import PackError
from core.packs import EXPORTERS, Pack, pack_schema, read_library, read_pack, read_usage, write_pack
from core.packs.foreign import ForeignLesson
from core.packs.pack import PackedExperience, PackedVersion
from core.packs.prompt import prompt_text
from core.packs.redaction import HIDDEN, names_a_home, without_folders, without_homes
from core.packs.yaml_text import escape_interpolation, unescape_interpolation, yaml_string
from tests.core.test_packs import HOSTILE, TEXTS, content, small, version

DOCS = Path(__file__).parents[2] / "docs" / "formats.md"

PICTURES = "␤ and ␛ and ␛␤ and ␍"
MANY = st.lists(st.one_of(TEXTS, st.just(PICTURES)), min_size=1, max_size=5)


def lessons(form: str, data: bytes) -> tuple[ForeignLesson, ...]:
    return read_library(data, form)[1].lessons


@given(st.sampled_from(["pack", "json", "csv", "playbook", "agent-yaml"]), MANY)
def test_every_form_that_is_read_gives_back_the_texts_that_were_written(form: str, texts: list[str]) -> None:
    data = EXPORTERS[form].write(content(*texts))
    assert [e.text for e in lessons(form, data)] == texts
    assert read_library(data)[0] == form, "and it is recognised"


@pytest.mark.parametrize("form", ["csv", "playbook", "pack"])
def test_kind_domain_and_counts_come_back_where_the_form_has_them(form: str) -> None:
    first, second = lessons(form, EXPORTERS[form].write(small()))
    assert (first.their_id, first.kind, first.domain, first.uses, first.wins) == (
        *("E-0001", "convention", "capitals"),
        *(4, 3),
    )
    assert (second.kind, second.domain) == ("strategy", "general")


# The examples of docs/formats.md

BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", DOCS.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def examples(start: str) -> list[str]:
    return [block for _, block in BLOCKS if block.startswith(start)]


@pytest.mark.parametrize(
    ("start", "form"),
    [("agent:", "agent-yaml"), ("<!-- winnow playbook 1", "playbook"), ('"id",', "csv")],
)
def test_the_examples_of_the_documents_are_read_as_what_they_are_said_to_be(start: str, form: str) -> None:
    [block] = examples(start)
    found, library = read_library(block.encode())
    assert (found, len(library.lessons), library.aside) == (form, 1, ())


def test_the_example_of_a_pack_follows_the_schema_and_that_of_a_log_is_an_entry() -> None:
    [pack] = examples('{"schema_version"')
    Draft202012Validator(pack_schema()).validate(json.loads(pack))
    [entry] = examples('{"winnow_usage"')
    logged = read_usage(entry.replace("\n", " ").encode())
    assert (len(logged.entries), logged.aside) == (1, ())


def test_the_document_has_a_line_for_every_form() -> None:
    text = DOCS.read_text(encoding="utf-8")
    assert [form for form in EXPORTERS if f"| `{form}` |" not in text] == []


# Agent YAML


@given(MANY)
def test_the_instructions_are_the_injected_text_for_omegaconf(texts: list[str]) -> None:
    made = content(*texts)
    read = yaml.safe_load(EXPORTERS["agent-yaml"].write(made).decode())
    instructions = read["agent"]["instructions"]
    assert unescape_interpolation(instructions) == prompt_text(made.experiences)
    for slashes in re.findall(r"(\\*)\$\{", instructions):
        assert len(slashes) % 2 == 1, "an interpolation that is not escaped would be looked up"


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_quoted_string_is_one_line_of_yaml(text: str) -> None:
    quoted = yaml_string(text)
    assert yaml.safe_load(f"a: {quoted}") == {"a": text}
    assert len(quoted.splitlines()) == 1


@given(st.text(st.sampled_from("\\${}ab")))
def test_escaping_of_interpolations_is_reversible(text: str) -> None:
    assert unescape_interpolation(escape_interpolation(text)) == text


@pytest.mark.parametrize("word", ["yes", "null", "1e3", "~", "0o7", "2026-01-01", "- a", "a: b", "# c", "%x"])
def test_no_text_turns_into_another_type(word: str) -> None:
    assert yaml.safe_load(yaml_string(word)) == word


def test_agent_yaml_of_others_is_read_label_by_label() -> None:
    file = """
# a configuration
defaults: [base]
agent:
  name: solver
  instructions: |-
    Solve the problem.

    Mind what follows:
    [G0]. Echo \\${HOME}
      before you begin.
    [G1] Check the sum.
orchestrated:
  - worker:
      instructions: "[G0]. Ask 'once'."
"""
    found = lessons("agent-yaml", file.encode())
    assert [(e.their_id, e.text) for e in found] == [
        ("G0", "Echo ${HOME}\n  before you begin."),
        ("G1", "Check the sum."),
        ("G0", "Ask 'once'."),
    ]
    assert len({e.place for e in found}) == 3


YAML_REFUSED = {
    "aliases": ("a: &a [x]\nagent:\n  instructions: *a\n", "aliases"),
    "laughs": ("a: &a [x,x]\nb: &b [*a,*a]\nagent: {instructions: 'x'}\n", "aliases"),
    "deep": ("instructions: " + "[" * 200 + "]" * 200, "too deep"),
    "very deep": ("instructions: " + "[" * 100_000, "not YAML"),
    "broken": ("instructions: 'a\n", "not YAML"),
    "two documents": ("instructions: a\n---\ninstructions: b\n", "not YAML"),
    "no label": ("agent:\n  instructions: Solve it.\n", "no lesson"),
    "empty": ("# nothing\n", "no lesson"),
}


@pytest.mark.parametrize("fault", sorted(YAML_REFUSED))
def test_yaml_that_cannot_be_trusted_is_refused(fault: str) -> None:
    file, reason = YAML_REFUSED[fault]
    with pytest.raises(PackError, match=reason):
        read_library(file.encode(), "agent-yaml")


def test_a_tag_of_yaml_constructs_nothing() -> None:
    file = b"x: !!python/object/apply:os.system ['exit 1']\nagent:\n  instructions: '[G0] Ask once.'\n"
    assert [e.text for e in lessons("agent-yaml", file)] == ["Ask once."]


# Playbook


@given(MANY)
def test_every_lesson_of_a_playbook_stands_on_a_line_of_its_own(texts: list[str]) -> None:
    lines = EXPORTERS["playbook"].write(content(*texts)).decode().splitlines()
    assert sum(bool(re.match(r"\[E-\d+\] helpful=\d+ harmful=\d+ :: ", line)) for line in lines) == len(texts)


def test_a_playbook_of_others_keeps_its_texts_of_several_lines() -> None:
    file = b"""## STRATEGIES & INSIGHTS
[str-00001] helpful=5 harmful=2 :: First line
  second line

- third line
[str-00002] helpful=0 harmful=0 :: Keep \\n and \xe2\x90\xa4 as they are

## COMMON MISTAKES TO AVOID
- [mis-00007] helpful=1 harmful=0 :: Do not guess.
"""
    first, second, third = lessons("playbook", file)
    assert (first.text, first.uses, first.wins) == ("First line\n  second line\n\n- third line", 7, 5)
    assert (second.text, second.section) == ("Keep \\n and ␤ as they are", "STRATEGIES & INSIGHTS")
    assert (third.their_id, third.kind) == ("mis-00007", "failure_pattern")


def test_a_line_whose_counters_are_broken_is_set_aside_and_does_not_join_its_neighbour() -> None:
    counters = ("helpful=1 harmful=0", "helpful=x harmful=0", "helpful=1 harmful=0")
    lines = [
        f"[a-{i}] {c} :: {text}"
        for i, (c, text) in enumerate(zip(counters, ("One.", "Two.", "Three."), strict=True))
    ]
    found = read_library("\n".join(["intro", *lines]).encode())[1]
    assert [e.text for e in found.lessons] == ["One.", "Three."]
    assert [a.place for a in found.aside] == ["line 1", "line 3"]


# JSON and CSV


def test_json_of_a_saved_step_is_read_and_what_is_no_text_is_set_aside() -> None:
    file = json.dumps({"step": 3, "experiences": {"G0": "Ask once.", "G1": ["x"], "G2": None, "G3": " "}})
    found = read_library(file.encode())[1]
    assert [(e.their_id, e.text) for e in found.lessons] == [("G0", "Ask once.")]
    assert [a.reason for a in found.aside] == ["it is no text", "it is no text", "the text is empty"]


def test_a_table_of_others_keeps_its_apostrophes_and_its_own_delimiter() -> None:
    found = lessons("csv", "id;lesson;uses\r\n7;'Tis so;3\r\n".encode("utf-8-sig"))
    assert [(e.their_id, e.text, e.uses) for e in found] == [("7", "'Tis so", 3)]


def test_a_row_of_another_length_is_set_aside() -> None:
    found = read_library(b"id,text\n1,One\n2,Two,more\n3,Three\n")[1]
    assert [e.text for e in found.lessons] == ["One", "Three"]
    assert [a.place for a in found.aside] == ["line 3"]


@pytest.mark.parametrize("form", ["json", "csv", "playbook", "agent-yaml"])
def test_nul_is_refused_in_every_text_form(form: str) -> None:
    data = EXPORTERS[form].write(content("Ask once.")).replace(b"once", b"on\x00ce")
    with pytest.raises(PackError, match="NUL"):
        read_library(data, form)


@pytest.mark.parametrize("escaped", ['"a\\u0000b"', '"a\\ud800b"'])
def test_what_is_no_text_is_refused_when_it_comes_escaped_too(escaped: str) -> None:
    with pytest.raises(PackError, match=r"NUL|surrogate"):
        read_library(f'{{"G0": {escaped}}}'.encode())


def test_a_lesson_that_looks_like_a_secret_is_set_aside_and_not_kept() -> None:
    found = read_library(json.dumps({"a": "Use sk-" + "a1B2" * 8, "b": "Ask once."}).encode())[1]
    assert [e.their_id for e in found.lessons] == ["b"]
    assert [("secret" in a.reason, a.raw) for a in found.aside] == [(True, "")]


KEY = "sk-" + "a1B2" * 20


def packed(**fields: str) -> bytes:
    """A pack of one lesson with these fields, for which nobody looked for secrets."""
    lesson = {"id": "E-0001", "text": "Ask once.", "kind": "strategy", "domain": "office", "learned_on": "m"}
    lesson |= {k: v for k, v in fields.items() if k != "name"}
    one = PackedExperience(**lesson, confidence=0.5, uses=0, wins=0)  # type: ignore[arg-type]
    name = fields.get("name", "demo")
    return write_pack(
        Pack(
            winnow="0", name=name, version=PackedVersion(number=1), provenance="redacted", experiences=(one,)
        )
    )


HOLDS_A_KEY: dict[str, bytes] = {
    "name of a pack": packed(name=f"a {KEY}"),
    "id in a pack": packed(id=KEY),
    "domain in a pack": packed(domain=KEY),
    "model in a pack": packed(learned_on=KEY),
    "id in JSON": json.dumps({KEY: "Ask once.", "b": "Ask twice."}).encode(),
    "id of no text in JSON": json.dumps({KEY: 1}).encode(),
    "no text in JSON": json.dumps({"a": [KEY]}).encode(),
    "kind in a table": f"id,text,kind\nG0,Ask once.,{KEY}\n".encode(),
    "a row of another length": f"id,text\nG0,Ask once.,{KEY}\n".encode(),
    "a line of a playbook": f"[G0] helpful=1 harmful=0 :: Ask.\n[{KEY}] helpful=x harmful=0 :: Ask\n".encode(),
    "a heading of a playbook": f"## {KEY}\n[G0] helpful=1 harmful=0 :: Ask.\n".encode(),
    "a line before all": f"password {KEY}\n[G0] helpful=1 harmful=0 :: Ask.\n".encode(),
}


@pytest.mark.parametrize("where", sorted(HOLDS_A_KEY))
def test_a_key_in_a_foreign_file_is_kept_nowhere(where: str) -> None:
    found = read_library(HOLDS_A_KEY[where])[1]
    assert KEY[:20] not in found.model_dump_json()
    assert re.search("looks like a secret|hidden id", found.model_dump_json()), "it is said"


def test_a_domain_comes_in_without_outer_spaces_and_general_is_general() -> None:
    data = "id,text,domain\na,One.,General\nb,Two.,  office \nc,Three.,\nd,Four.,off\u200bice\ne,Five.,{}\n"
    found = read_library(data.format("x" * 101).encode())[1]
    assert [e.domain for e in found.lessons] == ["general", "office", ""]
    assert any("'General' is taken as 'general'" in note for note in found.notes)
    assert [a.reason.partition(" ")[0] for a in found.aside] == ["the", "the"]


# Redaction


def test_the_report_says_what_stays_and_what_goes() -> None:
    told = EXPORTERS["pack"].redaction(small())
    hidden = EXPORTERS["pack"].redaction(small().model_copy(update={"include_provenance": False}))
    assert (told.provenance, hidden.provenance) == ("included", "redacted")
    assert any("reviewer" in part for part in told.kept)
    assert any("reviewer" in part for part in hidden.left_out)
    assert any("raw replies" in part for part in told.left_out)
    prompt = EXPORTERS["prompt"].redaction(small())
    assert (prompt.provenance, prompt.kept) == ("not in this form", ("2 texts",))


def test_no_local_path_leaves_in_a_pack() -> None:
    made = small()
    first, second = made.experiences
    proposal = made.proposals["P-0001"]
    evidence = proposal.evidence.model_copy(update={"sentence": "7 of 8 read /home/ada/secret/a.json first"})
    made = made.model_copy(
        update={
            "version": version(message="from C:\\Users\\ada\\runs, good", author="ada"),
            "experiences": (
                first,
                second.model_copy(update={"learned_on": "/home/ada/models/small.gguf"}),
            ),
            "proposals": {"P-0001": proposal.model_copy(update={"evidence": evidence})},
        }
    )
    pack = read_pack(EXPORTERS["pack"].write(made))
    assert "/home/" not in pack.canonical()
    assert "Users" not in pack.canonical()
    assert pack.version.message == f"from {HIDDEN}, good"
    assert pack.experiences[0].learned_on == "small.gguf"
    assert EXPORTERS["pack"].redaction(made).paths == 3


@pytest.mark.parametrize("form", sorted(EXPORTERS))
def test_a_lesson_that_names_a_home_folder_is_refused_and_the_path_is_not_repeated(form: str) -> None:
    with pytest.raises(PackError, match="E-0001 names a path in somebody's home folder") as caught:
        EXPORTERS[form].write(content("Read /home/ada/project/notes.txt first."))
    assert "ada" not in str(caught.value)


@pytest.mark.parametrize("form", sorted(EXPORTERS))
def test_what_was_redacted_is_not_exported_as_a_lesson(form: str) -> None:
    with pytest.raises(PackError, match=r"E-0001 holds the mark of a redaction.*--modify E-0001"):
        EXPORTERS[form].write(content("Log in with [redacted 2026-11-30 #1] first."))


@pytest.mark.parametrize(
    "text",
    [
        "Write to /home/user/out.txt.",
        "See https://example.org/home/ada/x.",
        "Keep /etc/hosts and /tmp/a as they are.",
        "Use ~/.config or $HOME/x.",
        "Ask at home/office first.",
        "/Users/<name>/x",
    ],
)
def test_paths_that_are_nobodys_are_left_alone(text: str) -> None:
    assert not names_a_home(text)
    assert without_homes(text) == text


@pytest.mark.parametrize(
    ("model", "expected"),
    [
        ("org/model-7b", "org/model-7b"),
        ("gpt-4.1", "gpt-4.1"),
        ("/srv/m/a.gguf", "a.gguf"),
        ("~/m/a.gguf", "a.gguf"),
        ("C:\\m\\a.gguf", "a.gguf"),
        ("", ""),
    ],
)
def test_a_model_is_named_without_its_folders(model: str, expected: str) -> None:
    assert without_folders(model) == expected


def test_the_hostile_texts_are_no_home_folders() -> None:
    assert not any(map(names_a_home, HOSTILE))
