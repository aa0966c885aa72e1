"""Endpoints and their roles. No key is ever shown or stored: only the name of its variable."""

from __future__ import annotations

import streamlit as st

from core.settings import EMBEDDED, Endpoint, Role
from core.workspace import Workspace
from core.workspace.trying import Trial, try_endpoint
from pages.parts import frame, safe, session
from pages.parts.guard import guard, red_line
from pages.parts.safe import Markup, joined, markup

USES: dict[Role, str] = {
    "rollout": "answers the tasks",
    "extraction": "reads groups and words lessons, beside the counted evidence",
    "judge": "scores answers where a verifier asks for it",
    "embedding": "tells which lessons are near to each other",
}
KEYS = {
    None: "no key",
    True: "key in {}, which is set",
    False: "key in {}, which is not set or not allowed here",
}
FORM: dict[str, object] = {
    "name": "",
    "model": "",
    "base_url": "",
    "key_env": "",
    "context_length": 8192,
    "injection_tokens": None,
    "concurrency": 8,
    "requests_per_minute": None,
    "tokens_per_minute": None,
    "timeout_s": 120.0,
    "retries": 4,
    "price_in": 0.0,
    "price_out": 0.0,
    "sends_n": False,
    "sends_seed": True,
    "json_schema": False,
}
"""The fields of the form, as they begin."""
SHORT = {"name": "name", "model": "model", "base_url": "url", "key_env": "key", "context_length": "context"}
TRIALS = "w_trials"


def draw(ws: Workspace) -> None:
    reason = session.refusal("publisher")
    endpoints, roles = ws.models.all(), ws.models.roles()
    _roles(ws, [e.name for e in endpoints], roles, reason)
    frame.section("Endpoints", "anything that speaks the OpenAI protocol")
    for endpoint in endpoints:
        _endpoint(ws, endpoint, [role for role, name in roles.items() if name == endpoint.name], reason)
    _form(ws, reason)


def _roles(ws: Workspace, names: list[str], roles: dict[Role, str | None], reason: str) -> None:
    frame.section("Roles", "who is asked for what, unless a run says otherwise")
    with st.grid(4, min_column_width=200):
        for role, use in USES.items():
            with st.container(gap="xxsmall"):
                choices = names if role in ("rollout", "embedding") else ["", *names]
                st.selectbox(
                    safe.label(role.capitalize()),
                    choices,
                    index=choices.index(roles[role] or "") if (roles[role] or "") in choices else 0,
                    key=f"role_{role}",
                    format_func=lambda n: n or "nobody",
                    on_change=_set_role,
                    args=(ws, role),
                    disabled=bool(reason),
                    help=safe.label(reason, 200),
                )
                frame.note(use)


def _set_role(ws: Workspace, role: Role) -> None:
    name = session.get(f"role_{role}") or None
    session.attempt(
        lambda: ws.models.set_role(role, str(name) if name else None, session.me()),
        f"{role.capitalize()} is done by {name or 'nobody'} from now on.",
    )


# --- what there is ---


def _endpoint(ws: Workspace, endpoint: Endpoint, held: list[Role], reason: str) -> None:
    name = endpoint.name
    with st.container(key=f"endpoint_card_{name}", gap="xxsmall"):
        safe.html(
            '<div class="w-card"><div class="top"><span class="id">{name}</span>{roles}</div>'
            '<div class="text">{model}</div><div class="foot">{where}</div><div class="foot">{limits}</div></div>',
            name=name,
            roles=joined(frame.chip(role, "accent") for role in held),
            model=endpoint.model,
            where=_where(ws, endpoint),
            limits=_limits(endpoint),
        )
        with st.container(horizontal=True):
            refused = session.refusal("reviewer")
            if st.button(
                "Test",
                key=f"test_{name}",
                type="tertiary",
                icon=":material/network_check:",
                disabled=bool(refused),
                help=frame.refused(refused),
            ):
                with st.spinner("Asking a short question, for 45 seconds at most …"):
                    session.put(TRIALS, {**_trials(), name: try_endpoint(ws.folder, name, session.role())})
            if name != EMBEDDED:
                _change(ws, endpoint, held, reason)
        _trial(name)


def _change(ws: Workspace, endpoint: Endpoint, held: list[Role], reason: str) -> None:
    name = endpoint.name
    st.button(
        "Change",
        key=f"change_{name}",
        type="tertiary",
        icon=":material/edit:",
        on_click=_fill,
        args=(endpoint,),
        disabled=bool(reason),
        help=safe.label(reason, 200),
    )
    with st.popover(
        "Remove", icon=":material/delete:", type="tertiary", disabled=bool(reason), key=f"sure_{name}"
    ):
        frame.note(
            "Its runs stay as they are." + (f" Nobody is left for: {', '.join(held)}." if held else "")
        )
        st.button(
            "Remove this endpoint", key=f"remove_{name}", type="primary", on_click=_remove, args=(ws, name)
        )


def _remove(ws: Workspace, name: str) -> None:
    session.attempt(lambda: ws.models.remove(name, session.me()), f"{name} is removed; its runs stay.")


def _trials() -> dict[str, object]:
    found = session.get(TRIALS, {})
    return found if isinstance(found, dict) else {}


def _trial(name: str) -> None:
    """What the last trial in this session showed."""
    trial = _trials().get(name)
    if not isinstance(trial, Trial):
        return
    if not trial.works:
        red_line(trial.said)
        return
    signs = {True: ("yes", "good"), False: ("no", "quiet"), None: ("not known", "")}
    can = [
        markup("{chip}", chip=frame.chip(f"{what}: {signs[able][0]}", signs[able][1]))
        for what, able in trial.can
    ]
    safe.html(
        '<div class="w-done" role="status">{said}</div><div class="w-chips">{can}</div>',
        said=trial.said,
        can=joined(can) if can else Markup(),
    )


def _where(ws: Workspace, endpoint: Endpoint) -> str:
    where = endpoint.base_url or "served on this machine when it is needed"
    key = KEYS[ws.models.key_present(endpoint.name)].format(endpoint.key_env)
    return f"{where} · {key}"


def _limits(endpoint: Endpoint) -> str:
    parts = [
        f"context {endpoint.context_length:,} tokens",
        f"lessons at most {endpoint.injection_budget:,}",
        f"{endpoint.concurrency} at once",
    ]
    if endpoint.requests_per_minute:
        parts.append(f"{endpoint.requests_per_minute:,} requests a minute")
    if endpoint.tokens_per_minute:
        parts.append(f"{endpoint.tokens_per_minute:,} tokens a minute")
    if endpoint.price_in or endpoint.price_out:
        parts.append(f"${endpoint.price_in:g} in, ${endpoint.price_out:g} out a million tokens")
    return " · ".join(parts)


# --- adding and changing ---


def _key(field: str) -> str:
    return f"endpoint_{SHORT.get(field, field)}"


def _fill(endpoint: Endpoint) -> None:
    """Put an endpoint into the form."""
    for field in FORM:
        value = getattr(endpoint, field)
        session.put(_key(field), "" if value is None and field == "key_env" else value)
    session.put("endpoint_open", True)


def _form(ws: Workspace, reason: str) -> None:
    for field, value in FORM.items():
        if session.get(_key(field)) is None and value is not None:
            session.put(_key(field), value)
    with (
        st.expander(
            "Add or change an endpoint",
            icon=":material/add:",
            expanded=bool(session.get("endpoint_open")),
        ),
        st.form("endpoint", border=False),
    ):
        _basics()
        _limit_fields()
        saved = st.form_submit_button(
            "Save endpoint",
            key="endpoint_save",
            type="primary",
            disabled=bool(reason),
            help=safe.label(reason, 200),
        )
    if saved:
        with guard():
            _save(ws)


def _basics() -> None:
    one, two = st.columns(2)
    one.text_input("Name", key="endpoint_name", placeholder="my-server")
    two.text_input("Model", key="endpoint_model", placeholder="the name that the server knows it by")
    one, two = st.columns(2)
    one.text_input("Base URL", key="endpoint_url", placeholder="http://127.0.0.1:8000/v1")
    two.text_input(
        "Variable that holds the key",
        key="endpoint_key",
        placeholder="OPENAI_API_KEY",
        help="The name of an environment variable, never the key itself.",
    )
    one, two, three = st.columns(3)
    one.number_input("Context length, tokens", 256, None, key="endpoint_context")
    two.number_input("US dollars a million prompt tokens", 0.0, None, key="endpoint_price_in")
    three.number_input("US dollars a million completion tokens", 0.0, None, key="endpoint_price_out")


def _limit_fields() -> None:
    one, two, three = st.columns(3)
    one.number_input("Requests at once", 1, 512, key="endpoint_concurrency")
    two.number_input(
        "Requests a minute", 1, None, None, key="endpoint_requests_per_minute", placeholder="no limit"
    )
    three.number_input(
        "Tokens a minute", 1, None, None, key="endpoint_tokens_per_minute", placeholder="no limit"
    )
    one, two, three = st.columns(3)
    one.number_input(
        "Tokens of lessons",
        0,
        None,
        None,
        key="endpoint_injection_tokens",
        placeholder="a quarter of the context",
    )
    two.number_input("Seconds for a request", 1.0, None, key="endpoint_timeout_s")
    three.number_input("Retries", 0, 10, key="endpoint_retries")
    one, two, three = st.columns(3)
    one.checkbox("Gives several replies to a request", key="endpoint_sends_n")
    two.checkbox("Takes a seed", key="endpoint_sends_seed")
    three.checkbox("Enforces JSON schemas", key="endpoint_json_schema")


def _save(ws: Workspace) -> None:
    given = {field: session.get(_key(field)) for field in FORM}
    given = {field: value.strip() if isinstance(value, str) else value for field, value in given.items()}
    given["key_env"] = given["key_env"] or None
    before = next((e for e in ws.models.all() if e.name == given["name"]), None)
    endpoint = Endpoint.read({**given, "extra": before.extra if before else {}}, where="endpoint")
    ws.models.save(endpoint, session.me())
    session.forget("endpoint_open", *map(_key, FORM))
    session.flash(f"{endpoint.name} is saved. Try it with Test.")
    st.rerun()
