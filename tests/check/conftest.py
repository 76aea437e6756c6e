"""Lets the tests of this folder share the loader in `test_check_losses`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
