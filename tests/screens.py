"""Pictures of every page: 1440 and 390 px wide, light and dark, full and empty; and what no picture may hide.

    make screens                          or: python -m tests.screens
    python -m tests.screens review group --out FOLDER     only pages with one of these words

They go into build/screens with an index.html that shows all of them. It ends with code 1 where a page scrolls
sideways, the browser's console says an error, a request failed, or one went off-site.
"""

from __future__ import annotations

import argparse
import html
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

from core.workspace import Workspace
from tests.bench.ui import DRAWING, NotDrawnError, open_page
from tests.browser import ROOT, browsing, serve
from tests.pages.workspaces import fill

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

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
    "packs": "/packs",
    "activity": "/activity",
    "settings": "/settings",
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("words", nargs="*", help="only pages with one of these in their name")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "screens")
    options = parser.parse_args()
    chosen = {n: a for n, a in PAGES.items() if not options.words or any(w in n for w in options.words)}
    options.out.mkdir(parents=True, exist_ok=True)
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as name, browsing() as browser:
        fill(Path(name) / "full")
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
        page.screenshot(path=out / f"{picture}.png")
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
        if response.status >= 400:
            heard.append(f"{response.status} for {urlsplit(response.url).path}")

    def said(message: Any) -> None:
        if message.type == "error":
            heard.append(f"the console says: {message.text[:300]}")

    page.on("request", asked)
    page.on("response", answered)
    page.on("console", said)
    page.on("pageerror", lambda error: heard.append(f"a script failed: {error}"))
    page.on("requestfailed", lambda request: heard.append(f"{request.failure}: {urlsplit(request.url).path}"))
    return heard


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
