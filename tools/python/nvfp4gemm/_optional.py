# SPDX-License-Identifier: MIT
"""What is imported when it is first used, since the package must work without it: packages of
others, and our own modules that need torch.

This is the only place that imports late. It is an attribute of a module because torch.compile reads
those while it traces, where it refuses a call of the import machinery."""
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
    if name == "compiling":  # whether torch.compile traces the call
        torch = sys.modules.get("torch")
        if torch is None:
            return _never
        globals()[name] = torch.compiler.is_dynamo_compiling
        return globals()[name]
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module = globals()[name] = importlib.import_module(_MODULES[name])
    return module
