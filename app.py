"""Winnow's web app: `streamlit run app.py`.

`app` is what the server runs (with the security headers); the body below it is the script that draws a page, so it
has no main guard: the server reads it once outside of any session, which must get as far as `st.navigation`, or
the first deep link after a start shows "Page not found".
"""

from pathlib import Path

import streamlit as st
from starlette.middleware import Middleware
from starlette.routing import Route
from streamlit.runtime.scriptrunner import get_script_run_ctx

from pages.parts import address, safe, session, signing
from pages.parts.guard import guard
from pages.parts.headers import SecurityHeaders
from pages.parts.sidebar import sidebar
from pages.parts.warm import warm

app = st.App(
    __file__,
    routes=[Route("/home", address.to_home)],
    middleware=[Middleware(SecurityHeaders)],
    lifespan=warm,
)

PARTS = Path(__file__).parent / "pages" / "parts"
PAGES = {
    "Learn": [
        st.Page("pages/learn/home.py", title="Home", icon=":material/home:", default=True, url_path="home"),
        st.Page("pages/learn/tasks.py", title="Tasks", icon=":material/checklist:", url_path="tasks"),
        st.Page("pages/learn/runs.py", title="Runs", icon=":material/play_circle:", url_path="runs"),
        st.Page("pages/learn/groups.py", title="Groups", icon=":material/scatter_plot:", url_path="groups"),
        st.Page("pages/learn/rollouts.py", title="Rollouts", icon=":material/search:", url_path="rollouts"),
        st.Page(
            "pages/learn/import_tasks.py", title="Import tasks", url_path="import-tasks", visibility="hidden"
        ),
        st.Page(
            "pages/learn/import_rollouts.py",
            title="Import rollouts",
            url_path="import-rollouts",
            visibility="hidden",
        ),
        st.Page("pages/learn/new_run.py", title="New run", url_path="new-run", visibility="hidden"),
        st.Page("pages/learn/run.py", title="Run", url_path="run", visibility="hidden"),
        st.Page("pages/learn/group.py", title="Group", url_path="group", visibility="hidden"),
        st.Page("pages/learn/rollout.py", title="Rollout", url_path="rollout", visibility="hidden"),
    ],
    "Review": [
        st.Page("pages/review/review.py", title="Review", icon=":material/rate_review:", url_path="review"),
        st.Page("pages/review/publish.py", title="Publish", icon=":material/publish:", url_path="publish"),
        st.Page("pages/review/library.py", title="Library", icon=":material/menu_book:", url_path="library"),
        st.Page("pages/review/versions.py", title="Versions", icon=":material/history:", url_path="versions"),
        st.Page("pages/review/experience.py", title="Experience", url_path="experience", visibility="hidden"),
    ],
    "Prove": [
        st.Page(
            "pages/prove/evaluations.py",
            title="Evaluations",
            icon=":material/science:",
            url_path="evaluations",
        ),
        st.Page(
            "pages/prove/compare.py",
            title="Compare runs",
            icon=":material/compare_arrows:",
            url_path="compare",
        ),
        st.Page(
            "pages/prove/priors.py", title="Token priors", icon=":material/equalizer:", url_path="priors"
        ),
        st.Page(
            "pages/prove/objective.py", title="Objective", icon=":material/moving:", url_path="objective"
        ),
        st.Page(
            "pages/prove/new_evaluation.py",
            title="New evaluation",
            url_path="new-evaluation",
            visibility="hidden",
        ),
        st.Page("pages/prove/evaluation.py", title="Evaluation", url_path="evaluation", visibility="hidden"),
    ],
    "Ship": [st.Page("pages/ship/packs.py", title="Packs", icon=":material/package_2:", url_path="packs")],
    "Admin": [
        st.Page("pages/admin/activity.py", title="Activity", icon=":material/list_alt:", url_path="activity"),
        st.Page("pages/admin/settings.py", title="Settings", icon=":material/settings:", url_path="settings"),
    ],
}

st.set_page_config(page_title="Winnow", page_icon=str(PARTS / "mark.svg"), layout="wide")
st.logo(str(PARTS / "logo.svg"), size="large", icon_image=str(PARTS / "mark.svg"))
chosen = st.navigation(PAGES, expanded=True)
if get_script_run_ctx(suppress_warning=True) is not None:
    safe.style()
    address.scripts()
    if signing.must_sign_in():
        signing.ask()
    else:
        session.workspace()  # before the sidebar: what keeps it from being opened is said on the page
        with st.sidebar:
            sidebar()
        with guard():  # what no page foresaw is one line, too
            chosen.run()
