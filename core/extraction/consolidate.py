"""Stage 3: the drafts of one batch, of whichever extractor, reconciled (DESIGN 2.6).

1. Rules 1 to 3 need no model: `core.extraction.reconcile`.
2. A text of more than `MAX_WORDS` words gets one compression call: `core.extraction.compress`.
3. One call for all near-duplicates of the batch, none where there are none: `core.extraction.near_duplicates`.

Nothing vanishes: operations in = drafts + joined + superseded + quarantined.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from core.experience import Experience
from core.extraction.compress import compress, note_too_long
from core.extraction.draft import Draft, Superseded
from core.extraction.near_duplicates import Near, merge_near_duplicates, pairwise
from core.extraction.reconcile import Consolidated, join_equals, reconcile, reconciled
from core.extraction.wording import share_words
from core.ports import ChatModel

__all__ = ["Consolidated", "Near", "Superseded", "consolidate", "reconcile"]


async def consolidate(
    drafts: Sequence[Draft],
    library: Sequence[Experience],
    model: ChatModel | None = None,
    *,
    strengths: Mapping[str, float] | None = None,
    run_id: str | None = None,
    seed: int = 0,
    near: Near | None = None,
) -> Consolidated:
    """All rules; without a model, rules 1 to 3, and what is too long is noted.

    A reply that failed leaves the drafts as they are, and a note says so.

    Args:
        drafts: see `reconcile`.
        library: see `reconcile`.
        model: who compresses and consolidates.
        strengths: see `reconcile`.
        run_id: see `reconcile`.
        seed: of the sampling.
        near: finds what may say the same; it only decides what the model is asked about. None compares words.

    Raises:
        ModelUnavailableError, BudgetError, InputError, StoppedError: see `asking.ask`.
    """
    table = reconciled(drafts, library, strengths or {}, run_id)
    if model is not None:
        await compress(table, model, seed)
        join_equals(table)
    note_too_long(table)
    if model is not None:
        await merge_near_duplicates(table, model, seed, run_id, near or pairwise(share_words))
        join_equals(table)
    return table.result()
