# SPDX-License-Identifier: MIT
"""The parts of a matrix in NVFP4, and how large they are: what every other module stands on.
Packed, which callers hold, adds the operations."""
from nvfp4gemm import abi


class Matrix:
    """The fields of a Packed, which describes them."""

    def __init__(self, codes, scales, rows, k, tensor_scale=1.0, scale_layout="128x4"):
        self.codes = codes
        self.scales = scales
        self.rows = rows
        self.k = k
        self.tensor_scale = tensor_scale
        self.scale_layout = scale_layout

    def __repr__(self):
        scale = self.tensor_scale if isinstance(self.tensor_scale, float) else "on the device"
        return (f"{type(self).__name__}([{self.rows}, {self.k}], scales {self.scale_layout}, "
                f"tensor scale {scale})")

    @property
    def shape(self):
        return (self.rows, self.k)

    def replace(self, **parts):
        """The same matrix with these parts in place of its own."""
        own = {"codes": self.codes, "scales": self.scales, "rows": self.rows, "k": self.k,
               "tensor_scale": self.tensor_scale, "scale_layout": self.scale_layout}
        return type(self)(**{**own, **parts})


def row_bytes(k):
    """Bytes of a row of codes: rows start at multiples of 16 bytes, as the GEMM wants them."""
    return (k + 31) // 32 * 16


def scale_bytes(rows, k, scale_layout):
    return abi.lib.nvfp4_scale_bytes(rows, k, layout_number(scale_layout))


def number_of(name, table, what):
    try:
        return table[name]
    except (KeyError, TypeError):
        known = ", ".join(repr(n) for n in table)
        raise ValueError(f"{what} is {name!r}; there are {known}") from None


def layout_number(scale_layout):
    return number_of(scale_layout, abi.LAYOUTS, "scale_layout")


def constant_and_tensor(scale):
    """A tensor scale as the factor that goes into alpha, and the tensor that the device reads."""
    if isinstance(scale, (int, float)):
        return float(scale), None
    return 1.0, scale
