"""The documentation of calibrators is what the code says."""

from pathlib import Path

from confide.posthoc import ALL
from confide.report.calibrator_page import page

DOCUMENT = Path(__file__).parents[2] / "docs" / "posthoc.md"


def test_the_page_is_up_to_date():
    text = DOCUMENT.read_text(encoding="utf-8")
    assert page(text) == text, "run scripts/make_calibrator_page.py"
    assert all(f"\n### {kind.__name__}\n" in text for kind in ALL)


def test_cards_say_something():
    for kind in ALL:
        assert len(kind.card.differs) > 60
        assert kind.card.cite[-4:].isdigit()
        assert kind.__doc__
