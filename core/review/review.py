"""All that reviewers do in one workspace."""

from __future__ import annotations

from core.review.bulk import Bulk
from core.review.publishing import Publishing
from core.roles import Role


class Review(Bulk, Publishing):
    """Claims, decisions and versions of one workspace."""

    def as_(self, role: Role) -> Review:
        """The same for somebody who may do less: what the role may not do raises TrustError and changes nothing."""
        return Review(self._store, role)
