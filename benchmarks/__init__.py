"""Speed and detection tables: run one with ``python -m benchmarks.NAME [--json]``. Never asserted in tests."""
