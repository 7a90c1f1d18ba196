# SPDX-License-Identifier: MIT
"""The four functions that transformers 5's NVFP4Config expects of a kernel of the hub, implemented
by this package. They run on every GPU from compute capability 8.0 on, and on the CPU.

    python -m nvfp4gemm.integrations.hub_kernel FOLDER      # writes a kernel that kernels can load
    LOCAL_KERNELS=kernels-community/nvfp4-gemm=FOLDER python ...

With that variable, transformers loads this kernel in place of its own. The quantizer of
transformers 5.24 itself requires a GPU of compute capability 10.0.
"""
from __future__ import annotations

import json
import os
import sys
from typing import Any
from dataclasses import dataclass
from functools import partial

import torch

from nvfp4gemm import _calls
from nvfp4gemm._kept import Kept
from nvfp4gemm._packed import Packed
from nvfp4gemm._types import Device

NAME, VERSION = "nvfp4gemm", 1
# The folders for builds of torch with and without CUDA. They contain Python only, so they fit every
# GPU.
_BACKENDS = ("cuda", "cpu")
_MODULE = '''# SPDX-License-Identifier: MIT
from nvfp4gemm.integrations.hub_kernel import PackedWeight, gemm, pack, swizzled_sf_shape
'''


@dataclass
class PackedWeight:
    """A weight [n, k] = code * scale * global_scale.

    qweight       the codes, [n, k / 2]
    sf            UE4M3 scales as 128x4 tiles, four to an int32: swizzled_sf_shape(n, k)
    global_scale  [1]
    sf_rowmajor   the same scales row by row, [n, k / 16], or None
    """

    qweight: torch.Tensor
    sf: torch.Tensor
    global_scale: torch.Tensor
    n: int
    k: int
    sf_rowmajor: torch.Tensor | None = None


def swizzled_sf_shape(n: int, k: int) -> tuple[int, int]:
    return -(-n // 128) * 128, -(-k // 64)


def pack(weight: torch.Tensor, device: Device = None) -> PackedWeight:
    """Quantizes a weight [n, k] of 16 or 32 bits, on device if given. k is a multiple of 16."""
    made = _calls.quantize(weight.to(device))
    n, k = made.shape
    return PackedWeight(
        made.codes[:, :k // 2].contiguous(),
        made.scales.view(torch.int32).reshape(swizzled_sf_shape(n, k)),
        torch.as_tensor(made.tensor_scale, dtype=torch.float32,
                        device=made.codes.device).reshape(1),
        n, k, made.with_scales("linear").scales.reshape(n, k // 16))


# transformers makes a new PackedWeight of the same tensors in each call.
_kept = Kept()


def _made(packed: PackedWeight) -> Packed:
    # detach(), since the Packed must not refer to the tensors under which it is cached.
    return Packed(packed.qweight.detach(), packed.sf.detach().reshape(-1).view(torch.uint8),
                  packed.n, packed.k, packed.global_scale.detach())


def _packed_of(packed: PackedWeight) -> Packed:
    """The Packed of a PackedWeight. It is the same object each time, because plans are cached under
    it. If rows of codes are not a multiple of 16 bytes long, they are copied once."""
    made: Packed = _kept.of((packed.qweight, packed.sf, packed.global_scale), (packed.n, packed.k),
                            partial(_made, packed), copies=packed.k % 32 != 0)
    return made


def gemm(packed: PackedWeight, x: torch.Tensor, quantize_input: bool = False) -> torch.Tensor:
    """x * weight^T, [.., n]. x is [.., k] of bfloat16 or float16, and the result has its type."""
    return _calls.linear(x, _packed_of(packed), quantize_input=quantize_input)


def write(folder: str) -> None:
    """Writes the folders that kernels.get_local_kernel() loads: one for each build of torch."""
    for backend in _BACKENDS:
        variant = os.path.join(folder, "build", f"torch-{backend}")
        os.makedirs(variant, exist_ok=True)
        with open(os.path.join(variant, "__init__.py"), "w", encoding="utf-8") as file:
            file.write(_MODULE)
        with open(os.path.join(variant, "metadata.json"), "w", encoding="utf-8") as file:
            json.dump({"id": f"_{NAME}_{backend}_{VERSION}", "name": NAME, "version": VERSION,
                       "license": "MIT", "python-depends": [],
                       "backend": {"type": backend}}, file, indent=2)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m nvfp4gemm.integrations.hub_kernel FOLDER")
    write(sys.argv[1])
