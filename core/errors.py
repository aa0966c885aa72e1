"""Every error that Winnow raises on purpose. `str(e)` is one plain sentence, fit to be shown.

WinnowError
+ InputError               something handed in is wrong; nothing was changed
  - NotFoundError          an id or a name that is not in this workspace
  - TrustError             the local configuration does not allow it
  - PackError              a pack that cannot be trusted or read
  - AlikeError             the arms of an evaluation would all send the same
  - SandboxError           code that cannot be confined here, or may not run; it did not
+ ModelError              a model call gave nothing usable; trying again may help
  - ModelUnavailableError network, time-out, rate limit, bad key, model file not to be had
  - BudgetError           the call would pass the cap of its run
  - AnswerError           not the JSON that was asked for (keeps the raw reply)
+ ApplyError              operations do not fit this version; nothing was applied
  - UnknownExperienceError
  - StaleVersionError     the library moved on since (expected, found)
+ BusyError               another process holds what this one needs
+ StoppedError            somebody paused or cancelled the work; what was finished is kept
"""

from __future__ import annotations


class WinnowError(Exception):
    """Base of all: the message is one plain sentence for the user."""


class InputError(WinnowError):
    """Something handed in is wrong; nothing was changed."""


class NotFoundError(InputError):
    """An id or a name that is not in this workspace."""


class TrustError(InputError):
    """The local configuration does not allow this."""


class PackError(InputError):
    """A pack that cannot be trusted or read."""


class UnknownFormError(PackError):
    """A file of lessons is in none of the forms that are recognised."""


class AlikeError(InputError):
    """The arms of an evaluation would all send the same, so that there is nothing to compare."""


class SandboxError(InputError):
    """Code that cannot be confined on this machine, or that the local configuration does not allow. It did not run."""


class ModelError(WinnowError):
    """A model call gave nothing usable; trying again may help."""


class ModelUnavailableError(ModelError):
    """Network, time-out, rate limit, bad key, or a model file that is not to be had."""


class BudgetError(ModelError):
    """The call would pass the cap of its run; it was not made."""


class AnswerError(ModelError):
    """The reply is not the JSON that was asked for."""

    def __init__(self, message: str, raw: str) -> None:
        super().__init__(message)
        self.raw = raw
        """The reply as it came, kept for the quarantine."""


class ApplyError(WinnowError):
    """Operations do not fit this version of the library; nothing was applied."""


class UnknownExperienceError(ApplyError):
    """An operation names an experience that is not live in this version."""


class StaleVersionError(ApplyError):
    """The library moved on since the change was based on it."""

    def __init__(self, expected: int, found: int, moved: str = "") -> None:
        super().__init__(
            f"The library is at version {found}, but this change was based on version {expected}"
            f"{': ' + moved if moved else ''}. Look at the new version, then try again."
        )
        self.expected = expected
        self.found = found


class BusyError(WinnowError):
    """Another process holds what this one needs."""


class StoppedError(WinnowError):
    """Somebody paused or cancelled the work; what was finished is kept."""
