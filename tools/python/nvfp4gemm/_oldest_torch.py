# SPDX-License-Identifier: MIT
"""Raises ImportError if torch is older than the oldest version that is supported. Each module that
needs torch imports this one first, since those modules import names that older versions lack."""
from __future__ import annotations

import torch

OLDEST = (2, 11)  # the same as in pyproject.toml


def _number(version: str) -> tuple[int, ...]:
    """(major, minor) of a version such as "2.15.0+cu132"."""
    return tuple(int(part) for part in version.split(".")[:2])


if _number(torch.__version__) < OLDEST:
    raise ImportError(f"torch is {torch.__version__}; nvfp4gemm needs {OLDEST[0]}.{OLDEST[1]} or "
                      "newer for torch tensors and layers")
