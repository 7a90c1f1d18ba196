# SPDX-License-Identifier: MIT
"""NVFP4 by the rule 4over6, by its definition (nvfp4_gemm.h, NVFP4_SCALE_RULE_4OVER6), with
ml_dtypes for the rounding of scales and elements."""
import ml_dtypes
import numpy as np


def _under(blocks, element, t):
    """(codes, scale bytes, sums of squared errors) of blocks [n, blocks, 16] where the largest
    magnitude of each becomes `element`; t [n, 1]."""
    ratio = np.abs(blocks).max(axis=2) / np.float32(element) / t
    scales = np.minimum(ratio, np.float32(448)).astype(ml_dtypes.float8_e4m3fn)
    values = scales.astype(np.float32)[:, :, None]
    step = values * t[:, :, None]
    parts = np.where(step == 0, np.float32(0), blocks / np.where(step == 0, np.float32(1), step))
    elements = np.clip(parts, np.float32(-6), np.float32(6)).astype(ml_dtypes.float4_e2m1fn)
    errors = elements.astype(np.float32) * values * t[:, :, None] - blocks
    squares, total = errors * errors, np.zeros(ratio.shape, np.float32)
    for i in range(16):
        total = total + squares[:, :, i]
    return elements.view(np.uint8) & 15, scales.view(np.uint8), total


def quantized(x, t):
    """(codes [n, k], scale bytes [n, k / 16]) of finite x [n, k] in float32; t is one number or one
    for each row."""
    t = np.broadcast_to(np.asarray(t, np.float32), (len(x),))[:, None]
    blocks = x.reshape(len(x), -1, 16)
    six, four = (_under(blocks, element, t) for element in (6, 4))
    takes_four = four[2] < six[2]
    codes = np.where(takes_four[:, :, None], four[0], six[0])
    return codes.reshape(x.shape), np.where(takes_four, four[1], six[1])
