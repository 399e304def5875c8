"""Noncentral chi-square in logarithms: tails, density and quantiles that never underflow."""

from reticent.tradeoff._ncx2 import LogTails, log_cdf, log_pdf, log_sf, log_tails, quantile

__all__ = ["LogTails", "log_cdf", "log_pdf", "log_sf", "log_tails", "quantile"]
