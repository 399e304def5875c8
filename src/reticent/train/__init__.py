"""DP-SGD runs and the ledger of what really ran."""
