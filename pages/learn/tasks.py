"""The tasks of the workspace: what is tried, and what checks it."""

import streamlit as st

from core.rollout import SPLITS
from pages.parts import frame, paging, safe, session, tables
from pages.parts.safe import joined, markup

ws = session.workspace()
counts = ws.store.tasks.counts()

frame.page("Tasks", "Problems with a checkable outcome. Train teaches, trial selects, final only reports.")
if not counts:
    frame.empty(
        "No tasks yet",
        "Bring a JSONL, JSON, CSV or Parquet file with a question, and an answer where there is one. "
        "You see what would come in, and what would not, before anything is imported.",
        "Import tasks",
        "pages/learn/import_tasks.py",
    )
    st.stop()

total_by_split = {split: sum(by.get(split, 0) for by in counts.values()) for split in SPLITS}
with st.container(horizontal=True, vertical_alignment="center", horizontal_alignment="distribute"):
    frame.stats([(f"{n:,}", split) for split, n in total_by_split.items()])
    if st.button("Import tasks", key="import_tasks", type="primary", icon=":material/upload:"):
        st.switch_page("pages/learn/import_tasks.py")

with st.container(horizontal=True, vertical_alignment="bottom"):
    split = st.selectbox(
        "Split",
        ["", *SPLITS],
        key="task_split",
        format_func=lambda s: s or "All",
        bind="query-params",
        width=150,
    )
    domain = st.selectbox(
        "Domain", ["", *counts], key="task_domain", format_func=lambda d: d or "All", width=220
    )
    search = st.text_input(
        "Search",
        key="task_search",
        bind="query-params",
        placeholder="Words of the question, or an id",
        width=320,
    )

total = ws.store.tasks.page(split=split, domain=domain, search=search, limit=0)[1]
if not total:
    frame.note("No task fits these filters.")
else:
    first = paging.offset("task_page", total, 50)
    tasks, _ = ws.store.tasks.page(split=split, domain=domain, search=search, limit=50, offset=first)
    picked = tables.pick(
        f"tasks_{split}_{domain}_{search}_{first}",
        [
            {
                "Id": t.id,
                "Question": safe.short(t.question, 300),
                "Answer": safe.short(t.answer or "", 120),
                "Verifier": t.verifier.kind,
                "Domain": t.domain,
                "Split": t.split,
            }
            for t in tasks
        ],
        [t.id for t in tasks],
    )
    if task := ws.store.tasks.find(picked) if picked else None:
        frame.section(task.id, f"{task.domain} · {task.split} · checked by {task.verifier.kind}")
        safe.exact(task.question, key="task_question", name=f"{task.id}.txt")
        frame.facts(
            [
                ("Answer", task.answer or "none: the verifier needs none"),
                ("Verifier", task.verifier.canonical()),
            ]
        )
    else:
        frame.note("Choose a row to read the whole task.")

with st.expander("Tasks by domain and split"):
    rows = joined(
        markup(
            '<tr><td>{domain}</td><td class="num">{train}</td><td class="num">{trial}</td>'
            '<td class="num">{final}</td></tr>',
            domain=domain,
            **{split: by.get(split, 0) for split in SPLITS},
        )
        for domain, by in counts.items()
    )
    safe.html(
        '<table class="w-table"><tr><th>Domain</th><th class="num">Train</th><th class="num">Trial</th>'
        '<th class="num">Final</th></tr>{rows}</table>',
        rows=rows,
    )
aside = [row for row in ws.store.tasks.kept_aside() if row.kind == "task"]
if aside:
    with st.expander(safe.label(f"Rows kept aside: {len(aside)}")):
        tables.rejected(aside, key="kept_aside")
