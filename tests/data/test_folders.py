"""A folder with one file a case, in the layouts that people have; labels in NIfTI."""

import gzip

import numpy as np
import pytest
import torch

from confide.core.errors import InputError
from confide.data.opening import open_predictions

nibabel = pytest.importorskip("nibabel")
RNG = np.random.default_rng(1)
SHAPES = ((5, 6, 7), (4, 6, 7), (3, 8, 7))  # z, y, x of three patients


def patients():
    """Scores (classes, z, y, x) and labels (z, y, x) of each."""
    for i, shape in enumerate(SHAPES):
        z = RNG.normal(size=(3, *shape)).astype(np.float32)
        yield f"patient_{i:02d}", z, RNG.integers(0, 3, shape).astype(np.uint8)


def softmax(z):
    e = np.exp(z)
    return e / e.sum(0)


def nifti(path, volume):
    nibabel.save(nibabel.Nifti1Image(volume.T, np.eye(4)), path)  # nibabel's axes are x, y, z


def check(found, cases):
    assert (found.rows, found.classes) == (3, 3)
    chunks = list(found.chunks(whole=True))
    assert [chunk.origin for chunk in chunks] == [(0, 0), (1, 0), (2, 0)]
    for chunk, (name, z, y) in zip(chunks, cases, strict=True):
        assert np.array_equal(chunk.scores[0].numpy(), z)
        assert np.array_equal(chunk.labels[0].numpy(), y)
        assert chunk.columns["case"].tolist() == [name]
    cut = [chunk for chunk in found.chunks(size=1) if chunk.origin[0] == 1]
    assert [chunk.origin for chunk in cut] == [(1, k) for k in range(4)]
    assert np.array_equal(torch.cat([chunk.scores for chunk in cut], 2)[0].numpy(), cases[1][1])
    assert np.array_equal(torch.cat([chunk.labels for chunk in cut], 1)[0].numpy(), cases[1][2])


@pytest.mark.parametrize("end", [".nii", ".nii.gz"])
def test_nnunet_probabilities_with_labels_of_another_folder(end, tmp_path):
    predicted, truth = tmp_path / "predicted", tmp_path / "labelsTr"
    predicted.mkdir(), truth.mkdir()
    cases = [(name, softmax(z), y) for name, z, y in patients()]
    for name, p, y in cases:
        np.savez_compressed(predicted / f"{name}.npz", probabilities=p)
        (predicted / f"{name}.pkl").write_bytes(b"never opened")
        nifti(predicted / f"{name}{end}", p.argmax(0).astype(np.uint8))
        nifti(truth / f"{name}{end}", y)
    found = open_predictions(predicted, labels_from=truth)
    assert found.inputs == "probs"
    assert "labels of the same names" in found.said[0]
    check(found, cases)
    for name, _, _ in cases[1:]:
        (truth / f"{name}{end}").unlink()
    with pytest.raises(InputError, match="2 of 3 cases have no file of the same name"):
        open_predictions(predicted, labels_from=truth)
    assert not open_predictions(predicted).labelled
    assert "the network's own segmentations, not for labels" in open_predictions(predicted).said[0]


def test_the_same_in_other_layouts(tmp_path):
    cases = list(patients())
    roots = [tmp_path / name for name in ("own", "beside", "apart", "nifti")]
    for root in (*roots, roots[2] / "logits", roots[2] / "labels", roots[3] / "logits", roots[3] / "labels"):
        root.mkdir()
    for name, z, y in cases:
        np.savez(roots[0] / f"{name}.npz", logits=z, seg=y)
        np.save(roots[1] / f"{name}_logits.npy", z), np.save(roots[1] / f"{name}_labels.npy", y)
        np.save(roots[2] / "logits" / f"{name}.npy", z), np.save(roots[2] / "labels" / f"{name}.npy", y)
        nifti(roots[3] / "logits" / f"{name}.nii.gz", z), nifti(roots[3] / "labels" / f"{name}.nii", y)
    for root in roots:
        check(open_predictions(root, inputs="logits"), cases)


def test_labels_in_nibabels_order_are_turned(tmp_path):
    (_, z, y), *_ = patients()
    np.savez(tmp_path / "a.npz", logits=z.T, seg=y)  # (x, y, z, classes) beside (z, y, x)
    found = open_predictions(tmp_path / "a.npz")
    assert np.array_equal(torch.cat([c.labels for c in found.chunks(size=400)]).numpy(), y.T)


def test_a_scaled_volume_is_scaled(tmp_path):
    (_, z, y), *_ = patients()
    image = nibabel.Nifti1Image(y.T, np.eye(4))
    image.header.set_slope_inter(2, -1)
    image.to_filename(tmp_path / "labels.nii")
    expected = np.asarray(nibabel.load(tmp_path / "labels.nii").dataobj).T
    np.save(tmp_path / "logits.npy", z)
    found = open_predictions(tmp_path / "logits.npy", labels_from=tmp_path / "labels.nii")
    assert np.array_equal(next(found.chunks()).labels[0].numpy(), expected)


def test_a_table_beside_the_cases_gives_columns(tmp_path):
    cases = list(patients())
    for name, z, y in cases:
        np.savez(tmp_path / f"{name}.npz", logits=z, seg=y)
    rows = [f"{name},site{i % 2},{40 + i}" for i, (name, *_) in enumerate(cases)]
    (tmp_path / "patients.csv").write_text("\n".join(["id,site,age", *rows]))
    found = open_predictions(tmp_path)
    assert found.columns == ("case", "site", "age")
    assert [chunk.columns["site"].tolist() for chunk in found.chunks()] == [["site0"], ["site1"], ["site0"]]


def test_shards_of_rows_are_joined(tmp_path):
    z, y = RNG.normal(size=(90, 4)), RNG.integers(0, 4, 90)
    for i in range(3):
        part = slice(30 * i, 30 * i + 30)
        np.savez(tmp_path / f"rank{i}.npz", logits=z[part], labels=y[part])
    found = open_predictions(tmp_path)
    assert found.rows == 90
    assert [chunk.origin for chunk in found.chunks()] == [(0,), (30,), (60,)]
    assert np.array_equal(torch.cat([chunk.scores for chunk in found.chunks()]).numpy(), z)
    np.savez(tmp_path / "rank3.npz", logits=z[:, :3], labels=y % 3)
    with pytest.raises(InputError, match=r"rank3\.npz' has 3 classes and labels, where .* has 4 classes"):
        open_predictions(tmp_path)


@pytest.mark.parametrize(
    ("files", "said"),
    [
        ((), "holds no file that can be read"),
        (("a_labels.npy",), "holds labels only"),
        (("a_logits.npy", "a_labels.npy", "b_logits.npy"), r"has labels for some cases, but none for 'b_logits.npy'"),
    ],
)
def test_folders_that_cannot_be_meant_are_refused(files, said, tmp_path):
    for name in files:
        np.save(tmp_path / name, np.zeros((3, 2)))
    with pytest.raises(InputError, match=said):
        open_predictions(tmp_path)


def test_a_broken_volume_is_refused(tmp_path):
    np.save(tmp_path / "logits.npy", np.zeros((3, 4, 5, 6)))
    (tmp_path / "labels.nii.gz").write_bytes(gzip.compress(b"junk" * 200))
    with pytest.raises(InputError, match=r"labels\.nii\.gz' is not a readable"):
        open_predictions(tmp_path / "logits.npy", labels_from=tmp_path / "labels.nii.gz")
