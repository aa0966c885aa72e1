"""Runs code that a task or an agent brings, confined, or refuses (`core.sandbox.confined`).

This file imports nothing: `child` and what it needs are loaded by every program that is run.
"""

READY = b"ready"
"""What the process says when it is confined, and before it runs anything."""
