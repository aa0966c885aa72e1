"""Ship a version: see exactly the bytes, then take them."""

import io
import zipfile

import streamlit as st

from pages.parts import frame, safe, session, words
from pages.parts.events import when
from pages.parts.guard import guard
from pages.parts.safe import joined, markup

MIME = {".zip": "application/zip", ".json": "application/json", ".csv": "text/csv"}

ws = session.workspace()
head = ws.store.versions.head()
frame.page("Packs", "A version of the library for your agents. The same version gives the same bytes.")
versions = [v for v in ws.store.versions.newest(200) if v.size]
if not versions:
    frame.empty(
        "Nothing to ship yet",
        "Publish a version first: approve proposals in the review, then publish them together.",
        "Go to the review",
        "pages/review/review.py",
    )
    st.stop()

forms = ws.shipping.forms()
left, right = st.columns([2, 3], gap="large")
with left:
    form = st.radio(
        "Form",
        list(forms),
        key="pack_form",
        format_func=lambda f: words.FORM.get(f, safe.label(f)),
        captions=[safe.label(forms[f]) for f in forms],
    )
    numbers = [v.number for v in versions]
    version = st.selectbox(
        "Version", numbers, key="pack_version", format_func=lambda n: f"{n}, newest" if n == head else str(n)
    )
    name = st.text_input("Name", "winnow", key="pack_name", max_chars=100)
    provenance = st.toggle(
        "With provenance",
        True,
        key="pack_provenance",
        help="Where each lesson came from, who reviewed it, and its evidence.",
    )
with guard(stop=True):
    exported = ws.shipping.export(form, version, name=(name or "").strip() or "winnow", provenance=provenance)


def remember() -> None:
    session.attempt(lambda: ws.shipping.record(exported, session.me(), exported.name))


with right:
    frame.stats(
        [
            (exported.experiences, "lessons"),
            (f"{len(exported.data):,}", "bytes"),
            (f"v{exported.version}", "version"),
        ]
    )
    safe.html('<p class="w-note">{file}</p>', file=exported.name)
    st.download_button(
        "Download",
        exported.data,
        exported.name,
        MIME.get(exported.name[exported.name.rfind(".") :], "text/plain"),
        key="pack_download",
        type="primary",
        icon=":material/download:",
        on_click=remember,
    )
    frame.note("SHA-256 of exactly these bytes")
    safe.exact(exported.sha256)
    frame.section("What is in it")
    if zipfile.is_zipfile(io.BytesIO(exported.data)):
        with zipfile.ZipFile(io.BytesIO(exported.data)) as archive:
            files = {i.filename: archive.read(i) for i in archive.infolist()}
        for number, (file, data) in enumerate(files.items()):
            with st.expander(safe.label(f"{file} · {len(data):,} bytes")):
                safe.exact(data.decode("utf-8", "replace"), key=f"pack_file_{number}", name=file)
    else:
        safe.exact(exported.data.decode("utf-8", "replace"), key="pack_text", name=exported.name)

shipped = [e for e in ws.store.events.newest(300) if e.kind == "pack.exported"]
if shipped:
    frame.section("Shipped so far")
    rows = joined(
        markup(
            "<tr><td>{when}</td><td>{who}</td><td>{what}</td><td>{target}</td></tr>",
            when=when(e.at),
            who=e.actor,
            what=e.subject,
            target=e.data.get("target", ""),
        )
        for e in shipped[:20]
    )
    safe.html(
        '<div class="w-scroll"><table class="w-table"><tr><th>When</th><th>Who</th><th>What</th>'
        "<th>File</th></tr>{rows}"
        "</table></div>",
        rows=rows,
    )
