"""All that reviewers do in one workspace."""

from __future__ import annotations

from core.review.deciding import Deciding
from core.review.publishing import Publishing


class Review(Deciding, Publishing):
    """Claims, decisions and versions of one workspace."""
