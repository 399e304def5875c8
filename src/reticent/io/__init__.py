"""Files, JSON, YAML and arrays, in and out, each reader with its limits. What the data mean does not belong here."""
