"""reticent: how much can this attacker learn about one person from the model we release?"""

__version__ = "0.1.0"
