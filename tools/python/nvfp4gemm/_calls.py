# SPDX-License-Identifier: MIT
"""quantize, mm and linear as users call them: at once by nvfp4gemm._eager, or as operators of torch
where torch.compile traces."""
from nvfp4gemm import _optional
from nvfp4gemm._arrays import arrays_of
from nvfp4gemm._eager import float_type, matrix  # noqa: F401, for layouts
from nvfp4gemm._eager import mm as _mm, quantize as _quantize
from nvfp4gemm._matrix import row_bytes, scale_bytes  # noqa: F401, for checkpoints
from nvfp4gemm._packed import Packed


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
    if arrays_of(x, "x").compiling():
        return Packed(*_optional.ops.quantize(x, tensor_scale, scale_layout))
    return Packed(*_quantize(x, tensor_scale, scale_layout))


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
    run = _optional.ops.mm if arrays_of(b.codes, "b's codes").compiling() else _mm
    return run(a, b, out_dtype, bias, activation, c, alpha, beta, out, batch_invariant, launch)


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
