"""Write the tables of docs/metrics.md from the metrics themselves and from the map of other libraries.

python scripts/make_metrics_page.py            write
python scripts/make_metrics_page.py --check    say whether the page is as it should be
"""

import importlib.util
import sys
from pathlib import Path
from typing import Any

from confide.metrics import ALL

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "metrics.md"


def definitions() -> str:
    """One row a metric."""
    good = {"low": "0", "high": "1", "none": "-"}
    rows = [f"| `{kind.__name__}` | {_cell(kind.definition)} | {good[kind.goal]} |" for kind in ALL]
    return "\n".join(["| metric | definition | best |", "|---|---|---|", *rows])


def peers() -> str:
    """One row an entry of the map."""
    spec = importlib.util.spec_from_file_location("peer_map", ROOT / "tests" / "metrics" / "peer_map.py")
    assert spec is not None
    assert spec.loader is not None
    module: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    rows = [
        f"| `{e.ours}` | {e.peer} | `{e.setting}` | {'1e-6' if e.call and not e.why else _cell(e.why)} |"
        for e in module.MAP
    ]
    return "\n".join(["| ours | theirs | setting | agrees to, or why not |", "|---|---|---|---|", *rows])


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def main() -> int:
    """Replace what stands between the markers."""
    page = fresh = PAGE.read_text()
    for name, table in {"definitions": definitions(), "peers": peers()}.items():
        start, end = f"<!-- {name} -->\n", f"<!-- /{name} -->"
        before, _, rest = fresh.partition(start)
        fresh = before + start + table + "\n" + end + rest.partition(end)[2]
    if "--check" in sys.argv:
        return int(fresh != page)
    PAGE.write_text(fresh)
    return 0


if __name__ == "__main__":
    sys.exit(main())
