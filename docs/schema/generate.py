"""Write the published JSON Schemas from the code: ``python docs/schema/generate.py``."""

import json
from pathlib import Path

from reticent import verbs
from reticent.verbs.reading import documents

HERE = Path(__file__).parent

requests = [getattr(verbs, name) for name in verbs.__all__ if hasattr(getattr(verbs, name), "verb")]
schemas = {name: kind.model_json_schema(by_alias=True) for name, kind in documents().items()}
schemas["reticent.request/1"] = {"title": "What a verb is asked", "oneOf": [kind.schema() for kind in requests]}
for name, schema in schemas.items():
    file = name.removeprefix("reticent.").replace("/", "-")
    (HERE / f"{file}.schema.json").write_text(json.dumps(schema, indent=1) + "\n")
