"""The public form of a ledger: nothing that depends on private records except through the mechanism.

| what the run knows | what anybody may see |
|---|---|
| digests of the records, of a table and of its schema | commitments under a salt that stays with the issuer |
| number of records | only where the training used it as public; the warning ``size-treated-as-public`` says so |
| names of files and columns, notes, number of test records | of a data set that is published; of others by consent |
| accuracy on test records, and their largest class | two digits; of a data set that is published, else by consent |
| test loss, diagnostics of the training records, secret seeds | nothing |
| a setting that this version does not know | nothing |
| what a fact states that this version does not know | that it was found |

The public form of a public ledger is itself, so ``verify`` finds whatever has no place there.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from reticent.facts.base import Seen, all_facts, section
from reticent.facts.draws import size_is_secret
from reticent.facts.steps import Randomness
from reticent.records.parts import DataRecord, PublicData, Utility

if TYPE_CHECKING:
    from reticent.records.ledger import RunLedger

OWN = "own"
"""The name of a data set that the user brings, in a configuration."""

SETTINGS = frozenset(
    (
        *("model", "final_model", "average_last", "augmentation", "device", "randomness", "trace", "spread"),
        *("noise_multiplier", "target", "max_grad_norm", "clipping", "divisor", "records_per_user", "schedule"),
        *("sampler", "sample_rate", "batch_size", "physical_batch_size", "epochs", "steps"),
        *("optimiser", "learning_rate", "learning_rate_schedule", "momentum", "weight_decay"),
    )
)
"""Settings that do not depend on the records: they are published as they are."""

NAMES, ACCURACY = "names", "accuracy"
"""What an issuer can consent to publish of records that are not public."""

_OF_DATA = ("name", "train_fraction", "split_seed", "features", "normalise_features")


def published(ledger: RunLedger, consents: Collection[str] = ()) -> RunLedger:
    """The ledger as anybody may see it, sealed anew. Of a loop of somebody else only diagnostics are private.

    Args:
        ledger: of a run; a public one loses what has no place there.
        consents: which of ``names`` and ``accuracy`` the issuer gives.
    """
    data, seeds = ledger.data, ledger.environment.seeds
    facts = {key: value if key in all_facts() else Seen.FOUND for key, value in ledger.facts.items()}
    shown: dict[str, Any] = {"diagnostics": None, "facts": facts}
    if data is not None and seeds is not None:
        whole = _is_public(ledger)
        named = NAMES in consents or whole
        secret = ledger.environment.randomness is Randomness.REPRODUCIBLE
        hidden = size_is_secret(ledger.asked)
        fewer = {"sampling": None, "noise": None} | ({"initialisation": None} if secret else {})
        shown |= {
            "data": _data(data, named=named, hidden=hidden, whole=whole),
            "config": _config(ledger.asked, data, named=named, hidden=hidden, secret=secret),
            "environment": ledger.environment.model_copy(update={"seeds": seeds.model_copy(update=fewer)}),
            "utility": _utility(ledger.utility, shown=ACCURACY in consents or whole),
        }
    return ledger.model_copy(update=shown).sealed()


def _is_public(ledger: RunLedger) -> bool:
    """Whether the records are those of a data set that anybody can load by the name in the configuration."""
    name = section(ledger.asked, "data").get("name")
    return isinstance(name, str) and name != OWN and ledger.data is not None and name == ledger.data.name


def _data(data: PublicData | DataRecord, *, named: bool, hidden: bool, whole: bool) -> PublicData:
    return PublicData(
        name=data.name if named else None,
        source=data.source if named else None,
        commitment=data.committed("training-data") if isinstance(data, DataRecord) else data.commitment,
        dataset_size=None if hidden else data.dataset_size,
        test_size=data.test_size if whole else None,
        feature_shape=data.feature_shape,
        classes=data.classes,
        notes=data.notes if named else (),
    )


def _config(
    asked: dict[str, Any], data: PublicData | DataRecord, *, named: bool, hidden: bool, secret: bool
) -> dict[str, Any]:
    found = {name: asked[name] for name in asked if name in SETTINGS}
    if "seed" in asked and not secret:
        found["seed"] = asked["seed"]
    if isinstance(asked.get("data"), dict):
        found["data"] = _asked_data(asked["data"], data, named=named, hidden=hidden)
    sensitive = asked.get("sensitive")
    if "sensitive" in asked:
        kept = ("scope", "records", "budget", "every", *(("group",) if named else ()))
        found["sensitive"] = {k: sensitive[k] for k in kept if k in sensitive} if isinstance(sensitive, dict) else None
    return found


def _asked_data(asked: dict[str, Any], data: PublicData | DataRecord, *, named: bool, hidden: bool) -> dict[str, Any]:
    kept = (*_OF_DATA, *(() if hidden else ("train_size",)))
    found = {name: asked[name] for name in kept if name in asked}
    table = asked.get("table")
    if isinstance(table, dict):
        found["table"] = _table(table, data, named=named)
    return found


def _table(table: dict[str, Any], data: PublicData | DataRecord, *, named: bool) -> dict[str, Any]:
    """Commitments instead of digests; whether columns were read off the records, and which only by consent."""
    found: dict[str, Any] = {}
    for name in ("file", "schema"):
        digest, shown = table.get(f"{name}_sha256"), table.get(f"{name}_commitment")
        if isinstance(data, DataRecord) and isinstance(digest, str):
            shown = data.committed(f"table-{name}", digest)
        found[f"{name}_commitment"] = shown
    derived = table.get("derived")
    found["derived"] = derived if named else bool(derived)
    return found | ({"file": table.get("file")} if named else {})


def _utility(utility: Utility, *, shown: bool) -> Utility:
    """Two digits: the hundredths in which the share of right answers lies, and that of the largest class."""
    found = (utility.test_accuracy, utility.largest_class) if shown else (None, None)
    accuracy, largest = (None if share is None else round(share, 2) for share in found)
    return Utility(test_accuracy=accuracy, test_loss=None, largest_class=largest)
