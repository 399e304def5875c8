"""Which records, in a configuration: data sets by name, tables of one's own, fixed features."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from reticent.data import NAMES
from reticent.io.models import Closed, Count, Seed, Sha256, Width
from reticent.records.publication import OWN as OWN


class TableConfig(Closed):
    """Which table of the user's own; written by ``reticent train --data``, not by hand.

    Attributes:
        file: name of the file, without a folder: a run looks for it only where the user keeps data.
        file_sha256: of its bytes.
        schema_sha256: of the schema that the run keeps next to its weights.
        derived: columns whose bounds or categories were read off the records.
    """

    file: Annotated[str, Field(pattern=r"^[^/\\\x00-\x1f]+$", max_length=200)]
    file_sha256: Sha256
    schema_sha256: Sha256
    derived: tuple[str, ...] = ()

    @field_validator("file")
    @classmethod
    def _plain(cls, file: str) -> str:
        if file in (".", ".."):
            raise ValueError("must be the name of a file")
        return file


class ScatteringConfig(Closed):
    """Scattering transform of images, a fixed function of each image; see ``reticent.training.features``.

    Attributes:
        scales, angles: octaves and directions of the wavelets.
        cells: the result has ``cells`` by ``cells`` values in each channel.
        groups: channels are normalised, record by record, in this many groups.
    """

    kind: Literal["scattering"]
    scales: Annotated[int, Field(ge=1, le=4)] = 2
    angles: Annotated[int, Field(ge=1, le=32)] = 8
    cells: Annotated[int, Field(ge=1, le=64)] = 8
    groups: Annotated[int, Field(ge=1, le=1024)] = 23


class RandomFeaturesConfig(Closed):
    """relu(W x + b) with fixed random W and b; see ``reticent.training.features``.

    Attributes:
        width: columns of the result.
        seed: of W and b; public.
    """

    kind: Literal["random"]
    width: Width
    seed: Seed = 0


class PatchesConfig(Closed):
    """Random patches of colour images, whitened without data; see ``reticent.training.patches``.

    Attributes:
        width: filters; each gives two channels, one for each sign.
        size: pixels of a patch, along each side.
        stride: pixels from one patch to the next.
        cells: the result has ``cells`` by ``cells`` values in each channel.
        threshold: responses count less this.
        seed: of the filters; public.
    """

    kind: Literal["patches"]
    width: Annotated[int, Field(ge=1, le=16_384)] = 500
    size: Annotated[int, Field(ge=2, le=16)] = 5
    stride: Annotated[int, Field(ge=1, le=8)] = 2
    cells: Annotated[int, Field(ge=1, le=8)] = 3
    threshold: Annotated[float, Field(ge=0.0, le=10.0)] = 0.5
    seed: Seed = 0


FeaturesConfig = Annotated[ScatteringConfig | RandomFeaturesConfig | PatchesConfig, Field(discriminator="kind")]


class DataConfig(Closed):
    """Which records.

    Attributes:
        name: a name of ``reticent.data.NAMES``, or ``own`` for records that the user brings.
        table: with ``own``: the table, if the records come from a file.
        path: nothing. A configuration, which may come with an untrusted run, opens no file of its choice;
            data lie under ``$RETICENT_DATA`` or ``--data``, and a run finds its own by their fingerprint.
        train_fraction: split the pool at random instead of the default split.
        split_seed: of that split.
        train_size: keep this many training records, the first ones; of a published file. In records of your own one
            would take the place of another.
        features: what is computed from each record before training; fixed, so no data shape it.
        normalise_features: bring the features of every record to this length (L2) at last; ``true`` is 1.
    """

    name: str
    table: TableConfig | None = None
    path: None = None
    train_fraction: Annotated[float, Field(gt=0.0, lt=1.0)] | None = None
    split_seed: Seed = 0
    train_size: Count | None = None
    features: FeaturesConfig | None = None
    normalise_features: Annotated[float, Field(gt=0.0, le=1e6)] | None = None

    @field_validator("normalise_features", mode="before")
    @classmethod
    def _length(cls, said: object) -> object:
        return {True: 1.0, False: None}[said] if isinstance(said, bool) else said

    @field_validator("path", mode="before")
    @classmethod
    def _no_path(cls, path: object) -> None:
        if path is not None:
            raise ValueError("must be left out: data are read under $RETICENT_DATA or --data only")

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name not in (*NAMES, OWN):
            raise ValueError(f"must be one of {', '.join(NAMES)}, or {OWN} for records of your own")
        return name

    @model_validator(mode="after")
    def _tables_are_own(self) -> DataConfig:
        if self.table is not None and self.name != OWN:
            raise ValueError(f"table is for name {OWN}")
        if self.train_size is not None and self.name == OWN:
            raise ValueError(
                f"train_size is not for name {OWN}: another record would come in for one that is taken "
                "away; say train_fraction, which draws each by itself"
            )
        return self
