# SPDX-License-Identifier: MIT
"""gemm.py: fp32 matrices to NVFP4, multiplied on the GPU, compared with the CPU reference.

Once with numpy arrays and the bare driver, once with torch tensors where torch and a GPU are here.
Run it as `python examples/python/gemm.py`; without a GPU put the emulator's folder into
LD_LIBRARY_PATH first.
"""

import numpy as np

import nvfp4gemm
from cuda_driver import Device, NoDevice


def matmul(device, a, b):
    """a * b^T of two nvfp4gemm.Matrix on the device, float16 [m, n]."""
    d = np.empty((a.rows, b.rows), np.float16)
    desc = nvfp4gemm.describe(a, b, d)
    desc.a, desc.a_scales = device.upload(a.codes), device.upload(a.scales)
    desc.b, desc.b_scales = device.upload(b.codes), device.upload(b.scales)
    desc.d = device.upload(d)
    size = nvfp4gemm.workspace_bytes(desc, device.compute_capability())
    if size:
        desc.workspace, desc.workspace_bytes = device.upload(np.empty(size, np.uint8)), size
    nvfp4gemm.run(desc)
    return device.download(desc.d, d)


def torch_matmul(torch, a, b):
    """The same with tensors: data_ptr() for addresses, torch's current stream."""
    def tensor(array):
        return torch.from_numpy(array).cuda()
    d = torch.empty((a.rows, b.rows), dtype=torch.float16, device="cuda")
    held = [tensor(x) for x in (a.codes, a.scales, b.codes, b.scales)]
    desc = nvfp4gemm.describe(a, b, np.empty((a.rows, b.rows), np.float16))
    desc.a, desc.a_scales, desc.b, desc.b_scales = (x.data_ptr() for x in held)
    desc.d = d.data_ptr()
    major, minor = torch.cuda.get_device_capability()
    size = nvfp4gemm.workspace_bytes(desc, 10 * major + minor)
    if size:
        held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
        desc.workspace, desc.workspace_bytes = held[-1].data_ptr(), size
    # torch's allocator orders reuse of `held` by the stream, so it need not be synchronised here.
    nvfp4gemm.run(desc, torch.cuda.current_stream().cuda_stream)
    return d


def worst_difference(d, expected):
    return float(np.max(np.abs(d.astype(np.float64) - expected.astype(np.float64))))


def main():
    generator = np.random.default_rng(2)
    x = generator.standard_normal((100, 512), dtype=np.float32)
    weights = generator.standard_normal((200, 512), dtype=np.float32)
    a, b = nvfp4gemm.quantize(x), nvfp4gemm.quantize(weights)
    expected = nvfp4gemm.reference(a, b)
    exact = x.astype(np.float64) @ weights.astype(np.float64).T
    error = np.linalg.norm(expected - exact) / np.linalg.norm(exact)
    print(f"quantisation: relative error of the product against fp32 {error:.3f}")

    wanted = ("variant", "tile", "grid", "light")
    lines = nvfp4gemm.explain(nvfp4gemm.describe(a, b, expected)).splitlines()
    print("on a B200:", *(line for line in lines if line.startswith(wanted)), sep="\n  ")

    try:
        with Device() as device:
            worst = worst_difference(matmul(device, a, b), expected)
    except NoDevice as nothing:
        print(f"numpy: skipped, {nothing}")
        return 0
    except nvfp4gemm.Error as error:
        if error.status != nvfp4gemm.UNSUPPORTED_ARCH:
            raise
        print(f"numpy: skipped, {error}")
        return 0
    print(f"numpy: largest difference between device and reference {worst:g}")
    assert worst < 0.1, "the product is off"

    try:
        import torch
    except ImportError:
        print("torch: skipped, it is not installed here")
        return 0
    if not torch.cuda.is_available():
        print("torch: skipped, it finds no GPU here")
        return 0
    worst = worst_difference(torch_matmul(torch, a, b).cpu().numpy(), expected)
    print(f"torch: largest difference between device and reference {worst:g}")
    assert worst < 0.1, "the product is off"
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
