# SPDX-License-Identifier: MIT
"""Grouped calls of the package on the CPU, recorded as the C API gets them: every field, and the
bytes behind every address."""
import contextlib
import ctypes

from nvfp4gemm import abi

BYTES = {abi.F16: 2, abi.BF16: 2, abi.F32: 4}
BLOCKS = {0: 16, 1: 32, 2: 16}  # elements of a scale, by operand_format
WITH_SCALES = abi.NVFP4, abi.MXFP4, abi.E2M1_UE8M0  # types of D


RESULTS = "d", "d_scales"
OF_GROUPS = "rows", "group_alpha", "group_alpha2"  # of the GroupedDesc, 4 bytes for each group


def arrays_of(desc, grouped):
    """{field of the GemmDesc, or one of OF_GROUPS: bytes behind it} of a grouped product with
    linear scales of tokens and of D."""
    block = BLOCKS[desc.operand_format]
    sizes = {"b": desc.l * desc.b_batch_stride // 2,
             "b_scales": desc.l * desc.b_scales_batch_stride_bytes,
             "b_tensor_scale": 4, "b2_tensor_scale": 4,
             "a_tensor_scale": 4 * (desc.m if desc.a_tensor_scale_rows else 1),
             "d_tensor_scale": 4}
    if desc.d_type in WITH_SCALES:
        sizes.update(d=desc.m * desc.d_ld // 2, d_scales=desc.m * desc.n // block)
    else:
        sizes["d"] = desc.m * desc.d_ld * BYTES[desc.d_type]
    sizes.update(b2=sizes["b"], b2_scales=sizes["b_scales"])
    if desc.a_type:
        sizes["a"] = desc.m * desc.a_ld * BYTES[desc.a_type]
    else:
        sizes.update(a=desc.m * desc.a_ld // 2, a_scales=desc.m * desc.k // block)
    if desc.bias_type:
        biases = desc.l if grouped.bias_group_stride else 1
        sizes["bias"] = sizes["bias2"] = biases * desc.n * BYTES[desc.bias_type]
    found = {name: ctypes.string_at(getattr(desc, name), size) for name, size in sizes.items()
             if getattr(desc, name)}
    found.update({name: ctypes.string_at(getattr(grouped, name), 4 * desc.l) for name in OF_GROUPS
                  if getattr(grouped, name)})
    return found


def grouped_desc(desc, call, at):
    """The GroupedDesc of desc, which is the Call's, with both's arrays at these addresses."""
    for name, address in at.items():
        if name not in OF_GROUPS:
            setattr(desc, name, address)
    return abi.GroupedDescFields(
        gemm=abi.addressof(desc), rows_kind=abi.ROWS_ENDS, rows_hint=call.rows_hint,
        bias_group_stride=call.bias_group_stride,
        **{name: at[name] for name in OF_GROUPS if name in at})


class Call:
    """One grouped product: its fields without addresses, its arrays before the call, and in
    `expected` the bytes of RESULTS that the reference made."""

    def __init__(self, grouped):
        desc = abi.GemmDescFields.from_buffer_copy(
            abi.GemmDescFields.from_address(grouped.gemm))
        self.arrays = arrays_of(desc, grouped)
        for name in self.arrays:
            if name not in OF_GROUPS:
                setattr(desc, name, None)
        self.fields, self.rows_hint = bytes(desc), grouped.rows_hint
        self.bias_group_stride = grouped.bias_group_stride

    def desc(self):
        return abi.GemmDescFields.from_buffer_copy(self.fields)

    def results(self, read):
        """{field: read(field, its bytes)} of those of RESULTS that the call has."""
        return {name: read(name, len(self.arrays[name])) for name in RESULTS
                if name in self.arrays}

    @property
    def gated(self):
        return "b2" in self.arrays


@contextlib.contextmanager
def recorded():
    """A list that fills with the Calls made inside."""
    made, library = [], abi.lib
    reference = library.nvfp4_grouped_reference

    def record(grouped):
        call = Call(grouped)
        status = reference(grouped)
        desc = abi.GemmDescFields.from_address(grouped.gemm)
        call.expected = call.results(
            lambda name, size: ctypes.string_at(getattr(desc, name), size))
        made.append(call)
        return status

    library.nvfp4_grouped_reference = record
    try:
        yield made
    finally:
        library.nvfp4_grouped_reference = reference
