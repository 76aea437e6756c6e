"""`confide data`: what it says of a data set, and the picture that it draws."""

import sys

import numpy as np
import pytest
import torch
from PIL import Image

from confide.cli.main import main
from confide.data.split import Part, Split, Stream
from confide.report.contact_sheet import contact_sheet, spread


@pytest.fixture
def call(capsys, monkeypatch, tmp_path):
    def run(*words):
        monkeypatch.setattr(sys, "argv", ["confide", "data", *map(str, words)])
        monkeypatch.setenv("COLUMNS", "100")
        monkeypatch.chdir(tmp_path)
        with pytest.raises(SystemExit) as stop:
            main()
        return stop.value.code or 0, *capsys.readouterr()

    return run


def write_npz(path, **more):
    labels = np.asarray([0] * 6 + [1] * 4)
    np.savez(path, image=np.zeros((10, 8, 8), np.uint8), label=labels, subject=np.arange(10) // 2, **more)


def test_without_a_name_all_are_listed(call):
    code, out, _ = call()
    assert code == 0
    assert "voc2012-aug" in out
    assert "--download" in out.split("cifar10 ")[1].splitlines()[0]


def test_counts_classes_and_a_picture(call, tmp_path):
    write_npz(tmp_path / "x.npz", classes=np.asarray(["cat", "dog"]))
    code, out, err = call("npz", "--root", tmp_path)
    assert code == 0, err
    assert "npz: 2 classes\nSubjects divided 70 / 10 / 20 with seed 1." in out
    lines = out.splitlines()
    sizes = {line.split()[0]: line.split()[1:3] for line in lines if line.endswith("in memory")}
    assert {name: int(rows) for name, (rows, _) in sizes.items()} == {"train": 6, "val": 2, "test": 2}
    assert [subjects for _, subjects in sizes.values()] == ["3", "1", "1"]
    shares = [float(line.split()[1]) for line in lines if line.startswith(("cat", "dog"))]
    assert sum(shares) == pytest.approx(100, abs=0.02)
    assert out.endswith("Contact sheet: confide-npz.png\n")
    with Image.open(tmp_path / "confide-npz.png") as image:
        assert image.width > 500


def test_no_picture_if_none_is_wanted_or_nothing_can_be_seen(call, tmp_path):
    write_npz(tmp_path / "x.npz")
    assert "Contact sheet" not in call("npz", "--root", tmp_path, "--no-draw")[1]
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "all.tsv").write_text("".join(f"g{i % 2}\tsome words here {i}\n" for i in range(20)))
    code, out, _ = call("newsgroups", "--root", texts)
    assert code == 0
    assert "24 words; a text of train has: some words here" in " ".join(out.split())
    assert not list(tmp_path.glob("*.png"))
    code, _, err = call("newsgroups", "--root", texts, "--sheet", tmp_path / "x.png")
    assert (code, err) == (2, "confide: a contact sheet needs images; these inputs have the shape (1000,)\n")


def test_bad_input_is_one_sentence(call, tmp_path):
    code, out, err = call("cifar10", "--root", tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith("confide: CIFAR-10 needs data_batch_1, ")
    assert err.count("\n") == 1
    assert err.endswith("It can be fetched: confide data cifar10 --root DIR --download\n")
    assert call("npz", "--root", tmp_path, "--sheet", "x.jpg")[2].startswith("confide: cannot draw 'x.jpg'")


def masks(rows, size=6):
    return Part(torch.rand(rows, 4, size, size), torch.randint(0, 3, (rows, size, size)))


def ragged(item, generator):
    return torch.zeros(3, 5 + item, 6, dtype=torch.uint8), torch.zeros(5 + item, 6, dtype=torch.uint8)


def test_sheets_of_masks_and_of_streams(tmp_path):
    stream = Stream(tuple(range(20)), ragged)
    for name, part in (("masks", masks(20)), ("few", masks(1)), ("stream", stream)):
        contact_sheet(Split(part, part.take([0]), part.take([0]), ("a", "b", "c")), tmp_path / f"{name}.png")
        with Image.open(tmp_path / f"{name}.png") as image:
            assert len(image.convert("L").getcolors() or ()) > 2


def test_classes_of_streamed_masks_are_sampled(call, tmp_path):
    for i in range(5):
        (tmp_path / "set/masks").mkdir(parents=True, exist_ok=True)
        (tmp_path / "set/images").mkdir(exist_ok=True)
        Image.fromarray(np.zeros((4, 4 + i), np.uint8)).save(tmp_path / f"set/images/{i}.png")
        Image.fromarray(np.eye(4, 4 + i, dtype=np.uint8)).save(tmp_path / f"set/masks/{i}.png")
    code, out, err = call("image-masks", "--root", tmp_path / "set")
    assert code == 0, err
    assert "read when needed" in out
    assert "Counted in 100 masks of each part" in out
    assert float(out.split("class 1")[1].split()[0]) == pytest.approx(100 / 6, abs=4)


def test_rows_of_a_sheet_come_from_all_over_a_part():
    part = Part(torch.arange(100.0)[:, None, None, None], torch.arange(100))
    assert spread(part, 4).targets.tolist() == [0, 25, 50, 75]
    assert spread(part.take([5, 6]), 8).targets.tolist() == [5, 6]
    assert spread(Stream(tuple(range(9)), ragged), 3).inputs.shape == (3, 3, 5, 6)
