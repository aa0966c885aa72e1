"""One tool-using attempt at a task: a frozen model, its tools, and every step written down (DESIGN section 4)."""

from __future__ import annotations

from core.agent.agent import Agent, Client, ClientFor

__all__ = ["Agent", "Client", "ClientFor"]
