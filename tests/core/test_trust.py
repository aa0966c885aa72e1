"""Which variables may be read as keys, and how keys are kept out of sight."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import InputError, TrustError
from core.trust import FRAGMENT, HIDDEN, load_trust, read_key, scrub, trust_path

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
