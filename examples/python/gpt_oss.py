# SPDX-License-Identifier: MIT
"""gpt_oss.py: the experts' first layer of gpt-oss, from blocks and scales as its checkpoints hold
them: gate and up with the model's limit, factor and offset, in one launch of the C API.

A checkpoint has X_blocks [experts, 2 * n, k / 32, 16] and X_scales [experts, 2 * n, k / 32], rows
of gate and up in turn, and X_bias likewise. The blocks are byte for byte our codes and the scales
our linear ones: nothing is converted but the order of the rows, once.

On compute capability 9.0 the tokens are bfloat16, which is how that model runs there. On 10.x they
are MXFP4: that is not how the model is certified, and its answers are not the same. The model has
5760 x 2880; here are as many scales in the last tile, of fewer columns. Weights are drawn.

    export PYTHONPATH=tools/python NVFP4GEMM_LIBRARY=build/libnvfp4gemm.so
    python examples/python/gpt_oss.py
"""
import argparse

import numpy as np

import nvfp4gemm
from nvfp4gemm import abi, checkpoints, layouts
from cuda_driver import Device, NoDevice

LIMIT, ALPHA, BETA = 7.0, 1.702, 1.0


def bf16(x):
    """Its bits as uint16, rounded to nearest even: NumPy has no such type of its own."""
    bits = np.ascontiguousarray(x, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def value_of_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def drawn(rng, experts, n, k):
    """(blocks, scales, bias) of gate_up_proj as a checkpoint has them."""
    blocks = rng.integers(0, 256, (experts, 2 * n, k // 32, 16), np.uint8)
    scales = rng.integers(119, 123, (experts, 2 * n, k // 32), np.uint8)
    return blocks, scales, bf16(rng.standard_normal((experts, 2 * n), np.float32))


def expert(blocks, scales, bias):
    """(gate, up, bias of gate, bias of up) of one expert; rows alternate."""
    rows, across = scales.shape
    both = checkpoints.weight(blocks.reshape(rows, across * 16), scales, format="mxfp4")
    return (*layouts.split_gate_up(both, "alternating"),
            *layouts.split_gate_up(bias, "alternating"))


def on_device(device, x, gate, up, gate_bias, up_bias):
    """The middle [m, n] in bfloat16; x is a Packed, or bits of bfloat16 [m, k]."""
    packed = isinstance(x, nvfp4gemm.Packed)
    m, k = x.shape
    d = np.zeros((m, gate.rows), np.uint16)
    desc = abi.GemmDesc(
        m=m, n=gate.rows, k=k, l=1, operand_format=abi.FORMATS["mxfp4"],
        b=device.upload(gate.codes), b_ld=2 * gate.codes.shape[1],
        b_scales=device.upload(gate.scales), b_scale_layout=abi.LAYOUTS[gate.scale_layout],
        b2=device.upload(up.codes), b2_scales=device.upload(up.scales),
        bias=device.upload(gate_bias), bias2=device.upload(up_bias), bias_type=abi.BF16,
        alpha=1.0, alpha2=1.0, gate_limit=LIMIT, gate_alpha=ALPHA, gate_beta=BETA,
        activation=abi.ACTIVATIONS["silu"], d=device.upload(d), d_ld=gate.rows, d_type=abi.BF16)
    if packed:
        desc.a, desc.a_ld = device.upload(x.codes), 2 * x.codes.shape[1]
        desc.a_scales, desc.a_scale_layout = device.upload(x.scales), abi.LAYOUTS[x.scale_layout]
    else:
        desc.a, desc.a_ld, desc.a_type = device.upload(x), k, abi.BF16
    size = abi.workspace_bytes(desc, device.compute_capability())
    if size:
        desc.workspace, desc.workspace_bytes = device.upload(np.empty(size, np.uint8)), size
    abi.check(abi.lib.nvfp4_gemm_run(desc, None))
    return value_of_bf16(device.download(desc.d, d))


def by_the_model(x, gate, up, gate_bias, up_bias):
    """As the model's own code has it, in float64."""
    g, u = (x.astype(np.float64) @ w.dequantize().astype(np.float64).T + value_of_bf16(bias)
            for w, bias in ((gate, gate_bias), (up, up_bias)))
    g, u = np.minimum(g, LIMIT), np.clip(u, -LIMIT, LIMIT)
    return g / (1 + np.exp(-ALPHA * g)) * (u + 1)


def main():
    options = argparse.ArgumentParser()
    for name, value in (("experts", 2), ("tokens", 4), ("inner", 180), ("hidden", 320)):
        options.add_argument(f"--{name}", type=int, default=value)
    given = options.parse_args()
    rng = np.random.default_rng(1)
    x = rng.standard_normal((given.tokens, given.hidden), np.float32)
    layer = drawn(rng, given.experts, given.inner, given.hidden)
    try:
        with Device() as device:
            capability = device.compute_capability()
            hopper = capability == 90
            tokens = bf16(x) if hopper else nvfp4gemm.quantize(x, format="mxfp4")
            values = value_of_bf16(tokens) if hopper else tokens.dequantize()
            for e, parts in enumerate(zip(*layer)):
                operands = expert(*parts)
                found = on_device(device, tokens, *operands)
                expected = by_the_model(values, *operands)
                error = np.abs(found - expected).max() / np.abs(expected).max()
                print(f"compute capability {capability / 10}, tokens "
                      f"{'bfloat16' if hopper else 'MXFP4, not how the model is certified'}, "
                      f"expert {e}: largest difference {error:.5f} of the largest element")
                if not error < 2.0 ** -7:
                    raise SystemExit("more than bfloat16 explains")
    except NoDevice as error:
        print(f"device: skipped, {error}")


if __name__ == "__main__":
    main()
