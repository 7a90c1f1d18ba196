# SPDX-License-Identifier: MIT
"""The calls at once, not as operators of torch: what they check themselves, and which engine
computes. What lies on a GPU is computed there by nvfp4gemm._device; the rest on the CPU, by the
library's reference."""
from nvfp4gemm import _optional, abi
from nvfp4gemm._arrays import arrays_of, on_gpu
from nvfp4gemm._gemm import codes_ld, describe
from nvfp4gemm._matrix import Matrix, layout_number, row_bytes, scale_bytes


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


def quantize(x, tensor_scale, scale_layout):
    """(codes, scales, rows, k, tensor_scale, scale_layout) of x."""
    arrays = arrays_of(x, "x")
    x = matrix(x, "x")
    float_type(arrays, x.dtype, "x")
    layout_number(scale_layout)
    if on_gpu(x):
        return _optional.device.quantize(x, tensor_scale, scale_layout)
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
    return codes, scales, rows, k, tensor_scale, scale_layout


def dequantize(packed, dtype=None):
    arrays = arrays_of(packed.codes, "codes")
    number = abi.F32 if dtype is None else float_type(arrays, dtype, "dtype")
    if on_gpu(packed.codes):
        return _optional.device.dequantize(packed, number)
    x = arrays.empty(packed.shape, abi.F32, packed.codes)
    abi.check(abi.lib.nvfp4_dequantize_host(
        arrays.address(packed.codes), codes_ld(arrays, packed), arrays.address(packed.scales),
        layout_number(packed.scale_layout), packed.rows, packed.k, float(packed.tensor_scale),
        arrays.address(x), packed.k))
    return x if number == abi.F32 else arrays.cast(x, number)


def with_scales(packed, scale_layout):
    if scale_layout == packed.scale_layout:
        return packed
    arrays = arrays_of(packed.scales, "scales")
    rows, k = packed.shape
    scales = arrays.zero_bytes((scale_bytes(rows, k, scale_layout),), packed.scales)
    if on_gpu(packed.scales):
        _optional.device.convert_scales(packed, scales, scale_layout)
    else:
        abi.check(
            abi.lib.nvfp4_scale_convert_host(arrays.address(packed.scales),
                                             layout_number(packed.scale_layout),
                                             arrays.address(scales), layout_number(scale_layout),
                                             rows, k))
    return packed.replace(scales=scales, scale_layout=scale_layout)


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


def result_type(arrays, a, out_dtype, out):
    if out is not None:
        if out_dtype is not None and arrays.type_of(out_dtype) != arrays.type_of(out.dtype):
            raise TypeError(f"out is of {out.dtype}, out_dtype is {out_dtype}")
        return float_type(arrays, out.dtype, "out")
    if out_dtype is not None:
        return float_type(arrays, out_dtype, "out_dtype")
    return abi.F16 if isinstance(a, Matrix) else arrays.type_of(a.dtype)


def mm(a, b, out_dtype, bias, activation, c, alpha, beta, out, batch_invariant, launch):
    arrays = arrays_of(b.codes, "b's codes")
    leading = None
    if isinstance(a, Matrix):
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
        d = _optional.device.mm(a, b, m, number, bias, activation, c, alpha, beta, d,
                                batch_invariant, launch)
    else:
        if d is None:
            d = arrays.empty((m, b.rows), number, b.codes)
        abi.check(abi.lib.nvfp4_gemm_reference(describe(
            arrays, a, b, d, bias, activation, c, alpha, beta, batch_invariant, launch)))
    if out is not None:
        return out
    return d if leading is None else d.reshape(*leading, b.rows)
