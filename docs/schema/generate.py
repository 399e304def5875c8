"""Write the published JSON Schemas from the code: ``python docs/schema/generate.py``."""

import json
from pathlib import Path

from reticent import verbs
from reticent.adversaries.report import RiskDocument
from reticent.certificates.schema import Certificate

HERE = Path(__file__).parent

requests = [getattr(verbs, name) for name in verbs.__all__ if hasattr(getattr(verbs, name), "verb")]
documents = {
    "certificate-4": Certificate.model_json_schema(by_alias=True),
    "risk-2": RiskDocument.model_json_schema(by_alias=True),
    "request-1": {"title": "What a verb is asked", "oneOf": [kind.schema() for kind in requests]},
}
for name, document in documents.items():
    (HERE / f"{name}.schema.json").write_text(json.dumps(document, indent=1) + "\n")
