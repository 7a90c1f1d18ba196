# SPDX-License-Identifier: MIT
"""quantize, mm and linear as users call them: at once by nvfp4gemm._eager, or as operators of torch
where torch traces, transforms, differentiates, casts or watches calls."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

from nvfp4gemm import _optional
from nvfp4gemm._arrays import Torch, arrays_of
from nvfp4gemm._door import flag, number
from nvfp4gemm._eager import float_type
from nvfp4gemm._eager import mm as _mm, quantize as _quantize
from nvfp4gemm._gemm import Gate, Maxima, Numbers
from nvfp4gemm._packed import Packed
from nvfp4gemm._stack import Stack, product
from nvfp4gemm._types import A, AnyArray, Arrays, DType, Shape, TensorScale


def quantize(x: AnyArray, tensor_scale: TensorScale | Literal["rows"] | None = None, *,
             scale_layout: str = "128x4", format: str = "nvfp4",
             scale_rule: str | None = None) -> Packed:
    """x [..., k] of float16, bfloat16 or float32 to NVFP4; leading dimensions become rows. k is a
    multiple of 16, in MXFP4 of 32. An x whose rows are not contiguous is copied.

    tensor_scale  None: the largest finite |x| / 2688, or 1 where that is 0, found on the device
                  where x lies there, so that nothing waits; the result then has it as a tensor.
                  "rows": the same of each row, so that no row changes another; mm() takes such a
                  matrix as its a. A float, or on a GPU a tensor of one float32, is used as it is:
                  x ~ code * scale * tensor_scale.
    scale_layout  "128x4" for mm; "linear" is what checkpoints hold.
    format        "nvfp4", "mxfp4" or "e2m1_ue8m0": with UE8M0 scales of 32 or of 16 elements, which
                  are rounded up so that no element is clipped, and without a tensor_scale.
    scale_rule    of format "nvfp4". None: the largest of 16 elements becomes 6 times their scale.
                  "4over6": it becomes 6 or 4 times, whichever has the smaller squared error, which
                  takes longer here and not in a product. On normal weights the error is 6 to 9 %
                  less.

    On a GPU one kernel (two where tensor_scale is None) on torch's current stream, to the same bits
    as on the CPU.
    """
    arrays = arrays_of(x, "x")
    if arrays.observed() or arrays.traced(x):
        return Packed(*_optional.ops.quantize(x, tensor_scale, scale_layout, format, scale_rule))
    return Packed.of_own(arrays, *_quantize(x, tensor_scale, scale_layout, format, scale_rule))


def mm(a: AnyArray | Packed, b: Packed, out_dtype: DType | None = None, *,
       bias: AnyArray | None = None, activation: str | None = None, c: AnyArray | None = None,
       alpha: float | AnyArray = 1.0, beta: float = 1.0, out: AnyArray | None = None,
       amax: AnyArray | None = None, row_amax: AnyArray | None = None,
       batch_invariant: bool = False, launch: str | None = None) -> Any:
    """act(alpha * a * b^T + beta * c + bias), [..., n].

    a           a Packed [m, k], or float16 or bfloat16 [..., k], which is multiplied as it is
                (compute capability 8.0 and later, fast up to 16 tokens, and the CPU)
    b           a Packed [n, k], of a's format where a is one; what checkpoints.fuse() made has a
                tensor scale for each part
    out_dtype   float16, bfloat16 or float32; that of out, else of a, else float16
    bias        [n], of any of the three
    activation  None, "relu", "silu", "gelu", "gelu_tanh", "relu_squared"
    c           [m, n] of any of the three, added times beta; may be out
    alpha       a number; or with an NVFP4 b a torch tensor of one float32 above 0 beside b, which
                is read where it lies
    out         where the result goes: rows or columns contiguous, which share no element with each
                other or with what is read; on a GPU its address is a multiple of 16 bytes. Leading
                dimensions must be one step apart. Written in place, never through a copy of it;
                where the call is an operator (torch.compile, torch.autocast, what traces,
                transforms or watches calls), the result is copied into it
    amax, row_amax
                float32 [1] and [m]: the largest magnitude of the result and that of each row,
                before they are rounded, join what is there. Clear them first. There are no
                gradients with them, and no operators
    batch_invariant
                a row of the result has the same bits whatever the other rows are
    launch      None, "early": may start before earlier work of the stream ends, and waits before it
                reads; "early_static_weights": b is promised to be older than that work

    a, bias and c are copied where their elements lie otherwise than the library reads them: rows
    of a or elements of bias that are not contiguous, rows that repeat or overlap, c in another
    order than the result, rows of a that are no multiple of 8 elements apart, a foreign order of
    bytes; on a GPU also an a or c whose address is no multiple of 16 bytes.

    Where a, bias or c requires a gradient it gets one: a's is alpha * dy * b, with b dequantized to
    a's type; b has none. A quantized x of linear() gets it as if it had not been quantized. A
    product with an activation, or into out, raises then. Nothing passes through quantize(): a
    Packed a has no gradient. The same is true of tangents of forward-mode AD. Inside torch.autocast
    an a that is not packed is cast, and the result is of autocast's type unless out_dtype or out
    says more.

    On torch tensors of a GPU: on its current stream, nothing waits, and CUDA graphs capture it.
    """
    if getattr(b, "pre_quant_scale", None) is not None:
        raise ValueError("b has a pre_quant_scale, which linear() applies to its x; mm() does not")
    maxima = None if amax is None and row_amax is None else Maxima(amax, row_amax)
    factor: Any = alpha
    if isinstance(b, Packed) and not isinstance(alpha, float) and Torch.is_tensor(alpha):
        b, factor = _scaled_by(b, alpha), 1.0
    numbers = Numbers(alpha=factor, beta=beta, activation=activation, launch=launch,
                      batch_invariant=batch_invariant)
    return _product(("a", "b"), a, b, out_dtype, bias, c, out, numbers, None, maxima)


def _scaled_by(b: Packed, alpha: Any) -> Packed:
    """b with alpha, a tensor, in its tensor scale."""
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
    """mm() of what its caller names so; `source` is what a was quantized from."""
    if not isinstance(b, Packed):
        raise TypeError(f"{names[1]} is {type(b).__name__}; expected what quantize() returns")
    arrays = b.door(names[1]).arrays
    invariant = flag(numbers.batch_invariant, "batch_invariant")
    if invariant is not numbers.batch_invariant:  # NumPy's
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
    """x times the weight's pre_quant_scale, in x's type, with x's gradient."""
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
    """act(x * weight^T + bias) as torch.nn.functional.linear has it: x [..., k] of float16 or
    bfloat16, weight a Packed [n, k]. The result is of x's type unless out_dtype or out says
    otherwise.

    quantize_input  False: x stays as it is (compute capability 8.0 and later, and the CPU). True: x
                    is quantized first (9.0, 10.x, 12.x and the CPU): by the weight's input_scale
                    where a checkpoint gave it one, else each row by its own largest value, so that
                    what batch_invariant says of rows is true of it, too. To the weight's format.

    x, weight and bias are used, copied and refused as mm() does with a, b and bias, and have
    gradients as there. Where a checkpoint gave the weight a pre_quant_scale, x is multiplied by it
    first.
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
    tokens: A | Packed = x
    if quantize_input:
        arrays = arrays_of(x, "x")
        if out_dtype is None and out is None and not arrays.autocasts(x):
            out_dtype = arrays.dtype(float_type(arrays, x.dtype, "x"))
        source, tokens = x, quantize(x, scale, format=getattr(weight, "format", "nvfp4"))
        leading = source.shape[:-1] if out is None and source.ndim != 2 else None
    numbers = Numbers(activation=activation, launch=launch, batch_invariant=batch_invariant)
    made: A = _product(("x", "weight"), tokens, weight, out_dtype, bias, None, out, numbers, source)
    d = made if leading is None else made.reshape(*leading, weight.rows)
    _remember(weight, x, tokens, bias, None, scale, options, numbers, d)
    return d


def _scale_for(weight: Packed | Stack) -> Any:
    """What quantize() gets as tensor_scale of an x for the weight."""
    if getattr(weight, "format", "nvfp4") != "nvfp4":
        return None
    scale = getattr(weight, "input_scale", None)
    return "rows" if scale is None else scale


_PLAIN = (type(None), str, float)


def _key(x: Any, bias: Any, scale: Any, options: tuple[Any, ...]) -> tuple[Any, ...]:
    """What _known keeps a product by. Options that are numbers stand beside their types, since
    1 == True."""
    return (x.shape, x.dtype, bias is None, scale if type(scale) in _PLAIN else type(scale),
            *options)


def _again(weight: Any, x: Any, bias: Any, ends: Any, scale: Any,
           options: tuple[Any, ...] | None) -> Any:
    """The product, where _known has one like it; else None."""
    table = None if options is None else getattr(weight, "_known", None)
    if options is None or table is None:
        return None
    try:
        found = table.get(_key(x, bias, scale, options))
    except (AttributeError, TypeError):  # of which the door says more
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
    """Has _known keep a product that a GPU has computed."""
    if options is None or isinstance(x, Packed) or not weight.door("weight").gpu:
        return
    _optional.known.remember(_key(x, bias, scale, options), weight, x, tokens, bias, ends, scale,
                             numbers, d, rows_hint)


def _no_gradient(arrays: Arrays, name: str, *operands: tuple[str, Any]) -> None:
    """Raises where an operand requires a gradient."""
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
    """act(x * gate^T + gate_bias) * (x * up^T + up_bias) in one call: the first half of a gated
    feed-forward layer, SwiGLU as it stands.

    x               a Packed [m, k], or float16 or bfloat16 [..., k], as mm() takes its a
    gate, up        Packed [n, k] that lie alike: one format, one layout of scales. Two matrices, or
                    what layouts.split_gate_up() made of one
    activation      of the gate: "silu", "gelu", "gelu_tanh", "relu"
    limit           with "silu": the gate is cut to at most limit, and up to -limit .. limit. None:
                    neither is
    alpha, beta     with "silu": g / (1 + exp(-alpha * g)), and beta is added to up after the cut.
                    gpt-oss has limit=7, alpha=1.702, beta=1
    gate_bias, up_bias
                    [n], both or neither, of one type
    quantize_input  as linear() has it; by gate's input_scale where both have the same

    Arrays are used, copied and refused as by mm(). There are no gradients; torch.autocast changes
    nothing.
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
    x, out_dtype, leading = _tokens(x, gate, (gate, up), out_dtype, out, quantize_input)
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
            scale_layout: str = "128x4") -> tuple[Any, DType | None, Shape | None]:
    """(x, out_dtype, leading dimensions that a quantized x has lost)."""
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
    return quantize(x, scale, scale_layout=scale_layout, format=weight.format), out_dtype, leading


def grouped_linear(x: AnyArray | Packed, ends: AnyArray, weights: Stack,
                   bias: AnyArray | None = None, *, activation: str | None = None,
                   alpha: float = 1.0, out_dtype: DType | None = None, out: AnyArray | None = None,
                   quantize_input: bool = False, launch: str | None = None,
                   rows_hint: int = 0) -> Any:
    """act(alpha * x * w^T + bias) in one launch, where w is the matrix of a row's group: what the
    experts of a layer compute. On compute capability 8.0 and later, with a quantized x on 9.0 and
    10.x, and on the CPU.

    x         the rows of all groups, one group after the other: float16 or bfloat16 [..., k], or a
              Packed with one tensor scale or one for each row, and on a GPU with linear scales
    ends      int32 or int64 [groups], on x's device, where nothing reads it on the host: group g
              has rows ends[g - 1] to ends[g]. Or [groups + 1], with a 0 before them. They begin at
              0 or more and do not fall, which the CPU looks at; the last is at most the rows of x.
              What is beyond is cut, and rows of no group are not written: in a result that the call
              makes they hold anything. Of int64 a small kernel makes int32 first
    weights   a Stack, of groups of [n, k]
    bias      [n], of all groups, or [groups, n]
    rows_hint how many rows a usual group has; it selects the tile, which changes the speed and, on
              9.0, the order along K
    quantize_input
              as linear() has it: a row of another group, or of none, changes nothing

    On the CPU a row has the bits of mm(its group's rows, w, batch_invariant=True), where w's tensor
    scale is a number if the Stack has one for each group; on a GPU those of the variant that
    `Grouped products` of nvfp4_gemm.h says, which adds along K in an order of its own. Where alpha,
    or a tensor scale of x that is a number, is not 1, a small kernel multiplies the groups' tensor
    scales by it first. Arrays are used, copied and refused as by mm(). There are no gradients;
    torch.autocast changes nothing.
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
                         launch: str | None = None, rows_hint: int = 0) -> Any:
    """act(x * g^T + gate_bias) * (x * u^T + up_bias) in one launch, where g and u are the matrices
    of a row's group in gate and up: the first half of the experts of a layer.

    x, ends, rows_hint, quantize_input    as grouped_linear() has them
    gate, up                              Stacks that are alike, of groups of [n, k]
    gate_bias, up_bias                    [n], of all groups, or [groups, n]; both or neither, of
                                          one type and shape
    activation, limit, alpha, beta        as gated_linear() has them

    Arrays are used, copied and refused as by mm(). There are no gradients; torch.autocast changes
    nothing.
    """
    for what, one in (("gate", gate), ("up", up)):
        if not isinstance(one, Stack):
            raise TypeError(f"{what} is {type(one).__name__}; expected a Stack, as stack() makes")
    arrays = gate.door("gate").arrays
    _no_gradient(arrays, "grouped_gated_linear", ("x", x), ("gate_bias", gate_bias),
                 ("up_bias", up_bias))
    second = _gate_of(up, up_bias, activation, limit, alpha, beta)
    x, out_dtype, leading = _tokens(x, gate, (gate, up), out_dtype, out, quantize_input, "linear")
    call = _optional.ops.grouped_gated if arrays.observed() or gate.traced else product
    numbers = Numbers(activation=activation, launch=launch)
    d = call(x, ends, gate, out_dtype, gate_bias, out, numbers, rows_hint, second)
    return d if leading is None else d.reshape(*leading, d.shape[1])
