"""Where work is done. Here: in this process; a distributed engine can take its place (`core.ports.Executor`)."""

from core.executor.local import LocalExecutor
from core.executor.together import all_home

__all__ = ["LocalExecutor", "all_home"]
