"""Evaluation: arms on the same tasks, compared task by task from stored scores (DESIGN 2.10)."""

from core.evaluation.analysis import Sampled, Told, compare, results
from core.evaluation.arms import library_of, made_of, parse_arm, reach_of, read_pack, read_text
from core.evaluation.credit import credit_of, credit_of_trial, tried_as_it_is, worse
from core.evaluation.page import as_html

__all__ = [
    "Sampled",
    "Told",
    "as_html",
    "compare",
    "credit_of",
    "credit_of_trial",
    "library_of",
    "made_of",
    "parse_arm",
    "reach_of",
    "read_pack",
    "read_text",
    "results",
    "tried_as_it_is",
    "worse",
]
