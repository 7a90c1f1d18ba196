# SPDX-License-Identifier: MIT
"""The table of test_python_door.py: every argument that is an array, every way in which an array
can be unusual, and which of the two verdicts a cell has.

An argument that is read gives the bits of the same call on a fresh contiguous copy, or an exception
that names it. One that is written holds the result and nothing around it has changed, or an
exception names it and nothing at all has changed."""
import numpy as np

import nvfp4gemm
from nvfp4gemm import checkpoints, layouts

import oddities

M, N, K = 6, 10, 32
# Rows may be as many as there are; leading dimensions that nothing merges cannot be written.
FREE = ("one row too few", "empty")
ALONE = ("an array of NumPy",)  # no other array says of which package the call is
ONE_TILE = ("one row too few",)  # the scales are those of 1 to 128 rows
UNMERGED = ("inside a larger array",)
READ, WRITTEN = "read", "written"


def floats(seed, *shape, dtype=np.float16):
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32).astype(dtype)


def bytes_(seed, *shape, most=256):
    return np.random.default_rng(seed).integers(0, most, shape, dtype=np.uint8)


class Argument:
    """A row: call(array) gives the results that are compared. `name` is what an exception says,
    names with | between them where sizes of two arguments disagree.
    Columns named in `equal` and `raises` have that verdict here, whatever they have elsewhere."""

    def __init__(self, entry, name, values, call, way=READ, *, equal=(), raises=()):
        self.entry, self.name, self.values, self.call, self.way = entry, name, values, call, way
        self.known = {}  # results on fresh arrays
        self.own = {**dict.fromkeys(equal, "equal"), **dict.fromkeys(raises, "raises")}

    def __str__(self):
        return f"{self.entry}, {self.name} {list(self.values.shape)}"

    def verdict(self, name, column):
        return self.own.get(name, column.verdict[self.way])


def parts(packed):
    """What a Packed holds, padding of its codes aside: a copy does not keep it."""
    # Without the padding of the tiles, which keeps whatever the memory held.
    scales = packed.with_scales("linear").scales
    return packed.codes[:, :packed.k // 2], scales, packed.tensor_scale


class Operands:
    """What the calls are given besides the argument in question, on arrays of one kind."""

    def __init__(self, kind):
        self.of, self.on_cpu = kind.of, getattr(kind, "device", "cpu") == "cpu"
        self.a, self.b = (nvfp4gemm.quantize(floats(seed, rows, K))
                          for seed, rows in ((1, M), (2, N)))
        self.linear_scales = self.b.with_scales("linear").scales
        self.x, self.cube = floats(3, M, K), floats(9, 2, 3, K)
        self.bias, self.c = floats(4, N), floats(5, M, N, dtype=np.float32)
        self.codes = bytes_(7, N, K // 2)
        self.b128 = nvfp4gemm.quantize(floats(10, 128, K))
        self.pa, self.pb = self.packed(self.a), self.packed(self.b)
        self.ends = np.array([2, M], np.int32)
        self.two_codes = bytes_(12, 2, N, K // 2)
        self.two_scales = np.concatenate([self.b.scales, self.b.scales])
        self.pb2 = self.packed(nvfp4gemm.quantize(floats(11, N, K)))

    def packed(self, p, **given):
        """p on arrays of this kind, or on those that are given."""
        own = {"codes": p.codes, "scales": p.scales}
        arrays = {name: self.of(own[name]) for name in own if name not in given}
        return nvfp4gemm.Packed(**{"rows": p.rows, "k": p.k, "tensor_scale": p.tensor_scale,
                                   **arrays, **given})

    def stack(self, **given):
        """The same matrix and one more, as two groups."""
        own = {"codes": self.two_codes, "scales": self.two_scales}
        arrays = {name: self.of(own[name]) for name in own if name not in given}
        return nvfp4gemm.Stack(**{"groups": 2, "rows": N, "k": K, **arrays, **given})

    def products(self, p, **given):
        """With p's parts replaced by those that are given."""
        made = self.packed(p, **given)
        d = nvfp4gemm.mm(made, self.pb) if p is self.a else nvfp4gemm.mm(self.pa, made)
        return d, made.dequantize()


def arguments(kind):
    """The rows, on arrays of that kind; `kind.of` makes a fresh one of NumPy's."""
    o = Operands(kind)
    for rows in (read_by_calls, written_by_calls, parts_of_packed, read_by_layouts):
        yield from rows(o)


def read_by_calls(o):
    mm, linear, quantize = nvfp4gemm.mm, nvfp4gemm.linear, nvfp4gemm.quantize
    yield Argument("quantize", "x|k", o.x, lambda v: parts(quantize(v)), equal=FREE + ALONE)
    yield Argument("quantize", "x|k", floats(8, 2, 3, K, dtype=np.float32),
                   lambda v: parts(quantize(v)), equal=FREE + ALONE)
    yield Argument("quantize, linear scales", "x|k", o.x,
                   lambda v: parts(quantize(v, 0.5, scale_layout="linear")), equal=FREE + ALONE)
    yield Argument("quantize", "tensor_scale", np.array([0.01], np.float32),
                   lambda v: parts(quantize(o.of(o.x), v)))
    for x in (o.x, o.cube):
        yield Argument("mm", "a", x, lambda v: (mm(v, o.pb),), equal=FREE)
        yield Argument("linear", "x", x, lambda v: (linear(v, o.pb),), equal=FREE)
        yield Argument("linear, 4-bit x", "x|k", x,
                       lambda v: (linear(v, o.pb, quantize_input=True),), equal=FREE)
    # What is beside the argument is made here: a call is compiled and captured as it stands.
    gated, x, bias, ends, two = (nvfp4gemm.gated_linear, o.of(o.x), o.of(o.bias), o.of(o.ends),
                                 o.stack())
    yield Argument("gated_linear", "x", o.x, lambda v: (gated(v, o.pb, o.pb2),), equal=FREE,
                   raises=("requires a gradient",))
    yield Argument("gated_linear", "gate_bias", o.bias,
                   lambda v: (gated(o.pa, o.pb, o.pb2, v, bias),),
                   raises=("requires a gradient",))
    yield Argument("gated_linear", "up_bias", o.bias,
                   lambda v: (gated(o.pa, o.pb, o.pb2, bias, v),),
                   raises=("requires a gradient",))
    grouped, into = nvfp4gemm.grouped_linear, o.of(np.zeros((M, N), np.float32))
    yield Argument("grouped_linear", "x", o.x, lambda v: (grouped(v, ends, two),),
                   equal=FREE, raises=("requires a gradient",))
    # With one more they have a 0 first, which only the CPU looks at.
    yield Argument("grouped_linear", "ends", o.ends, lambda v: (grouped(x, v, two, out=into),),
                   equal=() if o.on_cpu else ("one element too many",))
    # Without its last number it is as long as ends without a 0 are.
    yield Argument("grouped_linear", "ends", np.array([0, *o.ends], np.int32),
                   lambda v: (grouped(x, v, two, out=into),), equal=("one row too few",))
    yield Argument("grouped_linear", "bias", floats(4, 2, N),
                   lambda v: (grouped(x, ends, two, v),), raises=("requires a gradient",))
    yield Argument("grouped_linear", "bias", o.bias, lambda v: (grouped(x, ends, two, v),),
                   raises=("requires a gradient",))
    yield Argument("mm", "bias", o.bias, lambda v: (mm(o.pa, o.pb, bias=v),))
    yield Argument("linear", "bias", o.bias, lambda v: (linear(x, o.pb, v),))
    for c in (o.c, o.c.reshape(2, 3, N)):
        yield Argument("mm", "c", c, lambda v: (mm(o.pa, o.pb, c=v),))
    columns = o.of(np.zeros((N, M), np.float16)).T
    yield Argument("mm by columns", "c", o.c, lambda v: (mm(o.pa, o.pb, c=v, out=columns),),
                   raises=("requires a gradient",))


def written_by_calls(o):
    def into(call):
        return lambda out: (call(out), out)[1:]

    square, cube = np.zeros((M, N), np.float32), np.zeros((2, 3, N), np.float16)
    x, ends, two = o.of(o.x), o.of(o.ends), o.stack()
    for out, raises in ((square, ()), (cube, UNMERGED)):
        yield Argument("mm", "out", out, into(lambda v: nvfp4gemm.mm(o.pa, o.pb, out=v)), WRITTEN,
                       raises=raises)
        yield Argument("linear, 4-bit x", "out", out, into(lambda v: nvfp4gemm.linear(
            x, o.pb, out=v, quantize_input=True)), WRITTEN, raises=raises)
    yield Argument("mm", "amax", np.zeros(1, np.float32),
                   into(lambda v: nvfp4gemm.mm(x, o.pb, amax=v)), WRITTEN,
                   equal=("from the second element on",))
    yield Argument("mm", "row_amax", np.zeros(M, np.float32),
                   into(lambda v: nvfp4gemm.mm(o.pa, o.pb, row_amax=v)), WRITTEN,
                   equal=("from the second element on",))
    yield Argument("gated_linear", "out", square, into(
        lambda v: nvfp4gemm.gated_linear(o.pa, o.pb, o.pb2, out=v)), WRITTEN)
    yield Argument("grouped_linear", "out", square, into(
        lambda v: nvfp4gemm.grouped_linear(x, ends, two, out=v)), WRITTEN)
    yield Argument("linear", "out", square,
                   into(lambda v: nvfp4gemm.linear(x, o.pb, out=v)), WRITTEN)


def parts_of_packed(o):
    for p, what in ((o.a, "a"), (o.b, "b")):
        yield Argument(f"Packed as {what}", "codes", p.codes[:, :K // 2],
                       lambda v, p=p: o.products(p, codes=v), equal=("one element too many",))
        yield Argument(f"Packed as {what}", "scales", p.scales,
                       lambda v, p=p: o.products(p, scales=v))
        yield Argument(f"Packed as {what}", "tensor_scale", np.array(0.25, np.float32),
                       lambda v, p=p: o.products(p, tensor_scale=v), equal=("a list",))
    yield Argument("Packed as a, scales of rows", "tensor_scale",
                   np.linspace(0.25, 1, M, dtype=np.float32),
                   lambda v: o.products(o.a, tensor_scale=v),
                   equal=("no dimension", "a scalar of NumPy"))
    yield Argument("Packed as b, scales of 64 rows", "tensor_scale",
                   np.array([0.25, 1], np.float32),
                   lambda v: o.products(o.b128, tensor_scale=v),
                   equal=("no dimension", "a scalar of NumPy"))
    for name, values in (("codes", o.two_codes), ("scales", o.two_scales)):
        yield Argument("Stack", name, values, lambda v, name=name: (nvfp4gemm.grouped_linear(
            o.of(o.x), o.of(o.ends), o.stack(**{name: v})),),
            equal=("one element too many",) if name == "codes" else ())
    yield Argument("Stack", "tensor_scale", np.array(0.25, np.float32),
                   lambda v: (nvfp4gemm.grouped_linear(o.of(o.x), o.of(o.ends),
                                                       o.stack(tensor_scale=v)),),
                   equal=("a list", "one element too many"))
    two = np.array([0.25, 1], np.float32)
    for alpha in (1.0, 0.7):  # used where they are, and multiplied
        yield Argument(f"Stack, scales of groups, alpha {alpha}", "tensor_scale", two,
                       lambda v, alpha=alpha: (nvfp4gemm.grouped_linear(
                           o.of(o.x), o.of(o.ends), o.stack(tensor_scale=v), alpha=alpha),),
                       equal=("no dimension", "a scalar of NumPy"))
    yield Argument("Stack as up, scales of groups", "tensor_scale", two,
                   lambda v: (nvfp4gemm.grouped_gated_linear(
                       o.packed(o.a.with_scales("linear"), scale_layout="linear"), o.of(o.ends),
                       o.stack(tensor_scale=o.of(two)), o.stack(tensor_scale=v)),),
                   equal=("no dimension", "a scalar of NumPy"))
    yield Argument("Packed, linear scales", "scales", o.linear_scales.reshape(N, K // 16),
                   lambda v: o.products(o.b, scales=v, scale_layout="linear"))


def read_by_layouts(o):
    padded = bytes_(8, 128, 4, most=0x7F)
    yield Argument("from_ggml", "blocks", bytes_(6, N, 36, most=0x7F),
                   lambda v: parts(layouts.from_ggml(v, N, 64)), equal=ALONE)
    yield Argument("split_gate_up", "both", o.c, layouts.split_gate_up,
                   equal=("one element too many", "empty", "float64", "int8", "bool",
                          "complex64") + ALONE)
    yield Argument("from_flashinfer", "codes|scales", o.codes,
                   lambda v: parts(layouts.from_flashinfer(v, o.of(o.b.scales), 2.0)),
                   equal=ONE_TILE)
    yield Argument("from_flashinfer", "scales", o.b.scales,
                   lambda v: parts(layouts.from_flashinfer(o.of(o.codes), v, 2.0)))
    words = bytes_(13, N, 4, most=0x7F).view(np.int32)
    yield Argument("from_deepgemm", "codes|scales", o.codes,
                   lambda v: parts(layouts.from_deepgemm(v, o.of(words))), equal=("int8",))
    yield Argument("from_deepgemm", "scales", words,
                   lambda v: parts(layouts.from_deepgemm(o.of(o.codes), v)),
                   raises=("foreign order of bytes",))
    yield Argument("from_transformer_engine", "codes|scales", o.codes,
                   lambda v: parts(layouts.from_transformer_engine(v, o.of(padded), 3.0)),
                   equal=ONE_TILE)
    yield Argument("from_transformer_engine", "scales", padded,
                   lambda v: parts(layouts.from_transformer_engine(o.of(o.codes), v, 3.0)))
    yield Argument("checkpoints.weight", "codes|scales", o.codes,
                   lambda v: parts(checkpoints.weight(v, o.of(o.linear_scales))))
    yield Argument("checkpoints.weight", "scales", o.linear_scales.reshape(N, K // 16),
                   lambda v: parts(checkpoints.weight(o.of(o.codes), v)))


class Column:
    """make(values) is an Odd, or None where values have no such form. `read` and `written` say
    whether such an argument is used ("equal") or refused ("raises")."""

    def __init__(self, make, read="equal", written="raises"):
        self.make, self.verdict = make, {READ: read, WRITTEN: written}


def _if(condition, make):
    return lambda values: make(values) if condition(values) else None


def _several(values):
    return values.ndim > 0 and values.shape[0] > 1


def _matrix(values):
    return values.ndim == 2


def _float(values):
    return values.itemsize > 1


def columns():
    """The columns that NumPy's arrays have; those of torch are in torch_columns.py."""
    axis0, axis1 = ((lambda values, make=make, axis=axis: make(values, axis))
                    for make, axis in ((oddities.repeated, 0), (oddities.repeated, -1)))
    o = oddities
    raises = {"read": "raises", "written": "raises"}
    return {
        "dense": Column(o.dense, written="equal"),
        "inside a larger array": Column(_if(lambda v: v.ndim > 0, o.inside), written="equal"),
        "on memory of ctypes": Column(o.of_ctypes, written="equal"),
        "one row repeated": Column(_if(_several, axis0)),
        "one column repeated": Column(_if(_several, axis1)),
        "one row repeated, writable": Column(
            _if(_several, lambda v: o.repeated_and_writable(v, 0))),
        "rows backwards": Column(_if(_several, lambda v: o.reversed_(v, 0))),
        "columns backwards": Column(_if(_several, lambda v: o.reversed_(v, -1))),
        "every second row": Column(_if(_matrix, lambda v: o.in_steps(v, 0)), written="equal"),
        "every second column": Column(_if(_several, lambda v: o.in_steps(v, -1))),
        "rows an element apart": Column(_if(lambda v: v.ndim > 1, o.apart), written="equal"),
        "by columns": Column(_if(_matrix, o.by_columns), written="equal"),
        "leading dimensions swapped": Column(_if(lambda v: v.ndim == 3, o.swapped)),
        "rows that overlap": Column(_if(_matrix, o.overlapping)),
        "from the second byte on": Column(_if(_float, lambda v: o.shifted(v, 1))),
        "from the second element on": Column(lambda v: o.shifted(v, v.itemsize), written="equal"),
        "steps of no whole element": Column(
            _if(lambda v: _float(v) and v.ndim > 0, o.broken_steps)),
        "foreign order of bytes": Column(_if(_float, o.foreign_order)),
        "read-only": Column(o.read_only),
        "np.memmap's class": Column(lambda v: o.subclass(v, np.memmap), written="equal"),
        "np.matrix": Column(_if(_matrix, lambda v: o.subclass(v, np.matrix)), written="equal"),
        "masked": Column(o.masked, **raises),
        "memory too short": Column(_if(lambda v: v.ndim > 0, o.too_short), **raises),
        "memory given back": Column(_if(_several, o.shrunk), **raises),
        "float64": Column(lambda v: o.as_type(v, np.float64), **raises),
        "int8": Column(lambda v: o.as_type(v, np.int8), **raises),
        "bool": Column(lambda v: o.as_type(v, bool), **raises),
        "complex64": Column(lambda v: o.as_type(v, np.complex64), **raises),
        "one element too many": Column(
            lambda v: o.shaped(v, (*v.shape[:-1], v.shape[-1] + 1) if v.ndim else (2,)), **raises),
        "one row too few": Column(
            _if(lambda v: _several(v) and v.shape[0] != 2,
                lambda v: o.shaped(v, (v.shape[0] - 1, *v.shape[1:]))), **raises),
        "empty": Column(lambda v: o.shaped(v, (0, *v.shape[1:])), **raises),
        "no dimension": Column(_if(_several, lambda v: o.shaped(v, ())), **raises),
        "a list": Column(lambda v: o.Odd(v.tolist(), None), **raises),
        "a scalar of NumPy": Column(_if(_several, lambda v: o.Odd(v.reshape(-1)[0], None)),
                                    **raises),
    }
