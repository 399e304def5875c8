"""Write the published JSON Schemas from the code: ``python docs/schema/generate.py``."""

import json
from pathlib import Path

from reticent.certificates.schema import Certificate
from reticent.risk.report import RiskDocument

HERE = Path(__file__).parent

for name, model in (("certificate-4", Certificate), ("risk-2", RiskDocument)):
    text = json.dumps(model.model_json_schema(by_alias=True), indent=1) + "\n"
    (HERE / f"{name}.schema.json").write_text(text)
