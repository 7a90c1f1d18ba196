# SPDX-License-Identifier: MIT
"""The package's functions: quantize, mm, linear, and the gated and grouped products. A call runs
eagerly through nvfp4gemm._eager. It becomes a torch operator if torch has to see it: under
torch.compile, autograd, autocast, torch.func, tracing and dispatch modes."""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

from nvfp4gemm import _optional
from nvfp4gemm._arrays import Torch, arrays_of
from nvfp4gemm._door import flag, number
from nvfp4gemm._eager import float_type, with_floats
from nvfp4gemm._eager import mm as _mm, quantize as _quantize
from nvfp4gemm._gemm import Gate, Maxima, Numbers
from nvfp4gemm._matrix import layout_number
from nvfp4gemm._packed import Packed
from nvfp4gemm._stack import Stack, product
from nvfp4gemm._types import A, AnyArray, Arrays, DType, Shape, TensorScale


def quantize(x: AnyArray, tensor_scale: TensorScale | Literal["rows"] | None = None, *,
             scale_layout: str = "128x4", format: str = "nvfp4",
             scale_rule: str | None = None) -> Packed:
    """Quantizes x [..., k] of float16, bfloat16 or float32 to a Packed [rows, k]; leading
    dimensions become rows. k is a multiple of 16, in MXFP4 of 32. An x whose rows are not
    contiguous is copied.

    tensor_scale  the scale of the whole matrix: x ~ code * scale * tensor_scale.
                  None: (largest finite |x|) / 2688, or 1 if that is 0. For an x on a GPU it is
                  computed there without a synchronisation, and the result's tensor_scale is a
                  tensor.
                  "rows": one such scale for each row, so that no row influences another. Only the a
                  of mm() and the x of other products may have it.
                  a float, or on a GPU a tensor of one float32: used unchanged.
    scale_layout  "128x4", which mm() reads directly, or "linear", which checkpoints have.
    format        "nvfp4"; "mxfp4" (a UE8M0 scale for 32 elements); or "e2m1_ue8m0" (a UE8M0 scale
                  for 16). UE8M0 scales are rounded up, so that no element is clipped. Their formats
                  have no tensor_scale.
    scale_rule    for the format "nvfp4".
                  None: the largest of 16 elements becomes 6 times their scale.
                  "4over6": it becomes 6 or 4 times their scale, whichever has the smaller squared
                  error. Quantizing takes longer; products do not. For normally distributed weights
                  the error is 6 to 9 % smaller.

    On a GPU this launches one kernel (two if tensor_scale is None) on torch's current stream. The
    result equals that of the CPU bit for bit.
    """
    arrays = arrays_of(x, "x")
    layout_number(scale_layout)
    if arrays.observed() or arrays.traced(x):
        return Packed(*_optional.ops.quantize(x, tensor_scale, scale_layout, format, scale_rule))
    return Packed.of_own(arrays, *_quantize(x, tensor_scale, scale_layout, format, scale_rule))


def mm(a: AnyArray | Packed, b: Packed, out_dtype: DType | None = None, *,
       bias: AnyArray | None = None, activation: str | None = None, c: AnyArray | None = None,
       alpha: float | AnyArray = 1.0, beta: float = 1.0, out: AnyArray | None = None,
       amax: AnyArray | None = None, row_amax: AnyArray | None = None,
       batch_invariant: bool = False, launch: str | None = None) -> Any:
    """act(alpha * a * b^T + beta * c + bias), [..., n].

    a               a Packed [m, k] (compute capability 9.0, 10.0 and 10.3; 12.x if it is NVFP4; and
                    the CPU); or float16 or bfloat16 [..., k], which is not quantized (8.0 and
                    later, and the CPU). More than 16 rows of 16 bits are fast only on 9.0, with a
                    driver for CUDA 13.0
    b               a Packed [n, k]; if a is a Packed, of the same format. b may have one tensor
                    scale for each group of rows, as a weight from checkpoints.fuse() has
    out_dtype       float16, bfloat16 or float32. None: the type of out if given, else the type of a
                    if a is not a Packed, else float16
    bias            [n] of any of these three types
    activation      None, "relu", "silu", "gelu", "gelu_tanh", "relu_squared"
    c               [m, n] of any of these three types; may be out
    alpha           a number; or, if b is NVFP4, a torch tensor of one float32 above 0 on b's
                    device. The GPU reads the tensor in every call
    out             the array that receives the result. Its rows or its columns must be contiguous,
                    and it must be possible to view its leading dimensions as one. Elements must not
                    share memory with each other or with an input. On a GPU the address must be a
                    multiple of 16 bytes. An eager call writes into out directly. A call that is a
                    torch operator (see below) computes a new tensor and copies it into out
    amax, row_amax  float32 [1] and [m]. Each element becomes the maximum of its old value and the
                    largest magnitude of the result (of the row), before rounding. Set them to 0
                    first. They are refused with gradients and in a call that is a torch operator
    batch_invariant
                    True: the bits of a result row do not depend on the other rows
    launch          None: the kernel starts after earlier work of the stream.
                    "early": it may start before that work ends, and waits for it before reading
                    memory.
                    "early_static_weights": as "early", but b is read without waiting; you promise
                    that the earlier work does not write b

    The library reads an input where it is, if it can. These inputs are copied in every call:

    a     if its rows are not contiguous, if they repeat or overlap, or if the distance between rows
          is not a multiple of 8 elements
    bias  if it is not contiguous
    c     if its order (row-major or column-major) is not that of the result

    Two more kinds of input are copied: one with a foreign byte order; and, on a GPU, an operand a
    or c whose address is not a multiple of 16 bytes.

    A call is a torch operator under torch.compile and torch.autocast, if a gradient is required,
    and where torch traces, transforms or watches calls.

    If a, bias or c requires a gradient, it gets one. The gradient of a is alpha * dy * b, with b
    dequantized to a's type. b gets none, and neither does an a that is a Packed, since quantize()
    passes no gradient. If linear() quantized x, x gets the gradient that it would have without
    quantization. With an activation or with out, a required gradient raises ValueError.
    Forward-mode AD follows the same rules.

    Inside torch.autocast, an a that is not a Packed is cast; the result has autocast's type unless
    out_dtype or out names another. A call on GPU tensors runs on torch's current stream, does not
    synchronise, and can be captured in CUDA graphs.
    """
    if getattr(b, "pre_quant_scale", None) is not None:
        raise ValueError("b has a pre_quant_scale, which linear() applies to its x; mm() does not")
    maxima = None if amax is None and row_amax is None else Maxima(amax, row_amax)
    key = None
    if type(alpha) is float and bias is None and c is None and out is None and maxima is None:
        key = _key_of_pair(a, b, (out_dtype, activation, alpha, beta, type(beta), batch_invariant,
                                  type(batch_invariant), launch))
    d = None if key is None else _pair_again(key, a, b)
    if d is not None:
        return d
    factor: Any = alpha
    if isinstance(b, Packed) and not isinstance(alpha, float) and Torch.is_tensor(alpha):
        b, factor = _scaled_by(b, alpha), 1.0
    numbers = Numbers(alpha=factor, beta=beta, activation=activation, launch=launch,
                      batch_invariant=batch_invariant)
    d = _product(("a", "b"), a, b, out_dtype, bias, c, out, numbers, None, maxima)
    if key is not None:
        _optional.known.remember_pair(key, a, b, numbers, d)
    return d


def _key_of_pair(a: Any, b: Any, options: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """The key under which _known stores a product of two quantized matrices on a GPU; None for
    other operands."""
    if _optional.compiling() or not (isinstance(a, Packed) and isinstance(b, Packed)) or (
            a.traced or b.traced or not b.door("b").gpu or not Torch.is_tensor(a.codes)):
        return None
    return ("mm", _optional.device._signature(a), *options)


def _pair_again(key: tuple[Any, ...], a: Any, b: Any) -> Any:
    """The product by the fast path of _known, or None if it does not know such a product."""
    try:
        found = (b._known or {}).get(key)
    except TypeError:  # the normal path raises with a better message
        return None
    for known in found or ():
        d = known(a, b)
        if d is not None:
            return d
    return None


def _scaled_by(b: Packed, alpha: Any) -> Packed:
    """Returns b with the tensor alpha multiplied into its tensor scale."""
    if b.format != "nvfp4":
        raise TypeError(f"alpha is {type(alpha).__name__}, b in {b.format}; expected a number")
    arrays = b.door("b").arrays
    _no_gradient(arrays, "mm", ("alpha", alpha))
    if not (arrays.observed() or b.traced):
        alpha = b.door("b").scale(alpha, "alpha")
    elif (str(alpha.dtype), alpha.numel(), alpha.device) != ("torch.float32", 1, b.codes.device):
        raise ValueError(f"alpha is {alpha.dtype} {tuple(alpha.shape)} on {alpha.device}; expected "
                         f"a number or one torch.float32 on {b.codes.device}")
    alpha, own = alpha.reshape(1), b.tensor_scale
    return b.replace(tensor_scale=alpha if type(own) is float and own == 1 else alpha * own)


def _product(names: Sequence[str], a: Any, b: Packed, out_dtype: DType | None,
             bias: AnyArray | None, c: AnyArray | None, out: AnyArray | None, numbers: Numbers,
             source: Any = None, maxima: Maxima | None = None) -> Any:
    """mm() for a function that has other names for a and b; messages use `names`. `source` is the
    tensor from which a was quantized, or None."""
    if not isinstance(b, Packed):
        raise TypeError(f"{names[1]} is {type(b).__name__}; expected what quantize() returns")
    arrays = b.door(names[1]).arrays
    invariant = flag(numbers.batch_invariant, "batch_invariant")
    if invariant is not numbers.batch_invariant:  # a bool of NumPy
        numbers = numbers._replace(batch_invariant=invariant)
    options = (out_dtype, bias, c, out, numbers)
    wanting = arrays.first_with_gradient(a if source is None else source, bias, c)
    if wanting is not None and (numbers.activation is not None or out is not None):
        has = f"activation={numbers.activation!r}" if numbers.activation is not None else "out"
        raise ValueError(f"{(names[0], 'bias', 'c')[wanting]} requires a gradient, which a product "
                         f"with {has} does not have; detach it, or apply the activation to the "
                         "result")
    if wanting is not None or arrays.observed() or b.traced or arrays.autocasts(b.codes):
        if maxima is not None:
            raise ValueError("amax and row_amax are not there with gradients, in torch.compile, in "
                             "torch.autocast, and where torch traces, transforms or watches calls")
        return _optional.ops.mm(a, b, *options, source, wanting is not None, names)
    return _mm(a, b, *options, names, None, maxima)


def _scaled(arrays: Arrays, x: A, weight: Packed) -> A:
    """Returns x times the weight's pre_quant_scale, in x's type. Gradients pass through the
    product."""
    type_, scale = float_type(arrays, x.dtype, "x"), weight.pre_quant_scale
    if tuple(scale.shape) != tuple(x.shape[-1:]):
        raise ValueError(f"x is {tuple(x.shape)}; expected (..., {weight.k})")
    if arrays.device(x) != arrays.device(scale):
        raise ValueError(f"x lies on {arrays.device(x)}, weight on {arrays.device(scale)}")
    scaled: A = arrays.cast(x * scale, type_)
    return scaled


def linear(x: A, weight: Packed, bias: A | None = None, *, activation: str | None = None,
           out_dtype: DType | None = None, out: A | None = None, quantize_input: bool = False,
           batch_invariant: bool = False, launch: str | None = None) -> A:
    """act(x * weight^T + bias), with the conventions of torch.nn.functional.linear. x is [..., k]
    of float16 or bfloat16, or also of float32 if quantize_input is True. weight is a Packed [n, k].
    The result has x's type unless out_dtype or out names another.

    quantize_input  False: x is not quantized (compute capability 8.0 and later, and the CPU).
                    True: x is first quantized to the weight's format (9.0, 10.0 and 10.3; 12.x if
                    that is NVFP4; and the CPU). The tensor scale is the weight's input_scale if a
                    checkpoint gave it one; otherwise each row gets its own, so that batch_invariant
                    holds for the quantization, too. On a GPU of 9.0 many tokens are written in the
                    order that the product reads (docs/packing.md) if the library predicts that
                    this is faster; not under torch.compile, under autocast or for a gradient

    x, weight and bias follow the rules of mm() for a, b and bias: what is copied, what is refused,
    and which gradients there are. If a checkpoint gave the weight a pre_quant_scale, x is first
    multiplied by it.
    """
    compiling = _optional.compiling()
    d: A | None
    if compiling and out is None and out_dtype is None and quantize_input is False and (
            batch_invariant is False) and launch is None:
        d = _optional.compiled.linear(x, weight, bias, activation)
        if d is not None:
            return d
    if getattr(weight, "pre_quant_scale", None) is not None:
        x = _scaled(arrays_of(x, "x"), x, weight)
    scale = _scale_for(weight) if flag(quantize_input, "quantize_input") else None
    options = None if compiling or out is not None else (
        "linear", out_dtype, activation, launch, batch_invariant, type(batch_invariant),
        quantize_input)
    d = _again(weight, x, bias, None, scale, options)
    if d is not None:
        return d
    leading = source = None
    numbers = Numbers(activation=activation, launch=launch,
                      batch_invariant=flag(batch_invariant, "batch_invariant"))
    tokens: A | Packed = x
    if quantize_input:
        arrays = arrays_of(x, "x")
        if out_dtype is None and out is None and not arrays.autocasts(x):
            out_dtype = arrays.dtype(float_type(arrays, x.dtype, "x"))
        source, tokens = x, _quantized(x, scale, weight, (x, bias), numbers)
        leading = source.shape[:-1] if out is None and source.ndim != 2 else None
    made: A = _product(("x", "weight"), tokens, weight, out_dtype, bias, None, out, numbers, source)
    d = made if leading is None else made.reshape(*leading, weight.rows)
    _remember(weight, x, tokens, bias, None, scale, options, numbers, d)
    return d


def _quantized(x: Any, scale: Any, weight: Any, operands: tuple[Any, ...], numbers: Numbers,
               gated: bool = False) -> Packed:
    """x for the one product that follows; on a GPU of 9.0 in the order in which its kernels read
    it, where that is faster. What torch watches or differentiates gets codes and scales."""
    arrays, format_ = arrays_of(x, "x"), getattr(weight, "format", "nvfp4")
    if format_ != "nvfp4" or not isinstance(weight, Packed) or weight.packing or (
            arrays.observed() or arrays.traced(x) or weight.traced or arrays.autocasts(x)) or not (
            weight.door("weight").gpu and weight.door("weight").arrays is arrays) or (
            arrays.device(x) != arrays.device(weight.codes) or x.is_nested or
            arrays.first_with_gradient(*operands) is not None):
        return quantize(x, scale, format=format_)
    layout = _optional.device.layout_of_tokens(weight, math.prod(x.shape[:-1]),
                                               with_floats(numbers), gated)
    return Packed.of_own(arrays, *_quantize(x, scale, layout, "nvfp4", None))


def _scale_for(weight: Packed | Stack) -> Any:
    """The tensor_scale with which quantize() quantizes an x for the weight."""
    if getattr(weight, "format", "nvfp4") != "nvfp4":
        return None
    scale = getattr(weight, "input_scale", None)
    return "rows" if scale is None else scale


_PLAIN = (type(None), str, float)


def _key(x: Any, bias: Any, ends: Any, scale: Any,
         options: tuple[Any, ...]) -> tuple[Any, ...]:
    """The key under which _known stores a product. Options that are numbers are followed by their
    type, since 1 == True. Nested tensors are in the key, since torch ends the process where _known
    compares one; a nested x has no shape."""
    return (x.shape, x.dtype, None if bias is None else bias.is_nested,
            None if ends is None else ends.is_nested,
            scale if type(scale) in _PLAIN else type(scale), *options)


def _again(weight: Any, x: Any, bias: Any, ends: Any, scale: Any,
           options: tuple[Any, ...] | None) -> Any:
    """The product by the fast path of _known, or None if it does not know such a product."""
    table = None if options is None else getattr(weight, "_known", None)
    if options is None or table is None:
        return None
    try:
        found = table.get(_key(x, bias, ends, scale, options))
    except (AttributeError, TypeError, RuntimeError):  # the normal path raises a better message
        return None
    if found is None:
        return None
    if type(scale) in _PLAIN:
        scale = None
    for known in found:
        d = known(weight._places, weight._codes, weight._scales, weight._tensor_scale, x, bias,
                  ends, scale)
        if d is not None:
            return d
    return None


def _remember(weight: Packed | Stack, x: Any, tokens: Any, bias: Any, ends: Any, scale: Any,
              options: tuple[Any, ...] | None, numbers: Numbers, d: Any,
              rows_hint: int = 0) -> None:
    """Stores a product that a GPU has just computed in _known."""
    if options is None or isinstance(x, Packed) or not weight.door("weight").gpu:
        return
    key = _key(x, bias, ends, scale, options)
    _optional.known.remember(key, weight, x, tokens, bias, ends, scale, numbers, d, rows_hint)


def _no_gradient(arrays: Arrays, name: str, *operands: tuple[str, Any]) -> None:
    """Raises ValueError if an operand requires a gradient or has a tangent of forward-mode AD."""
    wanting = arrays.first_with_gradient(*(x for _, x in operands))
    if wanting is not None:
        raise ValueError(f"{operands[wanting][0]} requires a gradient, which {name} does not have; "
                         "detach it")
    wanting = arrays.first_with_tangent(*(x for _, x in operands))
    if wanting is not None:
        raise ValueError(f"{operands[wanting][0]} has a tangent of forward-mode AD, which {name} "
                         "does not have")


def gated_linear(x: AnyArray | Packed, gate: Packed, up: Packed, gate_bias: AnyArray | None = None,
                 up_bias: AnyArray | None = None, *, activation: str | None = "silu",
                 limit: float | None = None, alpha: float = 1.0, beta: float = 0.0,
                 out_dtype: DType | None = None, out: AnyArray | None = None,
                 quantize_input: bool = False, batch_invariant: bool = False,
                 launch: str | None = None) -> Any:
    """act(x * gate^T + gate_bias) * (x * up^T + up_bias) in one launch: the first half of a gated
    feed-forward layer. With the default arguments this is SwiGLU. Runs on compute capability 9.0,
    on 10.0 and 10.3 if x is quantized, and on the CPU.

    x               a Packed [m, k]; or float16 or bfloat16 [..., k], as the a of mm()
    gate, up        two Packed [n, k] with the same format and scale layout. layouts.split_gate_up()
                    makes them of one matrix
    activation      act: "silu", "gelu", "gelu_tanh", "relu"
    limit           for "silu": the gate value is clamped to at most limit, and the value of up to
                    the range -limit .. limit. None: no clamping
    alpha, beta     for "silu": act(g) is g / (1 + exp(-alpha * g)), and beta is added to the value
                    of up after clamping. gpt-oss has limit=7, alpha=1.702, beta=1
    gate_bias, up_bias
                    [n], both or neither, of one type
    quantize_input  as in linear(). The tensor scale is gate's input_scale, which up's must equal

    Other arguments are those of mm(), and arrays are used, copied and refused as by mm(). There are
    no gradients. torch.autocast changes nothing.
    """
    for what, one in (("gate", gate), ("up", up)):
        if not isinstance(one, Packed):
            raise TypeError(f"{what} is {type(one).__name__}; expected what quantize() returns")
        if getattr(one, "pre_quant_scale", None) is not None:
            raise ValueError(f"{what} has a pre_quant_scale, which linear() alone applies")
    arrays = gate.door("gate").arrays
    _no_gradient(arrays, "gated_linear", ("x", x), ("gate_bias", gate_bias), ("up_bias", up_bias))
    second = _gate_of(up, up_bias, activation, limit, alpha, beta)
    numbers = Numbers(activation=activation, launch=launch,
                      batch_invariant=flag(batch_invariant, "batch_invariant"))
    x, out_dtype, leading = _tokens(x, gate, (gate, up), out_dtype, out, quantize_input, numbers)
    if arrays.observed() or gate.traced:
        d = _optional.ops.gated(x, gate, out_dtype, gate_bias, out, numbers, second)
    else:
        d = _mm(x, gate, out_dtype, gate_bias, None, out, numbers, names=("x", "gate", "up"),
                gate=second)
    return d if leading is None else d.reshape(*leading, gate.rows)


def _gate_of(up: Packed | Stack, up_bias: AnyArray | None, activation: str | None,
             limit: float | None, alpha: float, beta: float) -> Gate:
    if activation is None:
        raise ValueError("activation is None; a gate has one")
    limit = 0.0 if limit is None else number(limit, "limit")
    alpha, beta = number(alpha, "alpha"), number(beta, "beta")
    if alpha == 0:
        raise ValueError("alpha is 0; expected 1/64 to 64")
    silu = activation == "silu"
    if not silu and (limit, alpha, beta) != (0.0, 1.0, 0.0):
        raise ValueError(f"limit, alpha and beta are of silu; activation is {activation!r}")
    return Gate(up, up_bias, limit=limit, alpha=alpha if silu and alpha != 1 else 0.0, beta=beta)


def _tokens(x: Any, weight: Packed | Stack, weights: Sequence[Packed | Stack],
            out_dtype: DType | None, out: AnyArray | None, quantize_input: bool,
            to: str | Numbers) -> tuple[Any, DType | None, Shape | None]:
    """Returns (x, which is quantized if quantize_input is True; out_dtype; the leading dimensions
    of x). `to` is a scale_layout, or the numbers of the one gated product. The last one is None
    unless quantizing has merged the leading dimensions."""
    if not flag(quantize_input, "quantize_input"):
        return x, out_dtype, None
    if isinstance(x, Packed):
        raise TypeError("x is Packed; quantize_input wants an array")
    arrays = arrays_of(x, "x")
    if out_dtype is None and out is None:
        out_dtype = arrays.dtype(float_type(arrays, x.dtype, "x"))
    scales = [getattr(one, "input_scale", None) for one in weights]
    if any(scale != scales[0] for scale in scales):
        raise ValueError(f"input_scale of gate and up differ: {scales}; quantize x first")
    scale: Any = None
    if weight.format == "nvfp4":
        scale = "rows" if scales[0] is None else scales[0]
    leading = x.shape[:-1] if out is None and x.ndim != 2 else None
    if not isinstance(to, str):
        return _quantized(x, scale, weight, (x,), to, gated=True), out_dtype, leading
    return quantize(x, scale, scale_layout=to, format=weight.format), out_dtype, leading


def grouped_linear(x: AnyArray | Packed, ends: AnyArray, weights: Stack,
                   bias: AnyArray | None = None, *, activation: str | None = None,
                   alpha: float = 1.0, out_dtype: DType | None = None, out: AnyArray | None = None,
                   quantize_input: bool = False, launch: str | None = None,
                   rows_hint: int = 0) -> Any:
    """act(alpha * x * w^T + bias) in one launch, where w is the matrix of the group to which the
    row of x belongs. This is what the experts of a layer compute. Runs on compute capability 8.0
    and later, with a quantized x on 9.0, 10.0 and 10.3, and on the CPU.

    x               the rows of all groups, one group after the other: float16 or bfloat16 [..., k];
                    or a Packed with one tensor scale, or one for each row. On a GPU its scales must
                    be linear
    ends            int32 or int64 [groups] on x's device: group g has rows ends[g - 1] to ends[g].
                    Or [groups + 1] with a 0 in front. Values must not be negative, decrease, or
                    exceed the number of rows of x. On the CPU the first two rules are checked. On a
                    GPU nothing is checked, and the host never reads ends. Larger values are
                    clamped. Rows outside all groups are not written; in a new result they are
                    undefined. int64 costs a small conversion kernel
    weights         a Stack with a matrix [n, k] for each group
    bias            [n] for all groups, or [groups, n]
    quantize_input  as in linear(). The result of a row does not depend on the rows of other
                    groups, nor on rows outside all groups
    rows_hint       the number of rows that a group typically has. It selects the tile, which
                    changes the speed and, on 9.0, the order of additions along K

    On the CPU, a row of the result equals that of mm(rows of the group, w, batch_invariant=True)
    bit for bit. On a GPU the order of additions may differ; nvfp4_gemm.h describes it under
    "Grouped products".

    An extra small kernel runs if the groups have their own tensor scales, and alpha times the
    tensor scale of x (if that is a number) is not 1. It multiplies the groups' scales by this
    product. Arrays are used, copied and refused as by mm(). There are no gradients. torch.autocast
    changes nothing.
    """
    if not isinstance(weights, Stack):
        raise TypeError(f"weights is {type(weights).__name__}; expected a Stack, as stack() makes")
    scale = _scale_for(weights) if quantize_input is True else None
    options = None if out is not None or _optional.compiling() else (
        "grouped", out_dtype, activation, launch, alpha, type(alpha), rows_hint, type(rows_hint),
        quantize_input, type(quantize_input))
    d = _again(weights, x, bias, ends, scale, options)
    if d is not None:
        return d
    arrays = weights.door("weights").arrays
    _no_gradient(arrays, "grouped_linear", ("x", x), ("bias", bias))
    tokens, out_dtype, leading = _tokens(x, weights, (weights,), out_dtype, out, quantize_input,
                                         "linear")
    call = _optional.ops.grouped if arrays.observed() or weights.traced else product
    numbers = Numbers(alpha=alpha, activation=activation, launch=launch)
    d = call(tokens, ends, weights, out_dtype, bias, out, numbers, rows_hint)
    d = d if leading is None else d.reshape(*leading, d.shape[1])
    _remember(weights, x, tokens, bias, ends, scale, options, numbers, d, rows_hint)
    return d


def grouped_gated_linear(x: AnyArray | Packed, ends: AnyArray, gate: Stack, up: Stack,
                         gate_bias: AnyArray | None = None, up_bias: AnyArray | None = None, *,
                         activation: str | None = "silu", limit: float | None = None,
                         alpha: float = 1.0, beta: float = 0.0, out_dtype: DType | None = None,
                         out: AnyArray | None = None, quantize_input: bool = False,
                         launch: str | None = None, rows_hint: int = 0,
                         out_scale: TensorScale | None = None) -> Any:
    """act(x * g^T + gate_bias) * (x * u^T + up_bias) in one launch, where g and u are the matrices
    of gate and up for the group to which the row of x belongs. This is the first half of the
    experts of a layer. Runs where grouped_linear() runs.

    x, ends, rows_hint, quantize_input
              as in grouped_linear()
    gate, up  two Stacks of the same format and scale layout, with matrices [n, k]
    gate_bias, up_bias
              [n] for all groups, or [groups, n]; both or neither, of one type and shape
    activation, limit, alpha, beta
              as in gated_linear()
    out_scale
              a float, or one float32 beside x: the result is then a Packed [rows, n] with linear
              scales, in the format of gate and up, and this is its tensor scale. Pass 1 where the
              format has none. The result has the bits of quantize() of the float32 result, and
              grouped_linear() takes it as x. n must be a multiple of 16, in MXFP4 of 32

    Arrays are used, copied and refused as by mm(). There are no gradients. torch.autocast changes
    nothing.
    """
    for what, one in (("gate", gate), ("up", up)):
        if not isinstance(one, Stack):
            raise TypeError(f"{what} is {type(one).__name__}; expected a Stack, as stack() makes")
    arrays = gate.door("gate").arrays
    _no_gradient(arrays, "grouped_gated_linear", ("x", x), ("gate_bias", gate_bias),
                 ("up_bias", up_bias))
    second = _gate_of(up, up_bias, activation, limit, alpha, beta)
    if out_scale is not None:
        return _grouped_quantized(x, ends, gate, gate_bias, second, out_dtype, out, quantize_input,
                                  Numbers(activation=activation, launch=launch), rows_hint,
                                  out_scale)
    x, out_dtype, leading = _tokens(x, gate, (gate, up), out_dtype, out, quantize_input, "linear")
    call = _optional.ops.grouped_gated if arrays.observed() or gate.traced else product
    numbers = Numbers(activation=activation, launch=launch)
    d = call(x, ends, gate, out_dtype, gate_bias, out, numbers, rows_hint, second)
    return d if leading is None else d.reshape(*leading, d.shape[1])


def _grouped_quantized(x: Any, ends: Any, gate: Stack, gate_bias: Any, second: Gate,
                       out_dtype: DType | None, out: AnyArray | None, quantize_input: bool,
                       numbers: Numbers, rows_hint: int, out_scale: Any) -> Packed:
    if out_dtype is not None or out is not None:
        raise ValueError(f"{'out_dtype' if out is None else 'out'} is given beside out_scale, with "
                         "which the result is a Packed")
    arrays = gate.door("gate").arrays
    x, *_ = _tokens(x, gate, (gate, second.b2), None, None, quantize_input, "linear")
    if arrays.observed() or gate.traced:
        d = _optional.ops.grouped_gated_quantized(x, ends, gate, gate_bias, numbers, rows_hint,
                                                  second, out_scale)
    else:
        d = product(x, ends, gate, None, gate_bias, None, numbers, rows_hint, second, out_scale)
    parts = d.codes, d.scales, d.rows, d.k, d.tensor_scale, d.scale_layout, d.format
    return Packed(*parts) if d.traced else Packed.of_own(arrays, *parts)
