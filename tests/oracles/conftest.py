"""Lets the tests of this folder import `papers`, the oracles, which is no test module."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
