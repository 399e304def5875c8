"""What ``plot`` draws: curves, points and bands, in the colours of the attackers."""

from __future__ import annotations

import re

import numpy as np
import pytest

import reticent as rt
from reticent.adversaries import Relaxed
from reticent.kernel.adversaries import ADVERSARIES, style_of
from reticent.kernel.errors import ParameterError
from reticent.kernel.styles import SPARE

pytestmark = pytest.mark.usefixtures("quick_documents")

RUN = rt.dpsgd(noise_multiplier=2.0, batch_size=10, dataset_size=1000, epochs=1)
PLAIN = rt.Gaussian(2.0, 3)  # where what is tested does not depend on the release: no composition
FULL = rt.DPSGD(2.0, 1.0, 1)  # the same in any number of dimensions


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
        assert labels == [
            "relaxed (add-remove, conditional)",
            "membership (add-remove, bound)\nworst-case (add-remove, bound)",
        ]


def test_a_certificate_draws_the_points_of_its_page():
    from matplotlib.figure import Figure

    found = rt.certify(PLAIN, adversary=["relaxed"], created="2026-01-01")
    errors, accusations = found.plot(Figure().subplots(1, 2))
    for record in found.certificate.assessments:
        label = f"{record.adversary} ({record.neighbouring}, {record.claim})"
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
    with pytest.raises(ParameterError, match="ax"):
        found.plot([linear])


PAPER = {
    "figure.figsize": (3.25, 2.6),
    "font.size": 8.0,
    "lines.linewidth": 0.7,
    "axes.linewidth": 0.3,
    "legend.fontsize": 6.0,
    "legend.frameon": False,
    "text.color": "navy",
}


def drawn_figure(axes):
    """The figure, as it is when it was drawn."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(axes[0].figure).draw()
    return axes[0].figure


def legends(figure):
    return [*figure.legends, *(one.get_legend() for one in figure.axes if one.get_legend() is not None)]


@pytest.fixture
def pyplot():
    plt = pytest.importorskip("matplotlib.pyplot")
    with plt.rc_context():
        yield plt
    plt.close("all")


def test_a_style_sheet_decides_on_sizes_widths_and_fonts(pyplot):
    pyplot.rcParams.update(PAPER)
    axes = rt.assess(RUN, "relaxed").plot(panels="log-log")
    figure = drawn_figure(axes)
    assert tuple(figure.get_size_inches()) == PAPER["figure.figsize"]
    assert [line.get_linewidth() for line in axes[0].get_lines()] == [0.3, 0.7, 0.7]
    (legend,) = legends(figure)
    assert {text.get_fontsize() for text in legend.get_texts()} == {6.0}
    assert not legend.get_frame_on()
    assert axes[0].xaxis.label.get_fontsize() == 8.0
    measured = rt.audit([3.0, 2.0, 2.5] * 40, [0.0, 1.0, 0.5] * 40, claim=rt.Gaussian(1.0)).plot()[0]
    assert {line.get_linewidth() for line in measured.get_lines()} == {0.3, 0.7}
    assert measured.get_lines()[1].get_color() == "navy"


@pytest.mark.parametrize(
    ("width", "panels", "layout"),
    [(3.25, 1, "constrained"), (6.75, 1, "none"), (6.75, 3, "constrained"), (13.0, 3, "none")],
)
def test_no_legend_covers_axes(pyplot, width, panels, layout):
    found = rt.assess(FULL, ["relaxed", "mixed", "membership", rt.Relaxed(dimension=30)])
    figure = pyplot.figure(figsize=(width, 3.5), layout=layout)
    axes = np.atleast_1d(figure.subplots(1, panels))
    with pyplot.rc_context({"font.size": 8.0}):
        drawn_figure(found.plot(axes))
    (legend,) = legends(figure)
    box = legend.get_window_extent()
    assert not any(box.padded(-1.0).overlaps(one.get_window_extent()) for one in axes)
    assert box.width <= figure.bbox.width
    if layout == "constrained":
        assert not any(box.overlaps(one.get_tightbbox()) for one in axes)  # nor their labels
        assert box.height + axes[0].get_tightbbox().height <= figure.bbox.height


def test_a_legend_can_be_left_out_and_drawn_again(pyplot):
    found = rt.assess(PLAIN, "relaxed")
    axes = found.plot(legend=False)
    assert legends(axes[0].figure) == []
    found.plot(axes)
    rt.assess(PLAIN, "membership").plot(axes)
    (legend,) = legends(axes[0].figure)
    assert [text.get_text() for text in legend.get_texts()].count("blind guess") == 1
    one, other = pyplot.subplots(1, 2, layout="constrained")[1]
    found.plot(one)
    found.plot(other)
    assert len(legends(one.figure)) == 2


def test_a_relation_is_said_once_where_it_is_that_of_all(pyplot):
    axes = rt.assess(PLAIN, "relaxed").plot(panels="linear")
    (legend,) = legends(axes[0].figure)
    assert legend.get_title().get_text() == "neighbouring: add-remove"
    assert [text.get_text() for text in legend.get_texts()][1:] == ["relaxed (conditional)", "worst-case (bound)"]
    rt.assess(PLAIN, "worst-case", neighbouring="replace").plot(axes, "linear")
    (legend,) = legends(axes[0].figure)
    assert legend.get_title().get_text() == ""
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels[1:] == [
        "relaxed (add-remove, conditional)",
        "worst-case (add-remove, bound)",
        "worst-case (replace, bound)",
    ]


def dashes(axes):
    """The strokes of each curve, as a picture without colour has them."""
    from io import BytesIO

    for line in axes.get_lines():
        line.set_gid(f"curve {line.get_label()}")
    buffer = BytesIO()
    axes.figure.savefig(buffer, format="svg")
    groups = re.findall(r'<g id="curve ([^"]*)">(.*?)</g>', buffer.getvalue().decode(), re.DOTALL)
    found = {label: re.search(r"stroke-dasharray: ([^;\"]*)", body) for label, body in groups}
    return {label: None if dash is None else dash[1] for label, dash in found.items()}


@pytest.mark.parametrize("style", ["attackers", "cycle"])
def test_lines_can_be_told_apart_without_colour(pyplot, style):
    pyplot.rcParams["axes.prop_cycle"] = pyplot.cycler(color=["black"])
    who = ["relaxed", "mixed", rt.Relaxed(dimension=30), rt.Relaxed(dimension=300), rt.Mixed(0.3, 1)]
    found = rt.assess(FULL, who)
    (axes,) = found.plot(panels="linear", style=style)
    patterns = dashes(axes)
    assert len(patterns) == len(set(patterns.values())) == len(found) + 1  # and the blind guess
    colours = {line.get_color() for line in axes.get_lines()[1:]}
    assert colours == {"black"} if style == "cycle" else len(colours) == len(found)


def test_a_cycle_gives_what_it_has(pyplot):
    pyplot.rcParams["axes.prop_cycle"] = pyplot.cycler(color=["red", "blue"], linestyle=["-.", "-"], marker=["s", "o"])
    (axes,) = rt.assess(PLAIN, "relaxed").plot(panels="linear", style="cycle")
    looks = [(line.get_color(), line.get_linestyle(), line.get_marker()) for line in axes.get_lines()[1:]]
    assert looks == [("red", "-.", "s"), ("blue", "-", "o")]
    with pytest.raises(ParameterError, match="attackers, cycle"):
        rt.assess(PLAIN).plot(style="grey")


def test_a_grid_draws_its_numbers_over_what_differs(pyplot):
    grid = rt.assess_each([rt.DPSGD(noise, 1.0, 10) for noise in (2.0, 1.0, 4.0)], ["relaxed", "norm-only"])
    axes = grid.plot()
    assert [one.get_ylabel() for one in axes] == ["advantage", "TPR@0.001", "epsilon@1e-05"]
    assert {one.get_xlabel() for one in axes} == {"noise multiplier"}
    for place, one in enumerate(axes, 4):
        lines = {line.get_label(): line for line in one.get_lines()}
        assert lines.keys() == {
            "relaxed (add-remove, conditional)",
            "norm-only (add-remove, estimate)",
            "worst-case (add-remove, bound)",
        }
        for label, line in lines.items():
            rows = sorted(row for row in grid.rows() if row[1] == label.split(" ")[0])
            assert list(line.get_xdata()) == [1.0, 2.0, 4.0]
            assert list(line.get_ydata()) == [row[place] for row in rows]
    (alone,) = grid.plot(pyplot.subplots()[1])
    assert alone.get_ylabel() == "advantage"
    (chosen,) = grid.plot(panels="epsilon@1e-05", legend=False)
    assert chosen.get_ylabel() == "epsilon@1e-05"
    with pytest.raises(ParameterError, match="did you mean advantage"):
        grid.plot(panels="advantge")
    for other in ([rt.Gaussian(1.0), rt.Laplace(1.0)], [rt.DPSGD(1.0, 0.01, 10), rt.DPSGD(2.0, 0.01, 20)]):
        with pytest.raises(ParameterError, match="differ in one number"):
            rt.assess_each(other).plot()
