"""A fit as one safetensors file: tensors, and a JSON header that says what, on which data, when and to what effect.

Nothing in the file can run code.
"""

from __future__ import annotations

import json
import platform
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from confide.core.errors import InputError, MissingExtra

if TYPE_CHECKING:
    from confide.posthoc.calibrator import Calibrator

FORMAT = 1
FACTS = ("task_", "classes_", "n_", "data_hash_", "date_", "converged_", "nll_before_", "nll_after_")


def save(calibrator: Calibrator, path: Path) -> None:
    """Write all that `load` needs, and all that a reader may ask."""
    calibrator.require_fitted()
    tensors = {
        f"{number}.{name}": value.contiguous().clone()
        for number, values in enumerate(calibrator.parts_)
        for name, value in values.items()
    }
    _safetensors().torch.save_file(tensors, str(path), metadata={"confide": json.dumps(facts(calibrator))})


def facts(calibrator: Calibrator) -> dict[str, Any]:
    """The header."""
    return {
        "format": FORMAT,
        "method": type(calibrator).__name__,
        "settings": calibrator.get_params(),
        **{name.rstrip("_"): getattr(calibrator, name) for name in FACTS},
        "versions": {
            "confide": _version(),
            "torch": torch.__version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
        },
    }


def read(path: Path) -> tuple[dict[str, Any], list[dict[str, torch.Tensor]]]:
    """Header and tensors of a file that `save` wrote, one dictionary a label."""
    if not path.is_file():
        raise InputError(f"there is no file {str(path)!r}")
    try:
        with _safetensors().safe_open(str(path), framework="pt") as file:
            header = json.loads((file.metadata() or {})["confide"])
            held = {tuple(name.split(".", 1)): file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if header["format"] != FORMAT:
            raise InputError(f"{str(path)!r} has format {header['format']!r}; this version of confide reads {FORMAT}")
        count = 1 + max(int(number) for number, _ in held)
        return header, [{key: t for (number, key), t in held.items() if int(number) == i} for i in range(count)]
    except InputError:
        raise
    except (KeyError, OSError, ValueError, _safetensors().SafetensorError) as error:
        raise InputError(f"{str(path)!r} is not a calibrator: write one with calibrator.save(path)") from error


def _version() -> str:
    try:
        return metadata.version("confide")
    except metadata.PackageNotFoundError:  # run from a checkout that was never installed
        return "unknown"


def _safetensors() -> Any:
    try:
        import safetensors.torch
    except ImportError as error:
        raise MissingExtra("safetensors", "posthoc") from error
    return safetensors
