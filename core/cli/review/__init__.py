"""`winnow review`: each module adds its commands to the group."""

from core.cli.review import claiming, deciding, quarantine
from core.cli.review.looking import review

__all__ = ["claiming", "deciding", "quarantine", "review"]
