"""Fetch a data set from where its authors or their usual mirror keep it; only ever when asked, and checked by sum."""

from __future__ import annotations

import hashlib
import tarfile
from collections.abc import Mapping
from pathlib import Path
from urllib.error import URLError
from urllib.request import urlopen

from confide.core.errors import InputError

# Addresses, and the MD5 sums that their sources and torchvision publish.
MNIST = "https://ossci-datasets.s3.amazonaws.com/mnist/"
FASHION = "https://raw.githubusercontent.com/zalandoresearch/fashion-mnist/master/data/fashion/"
SOURCES: Mapping[str, Mapping[str, str]] = {
    "mnist": {
        f"{MNIST}train-images-idx3-ubyte.gz": "f68b3c2dcbeaaa9fbdd348bbdeb94873",
        f"{MNIST}train-labels-idx1-ubyte.gz": "d53e105ee54ea40749a09fcbcd1e9432",
        f"{MNIST}t10k-images-idx3-ubyte.gz": "9fb629c4189551a2d022fa330f9573f3",
        f"{MNIST}t10k-labels-idx1-ubyte.gz": "ec29112dd5afa0611ce80d1b7f02629c",
    },
    "fashion-mnist": {
        f"{FASHION}train-images-idx3-ubyte.gz": "8d4fb7e6c68d591d4c3dfef9ec88bf0d",
        f"{FASHION}train-labels-idx1-ubyte.gz": "25c81989df183df01b3e8a0aad5dffbe",
        f"{FASHION}t10k-images-idx3-ubyte.gz": "bef4ecab320f06d8554ea6380940ec79",
        f"{FASHION}t10k-labels-idx1-ubyte.gz": "bb300cfdad3c16e7a12a480ee83cd310",
    },
    "cifar10": {"https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz": "c58f30108f718f92721af3b95e74349a"},
    "cifar100": {"https://www.cs.toronto.edu/~kriz/cifar-100-python.tar.gz": "eb9058c3a382ffc7106e4002c42a8d85"},
    "svhn": {
        "http://ufldl.stanford.edu/housenumbers/train_32x32.mat": "e26dedcc434d2e4c54c9b2d4a06d8373",
        "http://ufldl.stanford.edu/housenumbers/test_32x32.mat": "eb5a983be6a315427106f1b164d9cef3",
    },
}
BLOCK = 1 << 20


def download(name: str, root: Path) -> list[Path]:
    """Fetch what is not there yet, check every file, and unpack archives below `root`."""
    if name not in SOURCES:
        raise InputError(
            f"{name} cannot be downloaded from here: its owners want an account or a form. Those that can be are "
            f"{', '.join(SOURCES)}"
        )
    root.mkdir(parents=True, exist_ok=True)
    return [_fetched(url, md5, root) for url, md5 in SOURCES[name].items()]


def _fetched(url: str, md5: str, root: Path) -> Path:
    path = root / url.rpartition("/")[2]
    if not path.is_file() or _sum(path) != md5:
        part = path.with_name(f"{path.name}.part")
        _copy(url, part)
        found = _sum(part)
        if found != md5:
            part.unlink()
            raise InputError(f"{url} gave a file with the MD5 sum {found}, not {md5}: it is broken or was changed")
        part.replace(path)
    if path.name.endswith(".tar.gz"):
        try:
            with tarfile.open(path) as archive:
                archive.extractall(root, filter="data")  # refuses members that would land elsewhere
        except tarfile.TarError as error:
            raise InputError(f"{str(path)!r} cannot be unpacked: {error}") from error
    return path


def _copy(url: str, path: Path) -> None:
    try:
        with urlopen(url, timeout=60) as source, path.open("wb") as file:
            while block := source.read(BLOCK):
                file.write(block)
    except (URLError, OSError) as error:
        path.unlink(missing_ok=True)
        raise InputError(
            f"{url} cannot be fetched: {error}. Put its file into {str(path.parent)!r} yourself"
        ) from error


def _sum(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
    return digest.hexdigest()
