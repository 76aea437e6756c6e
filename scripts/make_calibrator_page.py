"""Write the generated part of docs/posthoc.md anew, from the calibrators themselves."""

from pathlib import Path

from confide.report.calibrator_page import page

DOCUMENT = Path(__file__).parents[1] / "docs" / "posthoc.md"

if __name__ == "__main__":
    DOCUMENT.write_text(page(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
