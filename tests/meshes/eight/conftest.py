"""Collect these tests only in a process with eight devices: see `test_on_devices.py`."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("PSCDSL_DEVICES") == "8" else ["test_*.py"]
