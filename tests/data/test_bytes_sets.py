"""MNIST, CIFAR and SVHN in tiny files of the official layouts, and pickles that want to run code."""

import base64
import gzip
import pickle
import re
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from confide.data.sets.catalogue import SETS, read
from confide.data.sets.download import SOURCES
from confide.data.sets.idx import NAMES, read_idx
from confide.data.sets.mat import read_mat
from confide.data.sets.unpickle import read_batch

RANDOM = np.random.RandomState(0)
# Written by scipy.io.savemat 1.17: X = arange(36) as (2, 3, 2, 3) bytes, y = [[10], [3], [7]], w = [[1.5, -2.0]].
MAT = {
    "plain": (
        "eNrzdQzxcXRSMNUzUPB1DNFNy8xJVQjISSxJyy/KtVIoyC/OrNBRcC5KTSxJTVHIz7NSCMkoVfDLL1MwtFQwMrQyNbMytlAwMjAy"
        "YyADMHr68gGpBCBmA2IOIOaESrECsQAQMwExMxLNCIQRUL4KSKEQmwSPHLMopzS/IqMwuySvPIsYl4yAEpMIhxSfAqs4t6ygMkgZ"
        "yB4DHPZwwM2GmF8JNp+ZgYuZHazPAUkfG5o+RqhbQPrKoeYKwD34wx7KOAAAh6sdbA=="
    ),
    "compressed": (
        "eNrzdQzxcXRSMNUzUPB1DNFNy8xJVQjISSxJyy/KtVIoyC/OrNBRcC5KTSxJTVHIz7NSCMkoVfDLL1MwtFQwMrQyNbMytlAwMjAy"
        "YyADMHr68gMpPyCumPM4OSHBgyHJTOEZQ5IfG0cCaxKjQhpTUprKLEEO5QU1ohOcFM045SzTAv0y61zdEss84yrFDPUkGVXVBPk0"
        "7VjDCvMiHVMnGDF0ZjLPBpmqBTfVAMnU1k8zG2cI9khKajWaCAe0dM+cy8gg8Z3hN0iHDlxHAVhHwyWFA1xPjZkMhWekpWiwX5rj"
        "oHOAgdn+zcIeZgaLlUx/AIQTTUs="
    ),
}


def idx(values):
    return b"\x00\x00\x08" + bytes([values.ndim]) + np.asarray(values.shape, ">u4").tobytes() + values.tobytes()


def write_mnist(folder, rows=40, test=10, zipped=False):
    folder.mkdir(parents=True, exist_ok=True)
    arrays = {}
    for name in NAMES:
        size = rows if name.startswith("train") else test
        values = RANDOM.randint(0, 10, (size, 28, 28) if "images" in name else size).astype(np.uint8)
        arrays[name] = values
        raw = idx(values)
        path = folder / (f"{name}.gz" if zipped else name)
        path.write_bytes(gzip.compress(raw) if zipped else raw)
    return arrays


@pytest.mark.parametrize(
    ("name", "below", "zipped"), [("mnist", "", False), ("fashion-mnist", "FashionMNIST/raw", True)]
)
def test_idx_files(name, below, zipped, tmp_path):
    arrays = write_mnist(tmp_path / below, zipped=zipped)
    split = read(name, tmp_path, seed=3)
    assert [len(part) for part in (split.train, split.val, split.test)] == [36, 4, 10]
    assert np.array_equal(split.test.inputs[:, 0].numpy(), arrays["t10k-images-idx3-ubyte"])
    order = np.random.RandomState(3).permutation(40)
    assert np.array_equal(split.val.targets.numpy(), arrays["train-labels-idx1-ubyte"][order[:4]])
    assert split.train.inputs.dtype == torch.uint8
    assert split.how == "official test set; 0.1 of the other rows, shuffled with seed 3, held out for validation"


def test_resplit_draws_a_test_set_of_the_old_size_from_all_rows(tmp_path):
    write_mnist(tmp_path)
    one, two = (read("mnist", tmp_path, seed=seed, resplit=True) for seed in (0, 1))
    assert len(one.test) == len(two.test) == 10
    assert not torch.equal(one.test.inputs, two.test.inputs)
    images = [i.numpy().tobytes() for part in (one.train, one.val, one.test) for i in part.inputs]
    assert len(set(images)) == 50
    assert one.how.startswith("test set drawn from all rows with seed 0")


def test_missing_and_broken_idx_files_are_named(tmp_path):
    write_mnist(tmp_path)
    (tmp_path / NAMES[1]).unlink()
    with pytest.raises(
        ValueError, match=r"MNIST needs train-images-idx3-ubyte, .*missing in .*: train-labels-idx1-ubyte. It"
    ):
        read("mnist", tmp_path)
    with pytest.raises(ValueError, match="which is no folder"):
        read("mnist", tmp_path / "nowhere")
    (tmp_path / "short").write_bytes(idx(np.zeros((2, 3), np.uint8))[:-1])
    with pytest.raises(ValueError, match=r"'.*short' says \[2, 3\] but has 5 bytes after that"):
        read_idx(tmp_path / "short")
    (tmp_path / "floats").write_bytes(b"\x00\x00\x0d\x01" + bytes(8))
    with pytest.raises(ValueError, match="is not an IDX file of unsigned bytes"):
        read_idx(tmp_path / "floats")
    (tmp_path / "cut.gz").write_bytes(gzip.compress(bytes(100))[:-20])
    with pytest.raises(ValueError, match=r"cut.gz' cannot be read"):
        read_idx(tmp_path / "cut.gz")


def batch(rows, classes, fine=False):
    return {
        b"batch_label": b"a batch",
        b"fine_labels" if fine else b"labels": [int(v) for v in RANDOM.randint(0, classes, rows)],
        b"data": RANDOM.randint(0, 256, (rows, 3072)).astype(np.uint8),
    }


def write_cifar10(folder, rows=6):
    folder.mkdir()
    batches = {name: batch(rows, 10) for name in (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")}
    for name, content in batches.items():
        (folder / name).write_bytes(pickle.dumps(content, protocol=2))
    meta = {b"label_names": [f"class{i}".encode() for i in range(10)]}
    (folder / "batches.meta").write_bytes(pickle.dumps(meta, protocol=2))
    return batches


def test_cifar10_python_batches(tmp_path):
    batches = write_cifar10(tmp_path / "cifar-10-batches-py")
    split = read("cifar10", tmp_path)
    assert [len(part) for part in (split.train, split.val, split.test)] == [27, 3, 6]
    assert split.classes == tuple(f"class{i}" for i in range(10))
    assert np.array_equal(split.test.inputs.numpy().reshape(6, -1), batches["test_batch"][b"data"])
    assert split.test.targets.tolist() == batches["test_batch"][b"labels"]
    everything = torch.cat((split.train.inputs, split.val.inputs)).numpy().reshape(30, -1)
    expected = np.concatenate([batches[f"data_batch_{i}"][b"data"] for i in range(1, 6)])
    assert sorted(map(bytes, everything)) == sorted(map(bytes, expected))


def test_python_and_binary_files_hold_the_same(tmp_path):
    batches = write_cifar10(tmp_path / "py")
    (tmp_path / "bin").mkdir()
    for name, content in batches.items():
        rows = np.concatenate((np.asarray(content[b"labels"], np.uint8)[:, None], content[b"data"]), 1)
        rows.tofile(tmp_path / "bin" / f"{name}.bin")
    (tmp_path / "bin" / "batches.meta.txt").write_text("".join(f"class{i}\n" for i in range(10)) + "\n")
    one, two = (read("cifar10", tmp_path / name) for name in ("py", "bin"))
    assert one.classes == two.classes
    for a, b in zip((one.train, one.val, one.test), (two.train, two.val, two.test), strict=True):
        assert torch.equal(a.inputs, b.inputs)
        assert torch.equal(a.targets, b.targets)
    (tmp_path / "bin" / "test_batch.bin").write_bytes(bytes(3072))
    with pytest.raises(ValueError, match=r"has 3,072 bytes, which is no multiple of 3,073"):
        read("cifar10", tmp_path / "bin")


def test_cifar100_takes_the_fine_labels(tmp_path):
    folder = tmp_path / "cifar-100-binary"
    folder.mkdir()
    for name, rows in (("train", 20), ("test", 5)):
        values = RANDOM.randint(0, 256, (rows, 3074)).astype(np.uint8)
        values[:, 0], values[:, 1] = 7, np.arange(rows)  # coarse, fine
        values.tofile(folder / f"{name}.bin")
    (folder / "fine_label_names.txt").write_text("\n".join(f"name{i}" for i in range(100)))
    split = read("cifar100", tmp_path)
    assert split.test.targets.tolist() == [0, 1, 2, 3, 4]
    assert len(split.classes) == 100
    python = tmp_path / "p"
    python.mkdir()
    for name in ("train", "test"):
        (python / name).write_bytes(pickle.dumps(batch(10, 100, fine=True), protocol=2))
    (python / "meta").write_bytes(
        pickle.dumps({b"fine_label_names": [str(i).encode() for i in range(100)]}, protocol=2)
    )
    assert len(read("cifar100", python).train) == 9


class Evil:
    """Unpickled by pickle.load, it writes a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


def test_a_malicious_pickle_is_refused_and_does_nothing(tmp_path):
    trace, path = tmp_path / "trace", tmp_path / "data_batch_1"
    path.write_bytes(pickle.dumps({b"data": Evil(trace)}, protocol=2))
    with pytest.raises(
        ValueError, match=r"data_batch_1' is no CIFAR batch that can be read safely: it names \w*io.open, "
    ):
        read_batch(path)
    assert not trace.exists()
    pickle.loads(path.read_bytes())[b"data"].close()
    assert trace.exists()  # so the file above would have worked


@pytest.mark.parametrize(
    ("raw", "name"),
    [
        (b"cos\nsystem\n(S'true'\ntR.", "os.system"),
        (b"cbuiltins\neval\n(S'1'\ntR.", "builtins.eval"),
        (b"cnumpy\nload\n.", "numpy.load"),
        (b"cnumpy.core.multiarray\nscalar\n.", "numpy.core.multiarray.scalar"),
        (pickle.dumps(np.dtype, protocol=4).replace(b"dtype", b"fromf"), "numpy.fromf"),
    ],
)
def test_every_name_but_five_is_refused(raw, name, tmp_path):
    (tmp_path / "x").write_bytes(raw)
    with pytest.raises(ValueError, match=f"it names {name}, which could run code"):
        read_batch(tmp_path / "x")


def test_pickles_that_are_no_batches_are_refused(tmp_path):
    for content, words in (
        ([1], "holds a list, not a dictionary"),
        ({b"a": np.zeros(2)}, "holds numbers of type 'f8'"),
    ):
        (tmp_path / "x").write_bytes(pickle.dumps(content, protocol=2))
        with pytest.raises(ValueError, match=words):
            read_batch(tmp_path / "x")
    (tmp_path / "x").write_bytes(b"no pickle")
    with pytest.raises(ValueError, match="is no CIFAR batch that can be read safely"):
        read_batch(tmp_path / "x")
    order = np.asfortranarray(np.arange(6, dtype=np.uint8).reshape(2, 3))
    (tmp_path / "x").write_bytes(pickle.dumps({b"a": order, "b": b"\xff"}, protocol=2))
    found = read_batch(tmp_path / "x")
    assert np.array_equal(found["a"], order)
    assert found["b"] == b"\xff"


@pytest.mark.parametrize("kind", MAT)
def test_mat_files_that_scipy_wrote(kind, tmp_path):
    path = tmp_path / "x.mat"
    path.write_bytes(zlib.decompress(base64.b64decode(MAT[kind])))
    found = read_mat(path)
    assert set(found) == {"X", "y", "w"}
    assert np.array_equal(found["X"], np.arange(36).reshape(2, 3, 2, 3))
    assert found["X"].dtype == np.uint8
    assert found["y"].tolist() == [[10], [3], [7]]
    assert found["w"].tolist() == [[1.5, -2.0]]
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(ValueError, match="is broken, or holds more than arrays of real numbers"):
        read_mat(path)
    path.write_bytes(b"MATLAB 7.3" + bytes(200))
    with pytest.raises(ValueError, match="is no MATLAB file of version 5"):
        read_mat(path)


def element(kind, raw):
    return np.asarray([kind, len(raw)], "<u4").tobytes() + raw + bytes(-len(raw) % 8)


def mat(**arrays):
    body = b""
    for name, values in arrays.items():
        flags = np.asarray([9, 0], "<u4").tobytes()
        shape = np.asarray(values.shape, "<i4").tobytes()
        parts = ((6, flags), (5, shape), (1, name.encode()), (2, values.tobytes(order="F")))
        body += element(14, b"".join(element(*part) for part in parts))
    return b"MATLAB 5.0".ljust(124) + b"\x00\x01IM" + body


def test_svhn(tmp_path):
    images = {name: RANDOM.randint(0, 256, (32, 32, 3, 20)).astype(np.uint8) for name in ("train", "test")}
    for name, values in images.items():
        (tmp_path / f"{name}_32x32.mat").write_bytes(
            mat(X=values, y=np.arange(1, 21, dtype=np.uint8)[:, None] % 10 + 1)
        )
    split = read("svhn", tmp_path)
    assert split.test.targets.tolist()[:10] == [2, 3, 4, 5, 6, 7, 8, 9, 0, 1]
    assert np.array_equal(split.test.inputs[4, 1].numpy(), images["test"][:, :, 1, 4])
    (tmp_path / "test_32x32.mat").write_bytes(mat(X=images["test"]))
    with pytest.raises(ValueError, match=r"needs X of \(32, 32, 3, N\) and y of \(N, 1\); it holds"):
        read("svhn", tmp_path)


def test_an_unknown_name_gets_the_nearest_and_all():
    with pytest.raises(
        ValueError, match=r"there is no data set 'cifar-10'; did you mean cifar10\? there are fashion-mini, "
    ):
        read("cifar-10")
    with pytest.raises(ValueError, match=r"cifar10 .* is on your disk, not in confide: say where, with --root"):
        read("cifar10")
    assert len(read("fashion-mini", seed=3).test) == 3500  # which draws nothing
    with pytest.raises(
        ValueError, match=r"mnist has no option 'vall'; did you mean val\? it has root, seed, val, resplit"
    ):
        read("mnist", vall=0.2)
    with pytest.raises(ValueError, match="fashion-mini has no option 'val'; it has none"):
        read("fashion-mini", val=0.2)
    assert all(entry.about for entry in SETS.values())


def test_every_name_is_in_the_docs():
    page = (Path(__file__).parents[2] / "docs" / "data.md").read_text(encoding="utf-8")
    names = re.findall(r"`([a-z0-9-]+)`", "".join(re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)))
    assert sorted(names) == sorted(SETS)
    assert "`--download` fetches MNIST, Fashion-MNIST, CIFAR-10, CIFAR-100 and SVHN" in page
    assert set(SOURCES) == {"mnist", "fashion-mnist", "cifar10", "cifar100", "svhn"}
