"""The profile for `sandbox-exec` (macOS). Written from its documentation; it has not been tried on a Mac yet.

Should the profile not do what it is meant to, `core.sandbox.child` finds out by trying, and nothing runs.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable

TOOL = "/usr/bin/sandbox-exec"

_SYSTEM = ("/usr/lib", "/System/Library", "/System/Volumes/Preboot/Cryptexes", "/private/var/db/dyld")


def profile(folder: str, readable: Iterable[str]) -> str:
    """Everything is refused but what Python needs to start, and the folder."""
    places = "\n".join(f"  (subpath {json.dumps(path)})" for path in (*readable, *_SYSTEM, sys.base_prefix))
    return f"""(version 1)
(deny default)
(deny network*)
(deny process-fork)
(allow process-exec (literal {json.dumps(sys.executable)}) (subpath {json.dumps(sys.base_prefix)}))
(allow sysctl-read)
(allow signal (target self))
(allow file-read-metadata)
(allow file-read-data (literal "/"))
(allow file-read*
{places}
  (literal {json.dumps(sys.executable)})
  (literal "/dev/null") (literal "/dev/zero") (literal "/dev/random") (literal "/dev/urandom"))
(allow file-write-data (literal "/dev/null"))
(allow file-read* file-write-create file-write-data file-write-unlink (subpath {json.dumps(folder)}))
"""
