"""Differences from the stored corpus that are meant: a pattern of ``section/case/keys`` and the reason."""

ACCEPTED: dict[str, str] = {
    "*test_seeds?a large seed before each step?*": "its lower half is not looked at: the noise is void as it repeats",
    "certificates/*/pages/*": "two sentences more: what holds for data that the model made",
    "*dcgan_unseeded?/0/faults": "its generator takes its step within no_records: other-model-trained is gone",
    "surface/help; * matrix/out": "two strategies more: bisr, lambda-cgd",
    "doors/refused: risk matrix *strategy x/err": "two strategies more: bisr, lambda-cgd",
    "*test_moves?another model, *": "new: a model that is trained beside, named and not named",
}
