# SPDX-License-Identifier: MIT
"""Triton kernels of ten different kinds, with numpy's answer to each. triton_kernels.py NAME PTX
launches the text that Triton made of one through the driver API of whatever libcuda.so.1 is
found."""
import sys

import numpy
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget

import driver

HEAD = "// launch: "  # of the first line of the text: what a launch has to know


@triton.jit
def add(x, y, out, n, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    inside = i < n
    tl.store(out + i, tl.load(x + i, mask=inside) + tl.load(y + i, mask=inside), mask=inside)


@triton.jit
def softmax(x, out, columns, block: tl.constexpr):
    i = tl.arange(0, block)
    inside = i < columns
    row = tl.load(x + tl.program_id(0) * columns + i, mask=inside, other=-float("inf"))
    e = tl.exp(row - tl.max(row, axis=0))
    tl.store(out + tl.program_id(0) * columns + i, e / tl.sum(e, axis=0), mask=inside)


@triton.jit
def layer_norm(x, weight, bias, out, columns, block: tl.constexpr):
    i = tl.arange(0, block)
    inside = i < columns
    row = tl.load(x + tl.program_id(0) * columns + i, mask=inside, other=0.0)
    mean = tl.sum(row, axis=0) / columns
    off = tl.where(inside, row - mean, 0.0)
    scale = 1 / tl.sqrt(tl.sum(off * off, axis=0) / columns + 1e-5)
    y = off * scale * tl.load(weight + i, mask=inside) + tl.load(bias + i, mask=inside)
    tl.store(out + tl.program_id(0) * columns + i, y, mask=inside)


@triton.jit
def matmul(a, b, out, m, n, k, bm: tl.constexpr, bn: tl.constexpr, bk: tl.constexpr):
    rows = tl.program_id(0) * bm + tl.arange(0, bm)
    columns = tl.program_id(1) * bn + tl.arange(0, bn)
    inner = tl.arange(0, bk)
    total = tl.zeros((bm, bn), dtype=tl.float32)
    for at in range(0, k, bk):
        left = tl.load(a + rows[:, None] * k + at + inner[None, :],
                       mask=(rows[:, None] < m) & (at + inner[None, :] < k), other=0.0)
        right = tl.load(b + (at + inner[:, None]) * n + columns[None, :],
                        mask=(columns[None, :] < n) & (at + inner[:, None] < k), other=0.0)
        total = tl.dot(left, right, total)
    tl.store(out + rows[:, None] * n + columns[None, :], total,
             mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def attention(q, k, v, out, keys, scale, bm: tl.constexpr, bn: tl.constexpr, d: tl.constexpr):
    rows = tl.program_id(0) * bm + tl.arange(0, bm)
    j = tl.arange(0, d)
    queries = tl.load(q + rows[:, None] * d + j[None, :])
    most = tl.full((bm,), -float("inf"), tl.float32)
    norm = tl.zeros((bm,), tl.float32)
    total = tl.zeros((bm, d), tl.float32)
    for at in range(0, keys, bn):
        n = at + tl.arange(0, bn)
        s = tl.dot(queries, tl.trans(tl.load(k + n[:, None] * d + j[None, :]))) * scale
        top = tl.maximum(most, tl.max(s, 1))
        p = tl.exp(s - top[:, None])
        shrink = tl.exp(most - top)
        norm = norm * shrink + tl.sum(p, 1)
        values = tl.load(v + n[:, None] * d + j[None, :])
        total = tl.dot(p.to(tl.float16), values, total * shrink[:, None])
        most = top
    tl.store(out + rows[:, None] * d + j[None, :], total / norm[:, None])


@triton.jit
def scan(x, out, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + i, tl.cumsum(tl.load(x + i), axis=0))


@triton.jit
def sort(x, out, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(out + i, tl.sort(tl.load(x + i)))


@triton.jit
def histogram(x, out, n, block: tl.constexpr, bins: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    counts = tl.histogram(tl.load(x + i, mask=i < n, other=0), bins, mask=i < n)
    tl.atomic_add(out + tl.arange(0, bins), counts)


@triton.jit
def last_block(x, partial, counter, out, block: tl.constexpr, blocks: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(partial + tl.program_id(0), tl.sum(tl.load(x + i), axis=0))
    tl.debug_barrier()
    if tl.atomic_add(counter, 1, sem="acq_rel") == blocks - 1:
        tl.debug_barrier()
        tl.store(out, tl.sum(tl.load(partial + tl.arange(0, blocks), volatile=True), axis=0))


@triton.jit
def dropout(x, out, n, seed, keep, block: tl.constexpr):
    i = tl.program_id(0) * block + tl.arange(0, block)
    kept = tl.rand(seed, i) < keep
    tl.store(out + i, tl.where(kept, tl.load(x + i, mask=i < n) / keep, 0.0), mask=i < n)


RANDOM = numpy.random.default_rng(1)


def floats(*shape, dtype=numpy.float32):
    return RANDOM.standard_normal(shape).astype(dtype)


def integers(top, *shape):
    return RANDOM.integers(0, top, shape).astype(numpy.int32)


def near(seen, wanted, by=1e-5):
    return numpy.allclose(seen, wanted, rtol=by, atol=by)


def softmax_of(x):
    e = numpy.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def norm_of(x, w, b):
    return (x - x.mean(1, keepdims=True)) / numpy.sqrt(x.var(1, keepdims=True) + 1e-5) * w + b


def half(*shape):
    return floats(*shape, dtype=numpy.float16)


def as_float(*arrays):
    return [a.astype(numpy.float32) for a in arrays]


def matmul_answer(seen, a, b):
    a, b = as_float(a, b)
    return near(seen, a @ b, 1e-3)


def attention_answer(seen, q, k, v):
    q, k, v = as_float(q, k, v)
    return near(seen, softmax_of(q @ k.T / 8) @ v, 1e-2)


def dropout_answer(seen, x):
    kept = seen != 0
    return 0.6 < kept.mean() < 0.8 and near(seen[kept], x[kept] / numpy.float32(0.7))


class Case:
    """inputs, the shape and type of the output, other arguments, constants, grid, the check; words
    of scratch memory stand between inputs and output."""

    def __init__(self, kernel, inputs, out, others, constants, grid, check, arch=90, scratch=()):
        self.kernel, self.inputs, self.out, self.others = kernel, inputs, out, others
        self.constants, self.grid, self.check = constants, grid, check
        self.arch, self.scratch = arch, scratch


def cases():
    f32, i32 = numpy.float32, numpy.int32
    product = dict(inputs=[half(96, 160), half(160, 80)], out=((96, 80), f32), others=[96, 80, 160],
                   constants=dict(bm=64, bn=64, bk=64), grid=(2, 2), check=matmul_answer)
    return {
        "add": Case(add, [floats(1000), floats(1000)], ((1000,), f32), [1000], dict(block=128),
                    (8,), lambda o, x, y: numpy.array_equal(o, x + y)),
        "softmax": Case(softmax, [floats(8, 781)], ((8, 781), f32), [781], dict(block=1024), (8,),
                        lambda o, x: near(o, softmax_of(x))),
        "layer_norm": Case(layer_norm, [floats(8, 500), floats(500), floats(500)], ((8, 500), f32),
                           [500], dict(block=512), (8,), lambda o, *x: near(o, norm_of(*x), 1e-4)),
        "matmul": Case(matmul, **product),
        "matmul_tcgen05": Case(matmul, arch=100, **dict(
            product, constants=dict(bm=128, bn=64, bk=64), grid=(1, 2))),
        "attention": Case(attention, [half(128, 64), half(192, 64), half(192, 64)],
                          ((128, 64), f32), [192, 0.125], dict(bm=64, bn=64, d=64), (2,),
                          attention_answer),
        "scan": Case(scan, [integers(100, 4, 512)], ((4, 512), i32), [], dict(block=512), (4,),
                     lambda o, x: numpy.array_equal(o, x.cumsum(1))),
        "sort": Case(sort, [integers(1000, 4, 256)], ((4, 256), i32), [], dict(block=256), (4,),
                     lambda o, x: numpy.array_equal(o, numpy.sort(x, 1))),
        "histogram": Case(histogram, [integers(64, 3000)], ((64,), i32), [3000],
                          dict(block=512, bins=64), (6,),
                          lambda o, x: numpy.array_equal(o, numpy.bincount(x, minlength=64))),
        "last_block": Case(last_block, [floats(16, 256)], ((1,), f32), [],
                           dict(block=256, blocks=16), (16,),
                           lambda o, x: near(o[0], x.sum(), 1e-3),
                           scratch=(16, 1)),
        "dropout": Case(dropout, [floats(2000)], ((2000,), f32), [2000, 5, 0.7], dict(block=256),
                        (8,), dropout_answer),
    }


TYPES = {"float32": "*fp32", "float16": "*fp16", "int32": "*i32"}


def signature(case):
    arrays = [str(a.dtype) for a in case.inputs]
    arrays += ["float32", "int32"][:len(case.scratch)] + [numpy.dtype(case.out[1]).name]
    types = [TYPES[a] for a in arrays]
    types += ["i32" if isinstance(o, int) else "fp32" for o in case.others]
    types += ["constexpr"] * len(case.constants)
    return dict(zip(case.kernel.arg_names, types, strict=True))


def compile_all():
    for name, case in cases().items():
        source = triton.compiler.ASTSource(fn=case.kernel, signature=signature(case),
                                           constexprs=case.constants)
        made = triton.compile(source, target=GPUTarget("cuda", case.arch, 32))
        about = f"{HEAD}{made.metadata.name} {made.metadata.shared} {made.metadata.num_warps}\n"
        yield name, about + made.asm["ptx"]


def run(name, path):
    case = cases()[name]
    with open(path) as file:
        text = file.read()
    kernel, shared, warps = text.partition("\n")[0].removeprefix(HEAD).split()
    cuda = driver.Driver()
    pointers = [cuda.upload(a) for a in case.inputs]
    pointers += [cuda.upload(numpy.zeros(n, numpy.int32)) for n in case.scratch]
    out = cuda.upload(numpy.zeros(*case.out))
    # Two pointers to scratch memory of Triton's own come last, which these kernels do not use.
    cuda.launch(text, kernel, case.grid, 32 * int(warps), int(shared),
                [*pointers, out, *case.others, driver.Pointer(0), driver.Pointer(0)])
    fine = case.check(cuda.download(out, *case.out), *case.inputs)
    print("equal" if fine else "not equal")
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(run(*sys.argv[1:]))
