"""Loops that were once certified falsely: records mixed where nobody looked, and parts that changed on the way."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits, cross_entropy, linear, normalize
from torch.utils.data import (
    DataLoader,
    RandomSampler,
    StackDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    WeightedRandomSampler,
)

import reticent as rt
from reticent import facts
from reticent.facts.steps import Drawn
from reticent.watching.starts import fresh
from tests.watching.loops import BATCH, RECORDS, faults, network, private, records, run, shuffled, trained, watched

DATA = DataLoader(TensorDataset(torch.randn(BATCH, 4), torch.arange(BATCH) % 2), batch_size=BATCH)


def one_step(model, loss, backward=torch.Tensor.backward, call=None):
    """A step that is declared; the faults."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with rt.watch(model, optimizer, DATA) as seen:
        for features, labels in DATA:
            backward(loss((call or model)(features), labels))
            optimizer.step()
            seen.step(noise_multiplier=1.0, batch_size=BATCH)
    return set(seen.ledger.faults)


def contrast(rows):
    unit = normalize(rows, dim=1)
    return torch.logsumexp(unit @ unit.T, 1)


class TwoOutputs(nn.Module):
    def __init__(self, hidden=lambda h: h):
        super().__init__()
        self.first, self.second, self.hidden = nn.Linear(4, 6), nn.Linear(6, 2), hidden

    def forward(self, x):
        h = self.first(x)
        return {"logits": self.second(torch.tanh(h)), "hidden": self.hidden(h)}


class Nested(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.ModuleDict({"body": nn.ModuleDict({"net": network()})})


class Bags(nn.Module):
    """The features of five records become one."""

    def __init__(self):
        super().__init__()
        self.net = network()

    def forward(self, x):
        return self.net(x.reshape(-1, 5, 4).mean(1))


def mixed(model, loss, **options):
    return facts.MIXES_RECORDS in one_step(model, loss, **options)


class TestWhereNobodyLooked:
    """Each was a bound with the noise of a loop that mixes nothing."""

    @pytest.mark.parametrize("far", [True, False])
    def test_a_second_output(self, far):
        def loss(out, labels):
            return cross_entropy(out["logits"], labels) + far * contrast(out["hidden"]).mean()

        assert mixed(TwoOutputs(), loss) == far
        assert mixed(TwoOutputs(lambda h: h - far * h.mean(0)), lambda out, _: out["hidden"].abs().mean()) == far

    @pytest.mark.parametrize("mode", ["hooks", "functorch", "ew"])
    def test_a_second_output_in_a_loop_of_opacus(self, mode):
        made = private(model=TwoOutputs(), mode=mode)[:3]

        def loss(out, labels, share):
            return cross_entropy(out["logits"], labels) + share * contrast(out["hidden"]).mean()

        fine = watched(*made, lambda out, labels: loss(out, labels, 0.0)).ledger.faults
        assert facts.MIXES_RECORDS not in fine
        assert facts.MIXES_RECORDS in watched(*made, lambda out, labels: loss(out, labels, 1.0)).ledger.faults

    def test_two_outputs_of_which_each_is_straight_in_the_other(self):
        assert mixed(TwoOutputs(lambda h: h[:, :2]), lambda out, _: (out["logits"][0] * out["hidden"][1]).sum())

    @pytest.mark.parametrize("far", [True, False])
    def test_a_part_of_the_model_that_is_called_by_itself(self, far):
        model = Nested()
        net = model.inner["body"]["net"]
        assert mixed(model, lambda out, y: cross_entropy(out - far * out.mean(0), y), call=net) == far

    @pytest.mark.parametrize("far", [True, False])
    def test_a_model_in_evaluation_mode_with_a_head_that_trains(self, far):
        model = nn.Sequential(nn.Identity(), network()).eval()
        model[1].train()
        assert mixed(model, lambda out, y: cross_entropy(out - far * out.mean(0), y)) == far

    def test_batch_statistics_in_evaluation_mode(self):
        layer = nn.BatchNorm1d(4, affine=False, track_running_stats=False)
        assert facts.MIXES_RECORDS in one_step(nn.Sequential(layer, network()).eval(), cross_entropy)

    @pytest.mark.parametrize("far", [True, False])
    def test_other_ways_to_go_backward(self, far):
        def rows(out, labels):
            return cross_entropy(out, labels, reduction="none") + far * contrast(out)

        weigh = torch.full((BATCH,), 1 / BATCH)
        assert mixed(network(), rows, backward=lambda loss: loss.backward(weigh)) == far
        assert mixed(network(), rows, backward=lambda loss: torch.Tensor.backward(loss, gradient=weigh)) == far

    def test_the_loss_of_another_model_first(self):
        other = nn.Linear(2, 1)

        def backward(loss):
            other(torch.ones(3, 2)).sum().backward()
            loss.backward()

        assert mixed(network(), lambda out, y: cross_entropy(out - out.mean(0), y), backward=backward)

    def test_the_loss_of_another_model_with_other_records(self):
        """A mean over seven records was taken for one over some of the ten, and voided a loop that mixes nothing."""
        other = nn.Linear(2, 2)

        def backward(loss):
            cross_entropy(other(torch.ones(7, 2)), torch.zeros(7, dtype=torch.long)).backward()
            loss.backward()

        assert not mixed(network(), cross_entropy, backward=backward)

    @pytest.mark.parametrize("far", [True, False])
    def test_a_loss_of_outputs_that_were_cut_off(self, far):
        """Its slopes are handed on by the loop: it is no other model's."""

        def backward(rows):
            cut = rows.detach().requires_grad_()
            cross_entropy(cut, torch.arange(len(cut)) % 2, weight=WEIGHTS if far else None).backward()
            rows.backward(cut.grad)

        assert mixed(network(), lambda out, _: out, backward=backward) == far

    def test_records_that_become_one(self):
        faults = one_step(Bags(), lambda out, labels: cross_entropy(out, labels[::5]))
        assert facts.MIXES_RECORDS in faults


def ignored(labels, every):
    labels = labels.clone()
    labels[::every] = -100
    return labels


WEIGHTS = torch.tensor([0.1, 10.0])
TOKENS = torch.zeros(BATCH, 3, dtype=torch.long)
PADDED = TOKENS.masked_fill(torch.arange(3) >= 1 + torch.arange(BATCH)[:, None] % 3, -100)
SHIFTED = TOKENS.masked_fill(torch.arange(3) == 2, -100)


def tokens(out, target, **options):
    return cross_entropy(out[:, :, None].expand(-1, -1, 3), target, **options)


@pytest.mark.parametrize(
    ("loss", "wrong"),
    [
        (lambda out, y: cross_entropy(out, y, weight=WEIGHTS), True),
        (lambda out, y: cross_entropy(out, y, weight=WEIGHTS, label_smoothing=0.1), True),
        (lambda out, y: cross_entropy(out, y, weight=len(y) / (1.0 + torch.bincount(y[1:]))), True),
        (lambda out, y: cross_entropy(out, ignored(y, 3)), True),
        (lambda out, y: tokens(out, PADDED), True),
        (lambda out, y: tokens(out, PADDED, reduction="sum") / (PADDED != -100).sum(), True),
        (lambda out, y: cross_entropy(out[:7], y[:7]), True),
        (lambda out, y: binary_cross_entropy_with_logits(out[:7, 0], y[:7].float()), True),
        (lambda out, y: cross_entropy(out, y, weight=WEIGHTS, reduction="none").mean(), False),
        (lambda out, y: cross_entropy(out, y, weight=WEIGHTS, reduction="sum") / BATCH, False),
        (lambda out, y: cross_entropy(out, y, weight=torch.ones(2)), False),
        (lambda out, y: tokens(out, SHIFTED), False),
        (lambda out, y: tokens(out, PADDED, reduction="sum") / 7, False),
        (lambda out, y: sum(cross_entropy(out[i : i + 1], y[i : i + 1]) for i in range(BATCH)) / BATCH, False),
        (lambda out, y: binary_cross_entropy_with_logits(out[:, 0], y.float(), pos_weight=WEIGHTS[:1]), False),
    ],
)
def test_a_mean_that_is_divided_by_what_other_records_weigh(loss, wrong):
    assert mixed(network(), loss) == wrong


def test_one_record_moves_a_weighted_mean_by_more_than_the_clip_norm():
    """What it does: clipping bounds each record's gradient after all were scaled by the weight of one."""
    model = nn.Linear(4, 2, bias=False)
    features = torch.ones(20, 4)
    labels = torch.tensor([1] + [0] * 19)

    def clipped_sum(rows):
        each = []
        whole = WEIGHTS[labels[rows]].sum()
        for i in rows:
            loss = len(rows) * WEIGHTS[labels[i]] / whole * cross_entropy(model(features[i : i + 1]), labels[i : i + 1])
            (slope,) = torch.autograd.grad(loss, model.weight)
            each.append(slope * (1.0 / slope.norm()).clamp(max=1.0))
        return sum(each)

    assert (clipped_sum(range(20)) - clipped_sum(range(1, 20))).norm() > 5.0


class Head(nn.Module):
    """A layer that Opacus does not know, with the weight of another."""

    def __init__(self, weight):
        super().__init__()
        self.weight = weight

    def forward(self, h):
        return linear(h, self.weight)


class Late(nn.Module):
    """Its second use of the weight begins some time."""

    def __init__(self):
        super().__init__()
        self.first, self.uses = nn.Linear(4, 4, bias=False), False
        self.second = Head(self.first.weight)

    def forward(self, x):
        h = torch.tanh(self.first(x))
        return self.second(h) if self.uses else h


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_a_weight_that_two_layers_share_in_ghost_mode():
    """Where Opacus does not know one of the layers it measures one use: a clipped norm was 2.2 in place of 1."""
    first = nn.Linear(4, 4, bias=False)
    loader = DataLoader(records(), batch_size=BATCH, shuffle=True)
    made = private(
        loader, mode="ghost", model=nn.Sequential(first, nn.Tanh(), Head(first.weight)), poisson_sampling=False
    )
    assert facts.UNCLIPPED in watched(*made).ledger.faults
    model = Late()
    made = private(loader, mode="ghost", model=model, poisson_sampling=False)
    assert faults(trained(made, before=lambda step: setattr(model, "uses", step > 5), passes=2)) == {facts.UNCLIPPED}
    alone = private(mode="ghost", model=nn.Sequential(nn.Linear(4, 4), nn.Tanh(), Head(nn.Parameter(torch.ones(2, 4)))))
    assert facts.UNCLIPPED not in watched(*alone).ledger.faults


class Mean(nn.Module):
    """Learns what is written to its file and is no buffer."""

    def __init__(self, learns):
        super().__init__()
        self.mean, self.learns = torch.zeros(4), learns

    def forward(self, x):
        self.mean = self.mean + self.learns * x.detach().mean(0)
        return x

    def get_extra_state(self):
        return self.mean

    def set_extra_state(self, state):
        self.mean = state


@pytest.mark.parametrize("learns", [True, False])
def test_a_state_that_is_no_buffer(learns):
    assert (facts.BUFFERS_LEARNT in one_step(nn.Sequential(Mean(learns), network()), cross_entropy)) == learns


class TestDrawnOtherwise:
    """The sampler was looked at once, before the loop."""

    def changed(self, made, change, back=lambda: None):
        with rt.watch(*made[:3]) as seen:
            run(*made, epochs=1)
            change()
            run(*made, epochs=2)
            back()
        assert not list(seen.ledger.contradictions())
        return seen.ledger

    def test_records_that_are_listed_again_for_the_next_pass(self):
        sampler = SubsetRandomSampler(list(range(RECORDS)))
        loader = DataLoader(records(), batch_size=BATCH, sampler=sampler)
        made = private(loader, poisson_sampling=False)

        def put(indices):
            sampler.indices = indices

        ledger = self.changed(made, lambda: put([3] * RECORDS), lambda: put(list(range(RECORDS))))
        assert ledger.sampler.drawn is Drawn.WITH_REPLACEMENT
        assert ledger.mechanism().noise_multiplier < 0.2

    def test_indices_that_change_within_a_pass(self):
        indices = list(range(RECORDS))
        made = private(
            DataLoader(records(), batch_size=BATCH, sampler=SubsetRandomSampler(indices)), poisson_sampling=False
        )
        with rt.watch(*made[:3]) as seen:
            run(*made, epochs=1, after=lambda _: indices.__setitem__(slice(None), [3] * RECORDS))
        assert seen.ledger.sampler.drawn is Drawn.WITH_REPLACEMENT

    def test_half_of_the_records_twice_in_each_pass(self):
        sampler = RandomSampler(range(RECORDS // 2), num_samples=RECORDS)
        made = private(DataLoader(records(), batch_size=BATCH, sampler=sampler), poisson_sampling=False)
        ledger = watched(*made, how={"epochs": 1}).ledger
        assert ledger.sampler.times_per_epoch == 2
        assert ledger.mechanism().steps == 4  # both times may be in one step: counted as 2^2

    def test_another_kind_of_draw_and_back(self):
        made = shuffled()
        sampler = made[2].sampler

        def put(replacement):
            sampler.replacement = replacement

        ledger = self.changed(made, lambda: put(True), lambda: put(False))
        assert ledger.sampler.drawn is Drawn.WITH_REPLACEMENT

    def test_larger_batches_of_a_weighted_sampler(self):
        sampler = WeightedRandomSampler([1.0] * RECORDS, RECORDS)
        made = private(DataLoader(records(), batch_size=1, sampler=sampler), poisson_sampling=False)
        ledger = self.changed(made, lambda: setattr(made[2].batch_sampler, "batch_size", 2))
        assert (ledger.sampler.drawn, ledger.sampler.batch_size) == (Drawn.WEIGHTED, 2)

    def test_random_allocation_to_fewer_batches(self):
        model, optimizer, loader, criterion = shuffled()
        loader = rt.random_allocation(loader)
        ledger = self.changed(
            (model, optimizer, loader, criterion), lambda: setattr(loader.batch_sampler, "_batches", 2)
        )
        assert ledger.sampler.drawn is Drawn.UNKNOWN

    def test_fewer_records_for_poisson_are_drawn_as_before(self):
        made = private()
        ledger = self.changed(made, lambda: setattr(made[2].batch_sampler, "num_samples", RECORDS - 1))
        assert ledger.sampler.drawn is Drawn.POISSON

    def test_a_sampler_that_stays_as_it_was(self):
        assert self.changed(shuffled(), lambda: None).sampler.drawn is Drawn.SHUFFLED
        assert self.changed(private(), lambda: None).sampler.drawn is Drawn.POISSON

    def test_a_generator_that_is_exchanged_for_each_pass(self):
        made = private()

        def exchange(step):
            made[2].batch_sampler.generator = torch.Generator().manual_seed(step)

        seen = watched(*made, how={"after": lambda step: exchange(step) if step == 6 else None})
        assert facts.PUBLIC_DRAWS in seen.ledger.faults

    def test_a_generator_from_the_operating_system_that_is_exchanged(self):
        made = private()
        with rt.watch(*made[:3]) as seen:
            for _ in range(2):
                made[2].batch_sampler.generator = torch.Generator()
                made[2].batch_sampler.generator.seed()
                run(*made, epochs=1)
        assert facts.PUBLIC_DRAWS not in seen.ledger.faults


@pytest.mark.parametrize(
    ("second", "copies"),
    [([0] * 30 + list(range(RECORDS - 30)), 31), (range(RECORDS), 1), (range(RECORDS - 1, -1, -1), 2)],
)
def test_copies_of_a_record_in_stacked_data(second, copies):
    """Pairs whose second part lists records again; the last are pairs of a record and another one."""
    base = records()
    first = Subset(base, list(range(RECORDS)) if copies != 31 else list(second))
    stacked = StackDataset(first, Subset(base, list(second)))
    made = shuffled()
    with rt.watch(*made[:2], DataLoader(stacked, batch_size=BATCH)) as seen:
        run(*made)
    assert (seen.ledger.sampler.copies or 1) == copies


def test_weights_drawn_anew_under_an_old_momentum():
    """The momentum of steps without noise moves them in the first step."""
    model = network()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for features, labels in DATA:
        cross_entropy(model(features), labels).backward()
        optimizer.step()
    fresh(model)
    with rt.watch(model, optimizer, DATA) as seen:
        optimizer.step()
        seen.step(noise_multiplier=1.0)
    assert facts.STEPS_BEFORE in seen.ledger.faults
