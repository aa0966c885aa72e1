"""Each fault of the reference systems (Y1 to Y29) has a test that is named after what a user would lose by it.

Those that live in one module are tested there; those that only a whole run shows are here, from the workspace's door
to what a stub server was asked. The first test finds them all.
"""

from __future__ import annotations

import ast
import json
import re
from collections import Counter
from pathlib import Path

import pytest

from core.experience import Add
from core.injection import read_injection
from core.packs import EXPORTERS, agents_md, csv_table, read_pack
from core.rollout import Run
from core.settings import Resample, RewardConfig, RunConfig, VerifierSpec
from core.workspace import Workspace
from tests.make import add_stub, add_tasks, make_task, make_tasks, publish, ticking
from tests.stub_server import Asked, Fault, StubServer, kind_of, solver
from tests.teacher import answer

TESTS = Path(__file__).parents[1]


def test_every_fault_of_the_reference_has_a_test_named_after_it() -> None:
    named = {
        int(number)
        for path in TESTS.rglob("test_*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        for number in re.findall(r"_y(\d\d)_", node.name)
    }
    assert set(range(1, 30)) - named == set()


def learn(workspace: Workspace, config: RunConfig, **changes: object) -> Run:
    config = RunConfig(**config.model_dump() | changes)
    return workspace.learning.work(workspace.learning.start(config, "test").id, "test")


def teaching(asked: Asked) -> str:
    return solver(asked) if kind_of(asked.messages) == "rollout" else answer(asked)


# -- Y18: the shuffle did nothing, and the tail of the tasks was dropped in every epoch -------------


def test_y18_no_task_is_dropped_from_any_epoch_and_the_shuffle_shuffles(tmp_path: Path) -> None:
    tasks = make_tasks(11)
    orders = []
    for seed in (0, 1):
        workspace = Workspace(tmp_path / str(seed), clock=ticking())
        add_tasks(workspace, tasks)
        with StubServer() as stub:
            config = add_stub(workspace, stub.base_url)
            run = learn(workspace, config, seed=seed, epochs=2, batch_size=4)
            asked = Counter(r.body["messages"][-1]["content"] for r in stub.requests)
        assert asked == {task.question: 2 * config.group_size for task in tasks}
        rows, _ = workspace.store.groups.page(run.id)
        for epoch in range(2):
            assert Counter(r.batch for r in rows if r.epoch == epoch) == {0: 4, 1: 4, 2: 3}
            orders.append([r.task_id for r in rows if r.epoch == epoch])
    as_imported = [task.id for task in tasks]
    assert len({tuple(order) for order in [*orders, as_imported]}) == 5, (
        "each epoch and seed in its own order"
    )


# -- Y19: the time limit and the concurrency of rollouts were settings without an effect -------------


def test_y19_a_rollout_that_hangs_is_cut_off_at_its_time_limit_and_its_siblings_go_on(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(1))
    with StubServer(latency_s=0.05, faults=[Fault("slow", factor=600)]) as stub:
        run = learn(workspace, add_stub(workspace, stub.base_url), rollout_timeout_s=2.0)
    rollouts = workspace.store.groups.get(f"{run.id}-0001").rollouts
    [late] = [r for r in rollouts if r.error is not None]
    assert "2" in late.error
    assert (late.reward, late.advantage) == (None, None)
    assert all(r.reward is not None for r in rollouts if r is not late)


@pytest.mark.parametrize("concurrency", [1, 3])
def test_y19_no_more_rollouts_are_in_flight_than_was_asked_for_and_no_fewer(
    workspace: Workspace, concurrency: int
) -> None:
    add_tasks(workspace, make_tasks(4))
    with StubServer(latency_s=0.02) as stub:
        learn(workspace, add_stub(workspace, stub.base_url, concurrency=concurrency))
        assert stub.stats()["in_flight_max"] == concurrency


# -- Y20: the temperature of the rollouts leaked into what came after --------------------------------


def test_y20_the_temperature_of_rollouts_reaches_neither_the_extraction_nor_the_next_run(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(6))
    with StubServer(teaching) as stub:
        config = add_stub(workspace, stub.base_url, context_length=32_000)
        learn(workspace, config, temperature=1.3, extraction_endpoint=config.endpoint)
        asked = [(kind_of(r.body["messages"]), r.body["temperature"]) for r in stub.requests]
        assert {temperature for kind, temperature in asked if kind == "rollout"} == {1.3}
        assert {temperature for kind, temperature in asked if kind != "rollout"} == {0.0}
        stub.requests.clear()
        learn(workspace, config, temperature=0.4)
        assert {r.body["temperature"] for r in stub.requests} == {0.4}


def test_y20_sampling_anew_at_another_temperature_does_not_change_that_of_the_next_epoch(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(10))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url)
        again = Resample(temperature=1.7, attempts=1)
        run = learn(workspace, config, temperature=0.6, epochs=2, resample=again.model_dump())
        asked = Counter(r.body["temperature"] for r in stub.requests)
    rows, _ = workspace.store.groups.page(run.id)
    anew = sum(r.attempt > 0 for r in rows)
    assert anew > 0
    assert asked == {0.6: 2 * 10 * config.group_size, 1.7: anew * config.group_size}


# -- Y21: a second evaluation found everything judged and repeated the first score -------------------
# Evaluation comes with a later step; what it will stand on is that a run measures the library that is there now.


def test_y21_the_same_run_under_another_library_is_measured_anew_and_repeats_no_old_score(
    workspace: Workspace,
) -> None:
    add_tasks(workspace, make_tasks(6))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url)
        first = learn(workspace, config)
        publish(workspace, Add(text="Give the number alone.", domain="sums"))
        stub.requests.clear()
        second = learn(workspace, config)
        assert len(stub.requests) == 6 * config.group_size
        assert all("Give the number alone." in r.body["messages"][0]["content"] for r in stub.requests)
    assert second.id != first.id
    assert (first.library_version, second.library_version) == (0, 1)
    assert workspace.store.groups.rewards(first.id) != workspace.store.groups.rewards(second.id)


# -- Y22: the cache knew neither model nor data nor group size --------------------------------------


@pytest.mark.parametrize(
    ("endpoint", "run"),
    [
        ({"model": "another-model"}, {}),
        ({"extra": {"top_k": 5}}, {}),
        ({}, {"temperature": 0.2}),
        ({}, {"top_p": 0.5}),
        ({}, {"max_tokens": 31}),
        ({}, {"seed": 1000}),
    ],
    ids=str,
)
def test_y22_no_reply_is_used_again_for_another_model_or_other_settings(
    workspace: Workspace, endpoint: dict[str, object], run: dict[str, object]
) -> None:
    add_tasks(workspace, make_tasks(3))
    with StubServer() as stub:
        learn(workspace, add_stub(workspace, stub.base_url))
        stub.requests.clear()
        config = add_stub(workspace, stub.base_url)
        changed = workspace.models.get(config.endpoint).model_copy(update=endpoint)
        workspace.models.save(changed, "test")
        learn(workspace, config, **run)
        assert len(stub.requests) == 3 * config.group_size


def test_y22_another_group_size_makes_whole_groups_and_never_splits_one(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(3))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url)
        learn(workspace, config, group_size=4)
        larger = learn(workspace, config, group_size=6)
        smaller = learn(workspace, config, group_size=3)
        assert stub.stats()["calls"] == 3 * 6, "the same replicate of the same prompt is the same reply"
    for run, size in ((larger, 6), (smaller, 3)):
        rows, total = workspace.store.groups.page(run.id)
        assert total == 3
        for row in rows:
            rollouts = workspace.store.groups.get(row.id).rollouts
            assert [r.replicate for r in rollouts] == list(range(size))


def test_y22_a_task_that_was_changed_is_not_answered_with_old_replies(tmp_path: Path) -> None:
    with StubServer() as stub:
        workspace = Workspace(tmp_path / "w", clock=ticking())
        add_tasks(workspace, [make_task(1, id="t-1")])
        learn(workspace, add_stub(workspace, stub.base_url))
        stub.requests.clear()
        add_tasks(workspace, [make_task(2, id="t-2")])
        config = add_stub(workspace, stub.base_url)
        learn(workspace, config)
        assert {r.body["messages"][-1]["content"] for r in stub.requests} == {make_task(2).question}


# -- Y24: a later run in the same process used the first run's verifier -------------------------------


def test_y24_a_second_run_in_the_same_process_is_judged_by_its_own_verifier(tmp_path: Path) -> None:
    rewards = {}
    with StubServer(lambda asked: "The answer is 10.") as stub:
        for name, spec in (("lenient", VerifierSpec(kind="numeric")), ("strict", VerifierSpec(kind="exact"))):
            workspace = Workspace(tmp_path / name, clock=ticking())
            add_tasks(
                workspace, [make_task(1, id="t-1", question="What is 4 + 6?", answer="10", verifier=spec)]
            )
            run = learn(workspace, add_stub(workspace, stub.base_url))
            rewards[name] = {reward for _, reward in workspace.store.groups.rewards(run.id)}
    assert rewards == {"lenient": {1.0}, "strict": {0.0}}


def test_y24_what_one_run_adds_to_its_verifiers_is_not_there_in_the_next(workspace: Workspace) -> None:
    add_tasks(workspace, make_tasks(1))
    with StubServer() as stub:
        config = add_stub(workspace, stub.base_url)
        more = RewardConfig(verifiers={"bare": VerifierSpec(kind="regex", options={"pattern": r"\d+"})})
        first = learn(workspace, config, reward=more.model_dump())
        second = learn(workspace, config)
    scores = [
        {name for r in workspace.store.groups.get(f"{run.id}-0001").rollouts for name in r.scores}
        for run in (first, second)
    ]
    assert scores == [{"numeric", "bare"}, {"numeric"}]


# -- Y27: an exported file could not be loaded, was overwritten, or held a key ------------------------

TEXTS = (
    r"Write ${x} as \frac{a}{b}, and $HOME stays $HOME.",
    'Answer {"city": name}, not {name}: {{}} stays.',
    "先读文件，然后回答。 🙂",
    "First line.\nSecond line: 'quoted' \"twice\" # no comment",
)


def test_y27_what_was_published_comes_back_from_every_export_character_for_character(
    workspace: Workspace,
) -> None:
    publish(workspace, *(Add(text=text, domain="sums") for text in TEXTS))
    made = {form: workspace.shipping.export(form).data for form in EXPORTERS}
    assert [e.text for e in read_pack(made["pack"]).experiences] == list(TEXTS)
    assert read_injection(made["prompt"].decode()) == list(TEXTS)
    assert agents_md.read(made["agents-md"]) == list(TEXTS)
    assert [lesson.text for lesson in csv_table.read(made["csv"]).lessons] == list(TEXTS)
    assert list(json.loads(made["json"]).values()) == list(TEXTS)


def test_y27_a_later_export_does_not_write_over_an_earlier_one(workspace: Workspace, tmp_path: Path) -> None:
    from core.errors import InputError

    publish(workspace, "Give the number alone.")
    _, path = workspace.shipping.write("prompt", tmp_path / "prompt.txt", "ann")
    before = path.read_bytes()
    publish(workspace, "Check the sum once more.")
    with pytest.raises(InputError, match="holds something else"):
        workspace.shipping.write("prompt", path, "ann")
    assert path.read_bytes() == before


def test_y27_no_key_gets_into_an_export_or_the_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = "sk-test-9fT2mKq7LwX4vBnR1cZs"
    monkeypatch.setenv("WINNOW_TRUST", str(tmp_path / "trust.toml"))
    monkeypatch.setenv("WINNOW_KEY_STUB", key)
    workspace = Workspace(tmp_path / "w", clock=ticking())
    add_tasks(workspace, make_tasks(4))
    publish(workspace, Add(text="Give the number alone.", domain="sums"))
    with StubServer(teaching, key=key) as stub:
        config = add_stub(workspace, stub.base_url, key_env="WINNOW_KEY_STUB", context_length=32_000)
        run = learn(workspace, config, extraction_endpoint=config.endpoint)
    assert run.status == "done"
    shipped = b"".join(workspace.shipping.export(form).data for form in EXPORTERS)
    files = b"".join(path.read_bytes() for path in (tmp_path / "w").rglob("*") if path.is_file())
    assert key.encode() not in shipped + files


# -- Y28: lessons were measured in the user turn and shipped in the system prompt --------------------


def test_y28_what_ships_is_to_the_letter_what_the_rollouts_were_given_and_in_the_same_place(
    workspace: Workspace,
) -> None:
    tasks = make_tasks(3)
    add_tasks(workspace, tasks)
    publish(workspace, *(Add(text=text, domain="sums") for text in TEXTS))
    with StubServer() as stub:
        learn(workspace, add_stub(workspace, stub.base_url))
        sent = [[(m["role"], m["content"]) for m in r.body["messages"]] for r in stub.requests]
    shipped = workspace.shipping.export("prompt", domain="sums").data.decode()
    assert {messages[0] for messages in sent} == {("system", shipped)}
    assert {messages[1] for messages in sent} == {("user", task.question) for task in tasks}
    assert {len(messages) for messages in sent} == {2}
