"""Training loops in the shape of scripts that are public, each with three lines of ours, and the answer that is true.

Each is written anew: it makes the calls of its script in their order, with small models and made data, and holds no
line of it. What is true was read off the script before the loop was watched: whether there is noise and whether anybody
knows it, how batches are drawn, and what one record moves. ``wrong`` says where the watch answers something else.

Two scripts are elsewhere: ``ddp_tutorial`` of Opacus is ``test_distributed.py``, with two real processes, and its
``mnist_lightning.py`` is ``test_trainers.py``.
"""

from __future__ import annotations

import copy
import io
import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import count
from typing import Any, ClassVar

import numpy as np
import torch
from opacus import GradSampleModule, PrivacyEngine
from opacus.data_loader import DPDataLoader
from opacus.grad_sample import register_grad_sampler
from opacus.layers import DPLSTM
from opacus.optimizers import DPOptimizer
from opacus.optimizers.optimizer import _check_processed_flag, _mark_as_processed
from opacus.schedulers import LambdaGradClip, LambdaNoise
from opacus.utils.adaptive_clipping.adaptive_clipping_utils import PrivacyEngineAdaptiveClipping
from opacus.utils.batch_memory_manager import BatchMemoryManager
from opacus.validators import ModuleValidator
from torch import nn
from torch.nn import functional
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, TensorDataset, random_split

from reticent import facts
from reticent.facts import Fact
from tests.watching.programs import Net

RECORDS, BATCH, RATE = 120, 20, 1.0 / 6.0
"""A Poisson batch is empty once in 3e9."""
EPOCHS = 2
STEPS = 6 * EPOCHS
STATED = math.nan
"""The noise multiplier that Opacus found for a target epsilon."""
WIDTH, WORDS, CLASSES = 10, 30, 3

Watch = Callable[..., AbstractContextManager[Any]]
"""``rt.watch``."""
Ran = tuple[float, Any]
"""The noise multiplier of the optimizer, and the ledgers that its script would keep."""


@dataclass(frozen=True)
class Loop:
    """One script, and what is true of it.

    Attributes:
        run: the script; it is given ``rt.watch``.
        source: the script that it is shaped after, and its licence.
        parts: of all ledgers together, steps by (noise multiplier, sample rate); noise 0 where no noise counts.
        faults: errors and warnings beside those that each loop has.
        kind: the sampler that is counted: with ``shuffled`` and ``cyclic`` a pass is one release.
        wrong: what the watch says instead.
    """

    run: Callable[[Watch], Ran]
    source: str
    parts: dict[tuple[float, float], int]
    faults: frozenset[Fact] = frozenset()
    kind: str = "poisson"
    wrong: str = ""


LOOPS: dict[str, Loop] = {}


def of(
    source: str,
    noise: float | dict[tuple[float, float], int],
    *faults: Fact,
    name: str = "",
    kind: str = "poisson",
    wrong: str = "",
    **how: Any,
) -> Callable[[Callable[..., Ran]], Callable[..., Ran]]:
    """Puts a loop into the table, run ``how`` its script is run, by its own name where a row has no other.

    ``noise`` is that of Poisson batches of two passes, or the steps by noise and rate.
    """

    def keep(run: Callable[..., Ran]) -> Callable[..., Ran]:
        parts = noise if isinstance(noise, dict) else {(noise, RATE if noise else 1.0): STEPS}
        LOOPS[name or run.__name__] = Loop(partial(run, **how), source, parts, frozenset(faults), kind, wrong)
        return run

    return keep


OPACUS = "pytorch/opacus, Apache-2.0: "


def pictures(count: int = RECORDS, size: int = 12, channels: int = 1) -> TensorDataset:
    draw = torch.Generator().manual_seed(3)
    features = torch.randn(count, channels, size, size, generator=draw)
    return TensorDataset(features, torch.randint(0, CLASSES, (count,), generator=draw))


def texts(count: int = RECORDS) -> list[tuple[torch.Tensor, torch.Tensor]]:
    draw = torch.Generator().manual_seed(4)
    lengths = torch.randint(3, WIDTH + 1, (count,), generator=draw).tolist()
    return [(torch.randint(1, WORDS, (n,), generator=draw), torch.tensor(n % 2)) for n in lengths]


def to_the_longest(records: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    return pad_sequence([x for x, _ in records], batch_first=True), torch.stack([y for _, y in records])


def to_a_width(records: list[Any]) -> tuple[torch.Tensor, torch.Tensor]:
    rows = [functional.pad(x, (0, WIDTH - len(x))) for x, _ in records]
    return torch.stack(rows), torch.stack([y for _, y in records])


def tested(model: Any, loader: Any) -> float:
    """Accuracy on records of other people, as the scripts print it between passes."""
    model.eval()
    right = total = 0
    with torch.no_grad():
        for features, labels in loader:
            right += int((model(features).argmax(1) == labels).sum())
            total += len(labels)
    model.train()
    return right / total


def on_others(model: Any) -> Callable[[], float]:
    """The accuracy on other pictures, after each pass."""
    return lambda: tested(model, DataLoader(pictures(40), 32))


def convnet() -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(1, 4, 4, 2, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2, 1),
        nn.Conv2d(4, 8, 3, 2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(32, 8),
        nn.ReLU(),
        nn.Linear(8, CLASSES),
    )


def engine_of_opacus() -> PrivacyEngine:
    """With the quickest of its accountants."""
    return PrivacyEngine(accountant="rdp", secure_mode=False)


def made_private(model, inner, loader, noise, norm, engine=None, **options):
    """By ``make_private``, with an optimizer of the parameters."""
    return (engine or engine_of_opacus()).make_private(
        module=model,
        optimizer=inner(model.parameters()),
        data_loader=loader,
        noise_multiplier=noise,
        max_grad_norm=norm,
        **options,
    )


def made_for(model, inner, loader, epsilon, delta, norm, **options):
    """By ``make_private_with_epsilon``."""
    target = {"target_epsilon": epsilon, "target_delta": delta, "epochs": EPOCHS, "max_grad_norm": norm}
    return engine_of_opacus().make_private_with_epsilon(
        module=model, optimizer=inner(model.parameters()), data_loader=loader, **target, **options
    )


def in_whole(loader: Any, _: Any) -> Iterable[Any]:
    return loader


def in_parts(loader: Any, optimizer: Any) -> Iterator[Any]:
    with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as parts:
        yield from parts


def trained(watch, made, loss, *, passes=EPOCHS, batches=in_whole, after=lambda: None, late=False, **said):
    """Passes as most scripts write them: ``after`` each of them; gradients are cleared before the loss, or ``late``."""
    model, optimizer, loader = made
    with watch(model, optimizer, loader, **said) as ledger:
        for _ in range(passes):
            model.train()
            for batch in batches(loader, optimizer):
                if not late:
                    optimizer.zero_grad()
                loss(batch)
                optimizer.step()
                if late:
                    optimizer.zero_grad()
            after()
    return optimizer.noise_multiplier, [ledger]


def classes(model, criterion=functional.cross_entropy):
    """The loss of most scripts, and its backward pass."""

    def loss(batch):
        found = criterion(model(batch[0]), batch[1])
        found.backward()
        found.item()

    return loss


# Opacus's own


@of(OPACUS + "examples/mnist.py", {(1.0, RATE): 2 * STEPS})
def mnist(watch):
    """Two runs, whose accuracies are averaged: the second makes the private loader of the first private again."""
    loader, ledgers, noise = DataLoader(pictures(), batch_size=BATCH), [], 0.0
    for _ in range(2):
        model, optimizer, loader = made_private(convnet(), partial(torch.optim.SGD, lr=0.1), loader, 1.0, 1.0)
        noise, found = trained(watch, (model, optimizer, loader), classes(model))
        on_others(model)()
        ledgers += found
    return noise, ledgers


CIFAR = OPACUS + "examples/cifar10.py"


@of(CIFAR + " --workers 2", 1.5, name="cifar10_workers", workers=2, momentum=0.9)
@of(
    CIFAR + " --grad_sample_mode no_op --optim Adam",
    1.5,
    facts.DECLARED,
    name="cifar10_no_op",
    wrong="mixing-not-looked-at, whose words give five reasons and not this one: no loss went backward",
    mode="no_op",
    inner=torch.optim.Adam,
)
@of(
    CIFAR + " --clip_per_layer --optim RMSprop",
    1.5,
    name="cifar10_per_layer",
    per_layer=True,
    inner=torch.optim.RMSprop,
)
@of(CIFAR, 1.5, momentum=0.9, weight_decay=0)
def cifar10(watch, mode="hooks", per_layer=False, inner=torch.optim.SGD, workers=0, **options):
    """A rate that follows the epoch, and a checkpoint after each.

    ``no_op``: the program takes the gradients by itself, so how records are clipped is stated and not seen.
    """
    epochs, file = count(1), io.BytesIO()
    model, optimizer, _ = made = made_private(
        convnet(),
        partial(inner, lr=0.1, **options),
        DataLoader(pictures(), batch_size=BATCH, num_workers=workers),
        1.5,
        [10.0 / np.sqrt(8)] * 8 if per_layer else 10.0,
        clipping="per_layer" if per_layer else "flat",
        grad_sample_mode=mode,
    )
    criterion = nn.CrossEntropyLoss()

    def by_functorch(batch):
        model(batch[0])
        _by_functorch(model, criterion, *batch)

    def after():
        on_others(model)()
        torch.save({"weights": model.state_dict(), "optimizer": optimizer.state_dict()}, file)
        for group in optimizer.param_groups:
            group["lr"] = 0.1 * 0.5 * (1 + np.cos(np.pi * next(epochs) / (EPOCHS + 1)))

    return trained(watch, made, by_functorch if mode == "no_op" else classes(model), after=after, late=True)


def _by_functorch(model, criterion, features, labels):
    """The gradients of records by the program itself, handed to Opacus."""
    parameters = dict(model.named_parameters())

    def loss_of(weights, x, y):
        return criterion(torch.func.functional_call(model, weights, (x[None],)), y[None])

    each = torch.func.vmap(torch.func.grad_and_value(loss_of), (None, 0, 0))
    gradients, losses = each({name: p.detach() for name, p in parameters.items()}, features, labels)
    for name, p in parameters.items():
        p.grad_sample = gradients[name].detach()
    return losses.mean()


class MeanOfWords(nn.Module):
    """The mean runs over all positions, also those of padding."""

    def __init__(self):
        super().__init__()
        self.emb, self.pool = nn.Embedding(WORDS, 8), nn.AdaptiveAvgPool1d(1)
        self.fc1, self.fc2 = nn.Linear(8, 8), nn.Linear(8, 2)

    def forward(self, x):
        x = self.pool(self.emb(x).transpose(1, 2)).squeeze()
        return self.fc2(functional.relu(self.fc1(x)))


IMDB = OPACUS + "examples/imdb.py"


@of(IMDB + ", padded to one width", 0.56, facts.SHUFFLED, name="imdb_mended", kind="shuffled", collate=to_a_width)
@of(IMDB, 0.0, facts.MIXES_RECORDS, facts.SHUFFLED, collate=to_the_longest)
def imdb(watch, collate):
    """Padded to the longest of the batch, whose length divides the mean of every other record: void in truth.

    Batches are shuffled: each pass is one release of all records.
    """
    loader = DataLoader(texts(), batch_size=BATCH, collate_fn=collate, shuffle=True)
    others = DataLoader(texts(40), batch_size=BATCH, collate_fn=collate)
    inner = partial(torch.optim.Adam, lr=0.02)
    made = model, *_ = made_private(MeanOfWords(), inner, loader, 0.56, 1.0, poisson_sampling=False)
    return trained(watch, made, classes(model), after=lambda: tested(model, others))


class Names(nn.Module):
    """The class of a name from the state after its last position, which is one of padding."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, 6)
        self.rnn = DPLSTM(6, 8, num_layers=1, bidirectional=False, batch_first=True)
        self.out_layer = nn.Linear(8, 2)

    def forward(self, x, hidden=None):
        x, _ = self.rnn(self.embedding(x), hidden)
        return self.out_layer(x[:, -1, :])


NAMES, TUTORIAL = OPACUS + "examples/char-lstm-classification.py", OPACUS + "tutorials/"
LSTM = TUTORIAL + "building_lstm_name_classifier.ipynb"


@of(LSTM + ", padded to one width", STATED, name="lstm_tutorial_mended", collate=to_a_width, epsilon=12.0)
@of(LSTM, 0.0, facts.MIXES_RECORDS, name="lstm_tutorial", collate=to_the_longest, epsilon=12.0)
@of(NAMES + ", padded to one width", 1.0, name="char_lstm_mended", collate=to_a_width)
@of(NAMES, 0.0, facts.MIXES_RECORDS, collate=to_the_longest)
def char_lstm(watch, collate, epsilon=None):
    """The state is read after as many positions as the longest name of the batch has: void in truth."""
    data = texts(150)
    train, other = random_split(data, [RECORDS, len(data) - RECORDS])
    loader, others = (DataLoader(part, batch_size=BATCH, collate_fn=collate) for part in (train, other))
    what = Names(), partial(torch.optim.SGD, lr=2.0), loader
    made = made_private(*what, 1.0, 1.5) if epsilon is None else made_for(*what, epsilon, delta=8e-5, norm=1.5)
    model = made[0]

    def after():
        with torch.no_grad():  # the model stays in its training mode
            print([int((model(x).argmax(-1) == y).sum()) for x, y in others])

    return trained(watch, made, classes(model), after=after, late=True)


def generator_of_pictures() -> nn.Module:
    first = nn.ConvTranspose2d(5, 8, 4, 1, 0, bias=False), nn.GroupNorm(4, 8), nn.ReLU(True)
    return nn.Sequential(*first, nn.ConvTranspose2d(8, 1, 4, 2, 1, bias=False), nn.Tanh())


def discriminator_of_pictures() -> nn.Module:
    first = nn.Conv2d(1, 8, 4, 2, 1, bias=False), nn.LeakyReLU(0.2)
    then = nn.Conv2d(8, 8, 3, 1, 1, bias=False), nn.GroupNorm(4, 8), nn.LeakyReLU(0.2)
    return nn.Sequential(*first, *then, nn.Conv2d(8, 1, 4, 1, 0, bias=False), nn.Sigmoid(), nn.Flatten(0))


DCGAN = OPACUS + "examples/dcgan.py"


@of(
    DCGAN + ", with its made rows named, without its seed",
    1.0,
    facts.MADE_ROWS,
    name="dcgan_unseeded",
    seed=None,
    named=True,
)
@of(DCGAN, 0.0, facts.PUBLIC_SEED, facts.PUBLIC_DRAWS, facts.OTHER_MODEL, facts.MIXES_RECORDS, seed=4321)
def dcgan(watch, seed, named=False):
    """Its seed is one of 10,000, and is printed: whoever tries them out subtracts the noise. Nobody names made rows.

    A record and the made row beside it are clipped as one; made rows hold no record.
    """
    if seed is not None:
        torch.manual_seed(seed)
    loader = DataLoader(pictures(size=8), batch_size=BATCH)
    generator, discriminator, criterion = generator_of_pictures(), discriminator_of_pictures(), nn.BCELoss()
    for model in (generator, discriminator):
        for layer in model.modules():
            if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d)):
                layer.weight.data.normal_(0.0, 0.02)
    inner = partial(torch.optim.Adam, lr=2e-4, betas=(0.5, 0.999))
    discriminator, of_real, loader = made_private(discriminator, inner, loader, 1.0, 1.0)
    of_made = inner(generator.parameters())
    with watch(discriminator, of_real, loader) as ledger:
        for _ in range(EPOCHS):
            for real, _ in loader:
                of_real.zero_grad(set_to_none=True)
                ones, zeros = torch.full((len(real),), 1.0), torch.full((len(real),), 0.0)
                on_real = criterion(discriminator(real), ones)
                made = generator(torch.randn(len(real), 5, 1, 1))
                with ledger.no_records() if named else nullcontext():
                    on_made = criterion(discriminator(made.detach()), zeros)
                (on_real + on_made).backward()
                of_real.step()
                of_real.zero_grad(set_to_none=True)
                with ledger.no_records() if named else nullcontext():
                    of_made.zero_grad()
                    criterion(discriminator(made), ones).backward()
                    of_made.step()
            torch.save(generator.state_dict(), io.BytesIO())
    return of_real.noise_multiplier, [ledger]


SPANS = (3, 4)
"""Categories of the two columns of ``CTGAN``'s table."""
CTGAN = "sdv-dev/CTGAN 0.12.1, BSL-1.1: ctgan/synthesizers/ctgan.py with its critic made private"


@of(
    CTGAN + ", one row at a time, of batches of the loader, with categories by lot",
    1.0,
    facts.MADE_ROWS,
    name="ctgan_mended",
    packs=1,
    by_category=False,
)
@of(
    CTGAN + ", one row at a time",
    0.0,
    facts.OTHER_BATCHES,
    facts.MADE_ROWS,
    name="ctgan_unpacked",
    wrong="a record of a rare category is drawn again and again for one batch, and each batch is taken to hold it once",
    packs=1,
    by_category=True,
)
@of(CTGAN, 0.0, facts.MIXES_RECORDS, facts.OTHER_BATCHES, facts.MADE_ROWS, packs=10, by_category=True)
def ctgan(watch, packs, by_category):
    """Ten rows are judged as one, so one gradient is of ten records.

    ``by_category``: a category is drawn first, and then one of its records, with replacement: ``clipped`` is declared,
    and false. Mended, the condition of a record is its own category of a column that is drawn by lot.

    Without the penalty on slopes at points between records and made rows: Opacus 1.6.0 raises IndexError there.
    """
    draw = torch.Generator().manual_seed(5)
    codes = torch.stack([torch.randint(0, span, (RECORDS,), generator=draw) for span in SPANS], 1)
    table = torch.cat([functional.one_hot(codes[:, k], span) for k, span in enumerate(SPANS)], 1).float()
    starts, width = torch.tensor([0, *SPANS[:-1]]), sum(SPANS)
    counts = [torch.log(torch.bincount(codes[:, k], minlength=span) + 1.0) for k, span in enumerate(SPANS)]
    generator = nn.Sequential(nn.Linear(4 + width, 8), nn.ReLU(), nn.Linear(8, width))
    inner = partial(torch.optim.Adam, lr=2e-4, betas=(0.5, 0.9))
    packed = nn.Sequential(nn.Linear(2 * width * packs, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))
    critic = Net(lambda m, x: m.main(x.view(-1, 2 * width * packs)), main=packed)
    loader = DataLoader(TensorDataset(table), batch_size=BATCH)
    critic, of_critic, loader = made_private(critic, inner, loader, 1.0, 1.0)
    of_made = inner(generator.parameters())

    def wanted(size):
        """A column each, by lot; a category of it, by the counts of the records, or of a list that is public."""
        columns = torch.randint(0, len(SPANS), (size,))
        by = counts if by_category else [torch.ones(span) for span in SPANS]
        return columns, torch.tensor([int(torch.multinomial(by[k], 1)) for k in columns])

    def said(columns, categories):
        return functional.one_hot(starts[columns] + categories, width).float()

    def makes(size):
        told = said(*wanted(size))
        spans = generator(torch.cat([torch.randn(size, 4), told], 1)).split(SPANS, 1)
        return torch.cat([*(functional.gumbel_softmax(one, tau=0.2) for one in spans), told], 1)

    def batches():
        if not by_category:
            for (real,) in loader:
                columns = torch.randint(0, len(SPANS), (len(real),))
                own = torch.stack([one.argmax(1) for one in real.split(SPANS, 1)], 1)
                yield torch.cat([real, said(columns, own[torch.arange(len(real)), columns])], 1)
        for _ in range(RECORDS // BATCH if by_category else 0):
            columns, categories = wanted(BATCH)
            have = [np.flatnonzero(codes[:, k] == one) for k, one in zip(columns, categories, strict=True)]
            yield torch.cat([table[[int(np.random.choice(places)) for places in have]], said(columns, categories)], 1)

    with watch(critic, of_critic, loader) as ledger:
        for _ in range(EPOCHS):
            for real in batches():
                of_critic.zero_grad()
                on_real = critic(real)
                with ledger.no_records():
                    on_made = critic(makes(len(real)).detach())
                (on_made.mean() - on_real.mean()).backward()
                of_critic.step()
                with ledger.no_records():
                    of_critic.zero_grad()
                    of_made.zero_grad()
                    (-critic(makes(BATCH)).mean()).backward()
                    of_made.step()
    return of_critic.noise_multiplier, [ledger]


@of(TUTORIAL + "building_image_classifier.ipynb", STATED)
def image_tutorial(watch):
    """Batch normalisation is replaced, and large batches go through the model in parts."""
    loader = DataLoader(pictures(), batch_size=BATCH)
    model = nn.Sequential(nn.Conv2d(1, 8, 4, 4), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.Linear(72, CLASSES))
    model = ModuleValidator.fix(model)
    ModuleValidator.validate(model, strict=False)
    made = model, *_ = made_for(model, partial(torch.optim.RMSprop, lr=1e-3), loader, 50.0, delta=1e-5, norm=1.2)
    return trained(watch, made, classes(model), batches=in_parts, after=on_others(model))


class Attention(nn.Module):
    """One head, a residual and a norm; the mask takes out padding."""

    def __init__(self, size=8):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))
        self.norm, self.dropout = nn.LayerNorm(size), nn.Dropout(0.1)

    def forward(self, x, mask):
        scores = self.query(x) @ self.key(x).transpose(1, 2) / math.sqrt(x.shape[-1])
        weights = self.dropout(scores.masked_fill(mask[:, None, :] == 0, -1e9).softmax(-1))
        return self.norm(x + weights @ self.value(x))


class TinyBert(nn.Module):
    """As of ``transformers``: it reads keywords, and gives its loss and its logits."""

    def __init__(self, size=8):
        super().__init__()
        self.words, self.places, self.types = (nn.Embedding(n, size) for n in (WORDS, WIDTH, 2))
        self.layers = nn.ModuleList([Attention(size), Attention(size)])
        self.pooler, self.classifier = nn.Linear(size, size), nn.Linear(size, CLASSES)

    def forward(self, input_ids, attention_mask, token_type_ids, labels):
        x = self.words(input_ids) + self.types(token_type_ids) + self.places.weight[: input_ids.shape[1]]
        for layer in self.layers:
            x = layer(x, attention_mask)
        logits = self.classifier(torch.tanh(self.pooler(x[:, 0])))
        return functional.cross_entropy(logits, labels), logits


def sentences(count=RECORDS):
    draw = torch.Generator().manual_seed(5)
    words, labels = torch.randint(1, WORDS, (count, WIDTH), generator=draw), torch.arange(count) % CLASSES
    mask = (torch.arange(WIDTH)[None] < torch.randint(3, WIDTH + 1, (count, 1), generator=draw)).long()
    return TensorDataset(words * mask, mask, torch.zeros_like(words), labels)


def inputs_of(batch):
    return dict(zip(("input_ids", "attention_mask", "token_type_ids", "labels"), batch, strict=True))


def evaluated(model, loader):
    model.eval()
    with torch.no_grad():
        found = [model(**inputs_of(batch))[0].item() for batch in loader]
    model.train()
    return np.mean(found)


class LowRank(nn.Module):
    """A frozen layer, and two thin ones beside it, behind dropout."""

    def __init__(self, base, rank=2, scale=1.0):
        super().__init__()
        self.base, self.scale, self.dropout = base, scale, nn.Dropout(0.05)
        self.down = nn.Linear(base.in_features, rank, bias=False)
        self.up = nn.Linear(rank, base.out_features, bias=False)
        nn.init.zeros_(self.up.weight)
        for p in base.parameters():
            p.requires_grad = False

    def forward(self, x):
        return self.base(x) + self.scale * self.up(self.down(self.dropout(x)))


def upper_layers():
    model = TinyBert()
    for p in model.parameters():
        p.requires_grad = False
    for layer in (model.layers[-1], model.pooler, model.classifier):
        for p in layer.parameters():
            p.requires_grad = True
    return model


def with_low_rank():
    model = TinyBert()
    for p in model.parameters():
        p.requires_grad = False
    for layer in model.layers:
        layer.query, layer.value = LowRank(layer.query), LowRank(layer.value)
    for p in [*model.classifier.parameters()]:
        p.requires_grad = True
    for p in model.layers[0].parameters():
        p.requires_grad = False
    return model


TEXT = TUTORIAL + "building_text_classifier.ipynb"


@of(TEXT + ", Low-Rank Adaptation", STATED, name="lora_tutorial", make=with_low_rank, mode="ghost")
@of(TEXT + ", Ghost Clipping", STATED, name="text_tutorial_ghost", make=upper_layers, mode="ghost")
@of(TEXT, STATED, make=upper_layers, mode="hooks")
def text_tutorial(watch, make, mode):
    """Upper layers of a frozen model, or thin ones, which gives its loss itself; evaluation between batches."""
    loader, others = DataLoader(sentences(), batch_size=BATCH), DataLoader(sentences(40), batch_size=BATCH)
    target = {"epsilon": 7.5, "delta": 1 / len(loader), "norm": 0.1, "grad_sample_mode": mode}
    inner = partial(torch.optim.AdamW, lr=5e-4, eps=1e-8)
    model, optimizer, *own, loader = made_for(make().train(), inner, loader, criterion=nn.CrossEntropyLoss(), **target)
    steps = count()

    def loss(batch):
        outputs = model(**inputs_of(batch))
        (own[0](outputs[1], batch[3]) if own else outputs[0]).backward()
        if next(steps) % 5 == 4:
            evaluated(model, others)

    return trained(watch, (model, optimizer, loader), loss, batches=in_parts if mode == "hooks" else in_whole)


ADAPTIVE = OPACUS + "opacus/utils/adaptive_clipping/README.md"


@of(
    ADAPTIVE + ", with a loss for each record",
    {(1.0, 0.5): 6},
    facts.ADAPTIVE_COUNT,
    name="adaptive_clipping_mended",
    mended=True,
)
@of(ADAPTIVE, {(0.0, 1.0): 6}, facts.ADAPTIVE_COUNT, facts.UNCLIPPED, mended=False)
def adaptive_clipping(watch, mended):
    """Opacus 1.6.0 multiplies the mean of all losses with the factors of records: nothing is clipped, void in truth.

    The number of unclipped records is released beside the sum, and both together have the noise that is stated.
    A Poisson batch needs more than ten records here, or Opacus refuses it.
    """
    model, optimizer, criterion, loader = made_private(
        convnet(),
        partial(torch.optim.SGD, lr=0.1),
        DataLoader(pictures(), batch_size=RECORDS // 2, shuffle=True),
        1.0,
        10.0,
        PrivacyEngineAdaptiveClipping(accountant="rdp"),
        criterion=nn.CrossEntropyLoss(),
        grad_sample_mode="ghost",
        target_unclipped_quantile=0.5,
        min_clipbound=1,
        max_clipbound=1e8,
        clipbound_learning_rate=0.2,
    )
    if mended:
        criterion.criterion.reduction = "none"
    loss = lambda batch: criterion(model(batch[0]), batch[1]).backward()  # noqa: E731
    return trained(watch, (model, optimizer, loader), loss, passes=3)


class Laplacian(DPOptimizer):
    """Noise that no accountant of Opacus counts."""

    def add_noise(self):
        laplace = torch.distributions.Laplace(0, self.noise_multiplier * self.max_grad_norm)
        for p in self.params:
            _check_processed_flag(p.summed_grad)
            p.grad = p.summed_grad + laplace.sample(p.summed_grad.shape)
            _mark_as_processed(p.summed_grad)


ADVANCED = TUTORIAL + "intro_to_advanced_features.ipynb"


@of(ADVANCED + ", LaplaceDPOptimizer", 0.0, facts.UNKNOWN_NOISE, name="laplacian", kind_of=Laplacian)
@of(ADVANCED, 1.0, kind_of=DPOptimizer)
def by_parts(watch, kind_of):
    """Model, loader, optimizer and accountant are put together without ``make_private``.

    Laplace noise on a sum that is clipped in L2: nobody has a proof for it.
    """
    data = TensorDataset(torch.randn(RECORDS, 16), torch.randint(0, 2, (RECORDS,)))
    model = GradSampleModule(nn.Sequential(nn.Linear(16, 8), nn.Linear(8, 2)))
    inner = torch.optim.SGD(model.parameters(), lr=0.1)
    loader = DPDataLoader.from_data_loader(DataLoader(data, batch_size=BATCH), distributed=False)
    rate = 1 / len(loader)
    optimizer = kind_of(
        optimizer=inner, noise_multiplier=1.0, max_grad_norm=1.0, expected_batch_size=int(len(data) * rate)
    )
    accountant = engine_of_opacus().accountant
    optimizer.attach_step_hook(accountant.get_optimizer_hook_fn(sample_rate=rate))
    return trained(watch, (model, optimizer, loader), classes(model))


class Scaled(nn.Module):
    """A layer whose gradients of records the program tells Opacus how to take."""

    def __init__(self, size):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x):
        return x * self.weight


@register_grad_sampler(Scaled)
def _of_scaled(layer, activations, backprops):
    return {layer.weight: backprops * activations[0]}


@of(TUTORIAL + "guide_to_grad_sampler.ipynb", 1.0, facts.DECLARED)
def own_grad_sampler(watch):
    """Nobody saw whether these are the gradients of records: the program vouches for them."""
    data = TensorDataset(torch.randn(RECORDS, 6), torch.randint(0, 2, (RECORDS,)))
    model, loader = nn.Sequential(Scaled(6), nn.Linear(6, 2)), DataLoader(data, batch_size=BATCH)
    model, optimizer, loader = made_private(model, partial(torch.optim.SGD, lr=0.1), loader, 1.0, 1.0)
    return trained(watch, (model, optimizer, loader), classes(model))


@of(OPACUS + "opacus/privacy_engine.py, save_checkpoint and load_checkpoint", 1.0)
def resumed(watch):
    """Another model is loaded from the checkpoint of the first; its watch says whose ledger it continues."""
    file, ledgers, noise = io.BytesIO(), [], 0.0
    inner = partial(torch.optim.SGD, lr=0.1, momentum=0.9)
    for again in (False, True):
        engine, loader = engine_of_opacus(), DataLoader(pictures(), batch_size=BATCH)
        made = model, optimizer, _ = made_private(convnet(), inner, loader, 1.0, 1.0)
        if again:
            file.seek(0)
            engine.load_checkpoint(path=file, module=model, optimizer=optimizer)
        said = {"continues": ledgers[0] if again else None}
        noise, (ledger,) = trained(watch, made, classes(model), passes=1, **said)
        engine.save_checkpoint(path=file, module=model, optimizer=optimizer)
        ledgers.append(ledger)
    return noise, ledgers[1:]


# Others


def described(count=RECORDS):
    """Records by name, as ``datasets`` gives them."""
    return [{"img": image, "label": label} for image, label in pictures(count)]


@of("adap/flower, Apache-2.0: examples/opacus/opacus_fl", {(1.0, RATE): 3 * 6})
def flower_client(watch):
    """A client of federated learning: in each round a new model gets the mean of all; one pass; its weights go back."""
    server, ledgers, noise = {name: t.numpy() for name, t in convnet().state_dict().items()}, [], 0.0
    inner, others = partial(torch.optim.SGD, lr=0.001, momentum=0.9), DataLoader(described(40), batch_size=32)
    for _ in range(3):
        net = convnet()
        net.load_state_dict({name: torch.tensor(found) for name, found in server.items()})
        loader = DataLoader(described(), batch_size=BATCH, shuffle=True)
        made = model, *_ = made_private(net, inner, loader, 1.0, 1.0)
        own = classes(model)
        loss = lambda batch, own=own: own((batch["img"], batch["label"]))  # noqa: E731
        noise, found = trained(watch, made, loss, passes=1, start="declared")
        with torch.no_grad():
            print(sum(int((net(batch["img"]).argmax(1) == batch["label"]).sum()) for batch in others))
        sent = dict(zip(server, (t.numpy() for t in model.state_dict().values()), strict=True))
        server = {name: (found + sent[name]) / 2 for name, found in server.items()}
        ledgers += found
    return noise, ledgers


VIEWS = 2


def _of_views(layer, activations, backprops):
    """The sum over the views of each record."""
    read, slopes = (t.reshape(-1, VIEWS, *t.shape[1:]) for t in (activations[0], backprops))
    return {layer.weight: torch.einsum("nki,nkj->nij", slopes, read), layer.bias: slopes.sum(1)}


class OfViews(GradSampleModule):
    """One gradient for all views of a record, taken in the layer itself."""

    GRAD_SAMPLERS: ClassVar[dict[Any, Any]] = {**GradSampleModule.GRAD_SAMPLERS, nn.Linear: _of_views}

    def rearrange_grad_samples(self, *, module, **how):
        activations, backprops = super().rearrange_grad_samples(module=module, **how)
        module.max_batch_len = len(backprops) // VIEWS
        return activations, backprops / VIEWS


class EngineOfViews(PrivacyEngine):
    def _prepare_model(self, module, **how):
        return OfViews(module)


def _moving_mean(model, mean, step):
    share = min(0.9999, (1 + step) / (10 + step))
    kept = dict(mean.named_parameters())
    for name, p in model.named_parameters():
        kept[name].sub_((1.0 - share) * (kept[name] - p.detach()))


TAN = "facebookresearch/tan, BSD-3-Clause: cifar10.py"


@of(TAN, {(2.0, RATE): 9}, facts.DECLARED, name="tan_on_training_records", on_training=True)
@of(TAN + ", evaluated on other records", {(2.0, RATE): 9}, facts.DECLARED, on_training=False)
def tan(watch, on_training):
    """Views of a record share a gradient, by samplers of the program; a running mean of the weights is kept beside.

    It returns after nine steps, in the middle of a pass. There the script also computes the accuracy on the training
    records from the loader that is watched. The weights have their noise. The accuracy that is printed is another
    release, without noise.
    """
    data = TensorDataset(pictures().tensors[0].flatten(1), pictures().tensors[1])
    model = nn.Sequential(nn.Linear(144, 8), nn.ReLU(), nn.Linear(8, CLASSES))
    criterion, inner, loader = nn.CrossEntropyLoss(), partial(torch.optim.SGD, lr=4.0), DataLoader(data, BATCH, True)
    model, optimizer, loader = made_private(model, inner, loader, 2.0, 1.0, EngineOfViews())
    others = DataLoader(TensorDataset(torch.randn(40, 144), torch.randint(0, CLASSES, (40,))), batch_size=20)
    mean, steps = copy.deepcopy(model), 0
    for p in mean.parameters():
        p.detach_()
    with watch(model, optimizer, loader) as ledger:
        while steps < 9:
            model.train()
            with BatchMemoryManager(data_loader=loader, max_physical_batch_size=8, optimizer=optimizer) as parts:
                for features, labels in parts:
                    optimizer.zero_grad(set_to_none=True)
                    views = torch.repeat_interleave(features, repeats=VIEWS, dim=0)
                    views = torch.stack([row.roll(int(torch.randint(0, 3, ()))) for row in views])
                    criterion(model(views), torch.repeat_interleave(labels, repeats=VIEWS, dim=0)).backward()
                    updated = not optimizer._check_skip_next_step(pop_next=False)
                    norms = [p.grad_sample.flatten(1).norm(dim=1) for p in model.parameters()]
                    print(float(torch.stack(norms).norm(dim=0).mean()))
                    optimizer.step()
                    if updated:
                        steps += 1
                        _moving_mean(model, mean, steps)
                        if steps % 4 == 0:
                            print(tested(mean, others), tested(mean, loader) if on_training else "")
                    if steps >= 9:
                        break
    return optimizer.noise_multiplier, [ledger]


@of(
    "opendp/smartnoise-sdk, MIT: synth/snsynth/pytorch/nn/dpgan.py",
    3.5,
    facts.SHUFFLED,
    facts.OTHER_MODEL,
    kind="shuffled",
    wrong="the step on made rows is taken for that of the batch, and the step on the records for one on unknown ones",
)
def smartnoise_gan(watch):
    """Two steps for each batch: one on made rows alone, which hold no record, and one on the records.

    Batches are shuffled and none is short, so a pass is one release. The norms of clipping follow the noisy gradients.
    """
    data = TensorDataset(torch.randn(RECORDS, 6))
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, drop_last=True)
    generator = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6))
    discriminator = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 1), nn.Sigmoid())
    inner, how = partial(torch.optim.Adam, lr=4e-4), {"clipping": "per_layer", "poisson_sampling": False}
    discriminator, of_real, loader = made_private(discriminator, inner, loader, 3.5, [1.0] * 4, **how)
    of_made, criterion = torch.optim.Adam(generator.parameters(), lr=1e-4), nn.BCELoss()
    zeros, ones = torch.full((BATCH,), 0.0), torch.full((BATCH,), 1.0)
    with watch(discriminator, of_real, loader) as ledger:
        for _ in range(EPOCHS):
            for (real,) in loader:
                made = generator(torch.randn(BATCH, 4))
                for rows, labels in ((made.detach(), zeros), (real, ones)):
                    of_real.zero_grad()
                    criterion(discriminator(rows).squeeze(), labels).backward()
                    of_real.step()
                of_real.max_grad_norms = norms = [float(p.grad.norm(2)) for p in discriminator.parameters()]
                of_real.max_grad_norm = math.sqrt(sum(norm**2 for norm in norms))
                of_real.zero_grad()
                of_made.zero_grad()
                criterion(discriminator(made).squeeze(), ones).backward()
                of_made.step()
                of_real.zero_grad()
    return of_real.noise_multiplier, [ledger]


BASELINE = "dayu11/DP-SGD-Baseline-Opacus, no licence stated: main.py"


@of(BASELINE, {(1.2, 1.0): EPOCHS}, facts.SHUFFLED, facts.ACCUMULATION)
def accumulated(watch):
    """Three shuffled batches for each step, by ``signal_skip_step``: a pass is one release, whatever is added up."""
    loader = DataLoader(pictures(), batch_size=BATCH, shuffle=True)
    made = made_private(convnet(), partial(torch.optim.SGD, lr=4), loader, 1.2, 1.0, poisson_sampling=False)
    model, optimizer, _ = made
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=EPOCHS)
    updates, own = count(1), classes(model)

    def loss(batch):
        own(batch)
        if next(updates) % 3 != 0:
            optimizer.signal_skip_step()

    def after():
        schedule.step()
        on_others(model)()

    return trained(watch, made, loss, after=after)


class Flow(nn.Module):
    """A step of a masked autoregressive flow; ``log_probs`` reads it, and nobody calls the whole model."""

    def __init__(self, size=5):
        super().__init__()
        self.shift, self.scale = nn.Linear(size, size), nn.Linear(size, size)
        self.register_buffer("mask", torch.tril(torch.ones(size, size), -1))

    def log_probs(self, x):
        shift, scale = self.shift(x @ self.mask), self.scale(x @ self.mask).tanh()
        return (-0.5 * ((x - shift) * torch.exp(-scale)) ** 2 - scale).sum(1)

    def forward(self, x):
        return self.log_probs(x)


FLOW = "Privacy-Police/Differential-Privacy, MIT: normalizing_flows/train_dp.py"


@of(FLOW + ", without its seed", 1.0, facts.IN_ORDER, name="flow_unseeded", kind="cyclic", seed=None)
@of(FLOW, 0.0, facts.PUBLIC_SEED, facts.IN_ORDER, seed=41)
def flow(watch, seed):
    """Anybody can draw the noise again. The seed of the script is 42, whose noise other tests have seen.

    Batches come in the order of the data set: a pass is one release.
    """
    if seed is not None:
        torch.manual_seed(seed)
    draw = torch.Generator().manual_seed(6)
    train, others = (
        DataLoader(torch.randn(size, 5, generator=draw), batch_size=BATCH, drop_last=True) for size in (RECORDS, 40)
    )
    inner = partial(torch.optim.Adam, lr=1e-4, weight_decay=1e-6)
    made = model, *_ = made_private(Flow(), inner, train, 1.0, 1.0, poisson_sampling=False)
    inside = model._module

    def after():
        model.eval()
        print(sum(-inside.log_probs(batch).mean().item() for batch in others) / len(others))

    return trained(watch, made, lambda batch: (-inside.log_probs(batch).mean()).backward(), after=after, late=True)


DYNAMIC = "dynamic-dp/dynamic-dp, no licence stated: dp_mnist.py"
TWO_LEVELS = {(1.0, RATE): 6, (2.0, RATE): 6}


@of(DYNAMIC + ", with a loader of Opacus", TWO_LEVELS, name="dynamic_with_loader", seed=None, by_hand=False)
@of(
    DYNAMIC + ", without its seed",
    {(1.0, 1.0): 6, (2.0, 1.0): 6},
    facts.OTHER_BATCHES,
    name="dynamic_unseeded",
    seed=None,
    by_hand=True,
)
@of(DYNAMIC, 0.0, facts.PUBLIC_SEED, facts.OTHER_BATCHES, seed=43, by_hand=True)
def dynamic(watch, seed, by_hand):
    """Noise and clip norm follow the epoch. As ``flow``, with batches that are drawn by hand.

    There each record has a coin, and nobody can see it: one release of all records for each step is the safe answer.
    """
    if seed is not None:
        torch.manual_seed(seed)
    data, rng = pictures(), np.random.default_rng()
    loader = DataLoader(data, batch_size=BATCH, shuffle=True)
    made = model, optimizer, _ = made_private(convnet(), partial(torch.optim.SGD, lr=0.15), loader, 1.0, 1.5)
    noise = LambdaNoise(optimizer, noise_lambda=lambda epoch: 2.0**epoch)
    norm = LambdaGradClip(optimizer, scheduler_function=lambda epoch: 0.5**epoch)

    def drawn(*_: Any) -> Iterator[Any]:
        for _ in range(int(1 / RATE)):
            yield data[np.nonzero(rng.binomial(1, RATE, len(data)))[0]]

    def after():
        on_others(model)()
        noise.step()
        norm.step()

    return trained(watch, made, classes(model), batches=drawn if by_hand else in_whole, after=after)


class Output(dict):
    """What a model of ``transformers`` gives."""

    __getattr__ = dict.__getitem__


class TinyCausal(nn.Module):
    """Each position reads those before it; the loss is the mean over all positions of all records."""

    def __init__(self, size=8):
        super().__init__()
        self.words, self.block, self.lm_head = nn.Embedding(WORDS, size), nn.Linear(size, size), nn.Linear(size, WORDS)

    def forward(self, input_ids, labels=None):
        x = self.words(input_ids).cumsum(1) / torch.arange(1, input_ids.shape[1] + 1)[:, None]
        logits = self.lm_head(torch.tanh(self.block(x)))
        loss = functional.cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())
        return Output(loss=loss, logits=logits)


def _by_name(records):
    return {"input_ids": torch.stack([record["input_ids"] for record in records])}


@of("Privacy4all/dp_llm_finetuning, no licence stated: Model_finetune/finetune.ipynb", STATED)
def causal_lora(watch):
    """Thin layers of a language model, a worker, and the loss of the model.

    The script also recomputes layers (gradient checkpointing), where Opacus 1.6.0 finds no gradients of records.
    """
    draw = torch.Generator().manual_seed(7)
    data = [{"input_ids": row} for row in torch.randint(0, WORDS, (RECORDS, WIDTH), generator=draw)]
    model = TinyCausal()
    for p in model.parameters():
        p.requires_grad = False
    model.block, model.lm_head = LowRank(model.block, scale=4.0), LowRank(model.lm_head, scale=4.0)
    model.train()
    loader = DataLoader(data, batch_size=BATCH, collate_fn=_by_name, num_workers=1, drop_last=True)
    inner = partial(torch.optim.AdamW, lr=1e-4, eps=1e-8)
    made = model, *_ = made_for(model, inner, loader, 4.0, delta=1 / RECORDS, norm=1.0)

    def loss(batch):
        model(batch["input_ids"], labels=batch["input_ids"]).loss.backward()

    return trained(watch, made, loss, batches=in_parts)


class Autoencoder(nn.Module):
    """Conditional and variational: it draws random numbers, and gives four tensors."""

    def __init__(self):
        super().__init__()
        self.labels, self.encode = nn.Embedding(CLASSES, 4), nn.Linear(36 + 4, 12)
        self.mean, self.spread, self.decode = nn.Linear(12, 3), nn.Linear(12, 3), nn.Linear(3 + 4, 36)

    def forward(self, x, labels):
        label = self.labels(labels)
        hidden = functional.relu(self.encode(torch.cat([x.flatten(1), label], 1)))
        mean, spread = self.mean(hidden), self.spread(hidden)
        drawn = mean + torch.exp(0.5 * spread) * torch.randn_like(mean)
        return self.decode(torch.cat([drawn, label], 1)).view_as(x), mean, spread, label[:, :3]


class LossOfRecords(nn.Module):
    """Opacus asks it for the loss of each record."""

    def __init__(self, weight=0.0, reduction="mean"):
        super().__init__()
        self.weight, self.reduction = weight, reduction

    def forward(self, outputs, targets):
        made, mean, spread, prior = outputs
        far = functional.binary_cross_entropy_with_logits(made, targets, reduction="none").flatten(1).mean(1)
        each = far + self.weight * -0.5 * (1.0 + spread - (mean - prior).square() - spread.exp()).mean(1)
        return each if self.reduction == "none" else each.mean()


@torch.no_grad()
def _drawn_towards(kept, model, decay=0.99):
    for own, p in zip(kept.parameters(), getattr(model, "_module", model).parameters(), strict=True):
        own.mul_(decay).add_(p, alpha=1.0 - decay)


OF_DIGITS = "Tomatoisawful/differential-privacy-dcgan, no licence stated: src/privacy_models/"


@of(OF_DIGITS + "train_dp_vae.py, without its seed", STATED, name="autoencoder_unseeded", seed=None)
@of(OF_DIGITS + "train_dp_vae.py", 0.0, facts.PUBLIC_SEED, facts.PUBLIC_DRAWS, seed=2026)
def autoencoder(watch, seed):
    """A loss of its own in ghost mode, whose parts change their weight; a running mean beside the model.

    With its seed, noise and batches are known.
    """
    generator = None
    if seed is not None:
        torch.manual_seed(seed)
        generator = torch.Generator().manual_seed(seed)
    data = TensorDataset(pictures(size=6).tensors[0].sigmoid(), pictures().tensors[1])
    loader = DataLoader(data, batch_size=BATCH, shuffle=True, generator=generator)
    model, inner = Autoencoder(), partial(torch.optim.Adam, lr=1e-3)
    kept, epochs = copy.deepcopy(model).eval().requires_grad_(False), count(1)
    how = {"criterion": LossOfRecords(), "grad_sample_mode": "ghost"}
    model, optimizer, criterion, loader = made_for(model, inner, loader, 8.0, delta=1e-5, norm=1.0, **how)

    def in_epochs(*_: Any) -> Iterator[Any]:
        criterion.criterion.weight = 0.02 * next(epochs) / EPOCHS
        for batch in loader:
            yield batch
            if not getattr(optimizer, "_is_last_step_skipped", False):
                _drawn_towards(kept, model)

    def after():
        torch.save({"model": model._module.state_dict(), "mean": kept.state_dict()}, io.BytesIO())

    loss = lambda batch: criterion(model(*batch), batch[0]).backward()  # noqa: E731
    return trained(watch, (model, optimizer, loader), loss, batches=in_epochs, after=after)


@of(
    OF_DIGITS + "train_dp_wgan_cp_digit8.py, with made rows and cut weights named, without its seed",
    STATED,
    *(facts.OTHER_MODEL, facts.MADE_ROWS, facts.POST_PROCESSED),
)
def clipped_weights(watch):
    """Wasserstein: the critic's weights are cut after each step, and the generator learns in each third one."""
    loader = DataLoader(pictures(size=8), batch_size=BATCH, shuffle=True)
    generator = generator_of_pictures()
    critic = nn.Sequential(nn.Conv2d(1, 4, 4, 2, 1), nn.LeakyReLU(0.2), nn.Flatten(), nn.Linear(64, 1))
    kept = copy.deepcopy(generator).eval().requires_grad_(False)
    of_made = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.0, 0.9))
    inner = partial(torch.optim.RMSprop, lr=5e-5)
    critic, of_critic, loader = made_for(critic, inner, loader, 8.0, delta=1e-5, norm=1.0)
    steps = 0
    with watch(critic, of_critic, loader) as ledger:
        for _ in range(EPOCHS):
            for real, _ in loader:
                critic.requires_grad_(True)
                of_critic.zero_grad(set_to_none=True)
                with torch.no_grad():
                    made = generator(torch.randn(len(real), 5, 1, 1))
                on_real = critic(real)
                with ledger.no_records():
                    on_made = critic(made)
                (on_made.mean() - on_real.mean()).backward()
                of_critic.step()
                with torch.no_grad(), ledger.after_step():
                    for p in critic._module.parameters():
                        p.clamp_(-0.02, 0.02)
                steps += 1
                if steps % 3 == 0:
                    of_made.zero_grad(set_to_none=True)
                    critic.requires_grad_(False)
                    critic.disable_hooks()
                    (-critic(generator(torch.randn(len(real), 5, 1, 1))).mean()).backward()
                    of_made.step()
                    _drawn_towards(kept, generator)
                    critic.enable_hooks()
                    critic.requires_grad_(True)
    return of_critic.noise_multiplier, [ledger]
