"""Predictions in every format give the same numbers, a chunk at a time, and nothing in a file runs."""

import gzip
import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

from confide.core.errors import InputError, MissingExtra
from confide.data.files import formats
from confide.data.opening import load, open_predictions

RNG = np.random.default_rng(0)
Z = RNG.normal(size=(300, 4)).astype(np.float32) * 3
Y = RNG.integers(0, 4, 300)
SITE = np.array(["north", "south", "east"])[np.arange(300) % 3]


def write(kind, folder):
    """The same predictions as a file of that kind."""
    path = folder / f"preds.{kind.replace('_', '.')}"
    if kind == "npz":
        np.savez(path, logits=Z, labels=Y, site=SITE)
    elif kind == "small.npz":
        np.savez_compressed(path, logits=Z, labels=Y, site=SITE)
    elif kind == "fortran.npz":
        np.savez_compressed(path, logits=np.asfortranarray(Z), labels=Y, site=SITE)
    elif kind == "npy":
        path = folder / "test_logits.npy"
        np.save(path, Z), np.save(folder / "test_labels.npy", Y)
    elif kind == "pt":
        torch.save({"logits": torch.from_numpy(Z), "labels": torch.from_numpy(Y), "site": SITE.tolist()}, path)
    elif kind == "pair.pt":
        torch.save((torch.from_numpy(Z), torch.from_numpy(Y)), path)
    elif kind == "safetensors":
        from safetensors.numpy import save_file

        save_file({"logits": Z, "labels": Y}, path)
    else:
        write_table(kind, path)
    return path


def write_table(kind, path):
    columns = {f"logit_{k}": [repr(float(v)) for v in Z[:, k]] for k in range(4)} | {"label": Y.tolist(), "site": SITE}
    if kind in ("csv", "tsv", "csv.gz"):
        mark = "\t" if kind == "tsv" else ","
        lines = [mark.join(columns), *(mark.join(map(str, row)) for row in zip(*columns.values(), strict=True))]
        text = "\n".join(lines).encode()
        path.write_bytes(gzip.compress(text) if kind == "csv.gz" else text)
    elif kind == "jsonl":
        rows = zip(Z.tolist(), Y.tolist(), SITE.tolist(), strict=True)
        path.write_text("\n".join(json.dumps({"logits": z, "target": y, "site": s}) for z, y, s in rows))
    else:
        import pyarrow as pa
        from pyarrow import parquet

        table = (
            {"logits": list(Z), "label": Y, "site": SITE}
            if kind == "parquet"
            else {**{f"logit_{k}": Z[:, k] for k in range(4)}, "label": Y, "site": SITE}
        )
        parquet.write_table(pa.table(table), path, row_group_size=70)


KINDS = (
    *("npz", "small.npz", "fortran.npz", "npy", "pt", "pair.pt", "safetensors"),
    *("csv", "tsv", "csv.gz", "jsonl", "parquet", "wide.parquet"),
)


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_gives_the_same_numbers(kind, tmp_path):
    found = open_predictions(write(kind, tmp_path))
    assert (found.rows, found.classes, found.items, found.inputs) == (300, 4, 300, "logits")
    assert found.ignored == {}
    for _ in range(2):  # it can be read again
        chunks = list(found.chunks(size=16 * 130))
        assert [len(c.scores) for c in chunks] == [130, 130, 40]
        assert [c.origin for c in chunks] == [(0,), (130,), (260,)]
        assert np.array_equal(torch.cat([c.scores for c in chunks]).float().numpy(), Z)
        assert np.array_equal(torch.cat([c.labels for c in chunks]).numpy(), Y)
    if kind not in ("npy", "pair.pt", "safetensors"):
        assert found.columns == ("site",)
        assert np.concatenate([c.columns["site"] for c in chunks]).tolist() == SITE.tolist()
    else:
        assert found.columns == ()


@pytest.mark.parametrize("kind", ["npz", "small.npz", "pt", "safetensors"])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_the_class_axis_follows_from_the_labels(kind, axis, tmp_path):
    z = RNG.normal(size=(6, 3, 5, 7)).astype(np.float32)  # canonical: (n, classes, height, width)
    y = RNG.integers(0, 3, (6, 5, 7))
    path = tmp_path / f"a.{kind}"
    stored = np.ascontiguousarray(np.moveaxis(z, 1, axis))
    if kind.endswith("npz"):
        (np.savez_compressed if kind == "small.npz" else np.savez)(path, logits=stored, labels=y)
    elif kind == "pt":
        torch.save({"logits": torch.from_numpy(stored), "labels": torch.from_numpy(y)}, path)
    else:
        from safetensors.numpy import save_file

        save_file({"logits": stored, "labels": y}, path)
    found = open_predictions(path)
    assert f"Classes are on axis {axis % 4}" in " ".join(found.said)
    chunks = list(found.chunks(size=4 * 3 * 35 * 4))
    assert len(chunks) == 2
    scores, labels = torch.cat([c.scores for c in chunks], 2 if axis == 0 else 0), [c.labels for c in chunks]
    if axis == 0:  # one volume, cut into slices
        assert (found.rows, chunks[1].origin) == (1, (0, 4))
        assert torch.equal(scores, torch.from_numpy(z).movedim(1, 0)[None])
        assert torch.equal(torch.cat(labels, 1)[0], torch.from_numpy(y))
        assert next(found.chunks(size=1, whole=True)).scores.shape == scores.shape
    else:
        assert torch.equal(scores, torch.from_numpy(z))
        assert torch.equal(torch.cat(labels), torch.from_numpy(y))


def save(folder, **arrays):
    path = folder / "preds.npz"
    np.savez(path, **arrays)
    return path


def test_an_axis_that_cannot_be_told_is_refused(tmp_path):
    z, y = RNG.normal(size=(4, 4, 4, 4)), np.zeros((4, 4, 4), int)
    with pytest.raises(InputError, match=r"classes on any of the axes \[0, 1, 2, 3\].*--dim 1 is torch's habit"):
        open_predictions(save(tmp_path, logits=z, labels=y))
    assert open_predictions(save(tmp_path, logits=z, labels=y), dim=-1).cases[0].layout.axis == 3
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    assert open_predictions(save(tmp_path, probs=p, labels=y)).cases[0].layout.axis == 1
    with pytest.raises(InputError, match="no labels tell which axis holds the classes"):
        open_predictions(save(tmp_path, logits=z))
    with pytest.raises(InputError, match=r"of shape \(9,\).*fit no axis of 'logits' of shape \(300, 4\).*there are 9"):
        open_predictions(save(tmp_path, logits=Z, labels=Y[:9]))
    with pytest.raises(InputError, match="dim=5 is not an axis"):
        open_predictions(save(tmp_path, logits=Z, labels=Y), dim=5)
    assert open_predictions(save(tmp_path, logits=np.eye(3) * 9, labels=np.arange(3))).cases[0].layout.axis == 1


def test_axes_of_length_one_are_seen_through(tmp_path):
    y = np.zeros((6, 1, 5, 7), int)
    found = open_predictions(save(tmp_path, logits=np.zeros((6, 3, 5, 7)), labels=y))
    assert next(found.chunks()).labels.shape == (6, 5, 7)
    found = open_predictions(save(tmp_path, logits=np.ones((3, 6, 5, 7)), seg=y.reshape(1, 6, 5, 7)))
    assert next(found.chunks(size=4)).labels.shape == (1, 1, 5, 7)
    assert next(open_predictions(save(tmp_path, logits=Z, labels=Y[:, None])).chunks()).labels.tolist() == Y.tolist()


def test_one_score_a_label_stands_for_two_classes(tmp_path):
    p, y = RNG.random(50).astype(np.float16), np.arange(50) % 2
    for scores in (p, p[:, None]):
        found = open_predictions(save(tmp_path, y_prob=scores, y_true=y))
        assert (found.inputs, found.classes, found.items) == ("probs", 2, 50)
        assert torch.equal(next(found.chunks()).scores[:, 0], 1 - torch.from_numpy(p).float())
    z = next(open_predictions(save(tmp_path, logits=p * 9 - 4, labels=y)).chunks()).scores
    assert torch.equal(z[:, 0], torch.zeros(50))
    with pytest.raises(InputError, match="labels go up to 9: scores need one number for each class"):
        open_predictions(save(tmp_path, logits=p * 9 - 4, labels=np.arange(50) % 10))


def test_soft_labels_are_known_by_their_sums(tmp_path):
    q = RNG.dirichlet(np.ones(4), 300)
    found = open_predictions(save(tmp_path, logits=Z, targets=q))
    assert found.soft
    assert torch.allclose(next(found.chunks()).labels.double(), torch.from_numpy(q))


def softmax(z):
    e = np.exp(z - z.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


P = softmax(Z.astype(np.float64))


@pytest.mark.parametrize(
    ("name", "values", "inputs", "why"),
    [
        ("logits", Z, "logits", "by the name; values run from"),
        ("y_prob", P, "probs", "by the name; every row looked at lies in [0, 1] and sums to 1"),
        ("predictions", P, "probs", "Taken for probabilities: every row looked at lies in [0, 1] and sums to 1"),
        ("anything", Z, "logits", "Taken for logits: values run from"),
        ("out_log_softmax", np.log(P), "logits", "log-probabilities, which are valid logits"),
        ("softmax", P.astype(np.float16), "probs", "sums to 1"),
    ],
)
def test_logits_or_probabilities_with_the_reason(name, values, inputs, why, tmp_path):
    found = open_predictions(save(tmp_path, labels=Y, **{name: values}))
    assert found.inputs == inputs
    assert why in " ".join(found.said)


@pytest.mark.parametrize(
    ("name", "values", "said"),
    [
        ("logits", P, "is named like logits, but these look like probabilities"),
        ("probs", Z, "is named like probabilities, but it cannot hold them: values run from"),
        ("probs", 100 * P, "rows sum to 100, so these are percentages: divide by 100"),
        ("sigmoid", np.sqrt(P), "values lie in [0, 1], but rows sum to"),
        ("scores", np.where(np.arange(300)[:, None] % 2, P, Z), "may hold logits or probabilities: 50.0% of the rows"),
    ],
)
def test_a_contradiction_is_refused_with_the_way_out(name, values, said, tmp_path):
    path = save(tmp_path, labels=Y, **{name: values})
    with pytest.raises(InputError) as caught:
        open_predictions(path)
    assert said in str(caught.value)
    assert "--inputs logits" in str(caught.value)
    assert "--inputs probs" in str(caught.value)
    assert open_predictions(path, lenient=True).kind.doubt in str(caught.value)
    for wanted in ("logits", "probs"):
        found = open_predictions(path, inputs=wanted)
        assert found.inputs == wanted
        assert "as you said" in " ".join(found.said)


def test_a_value_that_looks_like_ignore_is_named_not_guessed(tmp_path):
    y = np.where(np.arange(300) < 30, 255, Y).astype(np.uint8)
    found = open_predictions(save(tmp_path, logits=Z, labels=y))
    assert found.ignored == {255: 0.1}
    assert "255 looks like ignore (10.0% of the labels); pass --ignore-index 255" in " ".join(found.said)
    assert (next(found.chunks()).labels == 255).sum() == 30
    found = open_predictions(save(tmp_path, logits=Z, labels=y), ignore_index=255)
    assert "255 is ignored, as you said (10.0% of the labels)" in " ".join(found.said)
    assert found.ignored == {}


def test_names_can_be_said(tmp_path):
    path = save(tmp_path, resnet20=Z, resnet56=-Z, fold=Y, labels=Y)
    with pytest.raises(InputError, match=r"several arrays that could be logits.*such as --scores resnet20"):
        open_predictions(path)
    found = open_predictions(path, scores="resnet56", labels="fold")
    assert torch.equal(next(found.chunks()).scores, torch.from_numpy(-Z))
    assert found.columns == ("labels",)
    with pytest.raises(InputError, match="has no array 'resnet'; it holds resnet20 float32"):
        open_predictions(path, scores="resnet")


def test_labels_go_with_the_scores_of_the_same_prefix(tmp_path):
    path = save(tmp_path, val_logits=Z, val_labels=Y, test_logits=Z, test_labels=(Y + 1) % 4)
    with pytest.raises(InputError, match="several arrays that could be labels, val_labels"):
        open_predictions(path)
    found = open_predictions(path, scores="test_logits")
    assert next(found.chunks()).labels.tolist() == ((Y + 1) % 4).tolist()
    with pytest.raises(InputError, match=r"could be labels.*such as --labels train_labels"):
        open_predictions(save(tmp_path, logits=Z, train_labels=Y, test_labels=Y))
    found = open_predictions(save(tmp_path, aux_logits=Z, probs=P, site_label=Y, label=Y))
    assert [found.cases[0].layout.scores.name, found.cases[0].layout.labels.name] == ["probs", "label"]


def test_predicted_classes_are_no_scores(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("y_true,y_pred\n" + "\n".join(f"{y},{y}" for y in Y))
    with pytest.raises(InputError, match="holds whole numbers up to 3: predicted classes, by all appearance"):
        open_predictions(path)
    with pytest.raises(InputError, match="it holds y_pred int64"):
        open_predictions(save(tmp_path, y_true=Y, y_pred=Y))


def test_columns_that_name_classes_translate_text_labels(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text('prob_cat;prob_dog;prob_"odd";truth;pred\n0.2;0.7;0.1;dog;1\n0.5;0.25;0.25;cat;0\n')
    found = open_predictions(path)
    assert found.class_names == ("cat", "dog", '"odd"') or found.class_names[:2] == ("cat", "dog")
    chunk = next(found.chunks())
    assert chunk.labels.tolist() == [1, 0]
    assert chunk.scores.tolist() == [[0.2, 0.7, 0.1], [0.5, 0.25, 0.25]]
    assert found.columns == ("pred",)
    path.write_text("prob_cat,prob_dog,truth\n0.2,0.8,cow\n")
    with pytest.raises(InputError, match=r"says 'cow', but the columns of scores name \['cat', 'dog'\]"):
        open_predictions(path)


def test_more_than_nine_columns_stand_in_the_order_of_their_numbers(tmp_path):
    path, order = tmp_path / "a.csv", [3, 11, 0, 1, 10, 2, 9, 8, 7, 6, 5, 4]
    path.write_text(",".join(f"p{k}" for k in order) + ",y\n" + ",".join(str(-k) for k in order) + ",3\n")
    assert next(open_predictions(path).chunks()).scores[0].tolist() == [-k for k in range(12)]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("a.csv", "logit_0,logit_1,y\n1,2,0\n1,2\n", "row 2: 2 fields, where the first line names 3"),
        ("a.csv", "logit_0,logit_0,y\n1,2,0\n", "needs a first line that names every column, each name once"),
        ("a.jsonl", '{"logits": [1, 2], "label": 0}\n{"logits": [1], "label": 0}\n', "rows of different length"),
        ("a.jsonl", "[1, 2]\n", "is no JSON object"),
        ("a.jsonl", '{"logits": [1, 2', "is not a readable .jsonl file"),
        ("a.pkl", "x", "is a pickle, which is not opened because it could run code"),
        ("a.xlsx", "x", "is not known; what can be read: .npz, .npy, .pt"),
        ("a.pt", "x", "is not a readable .pt file"),
        ("a.npy", "x", "is not a readable .npy file"),
        ("a.parquet", "x", "is not a readable .parquet file"),
        ("a.safetensors", "x", "is not a readable .safetensors file"),
        ("a.nii", "x", "is not a readable .nii file"),
    ],
)
def test_broken_files_are_refused_by_name(name, text, said, tmp_path):
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError) as caught:
        list(open_predictions(tmp_path / name).chunks())
    assert said in str(caught.value)
    assert name in str(caught.value)


def test_a_truncated_array_is_refused(tmp_path):
    np.save(tmp_path / "logits.npy", Z)
    whole = (tmp_path / "logits.npy").read_bytes()
    (tmp_path / "logits.npy").write_bytes(whole[:-9])
    with pytest.raises(InputError, match=r"is not a readable .npy file"):
        list(open_predictions(tmp_path / "logits.npy").chunks())


def test_nothing_in_a_pt_file_runs(tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "ran"),)

    torch.save({"logits": Bomb()}, tmp_path / "bomb.pt")
    (tmp_path / "bomb.pth").write_bytes(pickle.dumps(Bomb()))
    with pytest.raises(InputError, match="Python objects, which are not opened because they could run code"):
        open_predictions(tmp_path / "bomb.pt")
    with pytest.raises(InputError, match=r"is not a readable \.pth file"):
        open_predictions(tmp_path / "bomb.pth")
    assert not (tmp_path / "ran").exists()


def test_a_list_of_batches_is_refused_with_the_remedy(tmp_path):
    torch.save({"logits": [torch.zeros(2, 3)] * 9}, tmp_path / "a.pt")
    with pytest.raises(InputError, match=r"join the batches with torch.cat"):
        open_predictions(tmp_path / "a.pt")


def test_half_and_bfloat16_are_kept_or_widened(tmp_path):
    torch.save({"logits": torch.from_numpy(Z).bfloat16()}, tmp_path / "a.pt")
    found = open_predictions(tmp_path / "a.pt")
    assert found.dtype == "bfloat16"
    assert torch.equal(next(found.chunks()).scores, torch.from_numpy(Z).bfloat16().float())
    np.save(tmp_path / "half.npy", Z.astype(np.float16))
    assert next(open_predictions(tmp_path / "half.npy").chunks()).scores.dtype == torch.float16
    assert load(tmp_path / "half.npy").logits.dtype == torch.float32


@pytest.mark.parametrize(
    ("package", "extra", "name"),
    [
        ("pyarrow", "parquet", "a.parquet"),
        ("nibabel", "nifti", "a.nii"),
        ("safetensors", "safetensors", "a.safetensors"),
    ],
)
def test_a_missing_package_names_its_extra(package, extra, name, tmp_path, monkeypatch):
    (tmp_path / name).write_bytes(b"")
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtra, match=rf"pip install 'confide\[{extra}\]'"):
        open_predictions(tmp_path / name)


def test_every_reader_is_documented():
    assert set(formats.READERS) >= {".npz", ".npy", ".pt", ".safetensors", ".csv", ".jsonl", ".parquet", ".nii.gz"}


MEMORY = """
import resource, sys
from confide.data.opening import open_predictions
found = open_predictions(sys.argv[1], inputs="logits")
peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
next(found.chunks())
before = peak()
print(sum(len(chunk.scores) for chunk in found.chunks()), peak() - before)
"""


@pytest.mark.parametrize("kind", ["npy", "pt", "npz"])
def test_memory_does_not_grow_with_the_file(kind, tmp_path):
    rows, path = 300_000, tmp_path / f"big.{kind}"  # 300 MB
    if kind == "npy":
        np.lib.format.open_memmap(path, "w+", np.float32, (rows, 250)).flush()
    elif kind == "pt":
        torch.save({"logits": torch.zeros(rows, 250)}, path)
    else:
        np.savez_compressed(path, logits=np.zeros((rows, 250), np.float32))
    done = subprocess.run([sys.executable, "-c", MEMORY, path], capture_output=True, text=True, check=True, timeout=100)
    seen, grown = map(int, done.stdout.split())
    assert seen == rows
    assert grown < 80
