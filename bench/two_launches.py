# SPDX-License-Identifier: MIT
"""Gated products beside what a user without them would launch: the product of 2N in bf16, then
silu(x) * y by a Triton kernel, in one CUDA graph. Microseconds by graph replay with cold weights;
replays of all columns take turns. Needs a GPU, torch and Triton:

    NVFP4GEMM_LIBRARY=build/libnvfp4gemm.so.0 python3 bench/two_launches.py [LAYER ..]

A LAYER is NxK, or EXPERTSxNxK for a grouped product by ENDS with as many rows in each group."""
import argparse
import ctypes
import os
import statistics
from typing import NamedTuple

import torch
import triton
import triton.language as tl

from nvfp4gemm import abi

LAYERS = "14336x4096", "8192x3072", "1536x4096", "28672x8192"
ROWS = 1, 2, 4, 8, 16, 32, 64, 128, 512, 4096
KINDS = "nvfp4", "bf16", "packed"  # tokens, and for packed weights bf16 tokens
L2, CALLS = 60e6, 12
SPLITS = "/1", "/2", "/3", "/4", "/8"
SM90 = 90


@triton.jit
def silu_mul(both, d, n, block: tl.constexpr):
    row, first = tl.program_id(0).to(tl.int64), tl.program_id(1) * block
    at = first + tl.arange(0, block)
    there = at < n
    x = tl.load(both + row * 2 * n + at, there).to(tl.float32)
    y = tl.load(both + row * 2 * n + n + at, there).to(tl.float32)
    tl.store(d + row * n + at, (x * tl.sigmoid(x) * y).to(tl.bfloat16), there)


class Library:
    """A library's functions, whichever other one is loaded."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path, mode=os.RTLD_LOCAL)
        self.lib.nvfp4_last_error.restype = ctypes.c_char_p
        self.lib.nvfp4_variant_name.restype = ctypes.c_char_p

    def call(self, name, *arguments):
        if getattr(self.lib, name)(*arguments) != 0:
            raise RuntimeError(self.lib.nvfp4_last_error().decode())

    def plan(self, desc, groups=None):
        """(name of the plan, predicted us), and room for it in the descriptor."""
        info, size = abi.PlanInfo(), ctypes.c_uint64()
        what, first = ("grouped", ctypes.byref(groups)) if groups else ("gemm", ctypes.byref(desc))
        self.call(f"nvfp4_{what}_describe", first, SM90, 132, ctypes.byref(info))
        self.call(f"nvfp4_{what}_workspace_bytes", first, SM90, ctypes.byref(size))
        if size.value:
            desc.room = torch.empty(size.value, dtype=torch.uint8, device="cuda")
            desc.workspace, desc.workspace_bytes = desc.room.data_ptr(), size.value
        name = info.variant.decode().replace("sm90_", "").replace("x256", "")
        if b"/" not in info.variant:
            name += f"/{info.k_partitions}"
        return name + "+" * info.d_apart, info.predicted_ns / 1e3

    def run(self, desc, groups=None):
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        if groups:
            self.call("nvfp4_grouped_run", ctypes.byref(groups), stream)
        else:
            self.call("nvfp4_gemm_run", ctypes.byref(desc), stream)

    def variants(self):
        names = (self.lib.nvfp4_variant_name(SM90, i) for i in range(1000))
        return [name.decode() for name in iter(lambda: next(names), None)]


class Desc(abi.GemmDescFields):
    """Holds the memory of its addresses, too."""
    __slots__ = ("room",)


def codes(*shape):
    return torch.randint(0, 256, shape, dtype=torch.uint8, device="cuda")


class Layer(NamedTuple):
    experts: int  # 0: one product
    n: int
    k: int

    def __str__(self):
        return "x".join(str(x) for x in self if x)


class Weights:
    """Gate, then up: [experts][2N][K], in a checkpoint's order or packed."""

    def __init__(self, library, layer, packed):
        n, k, experts = layer.n, layer.k, max(layer.experts, 1)
        self.scale_bytes = -(-n // 128) * -(-k // 64) * 512
        self.b = codes(experts, 2 * n, k // 2)
        self.scales = torch.full((experts, 2 * self.scale_bytes), 0x18, dtype=torch.uint8,
                                 device="cuda")
        self.half = n * k // 2
        self.is_packed = packed
        if packed:
            size = library.lib.nvfp4_packed_bytes
            size.restype = ctypes.c_uint64
            bytes_ = size(ctypes.c_int64(2 * n), ctypes.c_int64(k), 1, 0)
            all_packed = torch.empty(bytes_, dtype=torch.uint8, device="cuda")
            pack = abi.PackDescFields(n=2 * n, k=k, codes=self.b.data_ptr(), codes_ld=k,
                                      scales=self.scales.data_ptr(), scale_layout=1,
                                      packed=all_packed.data_ptr(), packing=1, format=0)
            library.call("nvfp4_pack_weights", ctypes.byref(pack), None)
            torch.cuda.synchronize()
            self.b, self.half = all_packed, bytes_ // 2

    def put(self, desc, gated):
        desc.b = self.b.data_ptr()
        if self.is_packed:
            desc.b_packing = 1
        else:
            desc.b_ld, desc.b_scale_layout = desc.k, 1
            desc.b_scales = self.scales.data_ptr()
        if gated:
            desc.b2, desc.alpha2, desc.activation = desc.b + self.half, desc.alpha, 3
            if not self.is_packed:
                desc.b2_scales = desc.b_scales + self.scale_bytes


class Cell:
    """A layer with a number of rows and a kind of tokens, for some copies of the weights."""

    def __init__(self, layer, m, kind, copies):
        self.layer, self.m, self.copies = layer, m, copies
        total = m * max(layer.experts, 1)
        self.total = total
        if kind == "nvfp4":
            self.a = codes(total, layer.k // 2)
            tiles = 4 * -(-total // 128) * 32 * 4 * -(-layer.k // 64)
            self.a_scales = torch.full((tiles,), 0x38, dtype=torch.uint8, device="cuda")
        else:
            self.a = torch.randn(total, layer.k, device="cuda").to(torch.bfloat16)
            self.a_scales = None
        self.wide = torch.empty(total, 2 * layer.n, device="cuda", dtype=torch.bfloat16)
        self.d = torch.empty(total, layer.n, device="cuda", dtype=torch.bfloat16)
        self.ends = torch.arange(1, layer.experts + 1, dtype=torch.int32, device="cuda") * m
        self.block = 1024 if total * layer.n >= 1024 * 264 else 256

    def desc(self, weights, gated, variant=None):
        layer = self.layer
        g = Desc(m=self.total, n=layer.n if gated else 2 * layer.n, k=layer.k, l=1,
                 alpha=1 / 4096, d_type=abi.BF16)
        g.a, g.a_ld = self.a.data_ptr(), layer.k
        if self.a_scales is None:
            g.a_type = abi.BF16
        else:
            g.a_scales, g.a_scale_layout = self.a_scales.data_ptr(), 2 if layer.experts else 1
        weights.put(g, gated)
        out = self.d if gated else self.wide
        g.d, g.d_ld = out.data_ptr(), out.shape[1]
        g.variant = variant.encode() if variant else None
        if layer.experts:
            g.l = layer.experts
            g.b_batch_stride = 2 * layer.n * layer.k
            g.b_scales_batch_stride_bytes = 2 * weights.scale_bytes
        return g

    def groups(self, desc):
        if not self.layer.experts:
            return None
        return abi.GroupedDescFields(gemm=ctypes.addressof(desc), rows=self.ends.data_ptr(),
                                     rows_kind=abi.ROWS_ENDS)

    def ways(self, library, gated, variant=None):
        """(plan, predicted us, what runs it with a copy of the weights)."""
        first = self.desc(self.copies[0], gated, variant)
        name, us = library.plan(first, self.groups(first))
        descs = [first] + [self.desc(one, gated, variant) for one in self.copies[1:]]
        for one in descs[1:]:
            one.workspace, one.workspace_bytes = first.workspace, first.workspace_bytes
        pairs = [(one, self.groups(one)) for one in descs]
        return name, us, lambda i: library.run(*pairs[i])

    def two(self, library):
        name, _, product = self.ways(library, False)
        n = self.layer.n
        grid = self.total, triton.cdiv(n, self.block)

        def both(i):
            product(i)
            silu_mul[grid](self.wide, self.d, n, self.block)
        return name, both, product

    def others(self, library, most_us):
        """Other plans that are not predicted to be much slower."""
        for variant in library.variants():
            for split in (*SPLITS, "/apart"):
                try:
                    name, us, run = self.ways(library, True, variant + split)
                except RuntimeError:
                    continue  # of another type of tokens, or without that number of partitions
                if us <= most_us:
                    yield name, us, run


def graph_of(run, count, rounds):
    for i in range(count):
        run(i)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(rounds):
            run(i % count)
    return graph


def times(runs, count, rounds, replays):
    graphs = [graph_of(run, count, rounds) for run in runs]
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    all_times = [[] for _ in graphs]
    for _ in range(replays):
        for graph, own in zip(graphs, all_times):
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            own.append(begin.elapsed_time(end) * 1e3 / rounds)
    return [statistics.median(own) for own in all_times]


def measure(cell, kind, libraries, options):
    two_name, both, product = cell.two(libraries[0])
    columns = [("two", two_name, 0, both), ("product of 2n", two_name, 0, product)]
    for library, name in zip(libraries, ("gated", "before")):
        columns.append((name, *cell.ways(library, True)))
    if options.every:
        columns += [("plan", *way) for way in
                    cell.others(libraries[0], options.every * columns[2][2])]
    count = len(cell.copies)
    rounds = max(count, CALLS) if cell.total < 512 else 4
    replays = options.replays if cell.total < 4096 else min(options.replays, 5)
    us = times([run for *_, run in columns], count, rounds, replays)
    for (what, plan, predicted, _), value in zip(columns, us):
        print(f"{cell.layer},{cell.m},{kind},{what},{plan},{predicted:.2f},{value:.2f},"
              f"{value / us[0]:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("layers", nargs="*", default=LAYERS)
    parser.add_argument("--rows", default=",".join(map(str, ROWS)))
    parser.add_argument("--kinds", default=",".join(KINDS))
    parser.add_argument("--before", help="another library, whose gated products take turns")
    parser.add_argument("--every", type=float, default=0, metavar="FACTOR",
                        help="also time each plan predicted at most FACTOR times the chosen one's")
    parser.add_argument("--replays", type=int, default=9)
    options = parser.parse_args()
    libraries = [Library(path) for path in (os.environ["NVFP4GEMM_LIBRARY"], options.before)
                 if path]
    torch.manual_seed(1)
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}; median of "
          f"{options.replays} replays; two: the product of 2N in bf16, then a Triton kernel\n"
          "layer,rows,tokens,what,plan,predicted_us,us,over_two")
    for text in options.layers:
        parts = [int(x) for x in text.split("x")]
        layer = Layer(*([0] * (3 - len(parts)) + parts))
        bytes_ = layer.n * layer.k * 9 / 8 * max(layer.experts, 1)
        for packed in (False, True):
            kinds = [kind for kind in options.kinds.split(",") if (kind == "packed") == packed]
            if not kinds or (packed and layer.experts):
                continue
            copies = [Weights(libraries[0], layer, packed)
                      for _ in range(min(12, int(2 * L2 / bytes_) + 2))]
            for kind in kinds:
                for m in options.rows.split(","):
                    measure(Cell(layer, int(m), kind, copies), kind, libraries, options)


if __name__ == "__main__":
    main()
