"""`import confide` loads torch, numpy and itself, and costs next to nothing beyond torch."""

import subprocess
import sys

MAY_LOAD = {"confide", "torch", "numpy"}
PROBE = """
import sys, time, torch
before, start = set(sys.modules), time.perf_counter()
import confide
[getattr(confide, name) for name in confide.__all__]
print(time.perf_counter() - start)
print(*{name.split(".")[0] for name in set(sys.modules) - before})
print(*{name.split(".")[0] for name in sys.modules})
"""
HEAVY = {"matplotlib", "typer", "rich", "pandas", "sklearn", "scipy", "lightning", "monai", "transformers"}


def probe():
    seconds, added, loaded = subprocess.run(
        [sys.executable, "-c", PROBE], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return float(seconds), set(added.split()), set(loaded.split())


def test_import_is_cheap_and_clean():
    results = [probe() for _ in range(3)]
    seconds, added, loaded = min(results, key=lambda result: result[0])
    assert seconds < 0.3
    assert added - set(sys.stdlib_module_names) <= MAY_LOAD
    assert not loaded & HEAVY


EXTRAS = ["pytest", "matplotlib", "nibabel", "pyarrow", "PIL", "h5py", "safetensors", "scipy", "sklearn", "monai"]
EVERYTHING = """
import sys, pkgutil, importlib, confide
sys.modules.update(dict.fromkeys(sys.argv[1:]))
for module in pkgutil.walk_packages(confide.__path__, "confide."):
    if module.name not in ("confide.sklearn", "confide.cli.__main__"):
        importlib.import_module(module.name)
"""


def test_extras_are_imported_where_they_are_used():
    """Whoever has `cli` alone can reach everything that needs no more: the conformance suites, too, need no pytest."""
    subprocess.run([sys.executable, "-c", EVERYTHING, *EXTRAS], check=True)
