"""`winnow sandbox`."""

from __future__ import annotations

from core.cli.desk import Desk, table, verb


@verb(None, "sandbox")
def sandbox(desk: Desk) -> None:
    """Say what is confined when code runs here and what the trust file allows, and try to break out."""
    from core.sandbox.confined import Confined, cannot
    from core.sandbox.self_test import escapes
    from core.trust import load_trust, trust_path

    trust, refusal = load_trust(), cannot()
    tried = [] if refusal else escapes()
    result = {
        "confines": Confined().confines,
        "can_confine": not refusal,
        "trust_file": str(trust_path()),
        "allows": trust.model_dump(mode="json", exclude={"key_variables", "key_hosts"}),
        "tried": [{"what": e.what, "held": e.held, "came": e.came} for e in tried],
    }
    rows = [(e.what, "held" if e.held else "NOT HELD", e.came) for e in tried]
    desk.answer(
        result,
        Confined().confines,
        "",
        f"The trust file {trust_path()} allows:",
        f"  code of             {', '.join(trust.run_code) or 'nobody'}",
        f"  functions           {', '.join(trust.functions) or 'none'}",
        f"  servers of tools    {', '.join(trust.mcp) or 'none'}",
        *(["", *table(rows, ("tried", "outcome", "what came"))] if tried else []),
        set_aside=bool(refusal) or not all(e.held for e in tried),
    )
