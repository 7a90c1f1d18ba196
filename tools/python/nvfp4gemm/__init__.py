# SPDX-License-Identifier: MIT
"""NVFP4 matrix products on NVIDIA GPUs, on torch tensors and NumPy arrays.

    import torch, nvfp4gemm
    weight = nvfp4gemm.quantize(torch.randn(4096, 7168, device="cuda", dtype=torch.bfloat16))
    y = nvfp4gemm.linear(x, weight, bias, activation="silu")        # x: [..., 7168] bfloat16

    a = nvfp4gemm.quantize(x)                                       # 4-bit activations, too
    y = nvfp4gemm.mm(a, weight, out_dtype=torch.bfloat16)

Products of GPU tensors run on their GPU, on torch's current stream. Products of NumPy arrays and
CPU tensors run on the library's CPU reference: slowly, with exactly the results that nvfp4_gemm.h
defines. If the library refuses a call, nvfp4gemm.Error is raised with the library's message.
nvfp4gemm.abi is the C API. nvfp4gemm.nn and nvfp4gemm.parallel have the layers; they import torch
when they are first used.

An input array may have any strides, byte order and alignment: a call copies an array that the
library cannot read directly. An output array (out) is written in place; if that is impossible, the
call raises. A wrong type, shape, device or array package raises TypeError or ValueError with the
argument's name. So do masked and sparse arrays, and views that reach beyond their memory.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from nvfp4gemm import _optional, abi, checkpoints, layouts
from nvfp4gemm.abi import Error, lib as _lib
from nvfp4gemm._calls import (gated_linear, grouped_gated_linear, grouped_linear, linear, mm,
                              quantize)
from nvfp4gemm._packed import Packed
from nvfp4gemm._stack import Stack, stack

if TYPE_CHECKING:
    from nvfp4gemm import nn as nn, parallel as parallel

__all__ = ["Error", "Packed", "Stack", "__version__", "abi", "build_info", "checkpoints",
           "gated_linear", "grouped_gated_linear", "grouped_linear", "layouts", "linear", "mm",
           "quantize", "stack", "version"]


def __getattr__(name: str) -> Any:
    """Imports nvfp4gemm.nn and nvfp4gemm.parallel when they are first used, since they need
    torch."""
    if name in ("nn", "parallel"):
        return getattr(_optional, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), "nn", "parallel"]


def version() -> str:
    """The version of the library that is loaded, for example "0.1.0"."""
    number = _lib.nvfp4_version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def build_info() -> str:
    """One line with the version, the compiler of the kernels, and the kernel images in the
    library."""
    return str(_lib.nvfp4_build_info().decode())


__version__ = version()
