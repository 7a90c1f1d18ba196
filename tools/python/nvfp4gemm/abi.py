# SPDX-License-Identifier: MIT
"""The C API of nvfp4_gemm.h through ctypes, for programs that work with addresses. It has the
structs, the functions as `lib.NAME`, and check(), which raises Error for a status other than
success.

    desc = abi.GemmDesc(m=128, n=512, k=1024, l=1, a=address, ..., d_type=abi.BF16)
    abi.check(abi.lib.nvfp4_gemm_run(desc, stream))

The header describes each field and function. Setting an unknown field, or a value outside a field's
range, raises an error that names the field.

The environment variable NVFP4GEMM_LIBRARY can name the library's file. Without it, the file beside
this module is loaded, which the wheel has; or else libnvfp4gemm.so.0, which the system's loader
finds.
"""
from __future__ import annotations

import ctypes
import operator
import os
from ctypes import POINTER, c_char_p, c_double, c_int32, c_int64, c_size_t
# Imported for programs and for the other modules.
from ctypes import addressof as addressof, c_float as c_float, sizeof as sizeof
from ctypes import c_uint64 as c_uint64, c_void_p as c_void_p
from typing import Any, ClassVar

from nvfp4gemm._fields import types_of

F16, BF16, F32, NVFP4, MXFP4, E2M1_UE8M0 = 1, 2, 3, 4, 5, 6
FORMATS = {"nvfp4": 0, "mxfp4": 1, "e2m1_ue8m0": 2}
LAYOUTS = {"128x4": 1, "linear": 2}
PACKINGS = {"sm90_1": 1, "sm100_1": 2}  # of weights
TOKEN_PACKINGS = {"sm90_tokens_1": 3}
SCALE_RULES = {None: 0, "4over6": 3}
ACTIVATIONS = {None: 0, "relu": 1, "gelu_tanh": 2, "silu": 3, "gelu": 4,
               "relu_squared": 5}
LAUNCHES = {None: 0, "early": 1, "early_static_weights": 2}
ROW_MAJOR, COLUMN_MAJOR = 0, 1
SCALARS_HOST, SCALARS_DEVICE = 0, 1
SCALE_BY_VALUE, SCALE_ON_DEVICE, SCALE_BY_AMAX = 0, 1, 2
SCALE_BY_ROW_AMAX, SCALES_OF_ROWS = 3, 4
SCALE_COLUMNS = 64  # desc.b_tensor_scale_columns must be a multiple of this
ROWS_ENDS, ROWS_COUNTS = 1, 2
OVERLAP, NOT_SUPPORTED, UNSUPPORTED_ARCH = 25, 28, 44


class _Sized(ctypes.Structure):
    """A struct whose fields are set without checks: an integer that is too large is silently
    truncated. The package uses these where values are known to fit. The classes below, for
    programs, check every value."""
    __slots__ = ()

    def __init__(self, **fields: Any) -> None:
        super().__init__(struct_size=ctypes.sizeof(type(self)), **fields)


class _Checked:
    """Setting an unknown field, or a value outside a field's range, raises an error that names the
    field."""
    __slots__ = ()
    _fields_: ClassVar[Any]

    def __setattr__(self, name: str, value: Any) -> None:
        what = f"{type(self).__name__}.{name}"
        kind = dict(self._fields_).get(name)
        if kind is None:
            raise AttributeError(f"there is no {what}")
        if kind in _RANGES and not (kind is c_void_p and value is None):
            try:
                value = operator.index(value)
            except TypeError:
                raise TypeError(f"{what} is {type(value).__name__}; expected an integer") from None
            low, high = _RANGES[kind]
            if not low <= value <= high:
                raise OverflowError(f"{what} is {value}; it holds {low} to {high}")
        try:
            super().__setattr__(name, value)
        except TypeError as error:
            raise TypeError(f"{what}: {error}") from None


_RANGES = {c_int32: (-1 << 31, (1 << 31) - 1), c_int64: (-1 << 63, (1 << 63) - 1),
           c_uint64: (0, (1 << 64) - 1), c_void_p: (0, (1 << 64) - 1)}


class GemmDescFields(_Sized):
    __slots__ = ()
    _fields_ = types_of("GEMM")


class GemmAddressesFields(_Sized):
    __slots__ = ()
    _fields_ = types_of("ADDRESS")


class GroupedDescFields(_Sized):
    __slots__ = ()
    _fields_ = types_of("GROUPED")


class PlanInfo(_Sized):
    """A plan in numbers. struct nvfp4_plan_info of nvfp4_gemm.h describes the fields."""
    __slots__ = ()
    _fields_ = [
        ("struct_size", c_uint64), ("variant", c_char_p), ("image", c_char_p),
        ("workspace_bytes", c_uint64), ("a_scales_bytes", c_uint64), ("b_scales_bytes", c_uint64),
        ("predicted_ns", c_double), ("bytes", c_double), ("memory_ns", c_double),
        ("math_ns", c_double),
        ("variant_index", c_int32), ("tile_m", c_int32), ("tile_n", c_int32), ("tile_k", c_int32),
        ("tile_ctas", c_int32), ("tiles", c_int32), ("k_partitions", c_int32),
        ("whole_tiles", c_int32), ("cluster_ctas", c_int32), ("grid_ctas", c_int32),
        ("cta_threads", c_int32), ("ctas_per_sm", c_int32), ("stages", c_int32),
        ("stage_bytes", c_int32), ("shared_bytes", c_int32), ("tmem_columns", c_int32),
        ("proof", c_int32), ("store", c_int32), ("epilogue", c_int32),
        ("d_apart", c_int32), ("reserved", c_int32 * 4),
    ]


class QuantizeDescFields(_Sized):
    __slots__ = ()
    _fields_ = types_of("QUANTIZE")


class FusedQuantizeDescFields(_Sized):
    __slots__ = ()
    _fields_ = types_of("FUSED")


class PackDescFields(_Sized):
    __slots__ = ()
    _fields_ = types_of("PACK")


class GemmDesc(_Checked, GemmDescFields):
    pass


class GemmAddresses(_Checked, GemmAddressesFields):
    pass


class GroupedDesc(_Checked, GroupedDescFields):
    pass


class QuantizeDesc(_Checked, QuantizeDescFields):
    pass


class FusedQuantizeDesc(_Checked, FusedQuantizeDescFields):
    pass


class PackDesc(_Checked, PackDescFields):
    pass


LogCallback = ctypes.CFUNCTYPE(None, c_void_p, c_int32, c_char_p)


class Error(RuntimeError):
    """The library refused a call. `status` is a number and `name` its name, both from nvfp4_gemm.h.
    The text ends with the library's message."""

    def __init__(self, status: int) -> None:
        self.status = status
        self.name = lib.nvfp4_status_name(status).decode()
        super().__init__(f"{self.name}: {lib.nvfp4_last_error().decode()}")


def check(status: int) -> None:
    if status != 0:
        raise Error(status)


def _open() -> ctypes.CDLL:
    beside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "libnvfp4gemm.so.0")
    path = os.environ.get("NVFP4GEMM_LIBRARY") or (
        beside if os.path.exists(beside) else "libnvfp4gemm.so.0")
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise ImportError(
            f"nvfp4gemm: {error}; NVFP4GEMM_LIBRARY can name the library's file") from None
    functions: list[tuple[Any, ...]] = [
        ("nvfp4_version", c_int32),
        ("nvfp4_build_info", c_char_p),
        ("nvfp4_status_name", c_char_p, c_int32),
        ("nvfp4_status_string", c_char_p, c_int32),
        ("nvfp4_last_error", c_char_p),
        ("nvfp4_set_log_callback", c_int32, LogCallback, c_void_p, c_int32),
        ("nvfp4_gemm_run", c_int32, POINTER(GemmDescFields), c_void_p),
        ("nvfp4_prepare", c_int32),
        ("nvfp4_selftest", c_int32, c_void_p, c_uint64, c_void_p),
        ("nvfp4_selftest_bytes", c_uint64, c_int32),
        ("nvfp4_gemm_supported", c_int32, POINTER(GemmDescFields), c_int32),
        ("nvfp4_gemm_workspace_bytes", c_int32, POINTER(GemmDescFields), c_int32,
         POINTER(c_uint64)),
        ("nvfp4_gemm_describe", c_int32, POINTER(GemmDescFields), c_int32, c_int32,
         POINTER(PlanInfo)),
        ("nvfp4_gemm_explain", c_int32, POINTER(GemmDescFields), c_int32, c_int32, c_char_p,
         c_size_t),
        ("nvfp4_variant_name", c_char_p, c_int32, c_int32),
        ("nvfp4_gemm_plan_create", c_int32, POINTER(GemmDescFields), POINTER(c_void_p)),
        ("nvfp4_gemm_plan_run", c_int32, c_void_p, POINTER(GemmAddressesFields), c_void_p),
        ("nvfp4_gemm_plan_destroy", None, c_void_p),
        ("nvfp4_grouped_run", c_int32, POINTER(GroupedDescFields), c_void_p),
        ("nvfp4_grouped_plan_create", c_int32, POINTER(GroupedDescFields), POINTER(c_void_p)),
        ("nvfp4_grouped_supported", c_int32, POINTER(GroupedDescFields), c_int32),
        ("nvfp4_grouped_workspace_bytes", c_int32, POINTER(GroupedDescFields), c_int32,
         POINTER(c_uint64)),
        ("nvfp4_grouped_describe", c_int32, POINTER(GroupedDescFields), c_int32, c_int32,
         POINTER(PlanInfo)),
        ("nvfp4_grouped_explain", c_int32, POINTER(GroupedDescFields), c_int32, c_int32, c_char_p,
         c_size_t),
        ("nvfp4_grouped_reference", c_int32, POINTER(GroupedDescFields)),
        ("nvfp4_grouped_scale_bytes", c_size_t, c_int64, c_int64, c_int64, c_int32, c_int32),
        ("nvfp4_gemm_reference", c_int32, POINTER(GemmDescFields)),
        ("nvfp4_scale_bytes", c_size_t, c_int64, c_int64, c_int32),
        ("nvfp4_scale_bytes_for", c_size_t, c_int64, c_int64, c_int32, c_int32),
        ("nvfp4_scale_convert_host", c_int32, c_void_p, c_int32, c_void_p, c_int32, c_int64,
         c_int64),
        ("nvfp4_scale_convert", c_int32, c_void_p, c_int32, c_void_p, c_int32, c_int64, c_int64,
         c_void_p),
        ("nvfp4_quantize_host", c_int32, c_void_p, c_int64, c_int64, c_int64, c_float, c_void_p,
         c_int64, c_void_p, c_int32),
        ("nvfp4_dequantize_host", c_int32, c_void_p, c_int64, c_void_p, c_int32, c_int64, c_int64,
         c_float, c_void_p, c_int64),
        ("nvfp4_quantize_workspace_bytes", c_int32, POINTER(QuantizeDescFields), POINTER(c_uint64)),
        ("nvfp4_quantize", c_int32, POINTER(QuantizeDescFields), c_void_p),
        ("nvfp4_dequantize", c_int32, POINTER(QuantizeDescFields), c_void_p),
        ("nvfp4_quantize_reference", c_int32, POINTER(QuantizeDescFields)),
        ("nvfp4_dequantize_reference", c_int32, POINTER(QuantizeDescFields)),
        ("nvfp4_fused_quantize", c_int32, POINTER(FusedQuantizeDescFields), c_void_p),
        ("nvfp4_fused_quantize_host", c_int32, POINTER(FusedQuantizeDescFields)),
        ("nvfp4_packed_bytes", c_size_t, c_int64, c_int64, c_int32, c_int32),
        ("nvfp4_pack_weights", c_int32, POINTER(PackDescFields), c_void_p),
        ("nvfp4_unpack_weights", c_int32, POINTER(PackDescFields), c_void_p),
        ("nvfp4_pack_weights_host", c_int32, POINTER(PackDescFields)),
        ("nvfp4_unpack_weights_host", c_int32, POINTER(PackDescFields)),
    ]
    for name, result, *arguments in functions:
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def _with_bytes(library: ctypes.CDLL) -> Any:
    """nvfp4_gemm_plan_run as a function that takes the address struct as bytes."""
    run = library["nvfp4_gemm_plan_run"]
    run.restype, run.argtypes = c_int32, (c_void_p, c_char_p, c_void_p)
    return run


lib = _open()
run_plan = _with_bytes(lib)


def workspace_bytes(desc: ctypes.Structure, compute_capability: int) -> int:
    """Bytes of device memory that desc.workspace needs on a GPU of that compute capability."""
    size = c_uint64()
    check(lib.nvfp4_gemm_workspace_bytes(desc, compute_capability, size))
    return size.value


def describe(desc: ctypes.Structure, compute_capability: int, sm_count: int) -> PlanInfo:
    """The plan for desc on a GPU of that compute capability with sm_count SMs. This needs neither a
    GPU nor addresses in desc. A B200 has compute capability 100 and 148 SMs, an H200 90 and 132."""
    info = PlanInfo()
    check(lib.nvfp4_gemm_describe(desc, compute_capability, sm_count, info))
    return info


def variant_names(compute_capability: int) -> list[str]:
    """The names of the variants that a GPU of that compute capability can run, as desc.variant
    takes them."""
    names: list[str] = []
    while name := lib.nvfp4_variant_name(compute_capability, len(names)):
        names.append(name.decode())
    return names


def explain(desc: ctypes.Structure, compute_capability: int, sm_count: int) -> str:
    """Says which kernel the library would choose for desc, and why, in lines of text. The arguments
    are those of describe()."""
    text = ctypes.create_string_buffer(8192)
    check(lib.nvfp4_gemm_explain(desc, compute_capability, sm_count, text, len(text)))
    return text.value.decode()
