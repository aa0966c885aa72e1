"""Model access: any OpenAI-compatible endpoint, with retries, budget and cache."""

from core.llm.budget import Budget
from core.llm.cache_key import CallCache, cache_key
from core.llm.client import Address, Connect, OpenAIChat, fixed_address
from core.llm.probe import Probe, probe

__all__ = [
    "Address",
    "Budget",
    "CallCache",
    "Connect",
    "OpenAIChat",
    "Probe",
    "cache_key",
    "fixed_address",
    "probe",
]
