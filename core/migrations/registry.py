"""The list that numbered migrations register with."""

from __future__ import annotations

from sqlite_utils.migrations import Migrations

MIGRATIONS = Migrations("winnow")
