"""Convolutions whose input Opacus misreads: what the accountant makes of them, without a watch."""

import copy
import math
import pickle

import opacus
import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from reticent import facts
from reticent.interop.opacus import PrivacyEngine, ReticentAccountant
from reticent.kernel.errors import ArtifactError
from tests.interop.programs import made_private, trained

pytestmark = pytest.mark.filterwarnings("ignore:Secure RNG turned off", "ignore:Full backward hook")
RECORDS = 12


class Convolution(nn.Module):
    """One convolution, on plain images or on channels last."""

    def __init__(self, memory_format):
        super().__init__()
        self.memory_format = memory_format
        self.convolution = nn.Conv2d(3, 4, 3, padding=1)
        self.head = nn.Linear(4 * 36, 2)

    def forward(self, images):
        images = images.contiguous(memory_format=self.memory_format)
        return self.head(self.convolution(images).flatten(1))


PLAIN, CHANNELS_LAST = torch.contiguous_format, torch.channels_last


def made(engine, memory_format, mode="hooks"):
    loader = DataLoader(TensorDataset(torch.randn(RECORDS, 3, 6, 6), torch.arange(RECORDS) % 2), batch_size=4)
    how = {"grad_sample_mode": mode, "criterion": nn.CrossEntropyLoss()}
    return made_private(engine, Convolution(memory_format), loader, 1.0, **how)


def accountant_of(engine, memory_format, mode="hooks"):
    trained(*made(engine, memory_format, mode), epochs=1)
    return engine.accountant


@pytest.mark.parametrize("mode", ["hooks", "ghost"])
def test_plain_convolutions_stay_as_they_were(mode):
    accountant = accountant_of(PrivacyEngine(), PLAIN, mode)
    assert accountant.faults == set()
    assert accountant.released().noise_multiplier == 1.0
    assert 0.0 < accountant.get_epsilon(1e-5) < math.inf  # warnings are errors


def test_ghost_clipping_of_channels_last_leaves_no_guarantee():
    accountant = accountant_of(PrivacyEngine(), CHANNELS_LAST, "ghost")
    assert accountant.released().noise_multiplier == 0.0
    with pytest.warns(UserWarning, match="permuted-convolution: The input of a convolution"):
        assert accountant.get_epsilon(1e-5) == math.inf


def test_wrong_gradients_that_are_clipped_are_named_and_the_noise_counts():
    accountant = accountant_of(PrivacyEngine(), CHANNELS_LAST)
    assert accountant.faults == {facts.PERMUTED_GRADIENTS}
    with pytest.warns(UserWarning, match="wrong-gradients"):
        assert 0.0 < accountant.get_epsilon(1e-5) < math.inf


def test_faults_are_kept_with_the_history_and_old_states_load():
    accountant = accountant_of(PrivacyEngine(), CHANNELS_LAST, "ghost")
    state = accountant.state_dict()
    other = ReticentAccountant()
    other.load_state_dict(state)
    assert other.released().noise_multiplier == 0.0
    old = {key: value for key, value in state.items() if key not in ("faults", "unseen_layouts")}
    other.load_state_dict(old)
    assert other.released().noise_multiplier == 1.0
    with pytest.raises(ArtifactError, match="damaged"):
        other.load_state_dict({**state, "faults": ["no-such-fault"]})


def test_with_opacus_own_engine_the_model_must_be_shown():
    engine = opacus.PrivacyEngine(accountant="reticent")
    *model, loader = made(engine, CHANNELS_LAST, "ghost")
    trained(*model, loader, epochs=1)
    engine.accountant.look_at(loader)
    with pytest.warns(UserWarning, match="nobody has looked at the inputs of the convolutions"):
        assert engine.get_epsilon(1e-5) < math.inf

    engine = opacus.PrivacyEngine(accountant="reticent")
    model, *others, loader = made(engine, CHANNELS_LAST, "ghost")
    engine.accountant.look_at(loader, model)
    trained(model, *others, loader, epochs=1)
    assert not engine.accountant.unseen_layouts
    with pytest.warns(UserWarning, match="permuted-convolution"):
        assert engine.get_epsilon(1e-5) == math.inf


def test_models_can_be_copied_and_pickled_and_a_copy_reports_to_the_same_accountant():
    engine = PrivacyEngine()
    model, *_ = made(engine, PLAIN)
    assert pickle.dumps(model._module.convolution._forward_pre_hooks)  # torch.save of a whole model needs it
    copied = copy.deepcopy(model._module).convolution
    (look,) = copied._forward_pre_hooks.values()
    images = torch.randn(2, 3, 6, 6).to(memory_format=CHANNELS_LAST)
    look(copied.eval(), (images,))  # Opacus computes no gradients here, so it misreads nothing
    assert engine.accountant.faults == set()
    look(copied.train(), (images,))
    assert engine.accountant.faults == {facts.PERMUTED_GRADIENTS}
