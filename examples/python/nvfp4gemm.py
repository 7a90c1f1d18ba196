# SPDX-License-Identifier: MIT
"""libnvfp4gemm from Python: ctypes and numpy, nothing to compile.

    import numpy as np, nvfp4gemm
    a = nvfp4gemm.quantize(np.random.randn(128, 256).astype(np.float32))
    b = nvfp4gemm.quantize(np.random.randn(512, 256).astype(np.float32))
    d = nvfp4gemm.reference(a, b)                 # [128, 512] float16, on the CPU

On a GPU fill `Desc` with device addresses (a torch tensor's data_ptr()) and call `run(desc, stream)`
with torch.cuda.current_stream().cuda_stream: gemm.py beside this file does both. Errors raise `Error` with nvfp4_last_error() as text.
`python nvfp4gemm.py` runs a check against numpy and prints what it did.
"""

import ctypes
import os
from dataclasses import dataclass

import numpy as np

LAYOUT_128X4, LAYOUT_LINEAR = 1, 2
TYPE_F16 = 1
UNSUPPORTED_ARCH = 44  # an Error's status: no kernel for this GPU

_i32, _i64, _u64, _f32, _ptr = (
    ctypes.c_int32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_float, ctypes.c_void_p)


class Desc(ctypes.Structure):
    """nvfp4_gemm_desc, field by field."""

    _fields_ = [
        ("struct_size", _u64),
        ("m", _i64), ("n", _i64), ("k", _i64), ("l", _i64),
        ("a", _ptr), ("a_ld", _i64), ("a_batch_stride", _i64),
        ("a_scales", _ptr), ("a_scales_batch_stride_bytes", _i64), ("a_tensor_scale", _ptr),
        ("b", _ptr), ("b_ld", _i64), ("b_batch_stride", _i64),
        ("b_scales", _ptr), ("b_scales_batch_stride_bytes", _i64), ("b_tensor_scale", _ptr),
        ("b_tensor_scale_columns", _i64),
        ("c", _ptr), ("c_ld", _i64), ("c_batch_stride", _i64),
        ("d", _ptr), ("d_ld", _i64), ("d_batch_stride", _i64),
        ("d_scales", _ptr), ("d_scales_batch_stride_bytes", _i64), ("d_tensor_scale", _ptr),
        ("bias", _ptr),
        ("alpha_device", _ptr), ("beta_device", _ptr),
        ("alpha", _f32), ("beta", _f32),
        ("workspace", _ptr), ("workspace_bytes", _u64),
        ("variant", ctypes.c_char_p),
        ("a_scale_layout", _i32), ("b_scale_layout", _i32), ("d_scale_layout", _i32),
        ("c_type", _i32), ("d_type", _i32), ("bias_type", _i32),
        ("scalar_mode", _i32), ("activation", _i32), ("pdl", _i32),
        ("operand_format", _i32), ("a_type", _i32), ("cd_order", _i32), ("bias_axis", _i32),
        ("batch_invariant", _i32), ("reserved", _i32 * 4),
    ]

    def __init__(self, **fields):
        super().__init__(struct_size=ctypes.sizeof(Desc), **fields)


class Error(RuntimeError):
    """A failed call: `status` is the number, the text is the library's sentence."""

    def __init__(self, status):
        self.status = status
        name = _library.nvfp4_status_name(status).decode()
        super().__init__(f"{name}: {_library.nvfp4_last_error().decode()}")


def _load():
    """NVFP4GEMM_LIBRARY, else the build of this repository, else the loader's search path."""
    here = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../build/libnvfp4gemm.so")
    path = os.environ.get("NVFP4GEMM_LIBRARY", here if os.path.exists(here) else "libnvfp4gemm.so.0")
    library = ctypes.CDLL(path)
    for name, result, arguments in [
        ("nvfp4_version", _i32, []),
        ("nvfp4_build_info", ctypes.c_char_p, []),
        ("nvfp4_status_name", ctypes.c_char_p, [_i32]),
        ("nvfp4_status_string", ctypes.c_char_p, [_i32]),
        ("nvfp4_last_error", ctypes.c_char_p, []),
        ("nvfp4_gemm_run", _i32, [ctypes.POINTER(Desc), _ptr]),
        ("nvfp4_gemm_supported", _i32, [ctypes.POINTER(Desc), _i32]),
        ("nvfp4_gemm_workspace_bytes", _i32, [ctypes.POINTER(Desc), _i32, ctypes.POINTER(_u64)]),
        ("nvfp4_gemm_explain", _i32, [ctypes.POINTER(Desc), _i32, _i32, ctypes.c_char_p, ctypes.c_size_t]),
        ("nvfp4_prepare", _i32, []),
        ("nvfp4_gemm_reference", _i32, [ctypes.POINTER(Desc)]),
        ("nvfp4_scale_bytes", ctypes.c_size_t, [_i64, _i64, _i32]),
        ("nvfp4_scale_convert_host", _i32, [_ptr, _i32, _ptr, _i32, _i64, _i64]),
        ("nvfp4_quantize_host", _i32, [_ptr, _i64, _i64, _i64, _f32, _ptr, _i64, _ptr, _i32]),
        ("nvfp4_dequantize_host", _i32, [_ptr, _i64, _ptr, _i32, _i64, _i64, _f32, _ptr, _i64]),
    ]:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


_library = _load()


def _check(status):
    if status != 0:
        raise Error(status)


def version():
    return _library.nvfp4_version()


def build_info():
    return _library.nvfp4_build_info().decode()


@dataclass
class Matrix:
    """[rows, k] in NVFP4: value = code * scale * tensor_scale."""

    codes: np.ndarray   # [rows, codes_ld / 2] uint8, element 2i in the low nibble
    scales: np.ndarray  # uint8, in `layout`
    rows: int
    k: int
    tensor_scale: float
    layout: int

    @property
    def codes_ld(self):
        return 2 * self.codes.shape[1]


def quantize(x, tensor_scale=None, layout=LAYOUT_128X4):
    """float32 [rows, k] to NVFP4, k a multiple of 16. tensor_scale: amax / 2688 if not given."""
    x = np.ascontiguousarray(x, np.float32)
    rows, k = x.shape
    if tensor_scale is None:
        amax = float(np.max(np.abs(x), initial=0.0))
        tensor_scale = amax / 2688.0 if 0.0 < amax < np.inf else 1.0
    codes_ld = (k + 31) // 32 * 32  # what nvfp4_gemm_run wants
    q = Matrix(np.zeros((rows, codes_ld // 2), np.uint8),
               np.zeros(_library.nvfp4_scale_bytes(rows, k, layout), np.uint8),
               rows, k, float(np.float32(tensor_scale)), layout)
    _check(_library.nvfp4_quantize_host(x.ctypes.data, k, rows, k, q.tensor_scale, q.codes.ctypes.data,
                                        codes_ld, q.scales.ctypes.data, layout))
    return q


def dequantize(q):
    """NVFP4 back to float32 [rows, k]."""
    x = np.empty((q.rows, q.k), np.float32)
    _check(_library.nvfp4_dequantize_host(q.codes.ctypes.data, q.codes_ld, q.scales.ctypes.data, q.layout,
                                          q.rows, q.k, q.tensor_scale, x.ctypes.data, q.k))
    return x


def convert_scales(scales, src_layout, dst_layout, rows, k):
    """Scales in another layout."""
    scales = np.ascontiguousarray(scales, np.uint8)
    if scales.size != _library.nvfp4_scale_bytes(rows, k, src_layout):
        raise ValueError(f"{scales.size} bytes are not the scales of [{rows}, {k}]")
    out = np.zeros(_library.nvfp4_scale_bytes(rows, k, dst_layout), np.uint8)
    _check(_library.nvfp4_scale_convert_host(scales.ctypes.data, src_layout, out.ctypes.data, dst_layout,
                                             rows, k))
    return out


def describe(a, b, d, alpha=1.0):
    """The Desc of d = alpha * a * b^T over host arrays; alpha is multiplied by both tensor scales."""
    if a.k != b.k or d.shape != (a.rows, b.rows) or d.dtype != np.float16:
        raise ValueError("a [m, k], b [n, k] and d [m, n] float16 do not fit together")
    return Desc(m=a.rows, n=b.rows, k=a.k, l=1,
                a=a.codes.ctypes.data, a_ld=a.codes_ld, a_scales=a.scales.ctypes.data,
                b=b.codes.ctypes.data, b_ld=b.codes_ld, b_scales=b.scales.ctypes.data,
                a_scale_layout=a.layout, b_scale_layout=b.layout,
                d=d.ctypes.data, d_ld=b.rows, d_type=TYPE_F16,
                alpha=alpha * a.tensor_scale * b.tensor_scale)


def reference(a, b, alpha=1.0):
    """alpha * a * b^T on the CPU, float16 [m, n]."""
    d = np.empty((a.rows, b.rows), np.float16)
    _check(_library.nvfp4_gemm_reference(describe(a, b, d, alpha)))
    return d


def supported(desc, compute_capability):
    """True, or the sentence that says why not. B200: 100."""
    status = _library.nvfp4_gemm_supported(desc, compute_capability)
    return True if status == 0 else _library.nvfp4_last_error().decode()


def explain(desc, compute_capability=100, sm_count=148):
    """Which kernel would run on such a device, and why. Lines of text; needs no GPU."""
    text = ctypes.create_string_buffer(4096)
    _check(_library.nvfp4_gemm_explain(desc, compute_capability, sm_count, text, len(text)))
    return text.value.decode()


def workspace_bytes(desc, compute_capability):
    """Device memory that desc.workspace needs there: 0 on a B200 and, for few tokens, on an H200."""
    size = _u64()
    _check(_library.nvfp4_gemm_workspace_bytes(desc, compute_capability, size))
    return size.value


def prepare():
    """Loads the kernels for the current context now: call it before a stream is captured."""
    _check(_library.nvfp4_prepare())


def run(desc, stream=None):
    """Enqueues on a CUstream (an integer; None is the default stream). Addresses in desc: device."""
    _check(_library.nvfp4_gemm_run(desc, stream))


def main():
    generator = np.random.default_rng(1)
    a = quantize(generator.standard_normal((96, 208), dtype=np.float32))
    b = quantize(generator.standard_normal((70, 208), dtype=np.float32), layout=LAYOUT_LINEAR)
    d = reference(a, b)
    exact = dequantize(a).astype(np.float64) @ dequantize(b).astype(np.float64).T
    worst = float(np.max(np.abs(d - exact) / np.maximum(np.abs(exact), 1.0)))
    print(build_info())
    print(f"reference against numpy in float64: largest relative difference {worst:.2e}")
    assert worst < 2e-3, "the reference is off"
    try:
        _check(_library.nvfp4_gemm_run(Desc(m=1, n=1, k=200, l=1), None))
    except Error as error:
        print(f"a refused call raises: {error}")
    else:
        raise AssertionError("k = 200 was accepted")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
