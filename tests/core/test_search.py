"""Full-text search of the experiences as they are now."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from core.errors import InputError
from core.experience import Delete, Merge, Modify
from core.migrations.m004_search import PARTED, UNSPACED
from core.store.integrity import rebuild_words
from core.store.search import Hit, Search
from core.workspace import Workspace
from tests.make import publish, ticking

TEXTS = (
    "Read the file before you answer.",
    "用 read_json 读取表格，然后回答。",
    "Café prices: answer with “€5”, never f(x,y).",
    "Don't call `fetch` twice 👍🏽 -> stop",
    "먼저 파일을 읽어라",
    "ตรวจสอบไฟล์ก่อน",
    "See https://example.org/a/b?c=d#e first",
)
ANY_TEXT = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=40
)


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    made = Workspace(tmp_path_factory.mktemp("search"), clock=ticking())
    publish(made, *TEXTS)
    return made


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Workspace]:
    workspace = Workspace(tmp_path / "ws", clock=ticking())
    yield workspace
    assert agrees(workspace.folder)


def agrees(folder: Path) -> bool:
    """Whether the index holds what the texts hold."""
    with closing(sqlite3.connect(folder / "winnow.db")) as connection:
        try:
            connection.execute(
                "INSERT INTO experience_words (experience_words, rank) VALUES ('integrity-check', 1)"
            )
        except sqlite3.DatabaseError:
            return False
        return True


def ids(search: Search, query: str, **more: bool) -> list[str]:
    found, total = search.find(query, **more)
    assert total == len(found)
    return [hit.experience.id for hit in found]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("file", ["E-0001"]),
        ("FILE answer", ["E-0001"]),
        ("ans", ["E-0001", "E-0003"]),
        ('"ans"', []),
        ('"before you"', ["E-0001"]),
        ('"you before"', []),
        ("cafe", ["E-0003"]),
        ("CAFÉ", ["E-0003"]),
        ("read", ["E-0001", "E-0002"]),
        ("read_json", ["E-0002"]),
        ("读取", ["E-0002"]),
        ("取读", []),
        ("表格 回答", ["E-0002"]),
        ("파일", ["E-0005"]),
        ("ไฟล์", ["E-0006"]),
        ("👍🏽", ["E-0004"]),
        ("👍", ["E-0004"]),
        ("->", ["E-0004"]),
        ("€5", ["E-0003"]),
        ("f(x,y)", ["E-0003"]),
        ("don't", ["E-0004"]),
        ("https://example.org/a/b?c=d#e", ["E-0007"]),
        ("example.org", ["E-0007"]),
        ("nowhere", []),
        ("file nowhere", []),
    ],
)
def test_what_a_person_would_type_finds_what_they_mean(
    workspace: Workspace, query: str, expected: list[str]
) -> None:
    assert sorted(ids(workspace.store.search, query)) == expected


@pytest.mark.parametrize(
    "query",
    [
        '"',
        '"""',
        '""',
        '" "',
        "AND",
        "a OR",
        "NOT NOT",
        "NEAR(",
        "(((",
        "*",
        "^a",
        "a*b",
        "words:a",
        "-file",
        "'; DROP TABLE experiences; --",
        "\\",
        "%",
        "_",
        '"unfinished phrase',
        "\ud800",
        "a\x00b",
        "\x00 x",
        " ".join(chr(0x1F300 + i) for i in range(500)),
        " ".join(chr(0x4E00 + i) for i in range(900)),
        "a " * 900,
        "(" * 2000,
        "x" * 2000,
        " ".join(f"w{i}" for i in range(400)),
    ],
)
def test_hostile_queries_are_text_like_any_other(workspace: Workspace, query: str) -> None:
    found, total = workspace.store.search.find(query)
    assert len(found) == min(total, 50)


@pytest.mark.parametrize("query", ["", "  \n", "\x00", "x" * 10_240, "(" * 10_240])
def test_a_query_of_nothing_or_of_too_much_is_refused_in_one_sentence(
    workspace: Workspace, query: str
) -> None:
    with pytest.raises(InputError, match="search"):
        workspace.store.search.find(query)


@given(ANY_TEXT)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_query_but_a_blank_one_is_answered(workspace: Workspace, query: str) -> None:
    if not query.strip():
        with pytest.raises(InputError, match="Say what to search for"):
            workspace.store.search.find(query)
    else:
        found, total = workspace.store.search.find(query)
        assert len(found) == min(total, 50)


@given(st.lists(ANY_TEXT, min_size=1, max_size=5), st.data())
@settings(max_examples=60, deadline=None)
def test_every_text_is_found_by_any_of_its_words(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], data: st.DataObject
) -> None:
    database = _bare(tmp_path_factory.mktemp("any"))
    for i, text in enumerate(texts, start=1):
        _state(database, i, text)
    for i, text in enumerate(texts, start=1):
        words = [w for w in text.replace('"', " ").split() if w.strip()]
        if words:
            word = data.draw(st.sampled_from(words))
            assert f"E-{i:04d}" in ids(Search(database), word), (text, word)
    assert agrees(database.path.parent)


def test_a_word_between_ideographs_is_found_as_well_as_each_of_them(fresh: Workspace) -> None:
    publish(fresh, "用read读取")
    for query in ("用", "read", "读取", "取", "用read读取"):
        assert ids(fresh.store.search, query) == ["E-0001"], query


def test_a_change_is_found_by_its_new_text_only_and_the_dead_are_found_when_asked_for(
    fresh: Workspace,
) -> None:
    publish(fresh, "Alpha lesson.", "Beta lesson.", "Gamma lesson.", "Delta lesson.")
    publish(
        fresh,
        Modify(experience_id="E-0001", text="Omega lesson."),
        Delete(experience_id="E-0002"),
        Merge(experience_ids=("E-0003", "E-0004"), text="Both lesson."),
    )
    search = fresh.store.search
    assert ids(search, "lesson") == ["E-0001", "E-0003"]
    assert ids(search, "alpha") == ids(search, "beta") == ids(search, "delta") == []
    assert ids(search, "omega") == ["E-0001"]
    assert ids(search, "beta", dead=True) == ["E-0002"]
    fresh.review.rollback(1, "ann")
    assert sorted(ids(search, "lesson")) == ["E-0001", "E-0002", "E-0003", "E-0004"]
    assert ids(search, "alpha") == ["E-0001"]


def test_whoever_changes_a_text_keeps_the_index(fresh: Workspace) -> None:
    publish(fresh, "The password is 漢字 swordfish.")
    connection = sqlite3.connect(fresh.folder / "winnow.db")
    connection.execute("UPDATE experience_states SET text = 'The password is gone.'")
    connection.commit()
    connection.close()
    assert ids(fresh.store.search, "swordfish") == ids(fresh.store.search, "漢") == []
    assert ids(fresh.store.search, "gone") == ["E-0001"]


def test_a_publish_that_fails_leaves_the_index_as_it_was(fresh: Workspace) -> None:
    publish(fresh, "Alpha lesson.")

    def publish_and_fail() -> None:
        with fresh.store.writing():
            publish(fresh, Modify(experience_id="E-0001", text="Omega lesson."))
            assert ids(fresh.store.search, "omega") == ["E-0001"]
            raise RuntimeError

    with pytest.raises(RuntimeError):
        publish_and_fail()
    assert ids(fresh.store.search, "omega") == []
    assert ids(fresh.store.search, "alpha") == ["E-0001"]


def test_an_index_that_does_not_agree_with_the_texts_is_noticed_and_made_anew(workspace: Workspace) -> None:
    search = workspace.store.search
    with workspace.store.writing():
        search._database.execute(
            "INSERT INTO experience_words (experience_words, rowid, words) VALUES ('delete', 1, ?)", TEXTS[0]
        )
    assert not agrees(workspace.folder)
    assert ids(search, "before") == []
    with workspace.store.writing():
        rebuild_words(search._database.handle.conn)
    assert agrees(workspace.folder)
    assert ids(search, "before") == ["E-0001"]


def test_the_index_of_a_library_from_before_there_was_one_is_made_when_it_is_opened(tmp_path: Path) -> None:
    from core.migrations.m001_first import SCHEMA
    from core.migrations.m002_engine import SCHEMA as ENGINE
    from core.migrations.m004_search import SCHEMA as SEARCH
    from core.migrations.script import statements

    connection = sqlite3.connect(tmp_path / "old.db")
    for statement in statements(SCHEMA) + statements(ENGINE):
        connection.execute(statement)
    connection.execute("INSERT INTO experiences VALUES ('E-0001', 1, 0)")
    connection.execute(
        "INSERT INTO experience_states VALUES ('E-0001', 0, NULL, '先读文件', 'strategy', 'd', 'live', NULL, NULL,"
        " '', 0.5, 0, 0)"
    )
    for statement in statements(SEARCH):
        connection.execute(statement)
    [(found,)] = connection.execute(
        "SELECT rowid FROM experience_words WHERE experience_words MATCH '\"读 文\"'"
    )
    connection.close()
    assert found == 1


def test_matches_are_marked_and_the_text_between_them_is_exact(workspace: Workspace) -> None:
    def marked(query: str) -> list[str]:
        return [hit.marked("[", "]") for hit in workspace.store.search.find(query)[0]]

    assert marked("answer BEFORE") == ["Read the file [before] you [answer]."]
    assert marked("cafe") == ["[Café] prices: answer with “€5”, never f(x,y)."]
    assert marked("取表") == ["用 read_json 读[取表]格，然后回答。"]
    assert marked("👍🏽 ->") == ["Don't call `fetch` twice [👍🏽] [->] stop"]
    assert marked("f(x,y)") == ["Café prices: answer with “€5”, never [f(x,y])."]
    assert marked("ile") == []


@given(ANY_TEXT, ANY_TEXT)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_marks_lie_in_the_text_apart_and_in_order(workspace: Workspace, a: str, b: str) -> None:
    for query in (a, b, "e a"):
        try:
            found = workspace.store.search.find(query)[0]
        except InputError:
            continue
        for hit in found:
            flat = [place for mark in hit.marks for place in mark]
            assert flat == sorted(set(flat))
            assert re.sub("[«»]", "", hit.marked()) == re.sub("[«»]", "", hit.experience.text)


def test_pages_of_a_search_cover_each_hit_once(fresh: Workspace) -> None:
    publish(fresh, *(f"Lesson number {i}." for i in range(7)))
    pages = [fresh.store.search.find("lesson", limit=3, offset=o)[0] for o in (0, 3, 6)]
    seen = [hit.experience.id for page in pages for hit in page]
    assert sorted(seen) == [f"E-{i:04d}" for i in range(1, 8)]


def test_experiences_that_share_telling_words_come_first(workspace: Workspace) -> None:
    like = workspace.store.search.like
    assert like("You must read the file first")[0].id == "E-0001"
    assert like("读取文件")[0].id == "E-0002"
    assert like("-> !") == []


def test_both_sides_part_the_same_characters() -> None:
    connection = sqlite3.connect(":memory:")
    pattern = re.compile(f"[{UNSPACED}]")
    every = [(chr(i),) for i in range(1, 0x30000) if not 0xD800 <= i < 0xE000]
    connection.execute("CREATE TABLE t (c TEXT)")
    connection.executemany("INSERT INTO t VALUES (?)", every)
    [(parted,)] = connection.execute(f"SELECT group_concat(c, '') FROM t WHERE c GLOB '[{UNSPACED}]'")
    assert set(parted) == {c for (c,) in every if pattern.match(c)}


def test_a_text_of_a_hundred_thousand_ideographs_is_kept_whole(tmp_path: Path) -> None:
    database = _bare(tmp_path)
    _state(database, 1, "读" * 100_000 + " tail")
    assert ids(Search(database), "tail") == ["E-0001"]
    assert ids(Search(database), "读" * (PARTED // 4)) == ["E-0001"]


def _bare(folder: Path):  # type: ignore[no-untyped-def]
    from core.store.database import Database

    return Database(folder / "winnow.db")


def _state(database, number: int, text: str) -> None:  # type: ignore[no-untyped-def]
    with database.writing():
        database.execute("INSERT INTO experiences VALUES (?, ?, 0)", f"E-{number:04d}", number)
        database.execute(
            "INSERT INTO experience_states VALUES (?, 0, NULL, ?, 'strategy', 'd', 'live', NULL, NULL, '', 0.5, 0, 0)",
            *(f"E-{number:04d}", text),
        )


def test_a_hit_without_marks_reads_as_it_is(workspace: Workspace) -> None:
    [experience, *_] = workspace.store.versions.library()
    assert Hit(experience=experience).marked() == experience.text
