"""Full-text search of the experiences as they are now, and indexes for a library with a long history.

The index reads its texts from the view `experiences_now`, and triggers keep it, so whoever writes a state keeps it too.
In the view the characters of scripts without spaces between words stand apart, one word each: `core.store.search`
parts queries in the same way.
"""

from __future__ import annotations

from sqlite_utils import Database

from core.migrations.registry import MIGRATIONS
from core.migrations.script import statements

UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3021-\u3029\u3031-\u3035\u3038-\u303c\u3041-\u3096"
    "\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\ua9e0-\ua9ff\uaa60-\uaa7f"
    "\uf900-\ufaff\uff66-\uff9d\U00016ff0-\U00016fff\U0001aff0-\U0001b16f\U00020000-\U0003fffd"
)
"""Ideographs, kana, Thai, Lao, Khmer and Burmese (rules 2 and 3 of `core.words`), as a class of GLOB and of `re`."""

PARTED = 4_000
"""Characters of a text that are parted; one without these scripts (ASCII is told by its bytes) stays as it is."""

SCHEMA = f"""
CREATE UNIQUE INDEX states_now ON experience_states (experience_id) WHERE to_version IS NULL;
CREATE INDEX states_by_birth ON experience_states (from_version);

CREATE VIEW experiences_now AS
SELECT e.number AS number, s.experience_id AS experience_id,
    CASE WHEN length(s.text) = length(CAST(s.text AS BLOB)) OR s.text NOT GLOB '*[{UNSPACED}]*' THEN s.text ELSE (
        WITH RECURSIVE place (i) AS (
            SELECT 1 UNION ALL SELECT i + 1 FROM place WHERE i < min(length(s.text), {PARTED})
        )
        SELECT group_concat(CASE WHEN substr(s.text, i, 1) GLOB '[{UNSPACED}]' THEN ' ' || substr(s.text, i, 1) || ' '
            ELSE substr(s.text, i, 1) END, '') FROM (SELECT i FROM place ORDER BY i)
    ) || substr(s.text, {PARTED + 1}) END AS words
FROM experience_states s JOIN experiences e ON e.id = s.experience_id WHERE s.to_version IS NULL;

CREATE VIRTUAL TABLE experience_words USING fts5 (
    words, content = 'experiences_now', content_rowid = 'number',
    tokenize = 'unicode61 remove_diacritics 2'
);
CREATE TRIGGER words_of_a_state AFTER INSERT ON experience_states WHEN NEW.to_version IS NULL BEGIN
    INSERT INTO experience_words (rowid, words)
    SELECT number, words FROM experiences_now WHERE experience_id = NEW.experience_id;
END;
CREATE TRIGGER words_before BEFORE UPDATE OF to_version, text ON experience_states WHEN OLD.to_version IS NULL BEGIN
    INSERT INTO experience_words (experience_words, rowid, words)
    SELECT 'delete', number, words FROM experiences_now WHERE experience_id = OLD.experience_id;
END;
CREATE TRIGGER words_after AFTER UPDATE OF to_version, text ON experience_states WHEN NEW.to_version IS NULL BEGIN
    INSERT INTO experience_words (rowid, words)
    SELECT number, words FROM experiences_now WHERE experience_id = NEW.experience_id;
END;
CREATE TRIGGER words_gone BEFORE DELETE ON experience_states WHEN OLD.to_version IS NULL BEGIN
    INSERT INTO experience_words (experience_words, rowid, words)
    SELECT 'delete', number, words FROM experiences_now WHERE experience_id = OLD.experience_id;
END;
INSERT INTO experience_words (experience_words) VALUES ('rebuild');
"""


@MIGRATIONS()
def m004_search(db: Database) -> None:
    for statement in statements(SCHEMA):
        db.execute(statement)
