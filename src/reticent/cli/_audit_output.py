"""How audits look in a terminal, and strict JSON."""

from __future__ import annotations

from reticent.auditing import AuditReport
from reticent.cli._tables import print_table, say
from reticent.kernel.mechanisms import Mechanism
from reticent.kernel.text import by_whom, digits, printable
from reticent.mechanisms.short import in_short
from reticent.verbs.sealing import SealedPlan


def print_audit(report: AuditReport, claimed: Mechanism | None, plan: SealedPlan | None = None) -> None:
    """What was audited and for which release, the verdicts, bounds and rates, then what a reader must know."""
    members, others = len(report.scores.member), len(report.scores.non_member)
    for key, lead in (("subject", "This audits "), ("release", "The release: ")):
        if key in report.scores.meta:
            say(f"{lead}{printable(report.scores.meta[key], 400)}.")
    title = f"{printable(report.scores.meta.get('attack', 'scores'), 100)}: {members} members, {others} non-members"
    say(f"{title}; design: {report.scores.design}")
    if claimed is not None:
        say(f"release that is claimed: {in_short(claimed)}")
    if plan is not None:
        say(f"sealed plan: {plan.digest}")
    if not report.verdicts:
        say("no claim was tested: describe the release, or give a curve with --against-mu")
    for name, verdict in report.verdicts.items():
        say(f"{name}: {verdict.finding.upper()}. {verdict.reason}")
    for hint in report.hints:
        say(f"! {hint}", indent=2)
    _print_bounds(report)
    _print_rates(report)
    say(*by_whom((bound.title, bound.notes) for bound in report.bounds))


def _print_bounds(report: AuditReport) -> None:
    names = [("lower bound", [bound.title for bound in report.bounds])]
    rules = dict.fromkeys(bound.rule for bound in report.bounds)
    if len(rules) > 1:
        names.append(("thresholds", [bound.rule for bound in report.bounds]))
    numbers = [
        ("at least", [digits(bound.value, up=False) for bound in report.bounds]),
        ("perfect\nleakage", [digits(bound.ceiling, up=True) for bound in report.bounds]),
    ]
    which = f", thresholds {next(iter(rules))}" if len(rules) == 1 else ""
    print_table(f"at confidence {report.confidence:g}{which}", names, numbers)


def _print_rates(report: AuditReport) -> None:
    rates = {"AUC": report.auc, "AUC, asymptotic": report.auc_asymptotic}
    rates |= {f"TPR at FPR {fpr:g}": interval for fpr, interval in report.tpr.items()}
    found = {name: interval for name, interval in rates.items() if interval is not None}
    numbers = [
        ("estimate", [f"{interval.value:.4g}" for interval in found.values()]),
        ("from", [digits(interval.lower, up=False) for interval in found.values()]),
        ("to", [digits(interval.upper, up=True) for interval in found.values()]),
    ]
    print_table(f"the attack, with intervals at confidence {report.confidence:g}", [("rate", list(found))], numbers)
    methods: dict[str, list[str]] = {}
    for name, interval in found.items():
        methods.setdefault(interval.method, []).append(name)
    say("intervals: " + "; ".join(f"{method} ({', '.join(who)})" for method, who in methods.items()))
