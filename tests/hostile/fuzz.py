"""Fuzz one target with atheris, which looks for input that reaches new lines of our code.

    python -m tests.hostile.fuzz TARGET FOLDER -max_total_time=60    # and any other option of libFuzzer

FOLDER is what `write_seeds` of `targets.py` has written. What is found ends it with another code than 0.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

with atheris.instrument_imports(include=["emoglot"]):
    from tests.hostile.targets import TARGETS

if __name__ == "__main__":
    name, folder, *options = sys.argv[1:]
    atheris.Setup([sys.argv[0], *options, str(Path(folder) / name)], TARGETS[name](Path(folder) / "altered"))
    atheris.Fuzz()
