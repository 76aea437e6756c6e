"""20 Newsgroups from folders and files, and word vectors."""

import gzip

import pytest
import torch

from confide.data.sets.catalogue import read
from confide.data.sets.newsgroups import encode, vocabulary_of, word_vectors, words_of


def write_posts(root, groups=("a.b", "c.d"), posts=10):
    for number, group in enumerate(groups):
        (root / group).mkdir(parents=True)
        for post in range(posts):
            (root / group / f"{post}").write_bytes(
                f"From: x\nSubject: y\n\nWord{number} common! {post}\xe9".encode("latin-1")
            )
        (root / group / "README").write_text("not a post")


def test_folders_are_read_without_headers_and_divided_as_in_the_paper(tmp_path):
    write_posts(tmp_path)
    split = read("newsgroups", tmp_path, words=50, length=6)
    assert [len(part) for part in (split.train, split.val, split.test)] == [14, 2, 4]
    assert split.classes == ("a.b", "c.d")
    assert split.vocabulary[:2] == ("", "common")
    assert not {"from", "subject", "not"} & set(split.vocabulary)
    for part in (split.train, split.val, split.test):
        for row, label in zip(part.inputs, part.targets, strict=True):
            text = [split.vocabulary[i] for i in row if i]
            assert text[:2] == [f"word{label}", "common"]
            assert row[:3].eq(0).all()  # zeros come before the words


def test_one_folder_above_and_one_file_give_the_same(tmp_path):
    write_posts(tmp_path / "20_newsgroups")
    lines = [
        f"{group}\tWord{number} common! {post}\xe9\n"
        for number, group in enumerate(("a.b", "c.d"))
        for post in range(10)
    ]
    with gzip.open(tmp_path / "all.tsv.gz", "wt", encoding="utf-8") as file:
        file.writelines(lines)
    one, two = (read("newsgroups", tmp_path / name) for name in ("20_newsgroups", "all.tsv.gz"))
    assert torch.equal(one.train.inputs, two.train.inputs)
    assert one.vocabulary == two.vocabulary


def test_the_official_test_set_stays_whole(tmp_path):
    for name, rows in (("train", 30), ("test", 5)):
        (tmp_path / f"news-{name}.tsv").write_text("".join(f"g{i % 2}\t{name} word{i}\n" for i in range(rows)))
    split = read("newsgroups", tmp_path, official=True)
    word = split.vocabulary.index("test")
    assert [len(part) for part in (split.train, split.val, split.test)] == [27, 3, 5]
    assert (split.test.inputs == word).any(1).all()
    assert not (split.train.inputs == word).any()
    mixed = read("newsgroups", tmp_path)
    assert len(mixed.test) == 7
    (tmp_path / "news-test.tsv").unlink()
    with pytest.raises(ValueError, match="has no folder or file with 'test' in its name"):
        read("newsgroups", tmp_path, official=True)


def test_words_are_numbered_by_how_often_they_occur():
    assert words_of("It's A-B, c_d\tE!") == ["it's", "a", "b", "c", "d", "e"]
    vocabulary = vocabulary_of(["b a a", "c b a d"], 4)
    assert vocabulary == ("", "a", "b", "c")
    assert encode(["d a c", "a b c a b c", ""], vocabulary, 4).tolist() == [[0, 0, 1, 3], [3, 1, 2, 3], [0, 0, 0, 0]]


def test_vectors_of_known_words(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("the 0.5 -1\nb 1 2\nunseen 3 4\n", encoding="utf-8")
    assert word_vectors(path, ("", "b", "zz", "the")).tolist() == [[0, 0], [1, 2], [0, 0], [0.5, -1]]
    with pytest.raises(ValueError, match="has none of the words; expected lines of a word and its numbers"):
        word_vectors(path, ("", "zz"))
    path.write_text("b 1 2\nc 1\n")
    with pytest.raises(ValueError, match=r"gives its words \[1, 2\] numbers"):
        word_vectors(path, ("", "b", "c"))
    path.write_text("b 1 x\n")
    with pytest.raises(ValueError, match="word 'b': could not convert"):
        word_vectors(path, ("", "b"))
    with pytest.raises(ValueError, match="there is no file"):
        word_vectors(tmp_path / "none", ("", "b"))


def test_what_is_missing_is_said(tmp_path):
    with pytest.raises(ValueError, match=r"should hold a folder of texts for each group .* it holds nothing"):
        read("newsgroups", tmp_path)
    (tmp_path / "x.tsv").write_text("no tab here\n")
    with pytest.raises(ValueError, match="line 1: no tab between a label and its text"):
        read("newsgroups", tmp_path)
