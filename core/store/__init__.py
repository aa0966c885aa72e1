"""Everything on disk: one SQLite file per workspace. Only this package and `core.migrations` speak SQL."""

from core.store.store import Store

__all__ = ["Store"]
