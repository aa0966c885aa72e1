"""The schema, one function a change, in order; a copy of the file is kept before each upgrade."""

from core.migrations.m001_first import m001_first
from core.migrations.m002_engine import m002_engine
from core.migrations.m003_review import m003_review
from core.migrations.m004_search import m004_search
from core.migrations.m005_credit import m005_credit
from core.migrations.m006_imports import m006_imports
from core.migrations.m007_care import m007_care
from core.migrations.m008_whole_log import m008_whole_log
from core.migrations.m010_tool_use import m010_tool_use
from core.migrations.m012_events_once import m012_events_once
from core.migrations.m013_evaluations import m013_evaluations
from core.migrations.m014_priors import m014_priors
from core.migrations.m015_recorded import m015_recorded
from core.migrations.m016_ungraded import m016_ungraded
from core.migrations.m017_rewarded import m017_rewarded
from core.migrations.m018_no_right_or_wrong import m018_no_right_or_wrong
from core.migrations.m019_aside_of_file import m019_aside_of_file
from core.migrations.registry import MIGRATIONS

__all__ = [
    "MIGRATIONS",
    "m001_first",
    "m002_engine",
    "m003_review",
    "m004_search",
    "m005_credit",
    "m006_imports",
    "m007_care",
    "m008_whole_log",
    "m010_tool_use",
    "m012_events_once",
    "m013_evaluations",
    "m014_priors",
    "m015_recorded",
    "m016_ungraded",
    "m017_rewarded",
    "m018_no_right_or_wrong",
    "m019_aside_of_file",
]
