"""Groups: the rollouts of one task beside each other, and which groups teach something."""

import streamlit as st

from pages.parts import charts, frame, paging, safe, session, words
from pages.parts.safe import markup

POINTS = 2_000
ORDERS = {
    "order": "as they ran",
    "spread": "largest spread",
    "lowest mean": "lowest mean",
    "highest mean": "highest mean",
}
STATUSES = {"": "all", **{code: name for code, (name, _) in words.GROUP.items()}}

ws = session.workspace()
frame.page(
    "Groups",
    "A group is informative when its rollouts differ in reward; the others are counted with their reason.",
)
runs = [r.id for r in ws.store.runs.newest(200)]
if not runs:
    frame.empty(
        "No groups yet",
        "Groups come from runs: several rollouts of one task under one library version.",
        "Go to runs",
        "pages/learn/runs.py",
    )
    st.stop()

with st.container(horizontal=True, vertical_alignment="bottom"):
    run = st.selectbox(
        "Run", ["", *runs], key="group_run", format_func=lambda r: r or "All", bind="query-params", width=130
    )
    status = st.selectbox(
        "Kind",
        list(STATUSES),
        key="group_status",
        format_func=STATUSES.__getitem__,
        bind="query-params",
        width=170,
    )
    domains = list(ws.store.tasks.counts())
    domain = st.selectbox(
        "Domain", ["", *domains], key="group_domain", format_func=lambda d: d or "All", width=200
    )
    order = st.selectbox("Order", list(ORDERS), key="group_order", format_func=ORDERS.__getitem__, width=180)

points, total = ws.store.groups.page(run or None, status=status, domain=domain, order=order, limit=POINTS)
if not total:
    frame.note("No group fits these filters.")
    st.stop()
if any(p.mean is not None for p in points):
    frame.note(
        "A point is a group: the further up, the more its rollouts differ. Click one to open it. "
        "Points are nudged a little, so that equal ones stay apart."
    )
    if chosen := charts.scatter(points, f"scatter_{run}_{status}_{domain}"):
        st.switch_page("pages/learn/group.py", query_params={"id": chosen})
if total > POINTS:
    frame.note(f"The chart shows the first {POINTS:,} of {total:,} groups.")

first = paging.offset("group_page", total)
rows, _ = ws.store.groups.page(
    run or None, status=status, domain=domain, order=order, limit=paging.PAGE, offset=first
)
for row in rows:
    content = markup(
        '<div class="top"><span class="id">{id}</span>{chip}<span class="w-chip quiet">{domain}</span>'
        '<span class="end">mean {mean} · spread {spread}</span></div>'
        '<div class="text clamp">{question}</div><div class="foot">{foot}</div>',
        id=row.id,
        chip=words.group_chip(row),
        domain=row.domain,
        mean=words.number(row.mean),
        spread=words.number(row.spread),
        question=safe.short(row.question, 200),
        foot=" · ".join(
            part
            for part in (
                f"{row.scored} of {row.size} scored",
                f"{words.plural(row.errors, 'error')}" if row.errors else "",
                row.reason,
            )
            if part
        ),
    )
    if frame.card(row.id, content, f"Open group {row.id}"):
        st.switch_page("pages/learn/group.py", query_params={"id": row.id})
