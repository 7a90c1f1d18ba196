# SPDX-License-Identifier: MIT
"""A product's arrays as the library's GemmDesc."""
from nvfp4gemm import abi
from nvfp4gemm._door import ld_of
from nvfp4gemm._matrix import Matrix, constant_and_tensor, layout_number, number_of, row_bytes


def codes_ld(arrays, packed):
    """In elements, two to a byte: rows of a slice lie further apart than they are long."""
    if packed.rows <= 1:
        return 2 * row_bytes(packed.k)
    return 2 * arrays.strides(packed.codes)[0]


def describe(arrays, a, b, d, order, bias, activation, c, alpha, beta, batch_invariant,
             launch):
    """The GemmDesc, addresses and all, of operands that came through the door."""
    desc = abi.GemmDescFields(m=d.shape[0], n=d.shape[1], k=b.k, l=1)
    desc.operand_format = abi.FORMATS[b.format]
    packed = isinstance(a, Matrix)
    factors = [constant_and_tensor(b.tensor_scale)]
    desc.b, desc.b_ld = arrays.address(b.codes), codes_ld(arrays, b)
    desc.b_scales, desc.b_scale_layout = arrays.address(b.scales), layout_number(b.scale_layout)
    if factors[0][1] is not None:
        desc.b_tensor_scale = arrays.address(factors[0][1])
        desc.b_tensor_scale_columns = b.scale_rows
    if packed:
        factors.insert(0, constant_and_tensor(a.tensor_scale))
        desc.a, desc.a_ld = arrays.address(a.codes), codes_ld(arrays, a)
        desc.a_scales, desc.a_scale_layout = arrays.address(a.scales), layout_number(a.scale_layout)
        if factors[0][1] is not None:
            desc.a_tensor_scale = arrays.address(factors[0][1])
            desc.a_tensor_scale_rows = int(a.has_row_scales)
    else:
        desc.a, desc.a_type = arrays.address(a), arrays.type_of(a.dtype)
        desc.a_ld = ld_of(a.shape, arrays.strides(a), abi.ROW_MAJOR)
    desc.d, desc.d_type = arrays.address(d), arrays.type_of(d.dtype)
    desc.d_ld = ld_of(d.shape, arrays.strides(d), order)
    desc.cd_order = order
    if c is not None:
        desc.c, desc.c_type = arrays.address(c), arrays.type_of(c.dtype)
        desc.c_ld = ld_of(c.shape, arrays.strides(c), order)
        desc.beta = beta
    if bias is not None:
        desc.bias, desc.bias_type = arrays.address(bias), arrays.type_of(bias.dtype)
    # One factor after the other in fp32, as the device multiplies those that it reads.
    desc.alpha = alpha
    for constant, _ in factors:
        desc.alpha = desc.alpha * constant
    desc.activation = number_of(activation, abi.ACTIVATIONS, "activation")
    desc.pdl = number_of(launch, abi.LAUNCHES, "launch")
    desc.batch_invariant = int(batch_invariant)
    return desc
