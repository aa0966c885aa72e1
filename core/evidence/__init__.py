"""Evidence: counted contrasts between the winners and losers of groups (DESIGN 2.5). No model needed."""

from core.evidence.contrast import Contrast, contrast, contrast_table, describe_group, sentence_of
from core.evidence.features import Feature, answers_of, features_of, masked_words
from core.evidence.table import Table, tabulate
from core.evidence.tool_features import error_signature

__all__ = [
    "Contrast",
    "Feature",
    "Table",
    "answers_of",
    "contrast",
    "contrast_table",
    "describe_group",
    "error_signature",
    "features_of",
    "masked_words",
    "sentence_of",
    "tabulate",
]
