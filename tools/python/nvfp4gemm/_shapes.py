# SPDX-License-Identifier: MIT
"""A layer of a checkpoint. Checks that its tensors have the types and shapes that the rows
NVFP4_SHAPE of tools/nvfp4/dialects.def say."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nvfp4gemm import _dialects
from nvfp4gemm._dialects import SHAPES, STACKED
from nvfp4gemm._files import Tensor


class Refusal(Exception):
    """Why a layer was not loaded: the tensor's name, what it is, what was expected."""

    def __init__(self, tensor: str, what: str, expected: str) -> None:
        super().__init__(tensor, what, expected)
        self.tensor, self.what, self.expected = tensor, what, expected


class Layer(NamedTuple):
    """A layer of a checkpoint. `parts` has its tensors "codes", "scales" and "tensor_scale".
    `beside` has its other tensors as {use: Tensor}. `by_name` says whether only the layer's name
    suggests the dialect."""

    name: str
    dialect: _dialects.Dialect
    parts: dict[str, Tensor]
    beside: dict[str, Tensor]
    by_name: bool


def elements(shape: Sequence[int]) -> int:
    count = 1
    for size in shape:
        count *= size
    return count


def _codes_row(layer: Layer) -> tuple[str, list[str]]:
    """(types, [dimensions]) of the layer's codes in the table."""
    types, shape = next(row[2:] for row in SHAPES if row[:2] == [layer.dialect.layout, "codes"])
    return types, shape.split(", ")


def size_of(layer: Layer) -> tuple[int | None, int, int]:
    """(experts or None, n, k)."""
    dims, shape = _codes_row(layer)[1], layer.parts["codes"].shape
    experts = shape[0] if len(shape) > len(dims) else None
    across, _, divisor = dims[1].partition(" / ")
    return experts, shape[-len(dims)], shape[1 - len(dims)] * int(divisor or 1)


def _value(text: str, n: int, k: int) -> int:
    """Evaluates a dimension of the table for n and k, such as "n ^ 128 * k / 16 ^ 4". Here k / 16
    divides, and x ^ 4 rounds x up to a multiple of 4."""
    total = 1
    for term in text.split(" * "):
        symbol, *steps = term.split()
        value = {"n": n, "k": k}[symbol]
        for sign, number in zip(steps[::2], map(int, steps[1::2])):
            value = value // number if sign == "/" else -(-value // number) * number
        total *= value
    return total


def _words(shapes: Iterable[Sequence[int]]) -> str:
    return " or ".join(str(list(shape)) for shape in shapes)


def check_types_and_shapes(layer: Layer) -> None:
    known = {**layer.beside, **layer.parts}
    rows = [(part, types, shape, known[part]) for layout, part, types, shape in SHAPES
            if layout in (layer.dialect.layout, "any") and part in known]
    for _, types, _, tensor in rows:
        if types and tensor.dtype not in types.split(" or "):
            raise Refusal(tensor.name, f"of {tensor.dtype}", types)
    _check_codes(layer)
    experts, n, k = size_of(layer)
    for part, _, shape, tensor in rows:
        if shape == "1":
            _check_count(tensor, experts)
        elif part != "codes":
            _check_shape(layer, tensor, shape, n, k, part == "scales")


def _check_codes(layer: Layer) -> None:
    codes, dims = layer.parts["codes"], _codes_row(layer)[1]
    words, stacked = ", ".join(dims), len(codes.shape) > len(dims)
    what = f"of shape {list(codes.shape)}"
    if len(codes.shape) not in (len(dims), len(dims) + 1) or 0 in codes.shape:
        raise Refusal(codes.name, what, f"[{words}], or [experts, {words}]")
    if stacked and layer.dialect.layout not in STACKED:
        raise Refusal(codes.name, what, f"[{words}]")
    if not stacked and not layer.dialect.codes:
        raise Refusal(codes.name, what, f"[experts, {words}]")
    if size_of(layer)[2] % 16:
        raise Refusal(codes.name, what, "k, a multiple of 16")


def _check_shape(layer: Layer, tensor: Tensor, shape: str, n: int, k: int, scales: bool) -> None:
    experts, codes = size_of(layer)[0], layer.parts["codes"].shape
    stack = () if experts is None else (experts,)
    fits = [(*stack, *(_value(dim, n, k) for dim in one.split(", ")))
            for one in shape.split(" or ")]
    if tensor.shape in fits:
        return
    expected = _words(fits) + (f", since codes are {list(codes)}" if scales else "")
    if scales and layer.dialect.layout == "linear":
        if tensor.shape and tensor.shape[-1] * 32 == k:
            expected += "; one scale for 32 elements is MXFP4"
        if stack and tensor.shape == (experts, n // 8, codes[-1]):
            expected += "; k is the second dimension here, which is not read"
    raise Refusal(tensor.name, f"of shape {list(tensor.shape)}", expected)


def _check_count(tensor: Tensor, experts: int | None) -> None:
    count = elements(tensor.shape)
    if count not in (1, experts):
        raise Refusal(tensor.name, f"{count} values, shape {list(tensor.shape)}",
                      "one value" if experts is None else f"one value, or {experts}")
