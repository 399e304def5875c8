"""Two forward passes for one backward pass, of which one holds no record, as where a discriminator reads made rows."""

from __future__ import annotations

from contextlib import nullcontext

import pytest
import torch
from opacus import GradSampleModule
from torch import nn

import reticent as rt
from reticent import facts
from tests.watching.loops import NOISE, RATE, faults, network, private, void


def of_real(out, labels, made, other):
    return nn.functional.cross_entropy(out, labels) + nn.functional.cross_entropy(made, other)


def relative(out, labels, made, other):
    """Each made row is compared with the mean of all real ones, as relativistic discriminators do."""
    return nn.functional.cross_entropy(out, labels) + nn.functional.cross_entropy(made - out.mean(0), other)


def products(out, labels, made, other):
    """Each made row is multiplied with all real ones, and no real one with another."""
    return of_real(out, labels, made, other) + (out.sum(0) * made.sum(0)).sum()


def loop(loss=of_real, *, named=True, made_first=False, mode="hooks", extra=0, generator=None):
    model, optimizer, loader, _ = private(mode=mode)
    generator = generator or nn.Linear(3, 4)
    learns = torch.optim.SGD(generator.parameters(), lr=0.1)

    def judged(rows):
        with seen.no_records() if named else nullcontext():
            return model(rows)

    with rt.watch(model, optimizer, loader) as seen:
        for features, labels in loader:
            optimizer.zero_grad()
            rows = generator(torch.randn(len(features) + extra, 3))
            other = torch.zeros(len(rows), dtype=torch.long)

            made = judged(rows.detach()) if made_first else None
            out = model(features)
            made = judged(rows.detach()) if made is None else made
            loss(out, labels, made, other).backward()
            optimizer.step()
            optimizer.zero_grad()
            learns.zero_grad()
            nn.functional.cross_entropy(model(rows), 1 - other).backward()
            learns.step()
            optimizer.zero_grad()
    return seen


class TestAGenerator:
    @pytest.mark.parametrize("made_first", [False, True])
    @pytest.mark.parametrize("mode", ["hooks", "functorch"])
    def test_noise_counts_in_full(self, mode, made_first):
        seen = loop(mode=mode, made_first=made_first)
        assert faults(seen) == set()
        assert {facts.MADE_ROWS, facts.OTHER_MODEL} <= set(seen.ledger.faults)
        run = seen.mechanism()
        assert (run.noise_multiplier, run.sample_rate, run.steps) == (NOISE, pytest.approx(RATE, rel=1e-12, abs=0), 6)

    def test_what_is_not_named_is_mixed(self):
        seen = loop(named=False)
        (fault,) = faults(seen)
        assert fault == facts.MIXES_RECORDS
        assert "ledger.no_records()" in fault.remedy

    @pytest.mark.parametrize("loss", [relative, products])
    def test_a_loss_between_real_and_made_rows_is_seen(self, loss):
        seen = loop(loss)
        assert facts.MIXES_RECORDS in faults(seen)

    def test_more_made_rows_than_records(self):
        """Opacus counts the pairs by their longer part, so nobody sees how many records there were."""
        assert void(loop(extra=3))

    def test_a_backward_pass_for_each(self):
        """Opacus takes the rows of the later pass for both: gradients are wrong, and each is still clipped."""
        model, optimizer, loader, criterion = private()
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                optimizer.zero_grad()
                first = criterion(model(features), labels)
                with seen.no_records():
                    made = criterion(model(torch.randn(len(features), 4)), labels)
                first.backward()
                made.backward()
                optimizer.step()
        assert faults(seen) == set()
        assert seen.mechanism().noise_multiplier == NOISE

    def test_two_passes_of_records_with_a_made_one_between(self):
        model, optimizer, loader, criterion = private()
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                optimizer.zero_grad()
                first = criterion(model(features), labels)
                with seen.no_records():
                    made = model(torch.randn(len(features), 4)).sum()
                (first + made + criterion(model(features.flip(0)), labels.flip(0))).backward()
                optimizer.step()
        assert facts.MIXES_RECORDS in faults(seen)


@pytest.mark.filterwarnings("ignore:Full backward hook is firing")
def test_opacus_clips_the_pair_to_one_norm():
    """What the fact rests on: gradients of both passes are added row by row before they are clipped."""
    model = GradSampleModule(network(), loss_reduction="sum")
    real, made = torch.randn(5, 4), torch.randn(5, 4)
    (model(real).square().sum() + model(made).square().sum()).backward()
    both = [p.grad_sample.clone() for p in model.parameters()]
    for row in range(5):
        alone = network()
        (alone(real[row : row + 1]).square().sum() + alone(made[row : row + 1]).square().sum()).backward()
        for one, p in zip(both, alone.parameters(), strict=True):
            torch.testing.assert_close(one[row], p.grad, rtol=1e-4, atol=1e-6)


class TestBlocksAtTheWrongPlace:
    """Found by a reader: who names rows that are records, or too many of them, must not be believed."""

    def two_passes(self, first, second, outside=True):
        model, optimizer, loader, criterion = private()
        with rt.watch(model, optimizer, loader) as seen:
            for features, labels in loader:
                optimizer.zero_grad()
                with nullcontext() if outside else seen.no_records():
                    one = criterion(model(first(features)), labels)
                with seen.no_records():
                    rows = second(features)
                    other = model(rows).square().mean()
                (one + other).backward()
                optimizer.step()
        return seen

    def test_records_that_are_named_as_made(self):
        seen = self.two_passes(lambda x: x, lambda x: x.flip(0))
        assert facts.MIXES_RECORDS in faults(seen)

    def test_inputs_by_name_whose_rows_nobody_counts(self):
        model, optimizer, loader, criterion = private()
        with rt.watch(model._module, optimizer, loader) as seen:
            for features, labels in loader:
                optimizer.zero_grad()
                one = criterion(model._module(input=features), labels)
                with seen.no_records():
                    other = model._module(input=torch.randn_like(features)).square().mean()
                (one + other).backward()
                optimizer.step()
        assert facts.MIXES_RECORDS in faults(seen)

    def test_a_block_around_both_passes(self):
        assert void(self.two_passes(lambda x: x, torch.randn_like, outside=False))

    def test_fewer_made_rows_than_records_in_some_steps(self):
        noise = torch.randn(24, 4)
        seen = self.two_passes(lambda x: x, lambda x: noise[: len(x)] + 0.0 * torch.randn(1))
        sizes = seen.ledger.diagnostics.batch_sizes
        assert void(seen) == (max(sizes) > 24)
