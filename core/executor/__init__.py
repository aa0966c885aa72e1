"""Where work is done. Here: in this process; a distributed engine can take its place (`core.ports.Executor`)."""

from core.executor.local import LocalExecutor

__all__ = ["LocalExecutor"]
