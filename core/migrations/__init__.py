"""The schema, one function a change, in order; a copy of the file is kept before each upgrade."""

from core.migrations.m001_first import m001_first
from core.migrations.m002_engine import m002_engine
from core.migrations.registry import MIGRATIONS

__all__ = ["MIGRATIONS", "m001_first", "m002_engine"]
