# SPDX-License-Identifier: MIT
"""The orders of packed weights (docs/packing.md): which GPUs read them, beside which x."""
from __future__ import annotations

from typing import Any, NamedTuple

from nvfp4gemm import _optional, abi


class Packing(NamedTuple):
    capabilities: tuple[tuple[int, int], ...]  # of the GPUs whose kernels read it
    unit_rows: int  # a slice of rows begins at a multiple of it
    quantized: bool  # whether x is quantized; otherwise it is bfloat16 or float16


PACKINGS = {"sm90_1": Packing(((9, 0),), 64, False),
            "sm100_1": Packing(((10, 0), (10, 3)), 128, True)}
assert PACKINGS.keys() == abi.PACKINGS.keys()


def _capability(x: Any) -> tuple[int, int] | None:
    """The compute capability of the GPU on which x lies; None on the CPU."""
    if not getattr(x, "is_cuda", False):
        return None
    capability: tuple[int, int] = _optional.torch.cuda.get_device_capability(x.device)
    return capability


def reads(x: Any, packing: str) -> bool:
    """Whether the device of x multiplies by weights of that packing. The CPU takes each."""
    capability = _capability(x)
    return capability is None or capability in PACKINGS[packing].capabilities


def chosen(x: Any, packing: str | None, quantized: bool = False) -> str:
    """`packing`, or by default that of the GPU on which x lies, on the CPU that of an x that is
    quantized or not."""
    if packing is not None:
        return packing
    capability = _capability(x)
    for name, of in PACKINGS.items():
        if of.quantized == quantized if capability is None else capability in of.capabilities:
            return name
    number = ".".join(map(str, capability or ()))
    raise ValueError(f"compute capability {number} has no kernels for packed weights; name one of "
                     f"{', '.join(map(repr, PACKINGS))} to pack anyway")


def for_layer(x: Any, packing: str | None, quantized: bool, what: str) -> str:
    """The packing for a layer whose weights have the codes x. `what` names the layer."""
    name = chosen(x, packing, quantized)
    of = PACKINGS.get(name)
    if of is not None and of.quantized != quantized:
        x_of_packing = "quantized x" if of.quantized else "x of bfloat16 or float16"
        raise ValueError(f"{what} quantize_input {'' if quantized else 'not '}set, and weights "
                         f"packed as {name} multiply {x_of_packing}")
    return name
