"""What the embedded model is, in numbers (DESIGN 5)."""

from __future__ import annotations

MODEL_NAME = "SmolLM2-135M-Instruct-Q4_1"
SLOTS = 8
"""Replies that are made at once; a request may ask for at most this many (`n`)."""
CONTEXT_LENGTH = 1024
"""Tokens of prompt and reply together, for each slot."""
SAMPLING_EXTRA = {"top_k": 40, "min_p": 0.05, "cache_prompt": True}
"""Fields of the request body beside temperature and top_p that were measured to work."""
