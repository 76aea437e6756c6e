"""The pages of docs/methods are what the code says, their examples run, and what they link to exists."""

import re
from pathlib import Path

import matplotlib
import pytest

from confide.losses import ALL
from confide.report.curve_figures import draw
from confide.report.curves import curve_of
from confide.report.method_pages import DERIVED, FOLDER, index_page, method_page

ROOT = Path(__file__).parents[1]
PAGES = ROOT / FOLDER
NAMES = [kind.__name__ for kind in ALL]
AGAIN = f"{FOLDER} is not what the code says: run make docs"
LINK = re.compile(r"\]\(([^)\s]+)\)")


@pytest.fixture(scope="module")
def curves():
    return {kind: curve_of(kind) for kind in ALL}


def text(name):
    return (PAGES / name).read_text(encoding="utf-8")


def test_there_is_a_page_and_a_picture_for_every_method_and_no_other():
    assert {path.stem for path in PAGES.glob("*.md")} == {*NAMES, "README", DERIVED.removesuffix(".md")}, AGAIN
    assert {path.name for path in (PAGES / "images").iterdir()} == {f"{name}.svg" for name in NAMES}, AGAIN


def test_the_table_is_what_the_code_says():
    assert text("README.md") == index_page(ALL), AGAIN


@pytest.mark.parametrize("kind", ALL, ids=NAMES)
def test_the_page_is_what_the_code_says(kind, curves):
    assert text(f"{kind.__name__}.md") == method_page(kind, curves[kind]), AGAIN


@pytest.mark.parametrize("kind", ALL, ids=NAMES)
def test_the_picture_is_what_the_code_draws(kind, curves, tmp_path):
    committed = text(f"images/{kind.__name__}.svg")
    if f"Matplotlib v{matplotlib.__version__}," not in committed:
        pytest.skip(f"drawn by another version of matplotlib than this {matplotlib.__version__}")
    draw({kind.__name__: curves[kind]}, tmp_path / "again.svg")
    # Not by ==, whose report of a difference between such long texts takes minutes.
    assert bool(committed == (tmp_path / "again.svg").read_text(encoding="utf-8")), AGAIN


@pytest.mark.parametrize("kind", ALL, ids=NAMES)
def test_the_examples_run(kind):
    examples = re.findall(r"```python\n(.*?)```", text(f"{kind.__name__}.md"), re.DOTALL)
    assert examples
    for example in examples:
        names = {}
        exec(compile(example, f"{kind.__name__}.md", "exec"), names)
        assert names["logits"].grad.isfinite().all()
        assert names["logits"].grad.any()


def test_settings_that_ask_for_more_have_an_example():
    assert "image=image" in text("NACL.md")
    assert 'confide.ACLS(size=1000, margin=6.0, top=0.1, condition="ranking")' in text("ACLS.md")
    assert "criterion.epoch_end()" in text("ACLS.md")


def test_a_page_tells_what_a_knob_changes():
    flat = " ".join(text("NACL.md").split())
    assert '(Not with `on="probs"`.)' in flat
    assert 'With `on="probs"`: The gradient of a row sums to zero' in flat


def anchors(page):
    """As GitHub makes them from headings."""
    heads = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", [f"{name}.md" for name in NAMES] + ["README.md", DERIVED])
def test_links_lead_somewhere(page):
    links = LINK.findall(text(page))
    assert links
    for link in links:
        name, _, anchor = link.partition("#")
        target = (PAGES / name).resolve() if name else PAGES / page
        assert target.is_file(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


# The page that is written by hand.


def named_tests():
    """(file, name) of every test that the page names, as `test_name` in a link to its file."""
    return re.findall(r"\[`(test_\w+)`\]\(\.\./\.\./(tests/[\w/]+\.py)\)", text(DERIVED))


def test_every_test_that_the_derivation_names_exists():
    named = named_tests()
    assert len(named) == len(re.findall(r"`test_", text(DERIVED)))  # every one of them is a link
    for name, file in named:
        assert re.search(rf"^def {name}\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE), (name, file)


def test_every_claim_that_was_written_for_the_derivation_is_in_it():
    file = "tests/oracles/test_one_gradient.py"
    claims = re.findall(r"^def (test_\w+)\(", (ROOT / file).read_text(encoding="utf-8"), re.MULTILINE)
    assert not set(claims) - {name for name, where in named_tests() if where == file}
