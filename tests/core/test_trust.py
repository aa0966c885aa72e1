"""Which variables may be read as keys, and how keys are kept out of sight."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError, TrustError
from core.trust import (
    FRAGMENT,
    HIDDEN,
    check_code,
    load_function,
    load_trust,
    mcp_server,
    read_key,
    scrub,
    trust_path,
)

KEY = "sk-proj-Q7wZ0pLm42xTnB9cR-Ke_yW"


def environment(folder: Path, toml: str | None = None, **variables: str) -> dict[str, str]:
    path = folder / "trust.toml"
    if toml is not None:
        path.write_text(toml, encoding="utf-8")
        path.chmod(0o600)
    return {"WINNOW_TRUST": str(path), **variables}


def test_usual_provider_variables_are_allowed_without_a_file(tmp_path: Path) -> None:
    assert read_key("OPENAI_API_KEY", environment(tmp_path, OPENAI_API_KEY=f" {KEY}\n")) == KEY
    assert read_key("WINNOW_KEY_LAB", environment(tmp_path, WINNOW_KEY_LAB=KEY)) == KEY


def test_any_other_variable_is_refused_with_the_file_and_the_line_to_add(tmp_path: Path) -> None:
    environ = environment(tmp_path, 'key_variables = ["LAB_KEY"]', AWS_SECRET_ACCESS_KEY=KEY)
    with pytest.raises(TrustError) as caught:
        read_key("AWS_SECRET_ACCESS_KEY", environ)
    assert environ["WINNOW_TRUST"] in str(caught.value)
    assert 'key_variables = ["LAB_KEY", "AWS_SECRET_ACCESS_KEY"]' in str(caught.value)
    assert KEY not in str(caught.value)


def test_the_line_that_the_refusal_names_is_the_cure(tmp_path: Path) -> None:
    with pytest.raises(TrustError) as caught:
        read_key("LAB_KEY", environment(tmp_path, LAB_KEY=KEY))
    line = str(caught.value).partition("put the line ")[2].partition(" into ")[0]
    assert read_key("LAB_KEY", environment(tmp_path, line, LAB_KEY=KEY)) == KEY


@pytest.mark.parametrize("value", [None, "", "  \n"])
def test_an_unset_or_empty_variable_is_an_input_error(tmp_path: Path, value: str | None) -> None:
    environ = environment(tmp_path) | ({} if value is None else {"OPENAI_API_KEY": value})
    with pytest.raises(InputError, match="OPENAI_API_KEY is not set"):
        read_key("OPENAI_API_KEY", environ)


@pytest.mark.parametrize("key", ["sk-caf\u00e9-123456", "sk-line\nbreak-123"])
def test_a_key_that_no_header_can_carry_is_refused_without_showing_it(tmp_path: Path, key: str) -> None:
    with pytest.raises(InputError) as caught:
        read_key("OPENAI_API_KEY", environment(tmp_path, OPENAI_API_KEY=key))
    assert key not in str(caught.value)


@pytest.mark.parametrize(
    "toml", ["key_variables = ", "key_variable = ['A']", "key_variables = 'A'", "key_variables = [1]"]
)
def test_a_bad_trust_file_is_refused_by_name_and_never_read_as_empty(tmp_path: Path, toml: str) -> None:
    with pytest.raises(TrustError, match=r"trust\.toml"):
        load_trust(environment(tmp_path, toml))


def test_a_trust_file_that_is_not_utf8_is_refused(tmp_path: Path) -> None:
    environ = environment(tmp_path, "")
    (tmp_path / "trust.toml").write_bytes(b'key_variables = ["\xff"]')
    with pytest.raises(TrustError, match="not valid TOML"):
        load_trust(environ)


@pytest.mark.skipif(os.name != "posix", reason="file modes are a POSIX matter")
def test_a_trust_file_that_everyone_may_write_is_not_trusted(tmp_path: Path) -> None:
    environ = environment(tmp_path, 'key_variables = ["LAB_KEY"]', LAB_KEY=KEY)
    (tmp_path / "trust.toml").chmod(0o666)
    with pytest.raises(TrustError, match="chmod"):
        read_key("LAB_KEY", environ)


@pytest.mark.skipif(os.name != "posix", reason="the POSIX rule")
def test_the_file_is_in_the_configuration_folder(tmp_path: Path) -> None:
    assert trust_path({"HOME": "/home/a"}) == Path("/home/a/.config/winnow/trust.toml")
    assert trust_path({"HOME": "/home/a", "XDG_CONFIG_HOME": "/etc/x"}) == Path("/etc/x/winnow/trust.toml")
    assert trust_path({"HOME": "/home/a", "XDG_CONFIG_HOME": "here"}).is_relative_to("/home/a")


@pytest.mark.parametrize(
    "echo",
    [
        f"bad key {KEY}!",
        "bad key sk-proj-************e_yW!",
        "bad key sk-p...e_yW!",
        "bad key sk-proj…!",
        "bad key ****e_yW!",
        f"bad key {KEY[:12]} and {KEY[-9:]}!",
        f"bad key {KEY[3:20]}!",
        f'{{"authorization": "Bearer {KEY}"}}',
    ],
)
def test_no_echo_of_a_key_survives(echo: str) -> None:
    clean = scrub(echo, [KEY])
    assert HIDDEN in clean
    for i in range(len(KEY) - 3):
        assert KEY[i : i + 4] not in clean


def test_a_key_with_special_characters_is_found_in_its_escaped_forms() -> None:
    assert scrub('got %2Bab%2F12%3D%3D and "a\\"b1"', ["+ab/12==", 'a"b1']) == f'got {HIDDEN} and "{HIDDEN}"'


@pytest.mark.parametrize("text", ["The model is busy...", "2 ** 3 and ***", "wait -- xxxx", "", "k8s"])
def test_text_without_a_key_is_left_alone(text: str) -> None:
    assert scrub(text, [KEY, "", "k"]) == text


@given(st.text(max_size=40), st.text("abcXYZ019-_", min_size=FRAGMENT, max_size=60), st.text(max_size=40))
def test_a_whole_key_is_never_left_whatever_is_around_it(before: str, key: str, after: str) -> None:
    assert key not in scrub(before + key + after, [key])


# ---- hosts of a key


def test_a_bound_key_goes_to_its_hosts_and_nowhere_else(tmp_path: Path) -> None:
    toml = 'key_hosts = { LAB_KEY = ["llm.example.org", "*.lab.example.org"] }'
    environ = environment(tmp_path, toml, LAB_KEY=KEY, OPENAI_API_KEY=KEY)
    for host in ("llm.example.org", "LLM.example.org", "a.lab.example.org"):
        assert read_key("LAB_KEY", environ, host=host) == KEY
    for host in ("example.org", "lab.example.org", "evil-llm.example.org", "llm.example.org.evil.org", None):
        with pytest.raises(TrustError, match="may not be sent to"):
            read_key("LAB_KEY", environ, host=host)
    assert read_key("OPENAI_API_KEY", environ, host="anywhere.example.org") == KEY


def test_the_line_that_a_refused_host_is_given_is_the_cure(tmp_path: Path) -> None:
    toml = 'key_hosts = { A_KEY = ["a.example.org"], LAB_KEY = ["b.example.org"] }'
    with pytest.raises(TrustError) as caught:
        read_key("LAB_KEY", environment(tmp_path, toml, LAB_KEY=KEY), host="C.example.org")
    environ = environment(tmp_path, cure(caught.value), LAB_KEY=KEY, A_KEY=KEY)
    for name, host in (
        ("LAB_KEY", "c.example.org"),
        ("LAB_KEY", "b.example.org"),
        ("A_KEY", "a.example.org"),
    ):
        assert read_key(name, environ, host=host) == KEY


# ---- code


def cure(error: TrustError) -> str:
    return str(error).partition("put the line ")[2].partition(" into ")[0]


def test_no_code_runs_without_a_trust_file_and_the_refusal_names_the_cure(tmp_path: Path) -> None:
    for use in ("verifiers", "agents"):
        with pytest.raises(TrustError) as caught:
            check_code(use, environment(tmp_path / "absent"))
        check_code(use, environment(tmp_path, cure(caught.value)))


def test_code_of_verifiers_allowed_is_not_code_of_agents_allowed(tmp_path: Path) -> None:
    environ = environment(tmp_path, 'run_code = ["verifiers"]')
    check_code("verifiers", environ)
    with pytest.raises(TrustError, match=r'run_code = \["verifiers", "agents"\]'):
        check_code("agents", environ)


def test_a_function_that_is_not_listed_is_not_even_imported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "winnow_trap.py").write_text("raise SystemError('imported')\n")
    (tmp_path / "winnow_good.py").write_text("def f(task, trajectory):\n    return 1.0\n\nx = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TrustError, match="may not be called") as caught:
        load_function("winnow_trap:f", environment(tmp_path))
    with pytest.raises(InputError, match="cannot be imported: SystemError"):
        load_function("winnow_trap:f", environment(tmp_path, cure(caught.value)))
    environ = environment(tmp_path, 'functions = ["winnow_good:f", "winnow_good:x", "winnow_good:g"]')
    assert load_function("winnow_good:f", environ)({}, {}) == 1.0
    with pytest.raises(InputError, match="is no function"):
        load_function("winnow_good:x", environ)
    with pytest.raises(InputError, match="cannot be imported"):
        load_function("winnow_good:g", environ)


@pytest.mark.parametrize(
    "toml",
    [
        'run_code = ["everything"]',
        'functions = ["os.system"]',
        'functions = ["../evil:f"]',
        "key_hosts = { A = 'x' }",
        "key_hosts = { A = ['https://x'] }",
        "[mcp.notes]",
        "[mcp.notes]\ncommand = ['a']\nurl = 'http://x'",
        "[mcp.notes]\nurl = 'file:///etc/passwd'",
        "[mcp.notes]\ncommand = ['a']\nkey_variable = 'A'",
        "[mcp.notes]\nurl = 'http://x'\nenvironment = ['A']",
        "[mcp.notes]\ncommand = 'a b'",
    ],
)
def test_entries_that_say_something_else_than_meant_are_refused(tmp_path: Path, toml: str) -> None:
    with pytest.raises(TrustError, match=r"trust\.toml"):
        load_trust(environment(tmp_path, toml))


def test_a_server_of_tools_gets_the_variables_that_its_table_names_and_no_others(tmp_path: Path) -> None:
    toml = """
[mcp.notes]
command = ["notes", "--stdio"]
environment = ["NOTES_TOKEN"]
[mcp.far]
url = "https://tools.example.org/mcp"
key_variable = "FAR_KEY"
"""
    environ = environment(tmp_path, toml, NOTES_TOKEN="t", OTHER="o", FAR_KEY=f"{KEY}\n")
    assert mcp_server("notes", environ).passed_on(environ) == {"NOTES_TOKEN": "t"}
    assert mcp_server("notes", environ).key(environ) is None
    assert mcp_server("far", environ).key(environ) == KEY
    with pytest.raises(InputError, match="NOTES_TOKEN"):
        mcp_server("notes", environ).passed_on({})
    with pytest.raises(InputError, match="FAR_KEY"):
        mcp_server("far", environ).key({})
    with pytest.raises(TrustError, match="FAR_KEY"):
        read_key("FAR_KEY", environ)  # its table allows it for its own address only


def test_an_unknown_server_is_refused_with_the_table_to_add(tmp_path: Path) -> None:
    with pytest.raises(TrustError, match=r"\[mcp\.notes\].*command = .*trust\.toml"):
        mcp_server("notes", environment(tmp_path))


def test_a_line_to_add_goes_above_the_tables(tmp_path: Path) -> None:
    with pytest.raises(TrustError, match=r"above its \[tables\]"):
        check_code("agents", environment(tmp_path, "[mcp.notes]\ncommand = ['a']"))
