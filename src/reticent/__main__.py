"""``python -m reticent`` is ``reticent``."""

from reticent.cli import main

main()
