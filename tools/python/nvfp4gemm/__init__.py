# SPDX-License-Identifier: MIT
"""NVFP4 matrix products on NVIDIA GPUs, on torch tensors and NumPy arrays.

    import torch, nvfp4gemm
    weight = nvfp4gemm.quantize(torch.randn(4096, 7168, device="cuda", dtype=torch.bfloat16))
    y = nvfp4gemm.linear(x, weight, bias, activation="silu")        # x: [..., 7168] bfloat16

    a = nvfp4gemm.quantize(x)                                       # 4-bit activations, too
    y = nvfp4gemm.mm(a, weight, out_dtype=torch.bfloat16)

Tensors on a GPU are computed there, on torch's current stream; NumPy arrays and tensors on the CPU
by the library's reference, slowly and to the rules of nvfp4_gemm.h. What the library refuses raises
nvfp4gemm.Error with its sentence. nvfp4gemm.abi is the C API below; nvfp4gemm.nn and
nvfp4gemm.parallel, the layers, import torch when they are first used.

An array that is read may have any strides, order of bytes and alignment: what the library cannot
read where it is, it reads from a copy, made by the call. An array that is written (out) is written
where it is, or refused. Arrays of another type, shape, device or package, masked and sparse ones,
and views that reach beyond their memory raise TypeError or ValueError with the argument's name.
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
    """nvfp4gemm.nn and nvfp4gemm.parallel, which import torch, at their first use."""
    if name in ("nn", "parallel"):
        return getattr(_optional, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), "nn", "parallel"]


def version() -> str:
    """Of the library that is loaded: "0.1.0"."""
    number = _lib.nvfp4_version()
    return f"{number // 10000}.{number // 100 % 100}.{number % 100}"


def build_info() -> str:
    """One line: version, compiler of the kernels, and the images inside."""
    return str(_lib.nvfp4_build_info().decode())


__version__ = version()
