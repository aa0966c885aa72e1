"""The page that imports recorded rollouts: what would come in is seen, and can be changed, before it comes in."""

from __future__ import annotations

import io
import json
import time
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from streamlit.testing.v1 import AppTest

from core.rollout import Extraction
from core.workspace import Workspace
from core.workspace.intake import ImportOptions
from pages.parts import loop
from tests.browser import drawn, press, serve, visit
from tests.importers import make_tau_bench

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120
HOSTILE = "<script>alert(1)</script> ![x](http://h/) $a$ -> **b** \u202eabc"
SECRET = "sk" + "-" + "a1B2c3D4" * 4


def html(page: AppTest) -> str:
    return "\n".join(str(element.proto.body) for element in page.get("html"))


def fine(page: AppTest) -> AppTest:
    assert not page.exception, page.exception[0].stack_trace
    assert '<div class="w-error"' not in html(page)
    return page


def red(page: AppTest) -> str:
    assert not page.exception, page.exception[0].stack_trace
    [line] = html(page).split('<div class="w-error" role="alert">')[1:]
    return line.split("</div>")[0]


def settled(page: AppTest) -> AppTest:
    """The page once nothing runs beside it any more."""
    until = time.monotonic() + PATIENCE_S
    while time.monotonic() < until:
        assert not page.exception, page.exception[0].stack_trace
        if not any("Stop" in button.label for button in page.button):
            return page
        time.sleep(0.2)
        page.run()
    raise AssertionError(f"it did not end:\n{html(page)[-2000:]}")


def opened() -> AppTest:
    return AppTest.from_file(str(ROOT / "pages" / "learn" / "import_rollouts.py"), default_timeout=60).run()


def uploaded(*files: tuple[str, bytes]) -> AppTest:
    page = opened()
    page.file_uploader("rollouts_upload").set_value([(*file, "application/octet-stream") for file in files])
    return settled(page.run())


def pasted(*rows: dict[str, Any]) -> AppTest:
    page = opened()
    page.text_area("rollouts_paste").set_value("".join(json.dumps(row) + "\n" for row in rows))
    return settled(page.run())


def attempt(number: int, task: str = "sum", **more: Any) -> dict[str, Any]:
    said = [
        {"role": "user", "content": f"Solve {task}."},
        {"role": "assistant", "content": f"It is {number}."},
    ]
    return {"task_id": task, "messages": said, "reward": float(number % 2), "attempt": number, **more}


def tau(tmp_path: Path) -> bytes:
    path = tmp_path / "results.json"
    make_tau_bench.make(path)
    return path.read_bytes()


def imported(page: AppTest) -> None:
    """Import, and wait until it is in; the page that would come then is another one."""
    page.button("rollouts_now").click().run()
    until = time.monotonic() + PATIENCE_S
    while "w_rollouts_importing" in page.session_state:
        assert time.monotonic() < until, "the import did not end"
        time.sleep(0.2)
        page.run()
    assert '<div class="w-error"' not in html(page), red(page)


def test_without_files_the_page_says_what_can_be_read_and_how_large(folder: Path) -> None:
    page = fine(opened())
    assert "tau-bench results" in list(page.dataframe[0].value["Format"])
    assert "500 MB a file" in html(page)
    assert not [b for b in page.button if b.key == "rollouts_now"]


def test_uploaded_files_are_looked_at_then_imported(folder: Path, tmp_path: Path) -> None:
    page = fine(uploaded(("results.json", tau(tmp_path))))
    drawn = html(page)
    assert "tau-bench results 12" in drawn
    assert "<b>9</b> scored" in drawn
    assert "<b>3</b> infrastructure errors" in drawn
    assert "= 12 attempts" in drawn
    assert "3 with 4 attempts" in drawn
    assert "by definition" in drawn
    assert Workspace(folder).store.runs.count() == 0, "nothing is imported before it is asked for"
    assert page.button("rollouts_now").label == "Import 12 attempts"
    imported(page)
    run = Workspace(folder).store.runs.get("R1")
    assert (run.kind, run.status, run.tally.total) == ("recorded", "done", 3)
    assert Workspace(folder).store.events.newest(1)[0].actor == "ann"


def test_what_is_here_already_is_not_imported_again(folder: Path, tmp_path: Path) -> None:
    imported(uploaded(("results.json", tau(tmp_path))))
    page = fine(uploaded(("results.json", tau(tmp_path))))
    assert "<b>12</b> here already" in html(page)
    assert "Nothing of it is new" in html(page)
    assert not [b for b in page.button if b.key == "rollouts_now"]
    assert page.button("rollouts_open")


def test_what_waits_for_a_word_comes_first_and_what_formats_define_is_one_line(
    folder: Path, tmp_path: Path
) -> None:
    row = {name: value for name, value in attempt(0).items() if name != "reward"} | {"good": 1, "fast": 2}
    verl = {"input": "Solve it.", "output": "2", "gts": "2", "score": 1.0, "step": 1}
    files = {
        "a.json": tau(tmp_path),
        "b.jsonl": json.dumps(verl).encode(),
        "c.jsonl": json.dumps(row).encode(),
    }
    drawn = html(fine(uploaded(*files.items())))
    assert drawn.count("by definition") == 1
    assert (
        "The reward is “reward” of tau-bench results (tau-bench airline); “score” of verl rollout dump."
        in drawn
    )
    assert 0 < drawn.index("not said") < drawn.index("by definition")


def test_files_that_hold_no_rollouts_are_told_above_and_listed_first(folder: Path, tmp_path: Path) -> None:
    lfs = b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 3\n"
    page = fine(uploaded(("a.json", tau(tmp_path)), ("z.jsonl", lfs)))
    assert "1 file could not be read as rollouts" in html(page)
    files = next(table.value for table in page.dataframe if "Became" in table.value)
    assert list(files["File"]) == ["z.jsonl", "a.json"]


def test_one_of_several_scores_is_chosen_and_less_of_it_can_be_better(folder: Path) -> None:
    page = pasted(*({**attempt(i), "accuracy": i % 2, "toxicity": i / 10} for i in range(4)))
    mapping = "task_id: task_id\nmessages: messages\nattempt: attempt\nreward: [accuracy, toxicity]\n"
    page = fine(settled(page.text_area("rollouts_mapping").set_value(mapping).run()))
    assert "not said" in html(page)
    assert "<b>4</b> unscored" in html(page)
    options = page.selectbox("rollouts_score").options
    toxic = next(name for name in options if "toxicity" in name)
    settled(page.selectbox("rollouts_score").set_value(toxic).run())
    assert page.toggle("rollouts_less").value, "its name sounds as if less were better"
    assert "<b>4</b> scored" in html(fine(page))
    assert "minus the score" in html(page)
    assert "your choice" in html(page)


def test_secrets_are_masked_and_counted_unless_they_are_to_stay(folder: Path) -> None:
    rows = [attempt(i) for i in range(2)]
    rows[0]["messages"][1]["content"] = f"I used {SECRET}."
    page = fine(pasted(*rows))
    assert "Masked: keys and tokens: 1." in html(page)
    assert SECRET not in html(page)
    settled(page.toggle("rollouts_secrets").set_value(True).run())
    assert "Masked" not in html(fine(page))


def test_attempts_can_be_grouped_by_their_question(folder: Path) -> None:
    rows = [attempt(i) | {"task_id": f"t{i}"} for i in range(4)]
    for row in rows:
        row["messages"] = [{"role": "user", "content": "Solve it."}, row["messages"][1]]
    page = fine(pasted(*rows))
    assert "4 with 1 attempt" in html(page)
    settled(page.selectbox("rollouts_group").set_value("question").run())
    assert "1 with 4 attempts" in html(fine(page))


def test_attempts_of_different_models_share_a_group_only_when_asked_for(folder: Path) -> None:
    page = fine(pasted(*(attempt(i) | {"model": f"m{i}"} for i in range(2))))
    assert "2 with 1 attempt" in html(page)
    settled(page.toggle("rollouts_mix").set_value(True).run())
    assert "1 with 2 attempts" in html(fine(page))


def test_a_zip_and_files_of_the_same_name_are_read_together(folder: Path, tmp_path: Path) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("logs/one.json", tau(tmp_path))
    rows = "".join(json.dumps(attempt(i)) + "\n" for i in range(2)).encode()
    more = "".join(json.dumps(attempt(i, "product")) + "\n" for i in range(2)).encode()
    page = fine(uploaded(("a.zip", packed.getvalue()), ("rows.jsonl", rows), ("rows.jsonl", more)))
    assert "= 16 attempts" in html(page)


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "empty"),
        (b"%PDF-1.7 hello", "it is a PDF document"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:ab\nsize 3\n", "git lfs pull"),
        (b'[{"task_id": 1, "reward": 1.0, "info"', "holds no rollout"),
    ],
)
def test_a_file_that_holds_nothing_is_one_red_line(folder: Path, data: bytes, says: str) -> None:
    page = uploaded(("a.json", data))
    assert says in red(page)
    assert not [b for b in page.button if b.key == "rollouts_now"]


def test_records_that_cannot_be_read_are_told_and_stop_nothing(folder: Path) -> None:
    rows = "".join(json.dumps(attempt(i)) + "\n" for i in range(4))
    page = fine(uploaded(("a.jsonl", (rows + '{"task_id": \n').encode())))
    assert "<b>4</b> scored" in html(page)
    assert "1 record could not be read" in html(page)
    assert list(page.dataframe[-1].value["Line"]) == [5]


def test_rewards_come_from_a_file_beside(folder: Path) -> None:
    rows = [attempt(i) | {"reward": None} for i in range(2)]
    page = fine(pasted(*rows))
    assert "<b>2</b> unscored" in html(page)
    rewards = b"task_id,repeat,reward\nsum,0,0\nsum,1,1\n"
    page.file_uploader("rollouts_rewards").set_value(("rewards.csv", rewards, "text/csv"))
    settled(page.run())
    assert "<b>2</b> scored" in html(fine(page))


def test_what_is_here_is_given_the_rewards_of_a_file_that_comes_later(folder: Path) -> None:
    rows = [attempt(i) | {"reward": None} for i in range(2)]
    imported(fine(pasted(*rows)))
    page = fine(pasted(*rows))
    assert "Nothing of it is new" in html(page)
    rewards = b"task_id,repeat,reward\nsum,0,0\nsum,1,1\n"
    page.file_uploader("rollouts_rewards").set_value(("rewards.csv", rewards, "text/csv"))
    settled(page.run())
    assert "Nothing of it is new" not in html(fine(page))
    assert page.button("rollouts_now").label == "Give 2 attempts their rewards"
    imported(page)
    ws = Workspace(folder)
    assert [r.reward for r in ws.store.groups.get("R1-0001").rollouts] == [0.0, 1.0]
    assert ws.store.runs.count() == 1


def test_a_mapping_of_files_that_are_here_gives_rewards_and_brings_nothing_twice(folder: Path) -> None:
    rows = [attempt(i) | {"reward": None, "points": i} for i in range(2)]
    imported(fine(pasted(*rows)))
    page = fine(pasted(*rows))
    settled(page.text_area("rollouts_mapping").set_value("task_id: task_id\nreward: points\n").run())
    assert "<b>2</b> here already" in html(fine(page))
    assert page.button("rollouts_now").label == "Give 2 attempts their rewards"
    imported(page)
    assert [r.reward for r in Workspace(folder).store.groups.get("R1-0001").rollouts] == [0.0, 1.0]


def test_columns_of_a_generic_file_can_be_named(folder: Path) -> None:
    rows = [{"riddle": "What is green?", "said": f"grass {i}", "points": i} for i in range(2)]
    page = pasted(*rows)
    page.text_area("rollouts_mapping").set_value("question: riddle\ncompletion: said\nreward: points\n")
    settled(page.run())
    assert "<b>2</b> scored" in html(fine(page))


def test_foreign_text_is_shown_as_it_is(folder: Path) -> None:
    rows = [attempt(i, HOSTILE, model=HOSTILE, agent=HOSTILE) for i in range(2)]
    lines = "".join(json.dumps(row) + "\n" for row in rows) + HOSTILE
    drawn = html(fine(uploaded(("<b>x ![y](http_h).jsonl", lines.encode()))))
    assert "<script>" not in drawn
    assert "&lt;script&gt;alert(1)" in drawn


def test_a_reader_cannot_import(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINNOW_ROLE", "reader")
    page = fine(opened())
    assert "You are a reader here" in html(page)
    assert not page.file_uploader


def test_lessons_are_drawn_from_the_run_that_came_in(folder: Path) -> None:
    ws, rows = Workspace(folder), folder.parent / "rows.jsonl"
    rows.write_text("".join(json.dumps(attempt(i, f"t{i % 3}")) + "\n" for i in range(12)), "utf-8")
    done = ws.intake.add_rollouts([rows], ImportOptions(), "ann")
    page = AppTest.from_file(str(ROOT / "pages" / "learn" / "run.py"), default_timeout=60)
    page.query_params["id"] = str(done.run_id)
    settled(fine(page.run()).button("run_draw").click().run())
    assert "drawn from R1" in html(fine(page))
    assert Workspace(folder).store.runs.get("R1").extraction != Extraction()


def test_home_leads_on_to_the_lessons_of_what_came_in(folder: Path) -> None:
    ws, rows = Workspace(folder), folder.parent / "rows.jsonl"
    rows.write_text("".join(json.dumps(attempt(i, f"t{i % 3}")) + "\n" for i in range(12)), "utf-8")
    ws.intake.add_rollouts([rows], ImportOptions(), "ann")
    found = loop.next_step(ws, ws.overview())
    assert (found.page, found.of) == ("pages/learn/run.py", "R1")
    assert "can be drawn" in found.why
    ws.learning.propose("R1", "ann")
    assert "can be drawn" not in loop.next_step(ws, ws.overview()).why


def test_a_look_that_was_stopped_does_not_begin_again_by_itself(folder: Path) -> None:
    page = opened()
    page.text_area("rollouts_paste").set_value(json.dumps(attempt(0)) + "\n").run()
    page.button("alongside_stop_Looking at the files").click().run()
    assert page.button("rollouts_look")
    settled(page.button("rollouts_look").click().run())
    assert "= 1 attempt" in html(fine(page))


@pytest.mark.browser
def test_a_file_is_uploaded_imported_and_its_groups_are_seen(
    folder: Path, tmp_path: Path, browser: Browser
) -> None:
    file = tmp_path / "results.json"
    make_tau_bench.make(file)
    Workspace(folder)
    with serve(folder) as base:
        page = browser.new_page()
        visit(page, f"{base}/import-rollouts", "Formats, recognised by their content")
        page.locator("input[type=file]").first.set_input_files(str(file))
        page.get_by_text("Import 12 attempts").wait_for(timeout=PATIENCE_S * 1000)
        press(page, "rollouts_now")
        drawn(page, "12 attempts at 3 tasks imported from results.json")
        page.get_by_text("Its groups").click()
        drawn(page, "R1-0001")
        page.close()
    assert Workspace(folder).store.runs.get("R1").tally.informative == 3


@pytest.mark.browser
def test_a_file_that_is_here_is_uploaded_again_and_gets_its_rewards(
    folder: Path, tmp_path: Path, browser: Browser
) -> None:
    file, rewards = tmp_path / "rows.jsonl", tmp_path / "rewards.csv"
    file.write_text("".join(json.dumps(attempt(i) | {"reward": None}) + "\n" for i in range(3)), "utf-8")
    rewards.write_text("task_id,repeat,reward\nsum,0,0\nsum,2,1\n")
    Workspace(folder).intake.add_rollouts([file], ImportOptions(), "ann")
    with serve(folder) as base:
        page = browser.new_page()
        visit(page, f"{base}/import-rollouts", "Formats, recognised by their content")
        page.locator(".st-key-rollouts_upload input[type=file]").set_input_files(str(file))
        page.get_by_text("Nothing of it is new").wait_for(timeout=PATIENCE_S * 1000)
        page.get_by_text("Rewards from another file").click()
        page.locator(".st-key-rollouts_rewards input[type=file]").set_input_files(str(rewards))
        page.get_by_text("Give 2 attempts their rewards").wait_for(timeout=PATIENCE_S * 1000)
        press(page, "rollouts_now")
        drawn(page, "Nothing of rows.jsonl is new. 2 known attempts got another reward.")
        page.close()
    assert [r.reward for r in Workspace(folder).store.groups.get("R1-0001").rollouts] == [0.0, None, 1.0]
