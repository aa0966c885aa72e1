"""Checks what `make demo SERVE=0` left behind, by the commands that a user has."""

import json
import subprocess
import sys
import zipfile
from pathlib import Path

WINNOW = Path(sys.executable).with_name("winnow")


def winnow(*words: str) -> object:
    done = subprocess.run([WINNOW, *words, "--json"], check=True, capture_output=True, text=True)
    return json.loads(done.stdout)


run = next(r for r in winnow("runs", "list") if r["kind"] == "sampled")
waiting = winnow("review", "list")
published = winnow("library", "versions")[0]
library = winnow("library", "list")["experiences"]
packs = sorted(Path(".winnow/packs").glob("*.zip"))

assert run["status"] == "done", run["status"]
assert run["tally"]["informative"] >= 20, run["tally"]
assert run["tally"]["waiting"] == 0, run["tally"]
assert waiting["total"] >= 3, waiting["total"]
with_evidence = [p for p in winnow("review", "list", "--all")["proposals"] if p["evidence"]["findings"]]
assert len(with_evidence) >= 3, len(with_evidence)
assert published["number"] == 1, published
assert published["author"] == "winnow demo", published
assert library, "the published version is empty"
assert packs, "no pack was written"
assert winnow("pack", "verify", str(packs[0]))["version"] == 1
with zipfile.ZipFile(packs[0]) as archive:
    shipped = json.loads(archive.read("pack.json"))["experiences"]
assert all(e["provenance"] and e["provenance"]["group_ids"] for e in shipped), (
    "a lesson does not say where it came from"
)
injected = winnow("run", "--split", "trial", "--limit", "1", "--domain", library[0]["domain"])
group = winnow("runs", "groups", injected["id"])["groups"][0]
rollout = winnow("runs", "group", group["id"])["rollouts"][0]
system = rollout["trajectory"]["messages"][0]
assert system["role"] == "system", system
assert library[0]["text"] in system["content"], system
sys.stdout.write(
    f"demo: {run['tally']['informative']} informative groups, {len(with_evidence)} proposals with evidence, "
    f"version {published['number']} with {len(library)} experiences, {waiting['total']} waiting; the next run is "
    "injected with what was published.\n"
)
