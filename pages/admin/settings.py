"""Settings: endpoints and their roles. No key is ever shown or stored: only the name of its variable."""

import streamlit as st

from core.settings import EMBEDDED, ROLES, Endpoint, Role
from pages.parts import frame, safe, session
from pages.parts.guard import guard
from pages.parts.safe import joined

USES = {
    "rollout": "answers the tasks",
    "extraction": "reads groups and words lessons, beside the counted evidence",
    "judge": "scores answers where a verifier asks for it",
}

KEYS = {
    None: "no key",
    True: "key in {}, which is set",
    False: "key in {}, which is not set or not allowed here",
}

ws = session.workspace()
endpoints = ws.models.all()
roles = ws.models.roles()
names = [e.name for e in endpoints]
frame.page("Settings", "Which models are used for what. Keys live only in environment variables.")


def set_role(role: Role) -> None:
    name = session.get(f"role_{role}") or None
    session.attempt(
        lambda: ws.models.set_role(role, str(name) if name else None, session.me()),
        f"The role {role} is set.",
    )


def remove(name: str) -> None:
    session.attempt(lambda: ws.models.remove(name, session.me()), f"{name} is removed; its runs stay.")


frame.section("Roles")
columns = st.columns(3)
for column, role in zip(columns, ROLES, strict=True):
    choices = names if role == "rollout" else ["", *names]
    with column:
        st.selectbox(
            safe.label(role.capitalize()),
            choices,
            index=choices.index(roles[role] or ""),
            key=f"role_{role}",
            format_func=lambda n: n or "nobody",
            on_change=set_role,
            args=(role,),
        )
        frame.note(USES[role])

frame.section("Endpoints", "anything that speaks the OpenAI protocol")
for endpoint in endpoints:
    own = [role for role, name in roles.items() if name == endpoint.name]
    safe.html(
        '<div class="w-card"><div class="top"><span class="id">{name}</span>{roles}</div>'
        '<div class="text">{model}</div>'
        '<div class="foot">{foot}</div></div>',
        name=endpoint.name,
        roles=joined(frame.chip(role, "accent") for role in own),
        model=endpoint.model,
        foot=" · ".join(
            part
            for part in (
                endpoint.base_url or "served on this machine when it is needed",
                KEYS[ws.models.key_present(endpoint.name)].format(endpoint.key_env),
                f"context {endpoint.context_length:,} tokens",
                f"injection at most {endpoint.injection_budget:,}",
                f"${endpoint.price_in:g} in, ${endpoint.price_out:g} out a million"
                if endpoint.price_in or endpoint.price_out
                else "",
            )
            if part
        ),
    )
    with st.container(horizontal=True):
        if st.button("Test", key=f"test_{endpoint.name}", type="tertiary", icon=":material/network_check:"):
            with guard(), st.spinner("Asking a short question …"):
                probe = ws.models.test(endpoint.name)
                session.flash(
                    probe.problem or f"{endpoint.name} answered in {probe.latency_s or 0:.1f} s.",
                    "bad" if probe.problem else "good",
                )
                st.rerun()
        if endpoint.name != EMBEDDED:
            st.button(
                "Remove",
                key=f"remove_{endpoint.name}",
                type="tertiary",
                icon=":material/delete:",
                on_click=remove,
                args=(endpoint.name,),
            )

with st.expander("Add or change an endpoint", icon=":material/add:"), st.form("endpoint", border=False):
    one, two = st.columns(2)
    name = one.text_input("Name", key="endpoint_name", placeholder="my-server")
    model = two.text_input("Model", key="endpoint_model", placeholder="the name that the server knows it by")
    base_url = st.text_input("Base URL", key="endpoint_url", placeholder="http://127.0.0.1:8000/v1")
    one, two, three = st.columns(3)
    key_env = one.text_input(
        "Variable that holds the key",
        key="endpoint_key",
        placeholder="OPENAI_API_KEY",
        help="The name of an environment variable, never the key itself.",
    )
    context = two.number_input("Context length, tokens", 256, None, 8192, key="endpoint_context")
    concurrency = three.number_input("Requests at once", 1, 512, 8, key="endpoint_concurrency")
    one, two = st.columns(2)
    price_in = one.number_input("US dollars a million prompt tokens", 0.0, None, 0.0, key="endpoint_price_in")
    price_out = two.number_input(
        "US dollars a million completion tokens", 0.0, None, 0.0, key="endpoint_price_out"
    )
    if st.form_submit_button("Save endpoint", key="endpoint_save", type="primary"):
        with guard():
            endpoint = Endpoint.read(
                {
                    "name": (name or "").strip(),
                    "model": (model or "").strip(),
                    "base_url": (base_url or "").strip(),
                    "key_env": (key_env or "").strip() or None,
                    "context_length": context,
                    "concurrency": concurrency,
                    "price_in": price_in,
                    "price_out": price_out,
                },
                where="endpoint",
            )
            ws.models.save(endpoint, session.me())
            session.flash(f"{endpoint.name} is saved.")
            st.rerun()

frame.section("Workspace", "everything is in this folder")
safe.exact(str(ws.folder))
frame.note("Decisions are kept under the name below; nobody checks it. Set WINNOW_USER to change it.")
safe.exact(session.me())
