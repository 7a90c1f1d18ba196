# SPDX-License-Identifier: MIT
"""Types for annotations. NumPy and torch are optional, so only type checkers import them here."""
from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    import numpy
    import torch
    from typing_extensions import Self as Self  # mypy's own; typing has it from Python 3.11 on
else:
    Self = Any

# AnyArray: an array that a caller passes. A: the same, in functions that return an array of the
# same package.
AnyArray: TypeAlias = "numpy.ndarray[Any, Any] | torch.Tensor"
A = TypeVar("A", "numpy.ndarray[Any, Any]", "torch.Tensor")
# Inside the package, arrays are accessed through the classes Numpy and Torch of _arrays, which have
# the same functions. mypy checks neither.
Array: TypeAlias = Any
Arrays: TypeAlias = Any

TensorScale: TypeAlias = "float | AnyArray | None"
DType: TypeAlias = "torch.dtype | numpy.typing.DTypeLike"
Device: TypeAlias = "torch.device | str | int | None"
Group: TypeAlias = "torch.distributed.ProcessGroup | None"
Path: TypeAlias = "str | os.PathLike[str]"
Shape: TypeAlias = "tuple[int, ...]"

# A tensor in a file's header: name, type, shape, first byte in the file, number of bytes.
Entry: TypeAlias = "tuple[str, str, Shape, int, int]"
# Addresses of the codes, of the scales, and of the tensor scale if it is an array.
Places: TypeAlias = "tuple[int, int | None, int | None]"
