# SPDX-License-Identifier: MIT
"""The activations as docs/numerics.md writes them, in numpy's float32, and in double: nothing here
shares code with the library."""
import ctypes
import math

import numpy as np

import nvfp4

RELU, GELU_TANH, SILU, GELU_ERF, RELU_SQUARED = 1, 2, 3, 4, 5
F32 = np.float32


def constant(bits):
    return np.uint32(bits).view(F32)


def fma(a, b, c):
    """a * b + c of float32, rounded once: the product is exact in double, and the sum is rounded
    there to odd, so that rounding it again to float32 is as rounding once."""
    a, b, c = (np.asarray(x, F32).astype(np.float64) for x in (a, b, c))
    product = a * b
    total = product + c
    back = total - product
    error = (product - (total - back)) + (c - back)
    inexact = np.isfinite(total) & (error != 0)
    even = (total.view(np.int64) & 1) == 0
    odd = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return np.where(inexact & even, odd, total).astype(F32)


def horner(first, constants, x):
    value = np.full_like(x, constant(first))
    for bits in constants:
        value = fma(value, x, constant(bits))
    return value


def power_of_two(w, w_low):
    n = np.rint(w)
    f = (w - n) + w_low
    p = horner(0x3920FDDD, [0x3AAF9F2A, 0x3C1D96A6, 0x3D635774, 0x3E75FDEE, 0x3F317218, 0x3F800000],
               f)
    return p, np.ldexp(F32(1), n.astype(np.int32) + 64).astype(F32)


TINY = F32(2.0**-64)


def times_sigmoid(x, a, p, s):
    d = fma(p * s, TINY, F32(1))
    return np.where(x < 0, (((-a * p) / d) * s) * TINY, x / d)


def relu(x):
    return np.where(x > 0, x, F32(0))


def relu_squared(x):
    return np.where(x > 0, x * x, F32(0))


def silu(x):
    a = np.minimum(np.abs(x), F32(128))
    log2e = constant(0x3FB8AA3B)
    w = -a * log2e
    w_low = fma(-a, constant(0x32A57060), fma(-a, log2e, -w))
    return times_sigmoid(x, a, *power_of_two(w, w_low))


def gelu_tanh(x):
    a = np.minimum(np.abs(x), F32(11))
    c1, c3 = constant(0x40135740), constant(0x3DD2D3E8)
    z = a * a
    z_low = fma(a, a, -z)
    q = fma(c3, z, c1)
    r = fma(c3, z, c1 - q)
    r = fma(constant(0xB10A8D57), z, r)
    r = fma(c3, z_low, r) + constant(0x3704379D)
    w = -a * q
    w_low = fma(-a, r, fma(-a, q, -w))
    return times_sigmoid(x, a, *power_of_two(w, w_low))


def gelu_erf(x):
    a = np.minimum(np.abs(x), F32(15))
    half = constant(0x3F38AA3B)
    z = a * a
    z_low = fma(a, a, -z)
    w = -z * half
    w_low = fma(-z_low, half, fma(-z, constant(0x32257060), fma(-z, half, -w)))
    p, s = power_of_two(w, w_low)
    t = (a - F32(4)) / (a + F32(4))
    g = horner(0xB886D29A, [0xB92E37B9, 0x3A2C69CD, 0x3A03723C, 0xBC0B3B9F, 0x3CFCDA2C, 0xBD92DAF7,
                            0x3DFEBA83, 0xBE2E7CBF, 0x3DC15A5E], t)
    h = p * g
    return np.where(x < 0, ((-a * h) * s) * TINY, x * (F32(1) - (h * s) * TINY))


BY_PAGE = {RELU: relu, GELU_TANH: gelu_tanh, SILU: silu, GELU_ERF: gelu_erf,
           RELU_SQUARED: relu_squared}


def by_page(activation, x):
    """The bits, one NaN for all."""
    with np.errstate(all="ignore"):
        y = BY_PAGE[activation](np.asarray(x, F32)).astype(F32)
    return np.where(np.isnan(y) | np.isnan(x), np.uint32(0x7FFFFFFF), y.view(np.uint32))


def exact(activation, x):
    """In double, of finite x."""
    x = np.asarray(x, np.float64)
    with np.errstate(all="ignore"):
        if activation == RELU:
            return np.maximum(x, 0)
        if activation == RELU_SQUARED:
            return np.maximum(x, 0) ** 2
        if activation == SILU:
            return x / (1 + np.exp(-x))
        if activation == GELU_TANH:
            return x / (1 + np.exp(-2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
        if activation == GELU_ERF:
            return 0.5 * x * np.array([math.erfc(v) for v in (-x * math.sqrt(0.5)).tolist()])
    raise ValueError(f"activation {activation} has no formula here")


def error_in_ulp(bits, want):
    _, exponent = np.frexp(want)
    unit = np.ldexp(1.0, np.maximum(exponent - 24, -149))
    return np.abs(bits.view(F32).astype(np.float64) - want) / unit


def by_library(library, activation, x):
    """K = 0 and a bias of x: D = act(-0 + x), a value each."""
    x = np.ascontiguousarray(x, F32)
    d = np.empty(len(x), F32)
    g = nvfp4.make_desc(1, len(x), 0, -0.0, nvfp4.LAYOUT_LINEAR)
    g.d, g.d_type, g.bias, g.bias_type = d.ctypes.data, 3, x.ctypes.data, 3
    g.activation = activation
    if library.nvfp4_gemm_reference(ctypes.byref(g)) != 0:
        raise RuntimeError(library.nvfp4_last_error().decode())
    return d.view(np.uint32)
