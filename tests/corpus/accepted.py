"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

_TRAITS = (
    *("accountable", "base", "changed", "coordinates", "equivalent", "noise_multiplier", "one_record", "parts"),
    *("records", "releases", "runs", "sample_rate", "sampler", "scaled", "searched", "sentence", "settings"),
    *("singly_sampled", "steps", "sums", "training", "trainings", "weights"),
)

ACCEPTED: dict[str, str] = {
    **{f"surface/names; */*.{name}": "issue 52: what others ask of a mechanism is a trait of it" for name in _TRAITS},
    "surface/names; */*.of_noise": "issue 52: noise that may be left out is said once of both unknowns",
    "surface/names; */MeanRuns.fitted": "issue 52: a mechanism changes its parameters itself",
    "calibrations/selection; */noise_ratio": "issue 52: the noise of each run is a noise multiplier, as the text says",
    "surface/sentences; theorems/KAISSIS2022:Theorem 2": "issue 52: it is mu of the worst case, squared.",
    "surface/sentences; theorems/RETICENT:common-sign": "issue 52: one way in to the unknown sign.",
    "surface/sentences; theorems/RETICENT:laplace-sign": "issue 52: one way in to the unknown sign.",
}
