# SPDX-License-Identifier: MIT
"""gemm.py: what a layer of a model computes, bf16 D = A * B^T + bias with NVFP4 operands, from
Python.

Three ways: on the CPU, by one call on NumPy arrays; on the GPU by the C API, with addresses and
scalars of a program's own (`on_device`), for languages and packages that have no torch; and on
torch tensors, by one call, where torch and a GPU are here. Run it as

    make setup-wheel wheel && pip install build/wheel/*.whl
    python examples/python/gemm.py

or from the repository with PYTHONPATH=tools/python and NVFP4GEMM_LIBRARY=build/libnvfp4gemm.so.
Without a GPU put the emulator's folder into LD_LIBRARY_PATH first.
"""

import numpy as np

import nvfp4gemm
from nvfp4gemm import abi
from cuda_driver import Device, NoDevice

# NumPy has no bfloat16 of its own: its bits are uint16 here.
TYPES = {"float16": abi.F16, "uint16": abi.BF16, "float32": abi.F32}


def value_of_bf16(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def describe(a, b, d_type):
    """The sizes, types and layouts of D = a * b^T, without an address: enough for explain."""
    return abi.GemmDesc(m=a.rows, n=b.rows, k=a.k, l=1, a_ld=2 * a.codes.shape[1],
                        b_ld=2 * b.codes.shape[1], a_scale_layout=abi.LAYOUTS[a.scale_layout],
                        b_scale_layout=abi.LAYOUTS[b.scale_layout], d_ld=b.rows, d_type=d_type,
                        scalar_mode=abi.SCALARS_DEVICE)


def on_device(device, a, b, d, bias=None):
    """D = a * b^T + bias of two Packed into d, whose dtype says which type D is of.

    The factors are read on the device, as they are where a kernel has found them there.
    """
    desc = describe(a, b, TYPES[d.dtype.name])
    desc.a, desc.a_scales = device.upload(a.codes), device.upload(a.scales)
    desc.b, desc.b_scales = device.upload(b.codes), device.upload(b.scales)
    desc.a_tensor_scale = device.upload(np.float32(a.tensor_scale))
    desc.b_tensor_scale = device.upload(np.float32(b.tensor_scale))
    desc.alpha_device = device.upload(np.float32(1))
    if bias is not None:
        desc.bias, desc.bias_type = device.upload(bias), TYPES[bias.dtype.name]
    desc.d = device.upload(d)
    # On Hopper many tokens need a workspace, and linear scales on Blackwell.
    size = abi.workspace_bytes(desc, device.compute_capability())
    if size:
        desc.workspace, desc.workspace_bytes = device.upload(np.empty(size, np.uint8)), size
    abi.check(abi.lib.nvfp4_gemm_run(desc, None))  # the default stream
    return device.download(desc.d, d)


def on_torch(torch, x, weights, bias):
    """The same on tensors: on their device, on torch's current stream, and nothing waits."""
    weight = nvfp4gemm.quantize(torch.from_numpy(weights).cuda())
    a = nvfp4gemm.quantize(torch.from_numpy(x).cuda())
    return nvfp4gemm.mm(a, weight, torch.bfloat16, bias=torch.from_numpy(bias).cuda())


def worst_difference(d, expected):
    """Relative to the larger of 1 and what is expected: bf16 rounds to one part in 256."""
    return float(np.max(np.abs(d - expected) / np.maximum(np.abs(expected), 1.0)))


def main():
    generator = np.random.default_rng(2)
    x = generator.standard_normal((100, 512), dtype=np.float32)
    weights = generator.standard_normal((200, 512), dtype=np.float32)
    bias = generator.standard_normal(200, dtype=np.float32)
    a = nvfp4gemm.quantize(x, scale_layout="linear")  # one row after the other
    b = nvfp4gemm.quantize(weights)
    expected = nvfp4gemm.mm(a, b, np.float32, bias=bias)
    exact = x.astype(np.float64) @ weights.astype(np.float64).T + bias
    error = np.linalg.norm(expected - exact) / np.linalg.norm(exact)
    print(f"NVFP4: relative error of the layer against fp32 {error:.3f}")

    wanted = ("variant", "tile", "grid", "bound")
    lines = abi.explain(describe(a, b, abi.BF16), 100, 148).splitlines()
    print("on a B200:", *(line for line in lines if line.startswith(wanted)), sep="\n  ")

    try:
        nvfp4gemm.quantize(x[:, :500])
    except nvfp4gemm.Error as error:
        print(f"a refused call raises: {error}")
    else:
        raise AssertionError("k = 500 was accepted")

    try:
        with Device() as device:
            d = on_device(device, a, b, np.empty(expected.shape, np.uint16), bias)
    except NoDevice as nothing:
        print(f"device: skipped, {nothing}")
        return 0
    except nvfp4gemm.Error as error:
        if error.status != abi.UNSUPPORTED_ARCH:
            raise
        print(f"device: skipped, {error}")
        return 0
    worst = worst_difference(value_of_bf16(d), expected)
    print(f"device: largest relative difference to the reference {worst:g}")
    assert worst <= 1 / 128, "the product is off"

    try:
        import torch
    except ImportError:
        print("torch: skipped, it is not installed here")
        return 0
    if not torch.cuda.is_available():
        print("torch: skipped, it finds no GPU here")
        return 0
    d = on_torch(torch, x, weights, bias).float().cpu().numpy()
    worst = worst_difference(d, expected)
    print(f"torch: largest relative difference to the reference {worst:g}")
    assert worst <= 1 / 128, "the product is off"
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
