# SPDX-License-Identifier: MIT
"""Raises where torch is older than what the package is tested with. Imported first by each module
that needs torch, which import names of it that older ones may not have."""
from __future__ import annotations

import torch

OLDEST = (2, 11)  # as pyproject.toml says


def _number(version: str) -> tuple[int, ...]:
    """(major, minor) of "2.15.0+cu132"."""
    return tuple(int(part) for part in version.split(".")[:2])


if _number(torch.__version__) < OLDEST:
    raise ImportError(f"torch is {torch.__version__}; nvfp4gemm needs {OLDEST[0]}.{OLDEST[1]} or "
                      "newer for torch tensors and layers")
