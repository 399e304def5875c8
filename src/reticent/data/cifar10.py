"""CIFAR-10 from parquet files that hold each image as JPEG."""

from __future__ import annotations

import io

import numpy as np

from reticent.data.dataset import Dataset
from reticent.data.files import data_root, read_checked
from reticent.kernel.errors import DataError, needing

TRAIN_SHA256 = "3c17e0b26609fc36e47286dbdbe3768efbb9d53dd15e258d1868f59f4ad495e5"
TEST_SHA256 = "4fb6e5fd56ba02518fb15388f752fda8ea3f57608cea0b65142d3ae9641230e0"


def load_cifar10() -> Dataset:
    """CIFAR-10: 50,000 training and 10,000 test images, float32 (3, 32, 32) in [-1, 1], 10 classes.

    The images went through JPEG at quality 75, so they are not bit-identical to the original and
    accuracies are not exactly comparable; the data set's notes say so.

    Raises:
        DataError: ``RETICENT_DATA`` is unset, or a file is missing or corrupt.
    """
    folder = data_root() / "cifar10"
    train = _images(read_checked(folder / "train.parquet", TRAIN_SHA256), "cifar10/train.parquet")
    test = _images(read_checked(folder / "test.parquet", TEST_SHA256), "cifar10/test.parquet")
    features, labels = (np.concatenate(pair) for pair in zip(train, test, strict=True))
    return Dataset(
        name="cifar-10",
        source="CIFAR-10 by way of a public JPEG export (quality 75)",
        features=features,
        labels=labels,
        classes=10,
        train=np.arange(len(train[1])),
        test=np.arange(len(train[1]), len(features)),
        notes=("JPEG at quality 75: not bit-identical to the original CIFAR-10.",),
    )


def _images(content: bytes, where: str) -> tuple[np.ndarray, np.ndarray]:
    with needing("CIFAR-10", "train"):
        from PIL import Image
        from pyarrow import BufferReader, parquet
    table = parquet.read_table(BufferReader(content), columns=["image", "label"])
    labels = np.asarray(table["label"].to_numpy(), dtype=np.int64)
    images = np.empty((len(labels), 32, 32, 3), dtype=np.uint8)
    for i, blob in enumerate(table["image"]):
        with Image.open(io.BytesIO(blob.as_py()), formats=["JPEG"]) as image:
            if image.size != (32, 32):
                raise DataError(f"{where}: image {i} is {image.size}, expected (32, 32)")
            images[i] = np.asarray(image.convert("RGB"))
    scaled = images.transpose(0, 3, 1, 2).astype(np.float32)
    scaled /= np.float32(127.5)
    scaled -= np.float32(1.0)
    return scaled, labels
