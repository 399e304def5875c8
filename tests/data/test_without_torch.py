"""Data sets and ledgers are read where torch is not installed."""

from __future__ import annotations

import subprocess
import sys


def test_data_and_ledger_import_no_torch():
    code = (
        "import sys\n"
        "import reticent.data, reticent.records.ledger\n"
        "reticent.data.load('digits')\n"
        "sys.exit('torch' in sys.modules or 'opacus' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
