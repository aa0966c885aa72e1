"""Evidence: counted contrasts between the winners and losers of groups (DESIGN 2.5). No model needed."""

from core.evidence.contrast import Contrast, contrast, sentence_of
from core.evidence.counts import Counts
from core.evidence.features import Feature, answers_of
from core.evidence.matter import Matter
from core.evidence.recovery import Recovery, error_signature, recoveries
from core.evidence.seen import Seen, describe_group
from core.evidence.table import Table

__all__ = [
    "Contrast",
    "Counts",
    "Feature",
    "Matter",
    "Recovery",
    "Seen",
    "Table",
    "answers_of",
    "contrast",
    "describe_group",
    "error_signature",
    "recoveries",
    "sentence_of",
]
