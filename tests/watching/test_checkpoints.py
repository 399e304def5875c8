"""Weights of earlier steps: kept, put back, or changed after a step as the program says."""

from __future__ import annotations

import copy

import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import reticent as rt
from reticent import facts
from reticent.certificates.check import check
from reticent.facts.checkpoints import MOST_CHECKPOINTS, kept
from reticent.watching.models import fingerprint
from tests.watching.loops import RATE, epsilon, faults, network, private, run, shuffled, void, watched, wide


def best_of(made, where=lambda model: model, at=2):
    """A loop that keeps its weights after one step, goes on, and puts them back."""
    model, *_ = made
    states = {}

    def keep(step):
        if step == at:
            states[step] = copy.deepcopy(where(model).state_dict())

    with rt.watch(*made[:3]) as seen:
        run(*made, after=keep)
        where(model).load_state_dict(states[at])
    return seen


class TestBestEpoch:
    @pytest.mark.parametrize("mode", ["hooks", "ghost", "functorch"])
    def test_it_is_post_processing_of_all_steps(self, mode):
        made = private(mode=mode)
        seen = best_of(made)
        last = watched(*private(mode=mode))
        assert not void(seen)
        assert facts.PUT_BACK in seen.ledger.faults
        assert seen.ledger.weights_sha256 == fingerprint(made[0])
        assert seen.ledger.steps == last.ledger.steps
        assert seen.mechanism() == last.mechanism()

    def test_of_a_large_model_by_the_module_inside(self):
        seen = best_of(wide(), where=lambda model: model._module)
        assert not void(seen)
        assert facts.PUT_BACK in seen.ledger.faults

    def test_weights_that_no_step_left(self):
        """Kept after somebody wrote to them, and put back for a moment: no step released these."""
        made = private()
        own = next(made[0].parameters())
        with rt.watch(*made[:3]) as seen:
            run(*made)
            left = own.detach().clone()
            own.data.add_(0.5)
            state = copy.deepcopy(made[0].state_dict())
            own.data.copy_(left)
            made[0].load_state_dict(state)
        assert void(seen)

    def test_a_state_that_is_changed_before_it_comes_back(self):
        made = private()
        with rt.watch(*made[:3]) as seen:
            run(*made, epochs=1)
            state = {name: value * 1.5 for name, value in made[0].state_dict().items()}
            run(*made, epochs=1)
            made[0].load_state_dict(state)
        assert void(seen)

    def test_other_weights_for_a_moment_and_the_last_ones_again(self):
        """Without ``evaluation``, of a model whose values are not all compared."""
        made = wide()
        with rt.watch(*made[:3]) as seen:
            run(*made, epochs=1)
            own = copy.deepcopy(made[0].state_dict())
            made[0].load_state_dict({name: 0.5 * value for name, value in own.items()})
            made[0].load_state_dict(own)
            run(*made, epochs=1)
        assert not void(seen)
        assert facts.PUT_BACK not in seen.ledger.faults

    def test_training_goes_on_from_them(self):
        made = private()
        with rt.watch(*made[:3]) as seen:
            run(*made, epochs=1)
            state = copy.deepcopy(made[0].state_dict())
            run(*made, epochs=1)
            made[0].load_state_dict(state)
            run(*made, epochs=1)
        assert not void(seen)
        assert facts.PUT_BACK in seen.ledger.faults
        assert seen.ledger.steps == watched(*private(), how={"epochs": 3}).ledger.steps

    def test_no_more_than_a_number_of_them_are_known(self):
        made = private()
        with rt.watch(*made[:3]) as seen:
            run(*made, epochs=50, after=lambda step: made[0].state_dict())
        assert len(kept(seen.ledger)) == MOST_CHECKPOINTS


class TestVerify:
    def test_each_is_the_model_that_the_certificate_is_about(self, tmp_path):
        made = private()
        early, late, other = (tmp_path / f"{name}.safetensors" for name in ("early", "late", "other"))
        with rt.watch(*made[:3], start="declared") as seen:
            run(*made, epochs=1, after=lambda step: save_file(made[0]._module.state_dict(), early) if step == 2 else 0)
        save_file(made[0]._module.state_dict(), late)
        save_file({name: value + 1.0 for name, value in made[0]._module.state_dict().items()}, other)
        document = rt.certify(seen).certificate
        what = {early: "holds weights that an earlier step of its run left", late: "is the model that it is about"}
        for weights, said in what.items():
            found = check(document, weights=weights)
            assert found.accepted
            assert f"{weights} {said}" in str(found.compared)
        assert not check(document, weights=other).accepted

    def test_nobody_who_saw_them_is_left_out_of_a_number_for_the_last_weights_alone(self):
        made = shuffled()
        with rt.watch(*made[:3]) as seen:
            run(*made, after=lambda step: made[0].state_dict() if step == 2 else None)
        assert seen.ledger.unequal_updates == "weights of earlier steps were kept, and the ledger names them"


class TestAfterStep:
    def clamped(self, made, name=True, **options):
        model = made[0]
        with rt.watch(*made[:3], **options) as seen:

            def clamp(step):
                for p in model.parameters():
                    p.data.clamp_(-0.2, 0.2)

            def named(step):
                with seen.after_step():
                    clamp(step)

            run(*made, after=named if name else clamp)
        return seen

    @pytest.mark.parametrize("make", [private, wide])
    def test_what_is_named_is_post_processing(self, make):
        seen = self.clamped(make())
        assert not void(seen)
        assert facts.POST_PROCESSED in seen.ledger.faults
        assert seen.mechanism() == watched(*make()).mechanism()

    def test_what_is_not_named_is_a_fault(self):
        assert void(self.clamped(private(), name=False))

    def test_a_running_mean_is_released(self):
        made = private()
        mean = [p.detach().clone() for p in made[0].parameters()]
        with rt.watch(*made[:3]) as seen:

            def follow(step):
                for m, p in zip(mean, made[0].parameters(), strict=True):
                    m.lerp_(p.detach(), 0.1)

            run(*made, after=follow)
            with seen.after_step(), torch.no_grad():
                for m, p in zip(mean, made[0].parameters(), strict=True):
                    p.copy_(m)
        assert not void(seen)
        assert seen.ledger.weights_sha256 == fingerprint(made[0])

    def test_another_optimizer_is_no_post_processing(self):
        made = private()
        other = torch.optim.SGD(made[0].parameters(), lr=0.1)
        with rt.watch(*made[:3]) as seen:
            run(*made)
            with seen.after_step():
                other.step()
        assert facts.OTHER_OPTIMISER in faults(seen)

    def test_what_was_written_before_it_is_seen(self):
        made = private()
        with rt.watch(*made[:3]) as seen:
            run(*made)
            next(made[0].parameters()).data.add_(0.5)
            with seen.after_step():
                pass
        assert facts.WEIGHTS_CHANGED in faults(seen)

    def test_of_a_loop_without_an_optimizer(self):
        model = torch.nn.Linear(3, 2)
        with rt.watch(model, sampler="poisson") as seen:
            for _ in range(4):
                with torch.no_grad():
                    for p in model.parameters():
                        p.add_(torch.randn_like(p))
                seen.step(noise_multiplier=1.0, sample_rate=RATE)
                with seen.after_step():
                    model.weight.data.clamp_(-1.0, 1.0)
        assert not void(seen)
        assert facts.POST_PROCESSED in seen.ledger.faults
        assert epsilon(seen) > 0.0


class TestWhatNoStepReleased:
    """Found by a reader: what a checkpoint holds beside weights, and what was there before the first step."""

    def test_a_checkpoint_with_sums_of_the_records(self):
        """A buffer that is emptied at the end of each pass shows nothing in the end."""

        class Sums(nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = network()
                self.register_buffer("seen", torch.zeros(4))

            def forward(self, x):
                self.seen += x.detach().sum(0)
                return self.inner(x)

        made = private(model=Sums())
        with rt.watch(*made[:3]) as seen:
            for _ in range(2):
                run(*made, epochs=1, after=lambda step: made[0].state_dict() if step == 3 else None)
                made[0]._module.seen.zero_()
        assert not kept(seen.ledger)

    def test_weights_that_are_named_before_the_first_step(self):
        made = private()
        with rt.watch(*made[:3]) as seen:
            with seen.after_step():
                next(made[0].parameters()).data.add_(0.5)
            run(*made)
        assert facts.WEIGHTS_CHANGED in faults(seen)
