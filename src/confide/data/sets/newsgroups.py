"""20 Newsgroups as numbers of words, from folders or from one file, and word vectors in GloVe's text format."""

from __future__ import annotations

import gzip
import lzma
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from confide.core.errors import InputError
from confide.data.sets.found import holds
from confide.data.split import Part, Split
from confide.data.splitting import shuffled

TABLES = (".tsv", ".txt", ".tsv.gz", ".tsv.xz", ".txt.gz", ".txt.xz")
PUNCTUATION = str.maketrans(dict.fromkeys('!"#$%&()*+,-./:;<=>?@[\\]^_`{|}~\t\n', " "))
TEST, VAL = 0.2, 900
Text = tuple[str, str]  # a label and what was written


def newsgroups(root: Path, *, seed: int = 1, words: int = 2000, length: int = 1000, official: bool = False) -> Split:
    """20 Newsgroups as MbLS divides it: all texts shuffled, the last 20% to test on, the 900 before to choose on.

    Folders of texts a group, or lines of a label, a tab and the text. `official` keeps the by-date test set, which must
    be in files or folders with `test` in their names. Words are numbered by how often they occur in all texts, from 1.
    """
    parts = _texts(root)
    train, test = parts["train"], parts["test"]
    if official and not test:
        raise InputError(f"{str(root)!r} has no folder or file with 'test' in its name, which official needs")
    texts = train + test
    classes = tuple(sorted({label for label, _ in texts}))
    vocabulary = vocabulary_of((text for _, text in texts), words)
    inputs = encode([text for _, text in texts], vocabulary, length)
    number = {name: i for i, name in enumerate(classes)}
    whole = Part(inputs, torch.tensor([number[label] for label, _ in texts]))
    rows, how = _divided(len(train), len(test), seed, official)
    fit, val, held = (whole.take(index) for index in rows)
    return Split(fit, val, held, classes, how, vocabulary=vocabulary)


def _divided(train: int, test: int, seed: int, official: bool) -> tuple[list[NDArray[np.int64]], str]:
    size = train + test
    if official:
        order, held = shuffled(train, seed), min(VAL, train // 10)
        rows = [order[:-held], order[-held:], np.arange(train, size)]
        return rows, f"test set by date; {held} of the other texts, drawn with seed {seed}, for validation"
    order, last, held = shuffled(size, seed), int(TEST * size), min(VAL, size // 10)
    if not (last and held):
        raise InputError(f"{size} texts are too few to divide")
    rows = [order[: size - last - held], order[size - last - held : size - last], order[size - last :]]
    return rows, f"all texts shuffled with seed {seed}: the last {last} to test on, the {held} before for validation"


def words_of(text: str) -> list[str]:
    """Lower-case words without punctuation, as Keras takes them."""
    return text.lower().translate(PUNCTUATION).split()


def vocabulary_of(texts: Iterator[str], size: int) -> tuple[str, ...]:
    """The most frequent words, the first at 1; place 0 is padding."""
    counts = Counter(word for text in texts for word in words_of(text))
    return ("", *(word for word, _ in counts.most_common(size - 1)))


def encode(texts: Sequence[str], vocabulary: Sequence[str], length: int) -> Tensor:
    """Numbers of the known words, the last `length` of a text, with zeros before them where it is shorter."""
    number = {word: i for i, word in enumerate(vocabulary) if word}
    rows = np.zeros((len(texts), length), np.int32)
    for row, text in zip(rows, texts, strict=True):
        known = [number[word] for word in words_of(text) if word in number][-length:]
        if known:
            row[-len(known) :] = known
    return torch.from_numpy(rows)


def word_vectors(path: Path, vocabulary: Sequence[str]) -> Tensor:
    """A row for each word of the vocabulary, from lines of a word and its numbers; zeros where the file has none."""
    number = {word: i for i, word in enumerate(vocabulary) if word}
    rows: dict[int, list[float]] = {}
    with _open(path) as file:
        for line in file:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word in number:
                rows[number[word]] = _numbers(path, word, rest)
    sizes = {len(row) for row in rows.values()}
    if len(sizes) != 1:
        what = f"gives its words {sorted(sizes)} numbers" if sizes else "has none of the words"
        raise InputError(f"{str(path)!r} {what}; expected lines of a word and its numbers, as in glove.6B.100d.txt")
    vectors = torch.zeros(len(vocabulary), sizes.pop())
    for i, row in rows.items():
        vectors[i] = torch.tensor(row)
    return vectors


def _numbers(path: Path, word: str, text: str) -> list[float]:
    try:
        return [float(number) for number in text.split()]
    except ValueError as error:
        raise InputError(f"{str(path)!r}, word {word!r}: {error}") from error


def _texts(root: Path) -> dict[str, list[Text]]:
    """Everything that is written, by whether a name has `test` in it."""
    found: dict[str, list[Text]] = {"train": [], "test": []}
    if root.is_file():
        return found | {"train": list(_lines(root))}
    for path in sorted(root.iterdir()) if root.is_dir() else ():
        part = "test" if "test" in path.name.lower() else "train"
        if path.name.lower().endswith(TABLES):
            found[part] += _lines(path)
        elif path.is_dir():
            groups = [path] if any(child.is_file() for child in path.iterdir()) else sorted(path.iterdir())
            found[part] += [text for group in groups for text in _posts(group)]
    if not any(found.values()):
        raise InputError(
            f"{str(root)!r} should hold a folder of texts for each group (or one folder of such folders), or a file "
            f"such as train.tsv with lines of a label, a tab and the text; it holds {holds(root)}"
        )
    return found


def _posts(group: Path) -> Iterator[Text]:
    """Posts are named by numbers; their header ends at the first empty line."""
    for path in sorted(group.iterdir()):
        if path.name.isdigit():
            text = path.read_text(encoding="latin-1")
            yield group.name, text[max(text.find("\n\n"), 0) :]


def _lines(path: Path) -> Iterator[Text]:
    with _open(path) as file:
        for number, line in enumerate(file, 1):
            label, tab, text = line.partition("\t")
            if not tab:
                raise InputError(f"{str(path)!r}, line {number}: no tab between a label and its text")
            yield label, text


def _open(path: Path) -> IO[str]:
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    openers: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}
    return cast(IO[str], openers.get(path.suffix, open)(path, "rt", encoding="utf-8", errors="replace"))
