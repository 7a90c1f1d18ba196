# SPDX-License-Identifier: MIT
"""What quantize() makes and mm() multiplies."""


class Packed:
    """A matrix [rows, k] in NVFP4: value = code * scale * tensor_scale.

    codes         uint8 [rows, ceil(k / 32) * 16]; the element with the lower k in the low nibble;
                  each row starts at a multiple of 16 bytes
    scales        uint8, one dimension; UE4M3, one per 16 along k, in `scale_layout`
    tensor_scale  a float, or one float32 on the device of the codes
    scale_layout  "128x4", which tensor cores read, or "linear", [rows, k / 16]

    codes, scales and a tensor_scale that is an array are of one kind: NumPy arrays, or torch
    tensors on one device. Nothing is copied; what was given stays as it is.
    """

    def __init__(self, codes, scales, rows, k, tensor_scale=1.0, scale_layout="128x4"):
        self.codes = codes
        self.scales = scales
        self.rows = rows
        self.k = k
        self.tensor_scale = tensor_scale
        self.scale_layout = scale_layout

    def __repr__(self):
        scale = self.tensor_scale if isinstance(self.tensor_scale, float) else "on the device"
        return (f"Packed([{self.rows}, {self.k}], scales {self.scale_layout}, "
                f"tensor scale {scale})")

    @property
    def shape(self):
        return (self.rows, self.k)

    def dequantize(self, dtype=None):
        """The values, [rows, k]; float32 if no dtype is given."""
        from nvfp4gemm import _calls
        return _calls.dequantize(self, dtype)

    def with_scales(self, scale_layout):
        """The same matrix, its scales in that layout; codes are shared, not copied."""
        from nvfp4gemm import _calls
        return _calls.with_scales(self, scale_layout)

    def slice_rows(self, begin, end):
        """Rows begin to end. Codes are shared, and so are 128x4 scales where begin is a multiple of
        128; else scales are converted."""
        from nvfp4gemm import _slices
        return _slices.rows(self, begin, end)

    def slice_k(self, begin, end):
        """Columns begin to end of k, multiples of 16. Codes are shared where begin is a multiple of
        32; 128x4 scales are copied where begin is a multiple of 64, else converted."""
        from nvfp4gemm import _slices
        return _slices.k(self, begin, end)
