"""The bundled data set is what its page says, and the drawing script can be trusted."""

from __future__ import annotations

import gzip
import runpy
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from confide.data.fashion import CLASSES, load
from confide.data.split import Part, Split

SCRIPT = Path(__file__).parents[1] / "scripts" / "make_fashion_subset.py"
FOLDER = resources.files("confide.data")


@pytest.fixture(scope="module")
def split() -> Split:
    return load()


@pytest.fixture(scope="module")
def script() -> dict[str, Any]:
    return runpy.run_path(str(SCRIPT))


@pytest.mark.parametrize(("name", "per_class"), [("train", 600), ("val", 100), ("test", 350)])
def test_part_has_promised_layout_and_equal_classes(split: Split, name: str, per_class: int) -> None:
    part: Part = getattr(split, name)
    assert part.inputs.shape == (10 * per_class, 1, 28, 28)
    assert part.inputs.dtype == torch.float32
    assert part.targets.dtype == torch.int64
    assert torch.bincount(part.targets).tolist() == [per_class] * 10


@pytest.mark.parametrize("name", ["train", "val", "test"])
def test_pixels_fill_the_unit_range(split: Split, name: str) -> None:
    images = getattr(split, name).inputs
    assert (images.min(), images.max()) == (0.0, 1.0)
    assert 0.2 < images.mean() < 0.4  # the whole data set's mean is 0.286


def test_no_image_is_in_two_parts_or_twice_in_one(split: Split) -> None:
    images = torch.cat([split.train.inputs, split.val.inputs, split.test.inputs])
    assert len({image.numpy().tobytes() for image in images}) == 10_500


def test_labels_belong_to_the_images(split: Split) -> None:
    means = torch.stack([split.train.inputs[split.train.targets == k].mean(0) for k in range(10)])
    guess = torch.cdist(split.test.inputs.flatten(1), means.flatten(1)).argmin(1)
    assert (guess == split.test.targets).float().mean() > 0.6


def test_first_rows_are_a_mixture_of_classes(split: Split) -> None:
    assert len(set(split.test.targets[:100].tolist())) == 10


def test_class_names(split: Split) -> None:
    assert split.classes == CLASSES
    assert len(set(CLASSES)) == 10


def test_files_are_shipped_with_their_licence() -> None:
    assert len(FOLDER.joinpath("fashion.npz").read_bytes()) <= 4_000_000
    licence = FOLDER.joinpath("LICENSE.fashion-mnist.txt").read_text(encoding="utf-8")
    assert "2017 Zalando SE" in licence
    assert "The above copyright notice and this permission notice shall be included" in licence


def test_part_refuses_unequal_lengths() -> None:
    with pytest.raises(ValueError, match="3 inputs but 2 targets"):
        Part(inputs=torch.zeros(3, 1, 2, 2), targets=torch.zeros(2))


def test_draw_is_stratified_disjoint_and_repeatable(script: dict[str, Any]) -> None:
    labels = np.arange(60, dtype=np.uint8) % 3
    first, second = script["draw"](labels, [12, 5], np.random.RandomState(0))
    again, _ = script["draw"](labels, [12, 5], np.random.RandomState(0))
    assert np.bincount(labels[first]).tolist() == [12, 12, 12]
    assert np.bincount(labels[second]).tolist() == [5, 5, 5]
    assert not set(first) & set(second)
    assert np.array_equal(first, again)


def test_draw_refuses_more_than_there_is(script: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="class 0 has 2 images, 3 wanted"):
        script["draw"](np.array([0, 0, 1, 1, 1], np.uint8), [2, 1], np.random.RandomState(0))


def test_archive_bytes_repeat_and_np_load_reads_them(script: dict[str, Any], tmp_path: Path) -> None:
    arrays = {"a": np.arange(256, dtype=np.uint8).reshape(4, 64).T}
    for name in ("one", "two"):
        script["write_npz"](tmp_path / f"{name}.npz", arrays)
    assert (tmp_path / "one.npz").read_bytes() == (tmp_path / "two.npz").read_bytes()
    assert np.array_equal(np.load(tmp_path / "one.npz", allow_pickle=False)["a"], arrays["a"])


def test_read_idx(script: dict[str, Any], tmp_path: Path) -> None:
    header = b"\x00\x00\x08\x02" + (2).to_bytes(4, "big") + (3).to_bytes(4, "big")
    (tmp_path / "good.gz").write_bytes(gzip.compress(header + bytes(range(6))))
    assert script["read_idx"](tmp_path / "good.gz").tolist() == [[0, 1, 2], [3, 4, 5]]
    (tmp_path / "bad.gz").write_bytes(gzip.compress(b"\x00\x00\x0d\x01" + bytes(8)))
    with pytest.raises(ValueError, match="not an IDX file"):
        script["read_idx"](tmp_path / "bad.gz")
