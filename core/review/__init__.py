"""A person's decisions on proposals, and publishing what was approved (DESIGN 2.6, 2.7).

    proposed -> approved (with the proposed text or the reviewer's own) | rejected | deferred
    approved = staged -> published

1. Every decision says who made it, when, why, and on which version of the library; all of it is in the log.
2. Every decision can be undone until it is published. What is published stays, and is taken back by a new version:
   `revert` proposes what restores it, a rollback makes the whole library read as it did.
3. A proposal is *stale* when the text, kind or domain of what it changes is another one than in the version that it is
   based on. That is seen by looking, not stored: a rollback makes it fresh again. A stale one is rebased before it can
   be approved.
4. What lost a conflict is *superseded*: out of the queue, but every decision can still be made on it.
5. Reviewers take a proposal under a lease; nobody else decides on it meanwhile, unless they insist.
6. A decision is bound to the revision that was looked at; one on many is previewed first (`weigh`).
7. A reader looks, a reviewer decides, a publisher makes versions and moves labels (`Review.as_`, `core.roles`).
"""

from core.review.bulk import Decision, Seen, Weighed
from core.review.claiming import LEASE_MINUTES, MOST_MINUTES
from core.review.differences import Difference, DomainTokens, differences, library_tokens
from core.review.grounds import Grounds, grounds
from core.review.outdated import outdated, outdated_of, way_out
from core.review.publishing import Preview
from core.review.review import Review
from core.review.staging import UNDECIDED, Standing, stale, standing

__all__ = [
    "LEASE_MINUTES",
    "MOST_MINUTES",
    "UNDECIDED",
    "Decision",
    "Difference",
    "DomainTokens",
    "Grounds",
    "Preview",
    "Review",
    "Seen",
    "Standing",
    "Weighed",
    "differences",
    "grounds",
    "library_tokens",
    "outdated",
    "outdated_of",
    "stale",
    "standing",
    "way_out",
]
