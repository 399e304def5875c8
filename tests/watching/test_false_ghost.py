"""Loops with ghost clipping that did not clip; each was certified falsely once.

It measures the records in one backward pass and adds them up in another, and in between and after it lies open.
"""

from __future__ import annotations

import pytest
import torch
from opacus.utils.adaptive_clipping import PrivacyEngineAdaptiveClipping
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

import reticent as rt
from reticent import facts
from reticent.watching.detectors.record_gradients import takers_of
from reticent.watching.optimisers import before_1_6
from tests.watching.loops import BATCH, NOISE, RECORDS, faults, network, noises, private, records, trained, void

LENGTHS = 5
"""Steps at the start in which whole gradients are compared; what begins later has to be seen otherwise."""

pytestmark = pytest.mark.filterwarnings("ignore:Full backward hook is firing", "ignore:Secure RNG turned off")


def plus(loss, number):
    """More for each record; losses of Opacus 1.5 know no sum."""
    loss.loss_per_sample = loss.loss_per_sample + number
    return loss


class Skipping(nn.Module):
    """A layer that is left out of every other pass, as in stochastic depth."""

    def __init__(self):
        super().__init__()
        self.body, self.head, self.skips = nn.Linear(4, 4), nn.Linear(4, 2), False

    def forward(self, x):
        return self.head(x if self.skips else torch.tanh(self.body(x)))


class Reused(nn.Module):
    """Its first weight is used by a layer and by a function, as a language model uses that of its embedding."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(4, 4), nn.Linear(4, 2)

    def forward(self, x):
        return self.head(10.0 * self.body(x) @ self.body.weight.T)


def enlarge(p):
    p.grad.mul_(10.0)


class TestGhost:
    """Ghost clipping, where a record's part was not measured, or not of this batch."""

    def test_a_layer_that_is_left_out_keeps_the_lengths_of_the_batch_before(self):
        model = Skipping()
        made = private(mode="ghost", model=model, poisson_sampling=False)

        def skip(step):
            model.skips = step % 2 == 1

        assert faults(trained(made, before=skip)) == {facts.MIXES_RECORDS}
        made = private(mode="ghost", model=Skipping(), poisson_sampling=False)
        assert not void(trained(made))

    def test_a_layer_that_is_unfrozen_later_is_not_measured(self):
        model = network()
        model[0].requires_grad_(False)
        made = private(mode="ghost", model=model)
        seen = trained(made, before=lambda step: model[0].requires_grad_(step > LENGTHS), passes=2)
        assert faults(seen) == {facts.UNCLIPPED}

    @pytest.mark.parametrize("when", [0, LENGTHS + 1])
    def test_a_parameter_outside_the_model_is_not_measured(self, when):
        made = model, optimizer, _, _ = private(mode="ghost")
        scale = nn.Parameter(torch.ones(1))

        def add(step):
            if step == when:
                optimizer.original_optimizer.add_param_group({"params": [scale]})

        assert faults(trained(made, before=add, forward=lambda x: model(x) * scale, passes=2)) == {facts.UNCLIPPED}

    def test_a_norm_that_is_lowered_after_the_backward_pass(self):
        made = model, optimizer, _, _ = private(mode="ghost")

        def norm(value):
            model.max_grad_norm = optimizer.max_grad_norm = value

        seen = trained(made, before=lambda _: norm(10.0), between=lambda _: norm(1.0))
        assert noises(seen) == [pytest.approx(NOISE / 10.0, rel=1e-9, abs=0)]
        assert facts.CLIP_AND_NOISE_DIFFER in seen.ledger.faults

    def test_a_norm_of_hooks_around_a_bare_model(self):
        model = network()
        hooks, optimizer, loader, criterion = private(mode="ghost", model=model, wrap_model=False)
        hooks.max_grad_norm = 10.0
        assert noises(trained((model, optimizer, loader, criterion))) == [pytest.approx(NOISE / 10.0, rel=1e-9, abs=0)]

    def test_gradients_that_are_written_after_they_were_clipped(self):
        made = model, *_ = private(mode="ghost")

        def enlarge(_):
            for p in model.parameters():
                p.grad.mul_(10.0)

        assert faults(trained(made, between=enlarge)) == {facts.CHANGED_GRADIENTS}

    def test_another_loss_beside_the_clipped_one(self):
        features, labels = records().tensors
        made = model, *_ = private(mode="ghost")
        bare = model._module

        def add(_):
            model.disable_hooks()
            nn.functional.cross_entropy(bare(features), labels).backward()
            model.enable_hooks()

        assert facts.CHANGED_GRADIENTS in faults(trained(made, between=add))

    def test_a_loss_that_is_not_the_one_of_make_private(self):
        """Opacus then clips nothing, and says nothing."""
        model, optimizer, loader, _ = private(mode="ghost")
        assert faults(trained((model, optimizer, loader, nn.CrossEntropyLoss()))) == {facts.UNCLIPPED}

    def test_an_empty_batch_without_a_backward_pass(self):
        model, optimizer, loader, criterion = private(DataLoader(records(), batch_size=1, shuffle=True), mode="ghost")
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                optimizer.zero_grad()
                if len(labels) or not len(seen):
                    criterion(model(features), labels).backward()
                optimizer.step()
        assert not void(seen)

    @pytest.mark.parametrize("past", ["penalty", "function", "hook", "writing hook"])
    def test_what_reaches_a_weight_past_its_layer_is_not_measured(self, past):
        model = Reused() if past == "function" else network()
        wrapped, optimizer, loader, own = private(mode="ghost", model=model)
        weight = next(model.parameters())
        if past == "hook":
            weight.register_hook(lambda slope: 10.0 * slope)
        if past == "writing hook":
            weight.register_post_accumulate_grad_hook(enlarge)

        def criterion(logits, labels):
            return plus(own(logits, labels), weight.square().sum() if past == "penalty" else 0.0)

        wanted = facts.CHANGED_GRADIENTS if past == "writing hook" else facts.UNCLIPPED
        assert faults(trained((wrapped, optimizer, loader, criterion))) == {wanted}

    @pytest.mark.parametrize("column", [True, False])
    def test_losses_that_are_a_column(self, column):
        """One column times a list of factors is a square: each record gets the factors of all, and none is clipped."""
        data = TensorDataset(records().tensors[0], torch.randn(RECORDS, 1))
        made = private(DataLoader(data, batch_size=BATCH), model=nn.Linear(4, 1), mode="ghost")
        model, optimizer, loader, own = made
        own.criterion = nn.MSELoss(reduction="none")

        def criterion(outputs, wanted):
            return own(outputs, wanted) if column else own(outputs[:, 0], wanted[:, 0])

        large = torch.tensor([1e4, 0.01, 0.01, 0.01, 0.01])[:, None]
        criterion(model(data.tensors[0][:5] * large), data.tensors[1][:5] * large).backward()
        optimizer.accumulate()
        assert (float(next(model.parameters()).summed_grad.norm()) > 5.0) == column
        optimizer.zero_grad()
        found = faults(trained((model, optimizer, loader, criterion)))
        assert found - {facts.MIXES_RECORDS} == {facts.UNCLIPPED} if column else not found

    @pytest.mark.skipif(before_1_6(), reason="Opacus 1.5 takes the losses of records")
    def test_the_mean_of_all_losses(self):
        """Adaptive ghost clipping of Opacus 1.6.0 takes it for the losses of records."""
        model = network()
        model, optimizer, criterion, loader = PrivacyEngineAdaptiveClipping().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(records(), batch_size=RECORDS // 2),  # Opacus wants 12
            noise_multiplier=NOISE,
            max_grad_norm=1.0,
            grad_sample_mode="ghost",
            criterion=nn.CrossEntropyLoss(),
        )
        assert faults(trained((model, optimizer, loader, criterion))) == {facts.UNCLIPPED}

    def test_adaptive_clipping_whose_norm_stays_at_its_bound(self):
        """The number of unclipped records is released, too: Opacus 1.5 states the noise of the gradients alone."""
        model = network()
        model, optimizer, criterion, loader = PrivacyEngineAdaptiveClipping().make_private(
            module=model,
            optimizer=torch.optim.SGD(model.parameters(), lr=0.1),
            data_loader=DataLoader(records(), batch_size=RECORDS // 2),  # Opacus wants 12
            noise_multiplier=NOISE,
            max_grad_norm=20.0,
            min_clipbound=20.0,
            poisson_sampling=False,
            grad_sample_mode="ghost",
            criterion=nn.CrossEntropyLoss(),
        )
        criterion.criterion.reduction = "none"
        seen = trained((model, optimizer, loader, criterion))
        assert [segment.max_grad_norm for segment in seen.ledger.segments] == [None]  # one norm for all steps
        assert seen.ledger.mechanism().noise_multiplier <= NOISE

    def test_a_hook_that_only_looks(self):
        made = model, *_ = private(mode="ghost")
        next(model.parameters()).register_hook(lambda slope: None)
        assert not void(trained(made))

    def test_a_penalty_from_some_step_on(self):
        model, optimizer, loader, own = private(mode="ghost")
        weight, steps = next(model.parameters()), []

        def criterion(logits, labels):
            steps.append(len(labels))
            return plus(own(logits, labels), weight.square().sum() if len(steps) > 3 else 0.0)

        assert faults(trained((model, optimizer, loader, criterion))) == {facts.UNCLIPPED}

    def test_hooks_that_the_program_turns_off_for_a_while(self):
        made = model, *_ = private(mode="ghost")

        def look(_):
            model.get_norm_sample()
            model.disable_hooks()
            model(records().tensors[0])
            model.enable_hooks()

        assert not void(trained(made, before=lambda step: look(step) if step else None))

    def test_two_loops_side_by_side_and_nothing_is_left_behind(self):
        from opacus.utils.fast_gradient_clipping_utils import DPTensorFastGradientClipping as Loss

        one, other = private(mode="ghost"), private(mode="ghost")
        (hooks,) = takers_of(one[0])
        before = dict(vars(type(hooks))), dict(vars(Loss))
        with rt.watch(*one[:3]) as first, rt.watch(*other[:3]) as second:
            for model, optimizer, loader, criterion in (one, other):
                for features, labels in loader:
                    optimizer.zero_grad()
                    criterion(model(features), labels).backward()
                    optimizer.step()
        assert not void(first)
        assert not void(second)
        assert (dict(vars(type(hooks))), dict(vars(Loss))) == before


@pytest.mark.parametrize("signals", [True, False])
def test_batches_that_a_step_adds_up(signals):
    """Each backward pass drops the sum of the batch before, unless a step that is skipped has taken that over."""
    made = private(DataLoader(records(), batch_size=BATCH), mode="ghost", poisson_sampling=False)
    model, optimizer, loader, criterion = made
    optimizer.param_groups[0]["lr"] = 0.0

    def sums(every):
        for index, (features, labels) in enumerate(loader, 1):
            criterion(model(features), labels).backward()
            if signals:
                optimizer.signal_skip_step(do_skip=index % every > 0)
            if signals or index % every == 0:
                optimizer.step()
                if index % every == 0:
                    yield optimizer.params[0].summed_grad.clone()
                optimizer.zero_grad()

    alone = list(sums(1))
    with rt.watch(*made[:3]) as seen:
        pairs = list(sums(2))
    kept = [first * signals + second for first, second in zip(alone[::2], alone[1::2], strict=True)]
    assert torch.allclose(torch.stack(pairs), torch.stack(kept), rtol=1e-4, atol=1e-6)
    assert faults(seen) == (set() if signals else {facts.LEFT_OUT})


class Table(nn.Module):
    """Rows of a table for the words of a record, of which 0 is none."""

    def __init__(self, by_frequency):
        super().__init__()
        self.rows = nn.Embedding(6, 4, scale_grad_by_freq=by_frequency)
        self.head = nn.Linear(4, 2).requires_grad_(False)

    def forward(self, words):
        return self.head((self.rows(words) * (words > 0)[..., None]).sum(1))


WORDS = torch.cat([nn.functional.pad(torch.arange(1, 6)[:, None], (0, 19)), torch.arange(1, 6).repeat(1, 4)])


class TestFrequencies:
    """A table that divides gradients by how often the batch has a word: a record with all words shrinks all others."""

    @pytest.mark.parametrize("by_frequency", [True, False])
    def test_one_record_moves_the_sum_by_more_than_the_clip_norm(self, by_frequency):
        model, optimizer, _, criterion = private(mode="ghost", model=Table(by_frequency), norm=0.01)
        sums = []
        for records_ in (WORDS, WORDS[:-1]):
            optimizer.zero_grad()
            criterion(model(records_), torch.zeros(len(records_), dtype=torch.long)).backward()
            sums.append(model.rows.weight.grad.clone())
        moved = float((sums[0] - sums[1]).norm()) / 0.01
        assert moved > 1.5 if by_frequency else moved < 1.001

    @pytest.mark.parametrize("by_frequency", [True, False])
    def test_it_is_seen(self, by_frequency):
        data = TensorDataset(WORDS.repeat(RECORDS // len(WORDS), 1), torch.arange(RECORDS) % 2)
        made = private(DataLoader(data, batch_size=BATCH), mode="ghost", model=Table(by_frequency))
        assert faults(trained(made)) == ({facts.MIXES_RECORDS} if by_frequency else set())
