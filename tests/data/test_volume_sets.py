"""Medical volumes, prepared slices and any npz: subjects stay whole, whatever the layout."""

import h5py
import nibabel
import numpy as np
import pytest
import torch

from confide.data.batches import batches
from confide.data.sets.catalogue import read
from confide.data.sets.slices import fitted, scaled, slice_axis
from confide.data.split import Stream

RANDOM = np.random.RandomState(0)


def nifti(path, values):
    """Written as (x, y, z), as scanners do."""
    path.parent.mkdir(parents=True, exist_ok=True)
    nibabel.save(nibabel.Nifti1Image(np.asarray(values).T, np.eye(4)), path)


def volume(depth=3, size=(20, 24), classes=4):
    image = RANDOM.randint(0, 1000, (depth, *size)).astype(np.int16)
    return image, RANDOM.randint(0, classes, (depth, *size)).astype(np.uint8)


def write_acdc(root, patients=10):
    written = {}
    for p in range(1, patients + 1):
        for frame in ("01", "08"):
            image, label = volume(depth=2 + p % 2)
            stem = root / f"training/patient{p:03}/patient{p:03}_frame{frame}"
            nifti(stem.with_name(f"{stem.name}.nii.gz"), image)
            nifti(stem.with_name(f"{stem.name}_gt.nii.gz"), label)
            written[f"patient{p:03}", frame] = image, label
        nifti(root / f"training/patient{p:03}/patient{p:03}_4d.nii.gz", np.zeros((1, 2, 4, 4), np.int16))
    return written


def test_acdc_slices_keep_patients_whole_and_pixels_in_place(tmp_path):
    written = write_acdc(tmp_path)
    split = read("acdc", tmp_path)
    parts = (split.train, split.val, split.test)
    assert [len(set(part.units)) for part in parts] == [7, 1, 2]
    assert sum(len(part) for part in parts) == sum(len(image) for image, _ in written.values())
    assert split.how == "subjects divided 70 / 10 / 20 with seed 1"
    assert split.train.inputs.shape[1:] == (1, 192, 192)
    first = split.test.units[0]
    image, label = written[first, "01"]
    row = split.test.units.index(first)
    assert np.array_equal(split.test.targets[row, 86:106, 84:108], label[0])
    expected = (image[0] - image[0].min()) / (image[0].max() - image[0].min())
    np.testing.assert_allclose(split.test.inputs[row, 0, 86:106, 84:108], expected, rtol=1e-5, atol=1e-6)
    assert split.test.inputs[row, 0, :86].eq(0).all()


def test_large_sets_are_streamed_with_the_same_slices(tmp_path):
    write_acdc(tmp_path, patients=4)
    loaded, streamed = (read("acdc", tmp_path, memory=memory, size=(16, 16)) for memory in (1e9, 0))
    assert isinstance(streamed.train, Stream)
    one, two = (next(batches(split.train, 4)) for split in (loaded, streamed))
    assert torch.equal(one.inputs, two.inputs)
    assert torch.equal(one.targets, two.targets)
    assert loaded.train.units == streamed.train.units
    helped = list(batches(streamed.train, 1, workers=3))  # of the same unpacked volumes
    assert torch.equal(torch.cat([b.inputs for b in helped]), loaded.train.inputs)


def test_brats_has_four_channels_and_label_4_becomes_3(tmp_path):
    for i in range(3):
        image, label = volume(size=(12, 12))
        stem = f"BraTS19_CBICA_A{i}_1"
        for kind in ("flair", "t1", "t1ce", "t2"):
            nifti(tmp_path / "HGG" / stem / f"{stem}_{kind}.nii.gz", image)
        nifti(tmp_path / "HGG" / stem / f"{stem}_seg.nii.gz", np.where(label == 3, 4, label))
    split = read("brats19", tmp_path)
    assert split.train.inputs.shape == (3, 4, 256, 256)
    assert split.train.targets.unique().tolist() == [0, 1, 2, 3]
    (tmp_path / "HGG/BraTS19_CBICA_A1_1/BraTS19_CBICA_A1_1_t1ce.nii.gz").unlink()
    with pytest.raises(ValueError, match="1 files are missing, BraTS19_CBICA_A1_1 has no t1ce"):
        read("brats19", tmp_path)


def test_mrbrains_merges_tissues_and_has_val_as_test(tmp_path):
    for subject in range(7):
        label = np.arange(11, dtype=np.uint8).repeat(11).reshape(1, 11, 11)
        for kind in ("pre/reg_T1", "pre/reg_IR", "pre/FLAIR", "segm"):
            nifti(tmp_path / f"training/{subject}/{kind}.nii.gz", label)
    split = read("mrbrains18", tmp_path, size=(11, 11))
    assert split.test.targets[0, :, 0].tolist() == [0, 1, 1, 2, 2, 3, 3, 0, 0, 0, 0]
    assert [len(part) for part in (split.train, split.test)] == [5, 2]
    assert split.val is split.test
    assert "val is test" in split.how


@pytest.mark.parametrize("name", ["flare", "hippocampus"])
def test_images_and_labels_in_folders_of_their_own(name, tmp_path):
    written = {}
    for i in range(5):
        image, label = volume(classes=3)
        written[f"c{i}"] = image - 500, label
        nifti(tmp_path / f"imagesTr/c{i}{'_0000' if name == 'flare' else ''}.nii.gz", image - 500)
        nifti(tmp_path / f"labelsTr/c{i}.nii.gz", label)
    split = read(name, tmp_path, size=(20, 24))
    image, label = written[split.test.units[0]]
    assert np.array_equal(split.test.targets[:3], label)
    if name == "flare":
        np.testing.assert_allclose(split.test.inputs[0, 0], np.clip((image[0] + 160) / 400, 0, 1), atol=1e-6)


def test_promise_reads_metaimages(tmp_path):
    for i in range(3):
        image, label = volume(classes=2)
        for suffix, values, kind in (("", image, "MET_SHORT"), ("_segmentation", label, "MET_UCHAR")):
            values.tofile(tmp_path / f"Case0{i}{suffix}.raw")
            (tmp_path / f"Case0{i}{suffix}.mhd").write_text(
                f"ObjectType = Image\nNDims = 3\nDimSize = 24 20 3\nElementType = {kind}\n"
                f"ElementByteOrderMSB = False\nElementDataFile = Case0{i}{suffix}.raw\n"
            )
    split = read("promise12", tmp_path, size=(20, 24))
    raw = np.fromfile(tmp_path / f"{split.test.units[0]}_segmentation.raw", np.uint8).reshape(3, 20, 24)
    assert np.array_equal(split.test.targets, raw)
    (tmp_path / "Case00.raw").unlink()
    (tmp_path / "Case00.mhd").touch()
    with pytest.raises(ValueError, match="needs plain numbers in a file beside it; it says ElementType MET_SHORT"):
        read("promise12", tmp_path)


def write_h5(path, **arrays):
    path.parent.mkdir(parents=True, exist_ok=True)
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values


@pytest.mark.parametrize(
    ("image", "label"),
    [
        (lambda x: x.transpose(1, 2, 0), lambda y: y.transpose(1, 2, 0)),  # slices last
        (lambda x: x, lambda y: y),  # slices first
        (lambda x: np.stack([x, x + 1]), lambda y: y[None]),  # channels before
    ],
)
def test_prepared_volumes_in_parts(image, label, tmp_path):
    x, y = RANDOM.rand(3, 16, 16).astype(np.float32), RANDOM.randint(0, 4, (3, 16, 16)).astype(np.uint8)
    for part, name in (("train", "a"), ("valid", "b"), ("test", "c")):
        write_h5(tmp_path / part / f"{name}.h5", img=image(x), mask=label(y))
    split = read("acdc", tmp_path, size=(16, 16))
    assert split.how == "parts by folder"
    assert np.array_equal(split.val.targets, y)
    assert np.array_equal(split.val.inputs[:, 0], x)
    assert split.val.units == ("b",) * 3
    write_h5(tmp_path / "d.h5", img=image(x), mask=label(y))
    with pytest.raises(
        ValueError, match="3 of 12 slices lie outside the folders test, train, val: give all a part, or"
    ):
        read("acdc", tmp_path, size=(16, 16))


@pytest.mark.parametrize("suffix", [".h5", ".npz"])
def test_prepared_slices_keep_subjects_whole(suffix, tmp_path):
    for patient in range(5):
        for z in range(4):
            arrays = {"image": np.full((8, 8), patient + z / 10, np.float32), "label": np.full((8, 8), patient % 4)}
            path = tmp_path / f"patient{patient:03}_frame01_slice_{z}{suffix}"
            write_h5(path, **arrays) if suffix == ".h5" else np.savez(path, **arrays)
    split = read("acdc", tmp_path, size=(8, 8))
    assert [len(part) for part in (split.train, split.val, split.test)] == [12, 4, 4]
    assert set(split.test.units) == {split.test.units[0]}
    assert f"{split.test.inputs[1, 0, 0, 0]:.1f}" == f"{int(split.test.units[1][-3:]) + 0.1}"


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(
        ValueError, match=r"ACDC needs volumes whose names fit .* or .h5 or .npz files .* it holds nothing"
    ):
        read("acdc", tmp_path)
    write_h5(tmp_path / "a.h5", image=np.zeros((2, 2)))
    with pytest.raises(
        ValueError, match=r"a.h5' should hold an image .* and a mask .* it holds image float64 \(2, 2\)"
    ):
        read("acdc", tmp_path)
    (tmp_path / "a.h5").write_bytes(b"x")
    with pytest.raises(ValueError, match="is no readable HDF5 file"):
        read("acdc", tmp_path)


def test_a_file_that_is_no_slice_is_named(tmp_path):
    for name in "abc":
        np.savez(tmp_path / f"{name}.npz", image=np.zeros(30, np.float32), label=np.zeros(30, np.uint8))
    with pytest.raises(ValueError, match=r"two or three axes; that of '.*a\.npz' has shape \(30,\)"):
        read("hippocampus", tmp_path)


def test_small_helpers():
    assert [slice_axis(s) for s in ((9, 5, 5), (5, 5, 9), (5, 9, 5), (7, 7, 7), (30, 40, 20))] == [0, 2, 1, 0, 2]
    values = np.arange(20).reshape(4, 5)
    assert fitted(values, (2, 7)).tolist() == [[0, *range(5, 10), 0], [0, *range(10, 15), 0]]
    assert scaled(np.full(3, 7)).tolist() == [0, 0, 0]


def test_an_npz_divided_by_its_own_column(tmp_path):
    x = RANDOM.randint(0, 256, (6, 4, 4)).astype(np.uint8)
    columns = {"patient": [1, 1, 2, 3, 3, 3], "split": [0, 0, 2, 1, 1, 1], "classes": ["a", "b"]}
    np.savez(tmp_path / "x.npz", image=x, label=np.asarray([0, 1, 0, 1, 0, 1]), **columns)
    split = read("npz", tmp_path)
    assert split.classes == ("a", "b")
    assert split.val.units == ("3", "3", "3")
    assert np.array_equal(split.test.inputs[0, 0], x[2])
    columns["split"][0] = 1
    np.savez(tmp_path / "x.npz", image=x, label=np.asarray([0, 1, 0, 1, 0, 1]), **columns)
    with pytest.raises(ValueError, match="'1' is in both train and val"):
        read("npz", tmp_path / "x.npz")


def test_an_npz_with_named_parts_and_channels_last(tmp_path):
    arrays = {}
    for part, rows in (("train", 20), ("test", 4)):
        arrays[f"{part}_images"] = RANDOM.randint(0, 256, (rows, 6, 5, 3)).astype(np.uint8)
        arrays[f"{part}_labels"] = RANDOM.randint(0, 3, (rows, 1))
    arrays["train_labels"][0] = 2
    np.savez(tmp_path / "x.npz", **arrays)
    split = read("npz", tmp_path)
    assert [len(part) for part in (split.train, split.val, split.test)] == [18, 2, 4]
    assert np.array_equal(split.test.inputs.permute(0, 2, 3, 1), arrays["test_images"])
    assert split.classes == ("class 0", "class 1", "class 2")
    swapped = {f"{kind}_{part}": arrays[f"{part}_{name}"] for kind, name in (("x", "images"), ("y", "labels"))
               for part in ("train", "test")}  # fmt: skip
    np.savez(tmp_path / "x.npz", **swapped)
    assert torch.equal(read("npz", tmp_path).test.inputs, split.test.inputs)


def test_volumes_laid_end_to_end(tmp_path):
    shapes = [(2, 6, 4), (3, 4, 6), (1, 6, 6), (2, 5, 5)]
    volumes = [RANDOM.randint(0, 3, shape).astype(np.uint8) for shape in shapes]
    flat = np.concatenate([v.reshape(-1) for v in volumes])
    np.savez(tmp_path / "x.npz", image=flat, label=flat, shape=np.asarray(shapes, np.uint16), subject=[3, 1, 4, 5])
    split = read("npz", tmp_path, size=(6, 6))
    parts = (split.train, split.val, split.test)
    assert sum(len(part) for part in parts) == 8
    for part in parts:
        for row, unit in enumerate(part.units):
            original = volumes[[3, 1, 4, 5].index(int(unit))]
            z = row - part.units.index(unit)
            assert np.array_equal(part.targets[row], fitted(original[z], (6, 6)))
            assert torch.equal(part.inputs[row, 0], part.targets[row])


def test_an_npz_says_what_it_lacks(tmp_path):
    np.savez(tmp_path / "x.npz", stuff=np.zeros(3))
    with pytest.raises(ValueError, match=r"labels that are no integers|should hold inputs .* it holds stuff \(3,\)"):
        read("npz", tmp_path)
    np.savez(tmp_path / "x.npz", image=np.zeros((2, 3)), label=np.asarray([None, 1], object))
    with pytest.raises(ValueError, match=r"x.npz' cannot be read: Object arrays cannot be loaded"):
        read("npz", tmp_path)
    np.savez(tmp_path / "y.npz", stuff=np.zeros(3))
    with pytest.raises(ValueError, match=r"should be a .npz file, or a folder with one; it holds x.npz, y.npz"):
        read("npz", tmp_path)
