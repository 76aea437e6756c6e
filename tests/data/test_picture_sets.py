"""Folders of images, and images with masks, in tiny copies of the official layouts."""

import zipfile

import numpy as np
import pytest
import torch
from PIL import Image

from confide.data.batches import batches
from confide.data.sets.catalogue import read
from confide.data.sets.pictures import Classified, Masked, Source
from confide.data.split import Stream

RANDOM = np.random.RandomState(0)


def picture(path, size=(8, 6), colour=None, mode="RGB"):
    path.parent.mkdir(parents=True, exist_ok=True)
    shape = (size[1], size[0], 3) if mode == "RGB" else size[::-1]
    values = RANDOM.randint(0, 256, shape) if colour is None else np.broadcast_to(colour, shape)
    Image.fromarray(values.astype(np.uint8)).save(path)


def mask(path, values):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(np.asarray(values, np.uint8)).save(path)


def write_tiny(root, each=6):
    for name in ("n2", "n1"):
        for i in range(each):
            picture(root / f"train/{name}/images/{name}_{i}.JPEG", (64, 64), mode="L" if i == 0 else "RGB")
    lines = []
    for i in range(4):
        picture(root / f"val/images/val_{i}.JPEG", (64, 64))
        lines.append(f"val_{i}.JPEG\tn{1 + i % 2}\t0\t0\t9\t9\n")
    (root / "val/val_annotations.txt").write_text("".join(lines))
    (root / "wnids.txt").write_text("n2\nn1\n")


def test_tiny_imagenet_is_loaded_and_held_out_by_class(tmp_path):
    write_tiny(tmp_path / "tiny-imagenet-200")
    split = read("tiny-imagenet", tmp_path, held=2)
    assert split.classes == ("n1", "n2")
    assert split.test.targets.tolist() == [0, 1, 0, 1]
    assert torch.bincount(split.val.targets).tolist() == [2, 2]
    assert split.train.inputs.shape == (8, 3, 64, 64)
    (tmp_path / "tiny-imagenet-200/wnids.txt").unlink()
    with pytest.raises(ValueError, match=r"Tiny-ImageNet needs train, val, wnids.txt in .* missing in .*: wnids.txt"):
        read("tiny-imagenet", tmp_path)


def test_imagenet_streams_random_areas_and_central_crops(tmp_path):
    for part, each in (("train", 3), ("val", 3)):
        for name in ("n1", "n2"):
            for i in range(each):
                picture(tmp_path / part / name / f"{i}.jpg", (40, 30))
    split = read("imagenet", tmp_path, held=1, size=14)
    assert [len(part) for part in (split.train, split.val, split.test)] == [6, 2, 4]
    assert split.test.labels.tolist() == [0, 0, 1, 1]
    one, two = (next(batches(split.train, 6, seed=0, epoch=epoch)) for epoch in (0, 1))
    assert one.inputs.shape == (6, 3, 14, 14)
    assert one.inputs.dtype == torch.uint8
    assert not torch.equal(one.inputs[one.rows.argsort()], two.inputs[two.rows.argsort()])
    fixed = [next(batches(split.test, 4)).inputs for _ in range(2)]
    assert torch.equal(*fixed)
    (tmp_path / "val/n2").rename(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match=r"n2' holds no image \(1 of 2 classes\); images end in .jpg"):
        read("imagenet", tmp_path, held=1)


def test_cub_has_val_as_test_and_says_so(tmp_path):
    root = tmp_path / "CUB_200_2011"
    rows = [(1, "001.A/x.jpg", 1, 1), (2, "001.A/y.jpg", 1, 0), (3, "002.B/z.jpg", 2, 1)]
    for _, name, _, _ in rows:
        picture(root / "images" / name, (30, 20))
    for file, line in (("images", "{0} {1}"), ("image_class_labels", "{0} {2}"), ("train_test_split", "{0} {3}")):
        (root / f"{file}.txt").write_text("".join(line.format(*row) + "\n" for row in rows))
    (root / "classes.txt").write_text("1 001.A\n2 002.B\n")
    split = read("cub200", tmp_path, size=14)
    assert split.train.labels.tolist() == [0, 1]
    assert split.test.labels.tolist() == [0]
    assert split.val is split.test
    assert "choosing on it flatters the result" in split.how
    assert next(batches(split.train, 2, seed=0)).inputs.shape == (2, 3, 14, 14)


def test_your_own_folders_are_divided_without_overlap(tmp_path):
    for name in ("cat", "dog"):
        for i in range(10):
            picture(tmp_path / name / f"{i}.png", (20, 20))
    split = read("image-folder", tmp_path, size=16)
    items = [item for part in (split.train, split.val, split.test) for item in part.items]
    assert len({str(source) for source, _ in items}) == len(items) == 20
    assert [len(part) for part in (split.train, split.val, split.test)] == [15, 1, 4]
    for name in ("cat", "dog"):
        picture(tmp_path / "train" / name / "a.png", (20, 20))
        picture(tmp_path / "test" / name / "b.png", (20, 20))
    with pytest.raises(ValueError, match=r"0.1 of 2 rows leaves 2 and holds out 0; both must have some"):
        read("image-folder", tmp_path)
    assert len(read("image-folder", tmp_path, val=0.5).test) == 2
    with pytest.raises(ValueError, match="should have a folder of images for each class; it holds nothing"):
        read("image-folder", tmp_path / "none")


def write_voc(root, names, masks="SegmentationClass"):
    for i, name in enumerate(names):
        picture(root / f"JPEGImages/{name}.jpg", (40, 20), colour=100 + i)
        values = np.zeros((20, 40), np.uint8)
        values[:, 20:] = 5
        values[0] = 255
        image = Image.fromarray(values).convert("P")
        image.putpalette([v for i in range(256) for v in (i, 255 - i, 0)])
        (root / masks).mkdir(parents=True, exist_ok=True)
        image.putdata(values.reshape(-1).tolist())
        image.save(root / masks / f"{name}.png")


def test_voc_keeps_shape_pads_with_void_and_takes_class_numbers_from_the_palette(tmp_path):
    root = tmp_path / "VOCdevkit/VOC2012"
    write_voc(root, ["a", "b", "c"])
    lists = root / "ImageSets/Segmentation"
    lists.mkdir(parents=True)
    (lists / "train.txt").write_text("a\nb\n")
    (lists / "val.txt").write_text("c\n")
    split = read("voc2012", tmp_path, size=64, longest=80, test=48)
    assert len(split.classes) == 21
    assert split.ignore_index == 255
    assert split.val is split.test
    x, y, _ = next(batches(split.test, 1))
    assert x.shape == (1, 3, 48, 48)
    assert y.shape == (1, 48, 48)
    assert y[0, :12].eq(255).all()  # a 48 x 24 image in the middle
    assert y[0, 36:].eq(255).all()
    assert y[0, 14:36, :23].eq(0).all()
    assert y[0, 14:36, 25:].eq(5).all()
    x, y, _ = next(batches(split.train, 2, seed=0))
    assert x.shape == (2, 3, 64, 64)
    assert (x[:, 0] > 50)[y != 255].all()  # images and masks were cut at one place
    (lists / "val.txt").write_text("c\nd\n")
    with pytest.raises(ValueError, match=r"val.txt lists 2 images; 2 files of these are missing: .*d.jpg, .*d.png"):
        read("voc2012", tmp_path)


def test_the_augmented_voc_takes_its_own_list_and_masks(tmp_path):
    write_voc(tmp_path, ["a", "c"])
    lists = tmp_path / "ImageSets/Segmentation"
    lists.mkdir(parents=True)
    for name in ("train", "val"):
        (lists / f"{name}.txt").write_text("c\n")
    with pytest.raises(ValueError, match=r"the augmented VOC needs train_aug.txt or trainaug.txt in"):
        read("voc2012-aug", tmp_path)
    write_voc(tmp_path, ["a"], "SegmentationClassAug")
    (lists / "train_aug.txt").write_text("/JPEGImages/a.jpg /SegmentationClassAug/a.png\n")
    split = read("voc2012-aug", tmp_path)
    assert "SegmentationClassAug" in str(split.train.items[0][1])
    assert "SegmentationClassAug" not in str(split.val.items[0][1])
    assert split.how.startswith("the augmented list")


def write_camvid(root):
    for part, rows in (("train", 3), ("val", 1), ("test", 2)):
        for i in range(rows):
            picture(root / f"{part}/{part}{i}.png")
            mask(root / f"{part}annot/{part}{i}.png", RANDOM.randint(0, 12, (6, 8)))


def test_camvid_from_a_folder_and_from_a_zip_archive(tmp_path):
    write_camvid(tmp_path / "folder")
    with zipfile.ZipFile(tmp_path / "camvid.zip", "w") as archive:
        for path in sorted((tmp_path / "folder").rglob("*.png")):
            archive.write(path, path.relative_to(tmp_path / "folder").as_posix())
    one, two = (read("camvid", tmp_path / name) for name in ("folder", "camvid.zip"))
    assert [len(part) for part in (one.train, one.val, one.test)] == [3, 1, 2]
    assert one.ignore_index == 11
    assert len(one.classes) == 11
    assert torch.equal(one.train.inputs, two.train.inputs)
    assert torch.equal(one.train.targets, two.train.targets)
    assert one.how == "parts by folder"


def test_own_pairs_with_black_and_white_masks_by_subject(tmp_path):
    for subject in "abcde":
        for i in range(3):
            picture(tmp_path / f"{subject}_{i}.png", mode="L")
            mask(tmp_path / f"{subject}_{i}_mask.png", RANDOM.randint(0, 2, (6, 8)) * 255)
    split = read("image-masks", tmp_path, unit=r"^([a-z])_")
    assert split.how == "val and test taken by subject from all with seed 1"
    assert split.classes == ("class 0", "class 1")
    assert split.train.targets.unique().tolist() == [0, 1]
    assert split.train.inputs.shape == (9, 1, 6, 8)
    assert [len(set(part.units)) for part in (split.train, split.val, split.test)] == [3, 1, 1]
    with pytest.raises(ValueError, match=r"the pattern '\^\(x\)' finds no subject in 'a_0'"):
        read("image-masks", tmp_path, unit="^(x)")


def test_pairs_of_many_sizes_are_streamed_or_resized(tmp_path):
    for part in ("train", "val"):
        for i in range(4):
            picture(tmp_path / f"{part}/images/{i}.jpg", (10 + i, 8))
            mask(tmp_path / f"{part}/masks/{i}.png", RANDOM.randint(0, 3, (8, 10 + i)))
    split = read("image-masks", tmp_path)
    assert isinstance(split.train, Stream)
    assert split.how == "test taken from train with seed 1"
    assert len(split.train) + len(split.test) == 4
    assert len(split.val) == 4
    loaded = read("image-masks", tmp_path, size=(6, 5))
    assert loaded.val.inputs.shape == (4, 3, 6, 5)
    assert isinstance(read("image-masks", tmp_path, size=(6, 5), memory=100).val, Stream)


def test_what_does_not_fit_together_is_named(tmp_path):
    picture(tmp_path / "images/a.png")
    with pytest.raises(ValueError, match=r"1 images were found, 1 without a mask: .*a.png. It holds images/"):
        read("image-masks", tmp_path)
    picture(tmp_path / "m.png")
    with pytest.raises(ValueError, match=r"has colours \(RGB\), not class numbers"):
        Masked()((Source(str(tmp_path / "images/a.png")), Source(str(tmp_path / "m.png"))), None)
    Image.fromarray(np.full((6, 8), 300, np.uint16)).save(tmp_path / "deep.png")
    with pytest.raises(ValueError, match=r"has numbers from 300 to 300; 0 to 255 are read"):
        Masked()((Source(str(tmp_path / "images/a.png")), Source(str(tmp_path / "deep.png"))), None)
    mask(tmp_path / "small.png", np.zeros((2, 2)))
    with pytest.raises(ValueError, match=r"is \(8, 6\) wide and high, its mask .* \(2, 2\)"):
        Masked()((Source(str(tmp_path / "m.png")), Source(str(tmp_path / "small.png"))), None)
    (tmp_path / "broken.png").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"broken.png' cannot be read as an image"):
        Classified()((Source(str(tmp_path / "broken.png")), 0), None)
    with pytest.raises(ValueError, match="is neither a folder nor a zip archive"):
        read("camvid", tmp_path / "broken.png")
