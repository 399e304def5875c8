"""What ``plot`` draws: curves, points and bands, in the colours of the attackers."""

from __future__ import annotations

import numpy as np
import pytest

import reticent as rt
from reticent.adversaries import ADVERSARIES, Relaxed, style_of
from reticent.errors import ParameterError
from reticent.styles import SPARE

pytestmark = pytest.mark.usefixtures("quick_documents")

RUN = rt.dpsgd(noise_multiplier=2.0, batch_size=10, dataset_size=1000, epochs=1)
PLAIN = rt.Gaussian(2.0, 3)  # where what is tested does not depend on the release: no composition


def test_plots_draw_on_given_axes_in_the_colours_of_the_attackers():
    from matplotlib.figure import Figure

    axes = Figure().subplots(1, 3)
    found = rt.assess(RUN, "relaxed")
    drawn = found.plot(axes)
    assert drawn == list(axes)
    for one in drawn:
        lines = {line.get_label(): line for line in one.get_lines()}
        assert lines["relaxed (add-remove, conditional)"].get_color() == Relaxed.style.colour
    fpr, fnr = drawn[0].get_lines()[2].get_data()
    assert np.allclose(fnr, found["worst-case"].curve.beta(fpr))
    epsilon, delta = drawn[2].get_lines()[1].get_data()
    assert np.allclose(delta[0], found["worst-case"].curve.delta(np.zeros(1)))
    assert epsilon[0] == 0.0
    with pytest.raises(ParameterError, match="log-log"):
        found.plot(axes, panels="loglog")
    with pytest.raises(ParameterError, match="as many as panels"):
        found.plot(axes, panels=["linear"])


def test_attackers_with_one_curve_share_one_line_and_its_label():
    from matplotlib.figure import Figure

    drawn = rt.assess(PLAIN, ["relaxed", "membership"]).plot(Figure().subplots(1, 3))
    for one in drawn:
        labels = [line.get_label() for line in one.get_lines() if line.get_label() != "blind guess"]
        assert labels == ["relaxed (add-remove, conditional)", "membership (add-remove); worst-case (add-remove)"]


def test_a_certificate_draws_the_points_of_its_page():
    from matplotlib.figure import Figure

    found = rt.certify(PLAIN, adversary=["relaxed"], created="2026-01-01")
    errors, accusations = found.plot(Figure().subplots(1, 2))
    for record in found.certificate.assessments:
        stated = "" if record.claim == "bound" else f", {record.claim}"
        label = f"{record.adversary} ({record.neighbouring}{stated})"
        (line,) = (each for each in errors.get_lines() if each.get_label() == label)
        assert list(line.get_ydata()) == [1.0, *record.curve.fnr]
        (line,) = (each for each in accusations.get_lines() if each.get_label() == label)
        assert list(line.get_xdata()) == record.curve.fpr
        assert list(line.get_ydata()) == record.curve.tpr
    assert len(found.plot()) == 2
    with pytest.raises(ParameterError, match="as many as panels"):
        found.plot([errors])


def test_styles_tell_all_attackers_apart():
    styles = [*map(style_of, ADVERSARIES), *SPARE]
    assert len({s.colour for s in styles}) == len({s.dashes for s in styles}) == len(styles)
    assert style_of("nobody") is SPARE[0]
    assert style_of("worst-case").dash == ""


def test_an_audit_draws_its_band_beside_the_claim():
    draw = np.random.default_rng(1)
    found = rt.audit(draw.normal(1, 1, 200), draw.normal(0, 1, 200), claim=rt.Gaussian(1.0))
    linear, _ = found.plot()
    labels = linear.get_legend_handles_labels()[1]
    assert labels[1:] == ["band at confidence 0.95", "measured", "claim: worst-case"]
    claimed = next(line for line in linear.get_lines() if line.get_label() == "claim: worst-case")
    fpr, fnr = claimed.get_data()
    assert np.max(np.abs(fnr - found.claims["worst-case"].beta(np.asarray(fpr)))) == 0.0
    with pytest.raises(ParameterError, match="axes"):
        found.plot([linear])
