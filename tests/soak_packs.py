"""`python -m tests.soak_packs`: hundreds of hostile files; ends with 1 if anything is wrong."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from core.workspace import Workspace
from tests.core.test_pack_import_faults import trouble
from tests.make import publish, ticking


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=600, help="hostile ones, by seed")
    parser.add_argument("--first", type=int, default=0, help="seed of the first")
    options = parser.parse_args()
    started = time.monotonic()
    wrong = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        publish(Workspace(folder / "w", clock=ticking()), "Read the file first.")
        for seed in range(options.first, options.first + options.files):
            if found := trouble(folder / "w", seed):
                wrong.append(f"seed {seed}: {found}")
    took_s = time.monotonic() - started
    summary = f"{options.files} files, {len(wrong)} wrong, {took_s:.0f} s"
    sys.stderr.write("\n".join([*wrong, summary]) + "\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
