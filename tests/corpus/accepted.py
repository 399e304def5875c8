"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

_ASKED = "the verb is a request: --dry-run prints it, --request takes it, and its help follows from its fields"
_NAMED = "every document names its schema, so that it can be read again"
ACCEPTED: dict[str, str] = {
    **{f"surface/help; {verb}/out*": _ASKED for verb in ("audit", "audit-loop", "gate", "keygen", "plan-audit")},
    **{f"surface/help; register{verb}/out*": _ASKED for verb in ("", " add", " open", " show")},
    "surface/help; verify/out*": "the default of --tolerance is said, as gate says it",
    "doors/refused: register/out*": _ASKED,
    "surface/names; reticent/gate": "rt.gate, which the command line had alone",
    "surface/names; verbs/*": "requests, answers and documents of gate, register, keygen and audits; read",
    "doors/keygen key --json/out/schema": _NAMED,
    "certificates/*/verify, json/out/schema": _NAMED,
    "certificates/*/gate, json/out/schema": _NAMED,
    "certificates/*/register/*/out/schema": _NAMED,
    "doors/plan-audit *--json/out/schema": "reticent.plan/1 was the name of two documents; train --dry-run keeps it",
}
