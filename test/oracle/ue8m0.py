# SPDX-License-Identifier: MIT
"""E2M1 elements under UE8M0 scales, by their definitions (nvfp4_gemm.h, NVFP4_SCALE_RULE), with
ml_dtypes for the rounding of an element."""
import ml_dtypes
import numpy as np

BLOCKS = {"mxfp4": 32, "e2m1_ue8m0": 16}


def scale_values(bytes_):
    return np.exp2(np.asarray(bytes_, np.float64) - 127)


def element_values(codes):
    return codes.astype(np.uint8).view(ml_dtypes.float4_e2m1fn).astype(np.float64)


def values(codes, scales, block):
    """Of codes [n, k], one to a byte, and scales [n, k / block], in float64."""
    return element_values(codes) * np.repeat(scale_values(scales), block, axis=1)


def quantized(x, block):
    """(codes, scale bytes) of finite x [n, k], each scale rounded up."""
    blocks = np.asarray(x, np.float64).reshape(len(x), -1, block)
    mantissa, exponent = np.frexp(np.abs(blocks).max(axis=2))  # 0.5 <= mantissa < 1
    exponent = exponent - 1
    exponent = np.where(2 * mantissa <= 1.5, exponent - 2, exponent - 1)
    scales = np.where(mantissa == 0, 0, np.clip(exponent + 127, 0, 254)).astype(np.uint8)
    codes = (blocks / scale_values(scales)[:, :, None]).astype(ml_dtypes.float4_e2m1fn)
    codes = codes.view(np.uint8).reshape(len(x), -1)
    zero = np.repeat(mantissa == 0, block, axis=1)
    return np.where(zero, 0, codes), scales
