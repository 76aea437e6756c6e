"""Write docs/methods: a page and a picture for every method, and the table of all of them.

Usage: make docs
"""

from __future__ import annotations

from pathlib import Path

from confide.losses import ALL
from confide.report.curve_figures import draw
from confide.report.curves import curve_of
from confide.report.method_pages import FOLDER, index_page, method_page

HERE = Path(__file__).parents[1] / FOLDER


def main() -> None:
    """Pages of methods that are no more go, too."""
    names = {method.__name__ for method in ALL}
    (HERE / "images").mkdir(parents=True, exist_ok=True)
    for old in HERE.glob("images/*.svg"):
        if old.stem not in names:
            old.unlink()
            (HERE / f"{old.stem}.md").unlink(missing_ok=True)
    (HERE / "README.md").write_text(index_page(ALL), encoding="utf-8")
    for method in ALL:
        lines = curve_of(method)
        (HERE / f"{method.__name__}.md").write_text(method_page(method, lines), encoding="utf-8")
        if not isinstance(lines, str):
            draw({method.__name__: lines}, HERE / "images" / f"{method.__name__}.svg")


if __name__ == "__main__":
    main()
