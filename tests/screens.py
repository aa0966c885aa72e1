"""Pictures of every page: 1440 and 390 px wide, light and dark, full and empty; and what no picture may hide.

    make screens                          or: python -m tests.screens
    python -m tests.screens review group --out FOLDER     only pages with one of these words
    python -m tests.screens --docs                        those of the README, into docs/screens
    python -m tests.screens --docs --proof WORKSPACE      and one of the workspace of `make proof`

They go into build/screens with an index.html that shows all of them. It ends with code 1 where a page scrolls
sideways, the browser's console says an error, a request failed, or one went off-site.
"""

from __future__ import annotations

import argparse
import html
import io
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from PIL import Image

from core.workspace import Workspace
from tests.bench.ui import DRAWING, NotDrawnError, open_page
from tests.browser import ROOT, browsing, serve
from tests.importers import make_tau_bench
from tests.pages.evaluations import prove
from tests.pages.workspaces import fill

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

Scheme = Literal["light", "dark"]
SCHEMES: tuple[Scheme, ...] = ("light", "dark")
WIDTHS = {1440: 900, 390: 844}
TALLEST = 3_200
"""A picture shows a page whole up to this height."""
PAGES = {
    "home": "/",
    "tasks": "/tasks",
    "task": "/tasks?id=sums-train-0",
    "import-tasks": "/import-tasks",
    "import-rollouts": "/import-rollouts",
    "new-run": "/new-run",
    "runs": "/runs",
    "run": "/run?id=R1",
    "run-unfinished": "/run?id=R3",
    "groups": "/groups",
    "groups-of-a-run": "/groups?group_run=R1",
    "group": "/group?id=R1-0001",
    "rollouts": "/rollouts",
    "rollout": "/rollout?id=R1-0001-3",
    "rollout-of-an-agent": "/rollout?id=R2-0001-2",
    "review-add": "/review?id=P-0006",
    "review-modify": "/review?id=P-0007",
    "review-merge": "/review?id=P-0008",
    "review-delete": "/review?id=P-0009",
    "publish": "/publish",
    "library": "/library",
    "lesson": "/experience?id=E-0002",
    "versions": "/versions",
    "compare": "/compare?compare_a=R1&compare_b=R3",
    "evaluations": "/evaluations",
    "new-evaluation": "/new-evaluation",
    "evaluation": "/evaluation?id=EV1",
    "evaluation-tasks": "/evaluation?id=EV1&evaluation_view=Tasks",
    "evaluation-unfinished": "/evaluation?id=EV6",
    "priors": "/priors",
    "prior": "/priors?id=PR-0001",
    "objective": "/objective",
    "packs": "/packs",
    "activity": "/activity",
    "settings": "/settings",
}
STILL = '[data-testid="stStatusWidget"] { visibility: hidden; }'
"""Pages look for news every few seconds, which the corner of the window shows."""
DOCS = ROOT / "docs" / "screens"
DOCS_SIZE = (960, 600)
FREQUENT = 96
DOCS_MOST_BYTES = 150_000
LONGEST_MS = 180_000
"""For a look at an uploaded file, on a machine that does other things, too."""
TOUR = {
    "home": "/",
    "new-run": "/new-run",
    "run": "/run?id=R1",
    "groups": "/groups",
    "group": "/group?id=R1-0001",
    "rollout": "/rollout?id=R1-0001-1",
    "review": "/review?id=P-0006",
    "review-dark": "/review?id=P-0006",
    "publish": "/publish",
    "library": "/library",
    "lesson": "/experience?id=E-0001",
    "packs": "/packs",
}
"""What the README shows, of the sample project."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only pages with one of these in their name")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "screens")
    parser.add_argument("--docs", action="store_true", help="the pictures of the README, into docs/screens")
    parser.add_argument("--proof", type=Path, help="with --docs: a workspace in which `make proof` has ended")
    options = parser.parse_args()
    if options.docs:
        _docs(options.proof)
        return
    chosen = {n: a for n, a in PAGES.items() if not options.words or any(w in n for w in options.words)}
    options.out.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name, browsing() as browser:
        prove(fill(Path(name) / "full"))
        Workspace(Path(name) / "empty")
        for state in ("full", "empty"):
            shown = chosen if state == "full" else {n: urlsplit(a).path for n, a in chosen.items()}
            first_of = {
                path: n for n, path in reversed(shown.items())
            }  # empty, the details of a page are all one
            pages = {n: a for n, a in shown.items() if first_of[a] == n}
            with serve(Path(name) / state) as base:
                for width in WIDTHS:
                    for scheme in SCHEMES:
                        wrong += _pictures(browser, base, pages, width, scheme, options.out, state)
    _index(options.out)
    sys.stdout.writelines(f"{line}\n" for line in wrong)
    sys.stdout.write(
        f"{len(list(options.out.glob('*.png')))} pictures in {options.out}; {len(wrong)} things wrong\n"
    )
    sys.exit(bool(wrong))


def _docs(proof: Path | None) -> None:
    """Take the pictures of the README: what a window shows of the sample project, small."""
    DOCS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _sample(folder / "sample")  # before the browser, whose event loop would be in its way
        make_tau_bench.make(folder / "gpt-4o-airline.json")
        if proof:
            shutil.copytree(proof, folder / "proof")
            last = Workspace(folder / "proof").store.evaluations.page(limit=1)[0][0].id
        with serve(folder / "sample") as base, browsing() as browser:
            for scheme in SCHEMES:
                with _wide(browser, scheme) as context:
                    for picture, address in TOUR.items():
                        if picture.endswith("-dark") == (scheme == "dark"):
                            _picture(context, base + address, picture)
            with _wide(browser) as context:
                _picture(context, f"{base}/import-rollouts", "import", folder / "gpt-4o-airline.json")
        if proof:
            with serve(folder / "proof") as base, browsing() as browser, _wide(browser) as context:
                _picture(context, f"{base}/evaluation?id={last}", "evaluation")


@contextmanager
def _wide(browser: Browser, scheme: Scheme = "light") -> Iterator[BrowserContext]:
    context = browser.new_context(
        viewport={"width": 1440, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
    )
    context.add_init_script(DRAWING)
    yield context
    context.close()


def _picture(context: BrowserContext, address: str, name: str, file: Path | None = None) -> None:
    """One picture of the README; with a file it is uploaded, and what would come in is waited for."""
    page = context.new_page()
    open_page(page, address)
    if file:
        page.locator("input[type=file]").first.set_input_files(str(file))
        page.get_by_role("button", name="Import 12 attempts").wait_for(timeout=LONGEST_MS)
    page.wait_for_timeout(800)  # charts draw their marks after their axes
    _small(page.screenshot(style=STILL), DOCS / f"{name}.png")
    page.close()


def _sample(folder: Path) -> None:
    """The sample project after a first round: a version, one lesson staged, the rest of them waiting."""
    ws = Workspace(folder)
    ws.load_sample("ann")
    for proposal in ("P-0001", "P-0002", "P-0003"):
        ws.review.approve(proposal, "ann")
    ws.review.publish("First lessons of the sample project", "ann")
    ws.review.approve("P-0004", "ann")


def _small(picture: bytes, to: Path) -> None:
    """Write a picture as small as it can be read."""
    small = Image.open(io.BytesIO(picture)).convert("RGB").resize(DOCS_SIZE, Image.Resampling.LANCZOS)
    small.quantize(palette=_palette(small), dither=Image.Dither.NONE).save(to, optimize=True)
    if (size := to.stat().st_size) > DOCS_MOST_BYTES:
        sys.exit(f"{to.name} has {size:,} bytes: more than a README should load")
    sys.stderr.write(f"{to.name}: {size:,} bytes\n")


def _palette(picture: Image.Image) -> Image.Image:
    """The most frequent colours as they are (papers, inks), and others that keep what is rare (a red, a green)."""
    counted = sorted(
        picture.getcolors(picture.width * picture.height) or (), key=lambda one: one[0], reverse=True
    )
    often = [c for _, colour in counted[:FREQUENT] if isinstance(colour, tuple) for c in colour]
    rest = picture.quantize(256 - FREQUENT, Image.Quantize.MAXCOVERAGE).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette((often + rest)[: 3 * 256])
    return palette


PROBES = ("/_stcore/health", "/_stcore/host-config")
"""What Streamlit asks for below the page of a deep link first, to learn where the app begins; 404 is the answer."""


def _pictures(
    browser: Browser, base: str, pages: dict[str, str], width: int, scheme: Scheme, out: Path, state: str
) -> list[str]:
    """Take a picture of each page; gives what is wrong with them."""
    wrong = []
    context = browser.new_context(
        viewport={"width": width, "height": WIDTHS[width]}, color_scheme=scheme, reduced_motion="reduce"
    )
    context.add_init_script(DRAWING)
    for name, address in pages.items():
        page = context.new_page()
        heard = _listen(page, base)
        try:
            open_page(page, base + address)
        except NotDrawnError as e:
            heard.append(str(e))
        heard += _sideways(page)
        _whole(page, width)
        picture = f"{name}-{width}-{scheme}-{state}"
        page.screenshot(path=out / f"{picture}.png", style=STILL)
        page.close()
        wrong += [f"{picture}: {what}" for what in dict.fromkeys(heard)]
        sys.stderr.write(f"{picture}\n")
    context.close()
    return wrong


def _listen(page: Page, base: str) -> list[str]:
    """What the page does that it should not, as it does it."""
    heard: list[str] = []
    host = urlsplit(base).netloc

    def asked(request: Any) -> None:
        parts = urlsplit(request.url)
        if parts.netloc != host and parts.scheme in ("http", "https", "ws", "wss"):
            heard.append(f"went off-site: {request.url}")

    def answered(response: Any) -> None:
        if response.status >= 400 and not _probed(response.url):
            heard.append(f"{response.status} for {urlsplit(response.url).path}")

    def said(message: Any) -> None:
        if message.type == "error" and not _probed(message.location["url"]):
            heard.append(f"the console says: {message.text[:300]}")

    page.on("request", asked)
    page.on("response", answered)
    page.on("console", said)
    page.on("pageerror", lambda error: heard.append(f"a script failed: {error}"))
    page.on("requestfailed", lambda request: heard.append(f"{request.failure}: {urlsplit(request.url).path}"))
    return heard


def _probed(url: str) -> bool:
    return urlsplit(url).path.endswith(PROBES)


def _sideways(page: Page) -> list[str]:
    """Whether the page scrolls sideways, and what sticks out."""
    wide: list[str] = page.evaluate(
        """() => {
          const main = document.querySelector('[data-testid="stMain"]');
          const most = document.documentElement.clientWidth;
          const fits = !main || main.scrollWidth <= main.clientWidth;
          if (document.documentElement.scrollWidth <= most && fits) return [];
          const within = [...(main ?? document).querySelectorAll('*')];
          const out = within.filter((e) => e.getBoundingClientRect().right > most);
          return out.slice(-3).map((e) => `${e.tagName.toLowerCase()}.${e.className}`.slice(0, 120));
        }"""
    )
    return [f"scrolls sideways because of {'; '.join(wide)}"] if wide else []


def _whole(page: Page, width: int) -> None:
    """Make the window as high as what it shows: the app scrolls inside, so a picture of all of it shows no more."""
    height = page.evaluate("""() => document.querySelector('[data-testid="stMain"]')?.scrollHeight ?? 0""")
    page.set_viewport_size({"width": width, "height": max(WIDTHS[width], min(int(height), TALLEST))})
    page.wait_for_timeout(400)  # charts fit themselves to the new height


def _index(out: Path) -> None:
    """One page with all pictures, those of one page beside each other."""
    names = sorted(picture.name for picture in out.glob("*.png"))
    figures = "".join(
        f'<figure><a href="{html.escape(n)}"><img loading="lazy" src="{html.escape(n)}"></a>'
        f"<figcaption>{html.escape(n)}</figcaption></figure>"
        for n in names
    )
    style = "body{font:14px sans-serif;display:flex;flex-wrap:wrap;gap:12px}img{height:420px;border:1px solid #bbb}"
    (out / "index.html").write_text(f"<style>{style}</style>{figures}", encoding="utf-8")


if __name__ == "__main__":
    main()
