# SPDX-License-Identifier: MIT
"""What annotations say. NumPy and torch are optional, so they are named here for type checkers
alone."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    import numpy
    import torch
    from typing_extensions import Self as Self  # mypy's own; typing has it from Python 3.11 on
else:
    Self = Any

# An array of a caller, and one in a function whose result is of the same package.
AnyArray: TypeAlias = "numpy.ndarray[Any, Any] | torch.Tensor"
A = TypeVar("A", "numpy.ndarray[Any, Any]", "torch.Tensor")
# Inside, arrays are asked through the class of their package, Numpy or Torch of _arrays, which has
# the same functions for both; mypy looks into neither.
Array: TypeAlias = Any
Arrays: TypeAlias = Any

TensorScale: TypeAlias = "float | AnyArray | None"
DType: TypeAlias = "torch.dtype | numpy.typing.DTypeLike"
Device: TypeAlias = "torch.device | str | int | None"
Group: TypeAlias = "torch.distributed.ProcessGroup | None"
Path: TypeAlias = "str | os.PathLike[str]"
Shape: TypeAlias = "tuple[int, ...]"

# A tensor of a file's header: name, type, shape, first byte, bytes.
Entry: TypeAlias = "tuple[str, str, Shape, int, int]"
# Addresses of codes, scales and a tensor scale that is an array.
Places: TypeAlias = "tuple[int, int | None, int | None]"
