"""Records that are mixed before the model reads them: by what collates them, by the loop, or by hooks."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, default_collate

import reticent as rt
from reticent import facts
from reticent.watching.detectors.base import Loop, Said
from reticent.watching.detectors.collating import Collating
from reticent.watching.detectors.mixed_inputs import Yielded
from tests.watching.loops import BATCH, RECORDS, faults, private, records, trained, void

pytestmark = pytest.mark.filterwarnings("ignore")


def mixup(x):
    return 0.6 * x + 0.4 * x[torch.randperm(len(x))]


def cutmix(x):
    cut = x.clone()
    cut[:, :, 2:6, 2:7] = x[torch.randperm(len(x))][:, :, 2:6, 2:7]
    return cut


class Collate:
    """A class, so that workers can load it."""

    def __init__(self, change=mixup):
        self.change = change

    def __call__(self, batch):
        features, labels = default_collate(batch)
        return self.change(features), labels


def of_batch(x):
    return (x - x.mean(0)) / (x.std(0) + 1e-3)


def noisy(x):
    return x + 0.1 * torch.randn(x.shape)


def loader(change, workers=0):
    return DataLoader(records(), batch_size=BATCH, shuffle=True, collate_fn=Collate(change), num_workers=workers)


class TestCollating:
    @pytest.mark.parametrize("change", [mixup, of_batch])
    def test_one_that_mixes(self, change):
        assert faults(trained(private(loader(change)))) == {facts.MIXES_RECORDS}

    def test_one_that_mixes_in_workers(self):
        made = private(loader(mixup, workers=1), poisson_sampling=False)
        assert faults(trained(made)) == {facts.MIXES_RECORDS}

    @pytest.mark.parametrize("change", [noisy, torch.tanh])
    def test_one_that_changes_each_record_by_itself(self, change):
        own = private(loader(change))
        collate = own[2].collate_fn
        assert not void(trained(own))
        assert own[2].collate_fn is collate

    def test_rows_that_are_filled_up_to_the_longest(self):
        def padded(batch):
            rows = [features[: 1 + int(labels)] for features, labels in batch]
            filled = nn.utils.rnn.pad_sequence(rows, batch_first=True)
            return nn.functional.pad(filled, (0, 4 - filled.shape[1])), torch.stack([y for _, y in batch])

        assert not void(trained(private(DataLoader(records(), batch_size=BATCH, collate_fn=padded))))

    @pytest.mark.parametrize(
        "order", [lambda batch: batch[1].argsort(stable=True), lambda batch: torch.randperm(len(batch[1]))]
    )
    def test_one_that_puts_them_into_another_order(self, order):
        def collate(records):
            batch = default_collate(records)
            places = order(batch)
            return [part[places] for part in batch]

        assert not void(trained(private(DataLoader(records(), batch_size=BATCH, collate_fn=collate))))

    @pytest.mark.parametrize("alike", [True, False])
    def test_rows_that_say_where_they_begin(self, alike):
        """As for sums over bags of tokens: no such row is the same at another place."""
        rows = [(torch.randn(3 if alike else 2 + place), place) for place in range(8)]

        def bags(records):
            begin = torch.tensor([0, *(len(x) for x, _ in records[:-1])]).cumsum(0)
            return torch.cat([x for x, _ in records]), begin, torch.tensor([y for _, y in records])

        made = DataLoader(rows, batch_size=8, collate_fn=bags)
        loop = Loop(nn.Linear(4, 1), None, made, Said(), ())
        undo = list(Collating(loop).attach())
        assert len(list(made)) == 1
        while undo:
            undo.pop()()
        assert loop.faults == set()

    def test_a_look_draws_nothing(self):
        model, drawn = nn.Linear(4, 1), []
        for looked in (False, True):
            torch.manual_seed(7)
            one = loader(noisy)
            with rt.watch(model, None, one if looked else None) as seen:
                drawn.append(torch.cat([features for features, _ in one]))
                seen.step(noise_multiplier=1.0)
        torch.seed()
        assert torch.allclose(*drawn)


IMAGES = {
    "mixup": (mixup, True),
    "mixup, scaled": (lambda x: (mixup(x) - 0.3) / 0.2, True),
    "cutmix": (cutmix, True),
    "centred": (lambda x: x - x.mean(0), True),
    "of unit variance": (of_batch, True),
    "the same": (lambda x: x, False),
    "scaled": (lambda x: (x - 0.3) / 0.2, False),
    "flipped": (lambda x: x.flip(-1), False),
    "shifted": (lambda x: x.roll(1, -1), False),
    "noisy": (noisy, False),
    "in another order": (lambda x: x[torch.randperm(len(x))], False),
    "erased": (lambda x: x.flatten(1).index_fill(1, torch.arange(9), 0.5).view(x.shape), False),
    "masked": (lambda x: x * (torch.rand(x.shape) > 0.2), False),
    "of unit length": (lambda x: nn.functional.normalize(x.flatten(1)).view(x.shape), False),
}


@pytest.mark.parametrize("name", IMAGES)
@pytest.mark.parametrize("sparse", [True, False])
def test_images(name, sparse):
    change, wanted = IMAGES[name]
    images = torch.rand(16, 2, 10, 10)
    images = images * (images > 0.7) if sparse and name != "of unit variance" else images
    own = TensorDataset(images)
    seen = Yielded(DataLoader(own))
    seen.gave([images])
    assert seen.mixed(change(images)) == wanted


def test_images_of_which_the_first_were_left_as_they_are():
    images = torch.rand(16, 2, 10, 10)
    others = torch.cat([torch.arange(4), torch.arange(4, 16).roll(1)])
    own = TensorDataset(images)
    seen = Yielded(DataLoader(own))
    seen.gave([images])
    assert seen.mixed(0.6 * images + 0.4 * images[others] - 1.5)


@pytest.mark.parametrize("name", ["mixup", "in another order", "noisy", "scaled"])
def test_in_the_loop(name):
    change, wanted = IMAGES[name]
    made = private()
    assert faults(trained(made, forward=lambda x: made[0](change(x)))) == ({facts.MIXES_RECORDS} if wanted else set())


@pytest.mark.parametrize("sizes", [(2, 10), (2, 2)])
def test_mixup_that_leaves_the_first_two_as_they_are(sizes):
    """As every other mixup of two records does; the first batch was the only one that was compared."""
    loader = DataLoader(records(), batch_sampler=[[*range(size)] for size in sizes])
    made, calls = private(loader, poisson_sampling=False), iter((0, 1))
    assert faults(trained(made, forward=lambda x: made[0](0.6 * x + 0.4 * x.roll(next(calls), 0)))) == {
        facts.MIXES_RECORDS
    }


def test_a_hook_around_the_private_model():
    made = private()
    made[0].register_forward_pre_hook(lambda model, given: (mixup(given[0]),))
    assert faults(trained(made)) == {facts.MIXES_RECORDS}


def layered(hook):
    made = private()
    made[0]._module[0].register_forward_hook(hook)
    return made


@pytest.mark.parametrize("mixes", [True, False])
def test_a_hook_of_a_layer(mixes):
    made = layered(lambda layer, got, gave: gave - gave.mean(0, keepdim=True) if mixes else 2.0 * gave)
    assert faults(trained(made)) == ({facts.MIXES_RECORDS} if mixes else set())


def test_a_hook_that_writes_down_what_it_sees_is_not_called_for_a_look():
    calls = []
    seen = trained(layered(lambda layer, got, gave: calls.append(float(gave.sum()))))
    assert not void(seen)
    assert len(calls) == len(seen)


class Counting(nn.Module):
    """Its forward pass changes a buffer, or follows the number of its calls."""

    def __init__(self, kind):
        super().__init__()
        self.kind, self.calls, self.layer = kind, [], nn.Linear(4, 2)
        self.register_buffer("whole", torch.zeros((), dtype=torch.long))
        self.register_buffer("real", torch.zeros(2))

    def forward(self, x):
        if self.kind == "follows calls":
            self.calls.append(1)
            x = x * (1.0 + 0.1 * len(self.calls))
        elif self.kind == "calls":
            self.whole += 1
            self.real += 1.0
        elif self.kind == "anneals":
            self.real.copy_(0.9 * self.real + 0.1)
        elif self.kind == "records":
            self.whole += len(x)
        elif self.kind == "above -1":
            self.whole += int((x[:, 0] > -1.0).sum())  # of batches of ten as good as never 0 or 1
        elif self.kind == "largest" and len(x):
            self.whole.copy_(torch.maximum(self.whole, x.abs().max().ceil().long()))
        elif self.kind == "mean" and len(x):
            self.real.lerp_(x[:, :2].mean(0), 0.1)
        return self.layer(x)


@pytest.mark.parametrize("kind", ["follows calls", "calls", "anneals"])
def test_a_model_that_counts_its_calls(kind):
    assert not void(trained(private(model=Counting(kind))))


@pytest.mark.parametrize("kind", ["records", "above -1", "largest", "mean"])
def test_a_model_that_counts_what_it_reads(kind):
    loader = DataLoader(records(), batch_size=BATCH, shuffle=True)
    made = private(loader, model=Counting(kind), poisson_sampling=False)
    assert faults(trained(made)) == {facts.BUFFERS_LEARNT}


def test_a_table_of_features_is_compared_with_what_was_loaded():
    """Two loaders of two data sets: batches of another one are none of this loop."""
    other = DataLoader(TensorDataset(torch.randn(RECORDS, 4)), batch_size=BATCH)
    made = private()
    assert not void(trained(made, before=lambda _: next(iter(other))))


def averaged(x, y):
    return torch.stack([part.mean(0) for part in x.split(5)]), y[::5]


def blocks(x, y):
    whole = len(x) // 5 * 5
    return x[:whole].view(-1, 5, 4), y[:whole].view(-1, 5)


def of_persons(x, y):
    person = torch.arange(len(x)) // 2
    return torch.zeros(int(person.max()) + 1, 4).index_add(0, person, x), y[::2]


GROUPED = {
    "means": averaged,
    "blocks": blocks,
    "the rows of a person": of_persons,
    "all": lambda x, y: (x.mean(0, keepdim=True), y[:1]),
}
KEPT = {
    "the last rows are dropped": lambda x, y: (x[: max(1, len(x) // 8 * 8)], y[: max(1, len(x) // 8 * 8)]),
    "one class": lambda x, y: (x[y == 1], y[y == 1]),
    "scaled": lambda x, y: ((x[: len(x) // 2 + 1] - 0.3) / 0.2, y[: len(x) // 2 + 1]),
}


def loop(change, data=None, **options):
    data = DataLoader(data or records(), batch_size=BATCH, shuffle=True)
    model, optimizer, data, _ = private(data, model=nn.Linear(4, 1), **options)
    with rt.watch(model, optimizer, data) as seen:
        for x, y in data:
            optimizer.zero_grad()
            read, wanted = change(x, y) if len(x) > 4 or x.dim() > 2 else (x, y)
            nn.functional.mse_loss(model(read)[..., 0], wanted.float()).backward()
            optimizer.step()
    return faults(seen)


class TestSeveralRecordsForOneGradient:
    """Clipped as one, they turn round by one of them: "right at most 67.6%" where brute force was right in 81.8%."""

    @pytest.mark.parametrize("options", [{"poisson_sampling": False}, {}])
    @pytest.mark.parametrize("name", GROUPED)
    def test_fewer_gradients_than_records(self, name, options):
        assert loop(GROUPED[name], **options) == {facts.MIXES_RECORDS}

    def test_after_a_batch_with_fewer_records_than_rows(self):
        """Seven records of seven persons explain no eight rows: those are of the ten records that came after."""
        data = records()
        seen = Yielded(DataLoader(data))
        for few in (range(7), range(10)):
            seen.gave(default_collate([data[k] for k in few]))
        x = default_collate([data[k] for k in range(10)])[0]
        rows = torch.cat([x[:6], x[6:8].mean(0, keepdim=True), x[8:].mean(0, keepdim=True)])
        assert seen.grouped([rows], 8)
        assert not seen.grouped([x[:8]], 8)

    def test_after_a_batch_with_as_many_records_as_tensors(self):
        """Two records, features and labels: what the model reads afterwards is the mean of ten others."""
        data = records()
        seen = Yielded(DataLoader(data))
        for few in (range(2), range(2, 12)):
            seen.gave(default_collate([data[k] for k in few]))
        ten, two = (default_collate([data[k] for k in few])[0] for few in (range(2, 12), range(2)))
        assert seen.grouped([ten.mean(0, keepdim=True)], 1)
        assert not seen.grouped([two[1:]], 1)

    @pytest.mark.parametrize("ahead", [False, True])
    def test_after_a_batch_of_one(self, ahead):
        """It was taken for each mean of a later batch, as if the loop had kept it: no loop keeps what it has read."""
        data = records()
        one, *later = (default_collate([data[k] for k in few]) for few in (range(1), range(1, 11), range(11, 20)))
        seen = Yielded(DataLoader(data))
        for batch in (one, *later[:ahead]):
            seen.gave(batch)
        assert not seen.grouped([one[0]], 1)
        for batch in later[ahead:]:
            seen.gave(batch)
        assert seen.grouped([later[-1 - ahead][0].mean(0, keepdim=True)], 1)

    def test_in_one_step_of_all(self):
        whole = DataLoader(records(), batch_size=RECORDS)
        model, optimizer, whole, _ = private(whole, model=nn.Linear(4, 1), poisson_sampling=False)
        with rt.watch(model, optimizer, whole) as seen:
            for x, y in whole:
                read, wanted = averaged(x, y)
                nn.functional.mse_loss(model(read)[:, 0], wanted.float()).backward()
                optimizer.step()
        assert faults(seen) == {facts.MIXES_RECORDS}

    def test_by_what_makes_the_batches(self):
        def collate(batch):
            return averaged(*default_collate(batch))

        made = private(DataLoader(records(), batch_size=BATCH, collate_fn=collate), poisson_sampling=False)
        assert faults(trained(made)) == {facts.MIXES_RECORDS}

    def test_pairs_of_records(self):
        class Pair(nn.Module):
            def __init__(self):
                super().__init__()
                self.layer = nn.Linear(8, 1)

            def forward(self, one, other):
                return self.layer(torch.cat([one, other], 1))

        model, optimizer, data, _ = private(model=Pair(), poisson_sampling=False)
        with rt.watch(model, optimizer, data) as seen:
            for x, y in data:
                optimizer.zero_grad()
                nn.functional.mse_loss(model(x[::2], x[1::2])[:, 0], y[::2].float()).backward()
                optimizer.step()
        assert faults(seen) == {facts.MIXES_RECORDS}

    @pytest.mark.parametrize("name", KEPT)
    def test_some_records_alone(self, name):
        assert not loop(KEPT[name], poisson_sampling=False)

    def test_a_person_is_one_record_where_an_item_of_the_data_holds_all_rows(self):
        """The remedy that the message names."""
        persons = TensorDataset(torch.randn(RECORDS, 5, 4), torch.randint(0, 2, (RECORDS,)))
        assert not loop(lambda x, y: (x.mean(1), y), persons)

    def test_parts_of_a_batch(self):
        model, optimizer, data, criterion = private(poisson_sampling=False)
        with rt.watch(model, optimizer, data) as seen:
            for x, y in data:
                for part in range(0, max(1, len(x)), 4):
                    criterion(model(x[part : part + 4]), y[part : part + 4]).backward()
                optimizer.step()
                optimizer.zero_grad()
        assert not void(seen)

    def test_as_many_records_as_features(self):
        """Rows of features are no sequence whose second axis holds the records."""
        data = TensorDataset(torch.randn(RECORDS, BATCH), torch.randint(0, 2, (RECORDS,)))
        loader = DataLoader(data, batch_size=BATCH, shuffle=True)
        model, optimizer, loader, _ = private(loader, model=nn.Linear(BATCH, 1), poisson_sampling=False)
        with rt.watch(model, optimizer, loader) as seen:
            for x, y in loader:
                optimizer.zero_grad()
                nn.functional.mse_loss(model(x.view(-1, 2, BATCH).mean(1))[:, 0], y[::2].float()).backward()
                optimizer.step()
        assert faults(seen) == {facts.MIXES_RECORDS}

    def test_a_first_batch_that_is_too_small_to_be_grouped(self):
        small = DataLoader(records(), batch_size=4, shuffle=True)
        model, optimizer, loader, _ = private(small, model=nn.Linear(4, 1), poisson_sampling=False)
        with rt.watch(model, optimizer, loader) as seen:
            for step, (x, y) in enumerate(loader):
                optimizer.zero_grad()
                read, wanted = (x.view(-1, 2, 4).mean(1), y[::2]) if step else (x, y)
                nn.functional.mse_loss(model(read)[:, 0], wanted.float()).backward()
                optimizer.step()
        assert faults(seen) == {facts.MIXES_RECORDS}


REDUCED = {
    "a sum for a mean": (lambda y: 1, "mean"),
    "a sum over the planned size": (lambda y: BATCH, "mean"),
    "a mean for a sum": (len, "sum"),
}


class TestReductions:
    """Opacus multiplies by the size of the batch what it takes for a mean: with a sum each gradient holds that size."""

    def one(self, by, reduction):
        batches = [[*range(size)] for size in (20, 23, 17)]  # three of one size, once in 180 runs, tell nothing
        loader = DataLoader(records(), batch_sampler=batches)
        model, optimizer, loader, _ = private(loader, poisson_sampling=False, loss_reduction=reduction)
        with rt.watch(model, optimizer, loader) as seen:
            for x, y in loader:
                optimizer.zero_grad()
                (nn.functional.cross_entropy(model(x), y, reduction="sum") / by(y)).backward()
                optimizer.step()
        return faults(seen)

    @pytest.mark.parametrize("name", REDUCED)
    def test_a_loss_that_is_no_such_mean(self, name):
        assert self.one(*REDUCED[name]) == {facts.MIXES_RECORDS}

    @pytest.mark.parametrize("by", [len, lambda y: 4 * len(y), lambda y: len(y) / 2**16])
    def test_means(self, by):
        assert not self.one(by, "mean")

    @pytest.mark.parametrize("by", [lambda y: 1, lambda y: BATCH, lambda y: 2.0**-16])
    def test_sums(self, by):
        assert not self.one(by, "sum")


@pytest.mark.parametrize("by", [36.0, 40.0, 44.0])
def test_a_number_that_meets_a_count_by_chance(by):
    """A column of whole numbers adds up to that of one batch in ten."""
    data = TensorDataset(torch.randn(RECORDS, 4), torch.randn(RECORDS), torch.randint(1, 4, (RECORDS,)))
    for _ in range(5):
        model, optimizer, loader, _ = private(DataLoader(data, batch_size=BATCH), model=nn.Linear(4, 1))
        with rt.watch(model, optimizer, loader) as seen:
            for x, y, _group in loader:
                optimizer.zero_grad()
                (nn.functional.mse_loss(model(x)[:, 0], y) / by).backward()
                optimizer.step()
        assert not faults(seen)
