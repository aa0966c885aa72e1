"""Foreign text reaches the screen through `pages.parts.safe` alone, and comes out as it went in."""

from __future__ import annotations

import ast
import html as html_lib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pages.parts import frame, safe

ROOT = Path(__file__).parents[2]
FILES = [ROOT / "app.py", *sorted((ROOT / "pages").rglob("*.py"))]
SINKS = {"text", "code", "json", "dataframe"}
"""Commands that show text as it is."""
FORBIDDEN = {
    "markdown",
    "write",
    "write_stream",
    "table",
    "latex",
    "iframe",
    "title",
    "header",
    "subheader",
    "caption",
}
"""Commands that read Markdown or HTML, and that `frame` and `safe` replace."""
READ_AS_MARKDOWN = {"label", "body", "help", "delta", "captions", "text"}
NUMERIC = re.compile(r"[,_.0-9]*[d%feg,]")


def attributes(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def is_streamlit(call: ast.Call) -> bool:
    """`st.x(...)`; or `column.x(...)` with a widget of Streamlit's, which our own modules do not have."""
    if not isinstance(call.func, ast.Attribute) or not isinstance(call.func.value, ast.Name):
        return False
    widgets = {
        "button",
        "selectbox",
        "text_input",
        "number_input",
        "text_area",
        "expander",
        "checkbox",
        "radio",
        "metric",
        "multiselect",
        "slider",
        "toggle",
        "pills",
        "segmented_control",
        "download_button",
        "popover",
        "tabs",
        "file_uploader",
        "form_submit_button",
    }
    return call.func.value.id == "st" or attributes(call) in widgets | FORBIDDEN


def is_ours(value: ast.expr) -> bool:
    """Whether a label can hold no foreign text: a literal, `safe.label(...)`, or numbers in a literal.

    `frame.refused(...)` is a `safe.label`, too: see the test below.
    """
    match value:
        case ast.Constant():
            return True
        case ast.JoinedStr():
            return all(isinstance(v, ast.Constant) or _is_number(v) for v in value.values)
        case ast.Call():
            return attributes(value) == "label" or ast.unparse(value.func) == "frame.refused"
        case ast.BoolOp():
            return all(map(is_ours, value.values))
        case ast.List() | ast.Tuple():
            return all(map(is_ours, value.elts))
        case ast.ListComp():
            return is_ours(value.elt)
        case _:
            return False


def _is_number(value: ast.expr) -> bool:
    """A value that is formatted as a number; of a text the format would be an error."""
    if not isinstance(value, ast.FormattedValue) or not isinstance(value.format_spec, ast.JoinedStr):
        return False
    spec = "".join(str(v.value) for v in value.format_spec.values if isinstance(v, ast.Constant))
    return bool(NUMERIC.fullmatch(spec))


def faults(source: str, *, inside_safe: bool = False) -> list[str]:
    """Calls that could show foreign text as Markdown or HTML. A label kept in a variable counts as foreign.

    It reads calls, not values: text that reaches `format_func` of a radio, or a function handed around, is not seen.
    """
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        if any(k.arg in ("unsafe_allow_html", "unsafe_allow_javascript") for k in node.keywords):
            found.append(f"line {node.lineno}: unsafe HTML")
        if not is_streamlit(node):
            continue
        name = attributes(node)
        if name in FORBIDDEN or (
            name in ("html", "error", "warning", "info", "success", "toast") and not inside_safe
        ):
            found.append(f"line {node.lineno}: st.{name}")
        elif name not in SINKS | {
            "html",
            "columns",
            "container",
            "switch_page",
            "stop",
            "rerun",
            "plotly_chart",
            "logo",
        }:
            shown = [*node.args[:1], *(k.value for k in node.keywords if k.arg in READ_AS_MARKDOWN)]
            if name not in (
                "Page",
                "navigation",
                "pagination",
                "form",
                "fragment",
                "App",
                "set_page_config",
                "space",
            ):
                found += [
                    f"line {node.lineno}: the label of st.{name}" for value in shown if not is_ours(value)
                ]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_page_shows_foreign_text_as_markup(path: Path) -> None:
    assert faults(path.read_text(encoding="utf-8"), inside_safe=path.name == "safe.py") == []


@pytest.mark.parametrize(
    "source",
    [
        "st.markdown(task.question)",
        "st.html(text)",
        "st.error(str(e))",
        "st.button(proposal.text)",
        'st.button(f"Open {name}")',
        'st.expander("Steps", help=text)',
        "left.metric(name, 1)",
        'st.text("x", unsafe_allow_html=True)',
        "st.tabs([task.id])",
        'st.radio("Form", forms, captions=[forms[f] for f in forms])',
        'st.button("Go", help=other.refused(text))',
        "left.multiselect(name, [])",
        "left.slider(name)",
        "left.toggle(name)",
        "left.pills(name, [])",
        "left.segmented_control(name, [])",
        "left.download_button(name, b'')",
        "left.popover(name)",
        "left.tabs([name])",
        "left.file_uploader(name)",
        "form.form_submit_button(name)",
        "st.progress(0.5, text=name)",
        "st.spinner(text=name)",
        'st.button("Go", help=safe.label(x) or text)',
    ],
)
def test_the_lint_sees_each_way_around(source: str) -> None:
    assert faults(source)


@pytest.mark.parametrize(
    "source",
    ["st.text(x)", 'st.button("Go")', 'st.button(f"Import {n:d} tasks")', "st.button(safe.label(x))"],
)
def test_the_lint_lets_plain_ways_pass(source: str) -> None:
    assert faults(source) == []


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00")))
def test_escaped_text_reads_back_as_it_was(text: str) -> None:
    escaped = safe.escape(text)
    assert "<" not in escaped
    assert '"' not in escaped
    assert html_lib.unescape(escaped.replace("&#13;", "\r")) == text


def test_a_value_cannot_smuggle_markup_into_a_template() -> None:
    made = safe.markup('<p class="{look}">{text}</p>', look='"><script>', text="<img src=x>{look}")
    assert made == '<p class="&quot;&gt;&lt;script&gt;">&lt;img src=x&gt;{look}</p>'


def test_plain_strings_are_not_drawn_as_markup() -> None:
    with pytest.raises(TypeError):
        safe.draw("<b>no</b>")  # type: ignore[arg-type]


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_word_diff_without_its_deletions_is_the_new_text(before: str, after: str) -> None:
    diff = safe.word_diff(before, after)
    kept = re.sub(r"<del>.*?</del>", "", diff, flags=re.DOTALL).replace("<ins>", "").replace("</ins>", "")
    assert kept == safe.escape(after)


def test_a_label_takes_every_mark_of_markdown_literally() -> None:
    assert safe.label("![x](http://h/) :red[y] $z$") == r"\!\[x\]\(http\:\/\/h\/\) \:red\[y\] \$z\$"


def test_a_reason_to_refuse_is_a_label() -> None:
    assert frame.refused("![x](http://h/)") == safe.label("![x](http://h/)")


def test_invisible_characters_are_named() -> None:
    assert safe.hidden("ab\u202ec\u200b") == [
        ("U+202E RIGHT-TO-LEFT OVERRIDE", 1),
        ("U+200B ZERO WIDTH SPACE", 1),
    ]
    assert safe.hidden("plain\ntext with a tab\t and é 👍🏽") == []
