# SPDX-License-Identifier: MIT
"""A product's arrays as the library's GemmDesc."""
from nvfp4gemm import abi
from nvfp4gemm._matrix import Matrix, constant_and_tensor, layout_number, number_of


def codes_ld(arrays, packed):
    """In elements, two to a byte: rows of a slice lie further apart than they are long."""
    rows, bytes_ = arrays.strides(packed.codes)
    if bytes_ != 1 and packed.codes.shape[1] > 1:
        raise ValueError(f"codes have strides {(rows, bytes_)}; their rows must be contiguous")
    return 2 * (rows if packed.rows > 1 else packed.codes.shape[1])


def leading_dimension(arrays, x, what):
    """(ld, cd_order) of [rows, columns]."""
    rows, columns = arrays.strides(x)
    if columns == 1 or x.shape[1] <= 1:
        return max(rows, x.shape[1]), abi.ROW_MAJOR
    if rows == 1 or x.shape[0] <= 1:
        return max(columns, x.shape[0]), abi.COLUMN_MAJOR
    raise ValueError(f"{what} has strides {(rows, columns)}; rows or columns must be contiguous")


def describe(arrays, a, b, d, bias, activation, c, alpha, beta, batch_invariant, launch):
    """The GemmDesc, addresses and all."""
    desc = abi.GemmDesc(m=d.shape[0], n=d.shape[1], k=b.k, l=1)
    packed = isinstance(a, Matrix)
    factors = [constant_and_tensor(b.tensor_scale)]
    desc.b, desc.b_ld = arrays.address(b.codes), codes_ld(arrays, b)
    desc.b_scales, desc.b_scale_layout = arrays.address(b.scales), layout_number(b.scale_layout)
    if factors[0][1] is not None:
        desc.b_tensor_scale = arrays.address(factors[0][1])
    if packed:
        factors.insert(0, constant_and_tensor(a.tensor_scale))
        desc.a, desc.a_ld = arrays.address(a.codes), codes_ld(arrays, a)
        desc.a_scales, desc.a_scale_layout = arrays.address(a.scales), layout_number(a.scale_layout)
        if factors[0][1] is not None:
            desc.a_tensor_scale = arrays.address(factors[0][1])
    else:
        desc.a, desc.a_type = arrays.address(a), arrays.type_of(a.dtype)
        desc.a_ld, order = leading_dimension(arrays, a, "a")
        if order == abi.COLUMN_MAJOR:
            raise ValueError("a has contiguous columns; its rows must be")
    desc.d, desc.d_type = arrays.address(d), arrays.type_of(d.dtype)
    desc.d_ld, desc.cd_order = leading_dimension(arrays, d, "out")
    if c is not None:
        desc.c, desc.c_type = arrays.address(c), arrays.type_of(c.dtype)
        desc.c_ld, order = leading_dimension(arrays, c, "c")
        if order != desc.cd_order:
            raise ValueError("c and the result must both have contiguous rows, or both columns")
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
