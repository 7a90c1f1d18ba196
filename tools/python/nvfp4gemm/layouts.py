# SPDX-License-Identifier: MIT
"""Functions that convert 4-bit matrices from the layouts of other programs. Each takes NumPy arrays
or torch tensors and returns a Weight (a Packed) with 128x4 scales. docs/integration.md describes
the layouts and names their sources."""
from __future__ import annotations

from typing import Any

from nvfp4gemm._door import Door, flag, matrix, number, size
from nvfp4gemm._matrix import block_of
from nvfp4gemm._packed import Packed
from nvfp4gemm._types import AnyArray, Array, Arrays
from nvfp4gemm._weights import Weight, weight

_ORDERS = ("halves", "halves_up_first", "alternating", "alternating_up_first")
_GGML_BLOCK, _GGML_K = 36, 64
_GGML_MXFP4_BLOCK, _GGML_MXFP4_K = 17, 32


def _uint8(x: Array, what: str) -> Array:
    if str(x.dtype).removeprefix("torch.") != "uint8":
        raise TypeError(f"{what} are of {x.dtype}, expected uint8")
    return x


def _bytes_of(arrays: Arrays, x: Array, what: str, expected: Any) -> Array:
    if arrays.size(x) != expected:
        raise ValueError(f"{what} are {arrays.size(x)} bytes, expected {expected}")
    return arrays.as_bytes(x).reshape(-1)


def from_ggml(blocks: AnyArray, rows: int, k: int, scale: float | AnyArray = 1.0) -> Weight:
    """Converts NVFP4 of ggml and llama.cpp (block_nvfp4 in GGUF files) to a Weight [rows, k].

    blocks  uint8, rows * (k / 64) blocks of 36 bytes. A block has four UE4M3 scales, then 8 bytes
            for every 16 elements: byte j holds element j in its low nibble and element j + 8 in its
            high one
    k       a multiple of 64
    scale   the multiplier that the file has as tensor NAME.scale beside NAME.weight; 1 if it has
            none

    In ggml a scale byte of 0x7F means 0; in this library it means NaN. It is converted to 0.
    """
    door = Door(blocks, "blocks")
    arrays, blocks = door.arrays, door.array(blocks, "blocks")
    if k % _GGML_K:
        raise ValueError(f"k = {k} is no multiple of {_GGML_K}, a block of ggml's NVFP4")
    across = k // _GGML_K
    blocks = _bytes_of(arrays, _uint8(blocks, "blocks"), "blocks", rows * across * _GGML_BLOCK)
    blocks = blocks.reshape(rows, across, _GGML_BLOCK)
    scales = blocks[:, :, :4]
    if bool((scales > 0x7F).any()):
        raise ValueError("a scale has bit 7 set, which UE4M3 has not")
    halves = blocks[:, :, 4:].reshape(rows, across, 4, 8)
    codes = arrays.zero_bytes((rows, across, 4, 8), blocks)
    for place, nibbles in ((slice(0, 4), halves & 15), (slice(4, 8), halves >> 4)):
        codes[..., place] = nibbles[..., 0::2] | nibbles[..., 1::2] << 4
    return weight(codes.reshape(rows, k // 2), (scales * (scales != 0x7F)).reshape(rows, k // 16),
                  scale)


def from_ggml_mxfp4(blocks: AnyArray, rows: int, k: int) -> Weight:
    """Converts MXFP4 of ggml and llama.cpp (block_mxfp4 in GGUF files) to a Weight [rows, k].

    blocks  uint8, rows * (k / 32) blocks of 17 bytes. A block has a UE8M0 scale, then 16 bytes:
            byte j holds element j in its low nibble and element j + 16 in its high one
    k       a multiple of 32

    In ggml a scale byte of 0xFF means 2^128; in this library it means NaN. A block with such a
    scale raises ValueError unless all its codes are 0.
    """
    door = Door(blocks, "blocks")
    arrays, blocks = door.arrays, door.array(blocks, "blocks")
    if k % _GGML_MXFP4_K:
        raise ValueError(f"k = {k} is no multiple of {_GGML_MXFP4_K}, a block of ggml's MXFP4")
    across = k // _GGML_MXFP4_K
    blocks = _bytes_of(arrays, _uint8(blocks, "blocks"), "blocks",
                       rows * across * _GGML_MXFP4_BLOCK)
    blocks = blocks.reshape(rows, across, _GGML_MXFP4_BLOCK)
    halves = blocks[:, :, 1:]
    codes = arrays.zero_bytes((rows, across, 16), blocks)
    for place, half in ((slice(0, 8), halves & 15), (slice(8, 16), halves >> 4)):
        codes[..., place] = half[..., 0::2] | half[..., 1::2] << 4
    return weight(codes.reshape(rows, k // 2), blocks[:, :, 0], format="mxfp4")


def from_flashinfer(codes: AnyArray, scales: AnyArray, global_scale: float | AnyArray = 1.0, *,
                    layout: str = "128x4", format: str = "nvfp4") -> Weight:
    """Converts what FlashInfer's nvfp4_quantize(x, global_scale, sfLayout=layout) returned without
    do_shuffle or, with format="mxfp4", what its mxfp4_quantize returned.

    codes         uint8 [.., k / 2]; leading dimensions become rows
    scales        FlashInfer's scales, in layout
    layout        "128x4", "8x4" or "linear", as in sfLayout
    global_scale  the global_scale that FlashInfer was given, 2688 / amax of x; it divides. MXFP4
                  has none
    """
    door = Door(codes, "codes")
    codes = matrix(door.array(codes, "codes"), "codes")
    rows, k, block = codes.shape[0], 2 * codes.shape[1], block_of(format)
    if format != "nvfp4" and door.value(global_scale, "global_scale") != 1:
        raise ValueError(f"global_scale is {global_scale}; {format} has none")
    if layout == "8x4":
        down, across = -(-rows // 8), -(-k // (4 * block))
        tiles = door.scale_bytes(scales, "scales", down * across * 32, f"8x4 ones of [{rows}, {k}]")
        scales = tiles.reshape(down, across, 8, 4).swapaxes(1, 2).reshape(down * 8, across * 4)
        scales, layout = scales[:rows, :k // block], "linear"
    return weight(codes, scales, global_scale, divides=True, scale_layout=layout, format=format)


def from_deepgemm(codes: AnyArray, scales: AnyArray) -> Weight:
    """Converts DeepGEMM's packed FP4 with one UE8M0 scale for 32 elements (gran_k = 32), which is
    MXFP4.

    codes   int8 or uint8 [rows, k / 2]; the element with the lower k is in the low nibble
    scales  int32 [rows, k / 128 rounded up]. A word has the exponents of four consecutive blocks,
            the first in its low byte. In memory the words of a column are adjacent, and columns
            begin at multiples of 16 bytes. Pass DeepGEMM's tensor unchanged, with its strides
    """
    door = Door(codes, "codes")
    arrays, codes = door.arrays, matrix(door.array(codes, "codes"), "codes")
    scales = door.array(scales, "scales")
    for x, what, one, other in ((codes, "codes", "int8", "uint8"),
                                (scales, "scales", "int32", "uint32")):
        if str(x.dtype).removeprefix("torch.") not in (one, other):
            raise TypeError(f"{what} are of {x.dtype}, expected {one} or {other}")
    rows, k = codes.shape[0], 2 * codes.shape[1]
    words = (rows, -(-k // 128))
    if tuple(scales.shape) != words:
        raise ValueError(f"scales are {tuple(scales.shape)}, expected {words}")
    scales = arrays.as_bytes(arrays.copy(scales)).reshape(rows, 4 * words[1])[:, :k // 32]
    return weight(arrays.as_bytes(codes), arrays.copy(scales), format="mxfp4")


def from_transformer_engine(codes: AnyArray, scales: AnyArray, amax: float | AnyArray, *,
                            swizzled: bool = False, e4m3_max: int = 448) -> Weight:
    """Converts _rowwise_data, _rowwise_scale_inv and _amax_rowwise of a Transformer Engine
    NVFP4Tensor.

    codes     uint8 [.., k / 2]; leading dimensions become rows
    scales    row-major [rows rounded up to 128, k / 16 rounded up to 4], or 128x4 tiles of the same
              size if swizzled is True
    amax      the largest |x| before quantizing: x ~ code * scale * amax / (6 * e4m3_max)
    swizzled  the tensor's _with_gemm_swizzled_scales
    e4m3_max  the tensor's _nvfp4_e4m3_max: 448, or 256 with the 4over6 recipe
    """
    door = Door(codes, "codes")
    codes = matrix(door.array(codes, "codes"), "codes")
    rows, k = codes.shape[0], 2 * codes.shape[1]
    amax = door.value(amax, "amax")
    scale = 1.0 if amax == 0 else amax / (6 * number(e4m3_max, "e4m3_max"))
    if flag(swizzled, "swizzled"):
        return weight(codes, scales, scale, scale_layout="128x4")
    down, across = -(-rows // 128) * 128, -(-k // 64) * 4
    scales = door.scale_bytes(scales, "scales", down * across,
                              f"padded ones of [{rows}, {k}]").reshape(down, across)
    return weight(codes, scales[:rows, :k // 16], scale)


def split_gate_up(both: AnyArray | Packed, order: str = "halves", *,
                  block: int = 1) -> tuple[Any, Any]:
    """Splits the matrix [2n, ...] in which a checkpoint keeps gate and up; returns (gate, up). both
    is a Packed, whose parts gated_linear() takes, or an array with one dimension or more, such as
    its bias.

    order  how the rows are ordered:
           "halves": n rows of gate, then n rows of up (Llama's and Qwen's gate_up_proj)
           "halves_up_first": n rows of up, then n rows of gate
           "alternating": `block` rows of gate, `block` rows of up, and so on (gpt-oss, block = 1)
           "alternating_up_first": `block` rows of up, `block` rows of gate, and so on
    block  must be 1 for the halves. For alternating rows of a checkpoint that was fused for R
           ranks, pass n / R

    Halves of a Packed share its codes, and also its scales if n is a multiple of 128. Everything
    else is copied. If the Packed is a Weight, its bias is split in the same way. Alternating rows
    of a Packed that has tensor scales for groups of rows raise ValueError.
    """
    if order not in _ORDERS:
        known = ", ".join(repr(name) for name in _ORDERS)
        raise ValueError(f"order is {order!r}; there are {known}")
    block = size(block, "block")
    up_first, alternating = order.endswith("up_first"), order.startswith("alternating")
    if block < 1 or block != 1 and not alternating:
        raise ValueError(f"block is {block}; expected 1 or more, and 1 with {order!r}")
    rows = both.rows if isinstance(both, Packed) else _array_of_rows(both).shape[0]
    each = block if alternating else rows // 2
    if rows % 2 or each and rows % (2 * each):
        raise ValueError(f"both has {rows} rows, no multiple of {2 * max(each, 1)}")
    first, second = (_split_packed(both, i, each) if isinstance(both, Packed) else
                     _split_array(both, i, each) for i in (0, 1))
    return (second, first) if up_first else (first, second)


def _array_of_rows(both: Array) -> Array:
    both = Door(both, "both").array(both, "both")
    if both.ndim < 1:
        raise ValueError("both has no dimension; expected rows of gate and up")
    return both


def _split_array(both: Array, i: int, each: int) -> Array:
    door = Door(both, "both")
    both = _array_of_rows(both)
    if both.shape[0] == 0:
        return both
    rest = tuple(both.shape[1:])
    parted = both.reshape((both.shape[0] // (2 * each), 2, each, *rest))
    return door.arrays.copy(parted[:, i]).reshape((both.shape[0] // 2, *rest))


def _split_packed(both: Packed, i: int, each: int) -> Any:
    n = both.rows // 2
    if each == n:
        return both.slice_rows(i * n, i * n + n)
    if both.scale_rows:
        raise ValueError(f"both has a tensor scale for each {both.scale_rows} rows, which rows "
                         "that alternate cannot keep")
    linear = both.with_scales("linear")
    codes = _split_array(linear.codes, i, each)
    scales = _split_array(linear.scales.reshape((both.rows, both.k // both.block)), i, each)
    parts = {"codes": codes, "scales": scales.reshape(-1), "rows": n}
    made: Any = linear.replace(**parts).with_scales(both.scale_layout)
    bias = getattr(both, "bias", None)
    return made if bias is None else made.beside(bias=_split_array(bias, i, each))
