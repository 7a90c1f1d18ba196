# SPDX-License-Identifier: MIT
"""The library through ctypes, written from include/nvfp4_gemm.h, and a GEMM in numpy whose number
formats are ml_dtypes': nothing here shares code with the library."""
import ctypes
import os
from ctypes import c_float, c_int32, c_int64, c_size_t, c_uint64, c_void_p

import unittest

import numpy as np

try:
    import ml_dtypes
except ImportError as error:
    raise unittest.SkipTest("this Python has no ml_dtypes") from error

BUILD = os.environ.get("NVFP4_BUILD", "build")
LAYOUT_128X4, LAYOUT_LINEAR = 1, 2
TYPE_F16 = 1


class GemmDesc(ctypes.Structure):
    """nvfp4_gemm_desc, field by field."""

    _fields_ = [
        ("struct_size", c_uint64),
        *[(name, c_int64) for name in ("m", "n", "k", "l")],
        ("a", c_void_p), ("a_ld", c_int64), ("a_batch_stride", c_int64),
        ("a_scales", c_void_p), ("a_scales_batch_stride_bytes", c_int64),
        ("a_tensor_scale", c_void_p),
        ("b", c_void_p), ("b_ld", c_int64), ("b_batch_stride", c_int64),
        ("b_scales", c_void_p), ("b_scales_batch_stride_bytes", c_int64),
        ("b_tensor_scale", c_void_p), ("b_tensor_scale_columns", c_int64),
        ("c", c_void_p), ("c_ld", c_int64), ("c_batch_stride", c_int64),
        ("d", c_void_p), ("d_ld", c_int64), ("d_batch_stride", c_int64),
        ("d_scales", c_void_p), ("d_scales_batch_stride_bytes", c_int64),
        ("d_tensor_scale", c_void_p),
        ("bias", c_void_p), ("alpha_device", c_void_p), ("beta_device", c_void_p),
        ("alpha", c_float), ("beta", c_float),
        ("workspace", c_void_p), ("workspace_bytes", c_uint64),
        ("variant", ctypes.c_char_p),
        *[(name, c_int32) for name in (
            "a_scale_layout", "b_scale_layout", "d_scale_layout", "c_type", "d_type", "bias_type",
            "scalar_mode", "activation", "pdl", "operand_format", "a_type", "cd_order", "bias_axis",
            "batch_invariant", "a_tensor_scale_rows", "d_scale_rule", "b_packing",
            "a_packing")],
        *[(name, c_void_p) for name in (
            "d_amax", "d_row_amax", "b2", "b2_scales", "b2_tensor_scale", "bias2",
            "alpha2_device")],
        *[(name, c_float) for name in ("alpha2", "gate_limit", "gate_alpha", "gate_beta")],
        ("reserved2", c_int32 * 4),
    ]


def load(name="libnvfp4gemm.so"):
    """The library, with the types of what is called here."""
    library = ctypes.CDLL(os.path.join(BUILD, name))
    library.nvfp4_last_error.restype = ctypes.c_char_p
    library.nvfp4_build_info.restype = ctypes.c_char_p
    library.nvfp4_status_name.restype = ctypes.c_char_p
    library.nvfp4_scale_bytes.restype = c_size_t
    library.nvfp4_scale_bytes.argtypes = [c_int64, c_int64, c_int32]
    library.nvfp4_scale_convert_host.argtypes = [c_void_p, c_int32, c_void_p, c_int32,
                                                 c_int64, c_int64]
    library.nvfp4_quantize_host.argtypes = [c_void_p, c_int64, c_int64, c_int64, c_float, c_void_p,
                                            c_int64, c_void_p, c_int32]
    library.nvfp4_gemm_reference.argtypes = [ctypes.POINTER(GemmDesc)]
    library.nvfp4_gemm_run.argtypes = [ctypes.POINTER(GemmDesc), c_void_p]
    library.nvfp4_gemm_workspace_bytes.argtypes = [ctypes.POINTER(GemmDesc), c_int32,
                                                   ctypes.POINTER(c_uint64)]
    return library


def compute_capability():
    """10 * major + minor of device 0."""
    cuda = ctypes.CDLL("libcuda.so.1")
    device, numbers = c_int32(), [c_int32(), c_int32()]
    results = [cuda.cuInit(0), cuda.cuDeviceGet(ctypes.byref(device), 0)]
    for number, attribute in zip(numbers, (75, 76)):  # ..._COMPUTE_CAPABILITY_MAJOR, _MINOR
        results.append(cuda.cuDeviceGetAttribute(ctypes.byref(number), attribute, device))
    if any(results):
        raise RuntimeError(f"the driver answered {results}")
    return 10 * numbers[0].value + numbers[1].value


def decode(packed, scales):
    """Values of packed E2M1 [rows, k / 2] with linear E4M3 scales [rows, k / 16], in float64."""
    codes = np.stack([packed & 15, packed >> 4], axis=-1).reshape(packed.shape[0], -1)
    values = codes.astype(np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)
    return values * np.repeat(scales.view(ml_dtypes.float8_e4m3fn).astype(np.float64), 16, axis=1)


def random_operand(rng, rows, k, scale_codes):
    packed = rng.integers(0, 256, (rows, k // 2), dtype=np.uint8)
    return packed, rng.choice(np.array(scale_codes, dtype=np.uint8), (rows, k // 16))


def make_desc(m, n, k, alpha, layout):
    g = GemmDesc(struct_size=ctypes.sizeof(GemmDesc), m=m, n=n, k=k, l=1, a_ld=k, b_ld=k, d_ld=n,
                 a_scale_layout=layout, b_scale_layout=layout, d_type=TYPE_F16, alpha=alpha)
    return g


def error_bound(a, b, k, alpha, capability):
    """The header's NUMERICS with E and z bounded over everything, and the roundings."""
    magnitude = np.abs(a) @ np.abs(b).T
    if capability == 90:
        factors = [2.0 ** np.floor(np.log2(np.maximum(np.abs(x).max(axis=1), 2.0**-7)))
                   for x in (a, b)]
        largest = np.maximum(np.outer(*factors), magnitude)
        steps = 16 * -(-k // 256)
        accumulated = (steps + 4) * 2.0**-23 * magnitude + (k + steps) * 2.0**-25 * largest
    else:
        accumulated = k / 64 * (2.0**-23 * (1 + 2.0**-7) * magnitude + 2.0**-18)
    value = np.abs(alpha) * (np.abs(a @ b.T) + accumulated)
    half_ulp = 2.0 ** (np.maximum(np.floor(np.log2(np.maximum(value, 1e-30))), -14) - 11)
    return np.abs(alpha) * accumulated + 2.0**-24 * value + half_ulp
