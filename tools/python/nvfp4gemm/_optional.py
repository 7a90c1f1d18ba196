# SPDX-License-Identifier: MIT
"""Imports modules when they are first used: other packages, without which this package must work,
and our own modules that need torch.

All late imports are here. They are attributes of this module, because torch.compile can read those
while it traces, but refuses calls of the import machinery.
"""
from __future__ import annotations

import importlib
import sys
from typing import Any

_MODULES = {
    "compiled": "nvfp4gemm._compiled",
    "device": "nvfp4gemm._device",
    "known": "nvfp4gemm._known",
    "ops": "nvfp4gemm._ops",
    "nn": "nvfp4gemm.nn",
    "parallel": "nvfp4gemm.parallel",
    "ml_dtypes": "ml_dtypes",
    "numpy": "numpy",
    "safetensors": "safetensors",
    "torch": "torch",
}


def _never() -> bool:
    return False


def __getattr__(name: str) -> Any:
    if name == "compiling":  # a function: whether torch.compile traces the call
        torch = sys.modules.get("torch")
        if torch is None:
            return _never
        globals()[name] = torch.compiler.is_dynamo_compiling
        return globals()[name]
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = globals()[name] = importlib.import_module(_MODULES[name])
    return module
