"""Model access: any OpenAI-compatible endpoint, with retries, budget, limits and cache."""

from core.llm.access import Access
from core.llm.budget import Budget
from core.llm.chat import OpenAIChat
from core.llm.connection import Address, Connect, fixed_address
from core.llm.ledger import Entry, Kept, Ledger
from core.llm.line import Terms
from core.llm.probe import Probe, probe

__all__ = [
    "Access",
    "Address",
    "Budget",
    "Connect",
    "Entry",
    "Kept",
    "Ledger",
    "OpenAIChat",
    "Probe",
    "Terms",
    "fixed_address",
    "probe",
]
