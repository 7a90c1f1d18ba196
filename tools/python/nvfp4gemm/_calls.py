# SPDX-License-Identifier: MIT
"""quantize, dequantize, mm and linear: what they check themselves, and which engine computes. What
lies on a GPU is computed there by nvfp4gemm._device; the rest on the CPU, by the library's
reference."""
from nvfp4gemm import abi
from nvfp4gemm._arrays import arrays_of, on_gpu
from nvfp4gemm._packed import Packed


def row_bytes(k):
    """Of codes: rows start at multiples of 16 bytes, as the GEMM wants them."""
    return (k + 31) // 32 * 16


def codes_ld(arrays, packed):
    """In elements, two to a byte: rows of a slice lie further apart than they are long."""
    rows, bytes_ = arrays.strides(packed.codes)
    if bytes_ != 1 and packed.codes.shape[1] > 1:
        raise ValueError(f"codes have strides {(rows, bytes_)}; their rows must be contiguous")
    return 2 * (rows if packed.rows > 1 else packed.codes.shape[1])


def scale_bytes(rows, k, scale_layout):
    return abi.lib.nvfp4_scale_bytes(rows, k, layout_number(scale_layout))


def number_of(name, table, what):
    try:
        return table[name]
    except (KeyError, TypeError):
        known = ", ".join(repr(n) for n in table)
        raise ValueError(f"{what} is {name!r}; there are {known}") from None


def layout_number(scale_layout):
    return number_of(scale_layout, abi.LAYOUTS, "scale_layout")


def float_type(arrays, dtype, what):
    number = arrays.type_of(dtype)
    if number is None:
        raise TypeError(f"{what} is of {dtype}; there are float16, bfloat16 and float32")
    return number


def matrix(x, what):
    """x with its leading dimensions as one."""
    if x.ndim == 2:
        return x
    if x.ndim < 2:
        raise ValueError(f"{what} has {x.ndim} dimension, expected rows and k at least")
    return x.reshape(-1, x.shape[-1])


def quantize(x, tensor_scale=None, *, scale_layout="128x4"):
    """x [..., k] of float16, bfloat16 or float32 to NVFP4; leading dimensions become rows. k is a
    multiple of 16.

    tensor_scale  None: the largest finite |x| / 2688, found on the device where x lies there, so
                  that nothing waits; the result then has it as a tensor. A float, or on a GPU a
                  tensor of one float32, is used as it is: x ~ code * scale * tensor_scale.
    scale_layout  "128x4" for mm; "linear" is what checkpoints hold.

    On a GPU one kernel (two without tensor_scale) on torch's current stream, to the same bits as on
    the CPU.
    """
    arrays = arrays_of(x, "x")
    if arrays.compiling():
        from nvfp4gemm import _ops
        return _ops.quantize(x, tensor_scale, scale_layout)
    x = matrix(x, "x")
    float_type(arrays, x.dtype, "x")
    layout_number(scale_layout)
    if on_gpu(x):
        from nvfp4gemm import _device
        return _device.quantize(x, tensor_scale, scale_layout)
    rows, k = x.shape
    x = arrays.rows_of_f32(x)
    if tensor_scale is None:
        amax = arrays.largest_finite(x)
        tensor_scale = amax / 2688 if amax > 0 else 1.0
    tensor_scale = abi.c_float(float(tensor_scale)).value
    codes = arrays.zero_bytes((rows, row_bytes(k)), x)
    scales = arrays.zero_bytes((scale_bytes(rows, k, scale_layout),), x)
    abi.check(abi.lib.nvfp4_quantize_host(
        arrays.address(x), k, rows, k, tensor_scale, arrays.address(codes), 2 * codes.shape[1],
        arrays.address(scales), layout_number(scale_layout)))
    return Packed(codes, scales, rows, k, tensor_scale, scale_layout)


def dequantize(packed, dtype=None):
    arrays = arrays_of(packed.codes, "codes")
    number = abi.F32 if dtype is None else float_type(arrays, dtype, "dtype")
    if on_gpu(packed.codes):
        from nvfp4gemm import _device
        return _device.dequantize(packed, number)
    x = arrays.empty(packed.shape, abi.F32, packed.codes)
    abi.check(abi.lib.nvfp4_dequantize_host(
        arrays.address(packed.codes), codes_ld(arrays, packed), arrays.address(packed.scales),
        layout_number(packed.scale_layout), packed.rows, packed.k, float(packed.tensor_scale),
        arrays.address(x), packed.k))
    return x if number == abi.F32 else arrays.cast(x, number)


def of_shape(x, what, rows, columns):
    """x [..., columns] as [rows, columns]; None stays None."""
    if x is None:
        return None
    if x.ndim < 2 or tuple(matrix(x, what).shape) != (rows, columns):
        raise ValueError(f"{what} is {tuple(x.shape)}, expected ({rows}, {columns})")
    return matrix(x, what)


def in_place(arrays, out, rows, columns):
    """of_shape(out), a view of it: a copy would be written in its place."""
    d = of_shape(out, "out", rows, columns)
    if d is not None and arrays.address(d) != arrays.address(out):
        raise ValueError(
            f"out is {tuple(out.shape)} with strides {arrays.strides(out)}; its leading "
            "dimensions cannot be seen as rows")
    return d


def with_scales(packed, scale_layout):
    if scale_layout == packed.scale_layout:
        return packed
    arrays = arrays_of(packed.scales, "scales")
    rows, k = packed.shape
    scales = arrays.zero_bytes((scale_bytes(rows, k, scale_layout),), packed.scales)
    if on_gpu(packed.scales):
        from nvfp4gemm import _device
        _device.convert_scales(packed, scales, scale_layout)
    else:
        abi.check(
            abi.lib.nvfp4_scale_convert_host(arrays.address(packed.scales),
                                             layout_number(packed.scale_layout),
                                             arrays.address(scales), layout_number(scale_layout),
                                             rows, k))
    return Packed(packed.codes, scales, rows, k, packed.tensor_scale, scale_layout)


def leading_dimension(arrays, x, what):
    """(ld, cd_order) of [rows, columns]."""
    rows, columns = arrays.strides(x)
    if columns == 1 or x.shape[1] <= 1:
        return max(rows, x.shape[1]), abi.ROW_MAJOR
    if rows == 1 or x.shape[0] <= 1:
        return max(columns, x.shape[0]), abi.COLUMN_MAJOR
    raise ValueError(f"{what} has strides {(rows, columns)}; rows or columns must be contiguous")


def constant_and_tensor(scale):
    """A tensor scale as the factor that goes into alpha, and the tensor that the device reads."""
    if isinstance(scale, (int, float)):
        return float(scale), None
    return 1.0, scale


def describe(arrays, a, b, d, bias, activation, c, alpha, beta, batch_invariant, launch):
    """The GemmDesc, addresses and all."""
    desc = abi.GemmDesc(m=d.shape[0], n=d.shape[1], k=b.k, l=1)
    packed = isinstance(a, Packed)
    factors = [constant_and_tensor(b.tensor_scale)]
    desc.b, desc.b_ld = arrays.address(b.codes), codes_ld(arrays, b)
    desc.b_scales, desc.b_scale_layout = arrays.address(b.scales), layout_number(b.scale_layout)
    if factors[0][1] is not None:
        desc.b_tensor_scale = arrays.address(factors[0][1])
    if packed:
        factors.insert(0, constant_and_tensor(a.tensor_scale))
        desc.a, desc.a_ld = arrays.address(a.codes), codes_ld(arrays, a)
        desc.a_scales, desc.a_scale_layout = arrays.address(a.scales), layout_number(a.scale_layout)
        if factors[0][1] is not None:
            desc.a_tensor_scale = arrays.address(factors[0][1])
    else:
        desc.a, desc.a_type = arrays.address(a), arrays.type_of(a.dtype)
        desc.a_ld, order = leading_dimension(arrays, a, "a")
        if order == abi.COLUMN_MAJOR:
            raise ValueError("a has contiguous columns; its rows must be")
    desc.d, desc.d_type = arrays.address(d), arrays.type_of(d.dtype)
    desc.d_ld, desc.cd_order = leading_dimension(arrays, d, "out")
    if c is not None:
        desc.c, desc.c_type = arrays.address(c), arrays.type_of(c.dtype)
        desc.c_ld, order = leading_dimension(arrays, c, "c")
        if order != desc.cd_order:
            raise ValueError("c and the result must both have contiguous rows, or both columns")
        desc.beta = beta
    if bias is not None:
        desc.bias, desc.bias_type = arrays.address(bias), arrays.type_of(bias.dtype)
    # One factor after the other in fp32, as the device multiplies those that it reads.
    desc.alpha = alpha
    for constant, _ in factors:
        desc.alpha = desc.alpha * constant
    desc.activation = number_of(activation, abi.ACTIVATIONS, "activation")
    desc.pdl = number_of(launch, abi.LAUNCHES, "launch")
    desc.batch_invariant = int(batch_invariant)
    return desc


def result_type(arrays, a, out_dtype, out):
    if out is not None:
        if out_dtype is not None and arrays.type_of(out_dtype) != arrays.type_of(out.dtype):
            raise TypeError(f"out is of {out.dtype}, out_dtype is {out_dtype}")
        return float_type(arrays, out.dtype, "out")
    if out_dtype is not None:
        return float_type(arrays, out_dtype, "out_dtype")
    return abi.F16 if isinstance(a, Packed) else arrays.type_of(a.dtype)


def mm(a, b, out_dtype=None, *, bias=None, activation=None, c=None, alpha=1.0, beta=1.0, out=None,
       batch_invariant=False, launch=None):
    """act(alpha * a * b^T + beta * c + bias), [..., n].

    a           a Packed [m, k], or float16 or bfloat16 [..., k], which is multiplied as it is
                (compute capability 9.0 and the CPU; elsewhere the library refuses it in words)
    b           a Packed [n, k]
    out_dtype   float16, bfloat16 or float32; that of out, else of a, else float16
    bias        [n], of any of the three
    activation  None, "relu", "silu", "gelu", "gelu_tanh"
    c           [m, n] of any of the three, added times beta; may be out
    out         where the result goes; rows or columns contiguous
    batch_invariant
                a row of the result has the same bits whatever the other rows are
    launch      None, "early": may start before earlier work of the stream ends, and waits before it
                reads; "early_static_weights": b is promised to be older than that work

    On torch tensors of a GPU: on its current stream, nothing waits, and CUDA graphs capture it.
    """
    if not isinstance(b, Packed):
        raise TypeError(f"b is {type(b).__name__}; expected what quantize() returns")
    arrays = arrays_of(b.codes, "b's codes")
    if arrays.compiling():
        from nvfp4gemm import _ops
        return _ops.mm(a, b, out_dtype, bias, activation, c, alpha, beta, out, batch_invariant,
                       launch)
    leading = None
    if isinstance(a, Packed):
        m, k = a.shape
        if arrays_of(a.codes, "a's codes") is not arrays:
            raise TypeError("a and b are of NumPy and torch; both must be of one")
    else:
        if arrays_of(a, "a") is not arrays:
            raise TypeError("a and b are of NumPy and torch; both must be of one")
        if arrays.type_of(a.dtype) not in (abi.F16, abi.BF16):
            raise TypeError(f"a is of {a.dtype}; expected a Packed, float16 or bfloat16")
        if a.ndim != 2:
            leading = a.shape[:-1]
            a = matrix(a, "a")
        m, k = a.shape
    if k != b.k:
        raise ValueError(f"a has k = {k}, b has k = {b.k}")
    if bias is not None and tuple(bias.shape) != (b.rows,):
        raise ValueError(f"bias is {tuple(bias.shape)}, expected ({b.rows},)")
    number = result_type(arrays, a, out_dtype, out)
    c, d = of_shape(c, "c", m, b.rows), in_place(arrays, out, m, b.rows)
    if on_gpu(b.codes):
        from nvfp4gemm import _device
        d = _device.mm(a, b, m, number, bias, activation, c, alpha, beta, d, batch_invariant,
                       launch)
    else:
        if d is None:
            d = arrays.empty((m, b.rows), number, b.codes)
        abi.check(abi.lib.nvfp4_gemm_reference(describe(
            arrays, a, b, d, bias, activation, c, alpha, beta, batch_invariant, launch)))
    if out is not None:
        return out
    return d if leading is None else d.reshape(*leading, b.rows)


def linear(x, weight, bias=None, *, activation=None, out_dtype=None, out=None, quantize_input=False,
           batch_invariant=False, launch=None):
    """act(x * weight^T + bias) as torch.nn.functional.linear has it: x [..., k] of float16 or
    bfloat16, weight a Packed [n, k]. The result is of x's type unless out_dtype or out says
    otherwise.

    quantize_input  False: x stays as it is, which compute capability 9.0 and the CPU have. True: x
                    is quantized first, by its own largest value, which every device has.
    """
    arrays = arrays_of(x, "x")
    if not quantize_input:
        return mm(x, weight, out_dtype, bias=bias, activation=activation, out=out,
                  batch_invariant=batch_invariant, launch=launch)
    if out_dtype is None and out is None:
        out_dtype = arrays.dtype(float_type(arrays, x.dtype, "x"))
    d = mm(quantize(x), weight, out_dtype, bias=bias, activation=activation, out=out,
           batch_invariant=batch_invariant, launch=launch)
    return d if out is not None or x.ndim == 2 else d.reshape(*x.shape[:-1], weight.rows)
