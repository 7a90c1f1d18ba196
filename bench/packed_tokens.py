#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Times products of NVFP4 tokens on a GPU of 9.0: with packed tokens (a_packing), with codes and
scales, whose tokens a kernel decodes first, and torch's fp16 product by cuBLAS. And the quantizer
that writes either, with one tensor scale and with one for each row; and both calls, also with the
product launched early (NVFP4_PDL_ON_STATIC_WEIGHTS).

    packed_tokens.py [TOKENS,.. [ROUNDS]] > FILE.csv

Layers are the first six of bench/drawn.csv of at least 8 MB. A line is the median of the rounds, in
which the ways take turns. A round is a graph with as many calls as there are copies of the weights,
256 MB, so that each call finds its weights in memory alone. Times in microseconds."""
import csv
import pathlib
import statistics
import sys

import torch
from nvfp4gemm import abi

PACKED = abi.TOKEN_PACKINGS["sm90_tokens_1"]
COLD_BYTES = 256 << 20


def address(tensor):
    return tensor.data_ptr()


class Layer:
    def __init__(self, m, n, k):
        self.m, self.n, self.k = m, n, k
        self.x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
        self.codes = torch.empty(m * k // 2, device="cuda", dtype=torch.uint8)
        self.scales = torch.zeros(abi.lib.nvfp4_scale_bytes(m, k, 1), device="cuda",
                                  dtype=torch.uint8)
        self.packed = torch.empty(abi.lib.nvfp4_packed_bytes(m, k, PACKED, 0), device="cuda",
                                  dtype=torch.uint8)
        self.of_rows = torch.empty(m, device="cuda")
        self.d = torch.empty(m, n, device="cuda", dtype=torch.float16)
        count = -(-COLD_BYTES // (n * k // 2))
        self.b = torch.randint(0, 256, (count, n * k // 2), device="cuda", dtype=torch.uint8)
        self.b_scales = torch.randint(0x28, 0x38, (count, abi.lib.nvfp4_scale_bytes(n, k, 1)),
                                      device="cuda", dtype=torch.uint8)
        halves = -(-COLD_BYTES // (n * k * 2))
        self.w = torch.randn(halves, n, k, device="cuda", dtype=torch.float16)
        self.xh = self.x.half()
        self.spaces = {}  # by bytes

    def quantizer(self, packed, by_rows=False):
        desc = abi.QuantizeDesc(rows=self.m, k=self.k, x=address(self.x), x_ld=self.k,
                                tensor_scale=0.01, x_type=abi.BF16)
        if by_rows:
            desc.tensor_scale_mode = abi.SCALE_BY_ROW_AMAX
            desc.tensor_scale_device = address(self.of_rows)
        if packed:
            desc.codes, desc.packing = address(self.packed), PACKED
        else:
            desc.codes, desc.codes_ld = address(self.codes), self.k
            desc.scales, desc.scale_layout = address(self.scales), 1
        return desc

    def product(self, packed, copy, early=False):
        desc = abi.GemmDesc(m=self.m, n=self.n, k=self.k, l=1, alpha=0.01, b=address(self.b[copy]),
                            b_ld=self.k, b_scales=address(self.b_scales[copy]), b_scale_layout=1,
                            d=address(self.d), d_ld=self.n, d_type=abi.F16,
                            pdl=abi.LAUNCHES["early_static_weights" if early else None])
        if packed:
            desc.a, desc.a_packing = address(self.packed), PACKED
        else:
            desc.a, desc.a_ld = address(self.codes), self.k
            desc.a_scales, desc.a_scale_layout = address(self.scales), 1
        return desc

    def workspace(self, desc):
        bytes_ = abi.c_uint64()
        abi.check(abi.lib.nvfp4_gemm_workspace_bytes(desc, 90, bytes_))
        if bytes_.value > 0:
            if bytes_.value not in self.spaces:
                self.spaces[bytes_.value] = torch.empty(bytes_.value, device="cuda",
                                                        dtype=torch.uint8)
            desc.workspace = address(self.spaces[bytes_.value])
            desc.workspace_bytes = bytes_.value
        return desc

    def ways(self):
        copies = len(self.b)
        both = (False, True)
        runs = {(p, early): [self.workspace(self.product(p, i, early)) for i in range(copies)]
                for p in both for early in both}
        quantizers = {(p, rows): self.quantizer(p, rows) for p in both for rows in both}
        stream = lambda: torch.cuda.current_stream().cuda_stream
        run = lambda p, i, early=False: abi.check(abi.lib.nvfp4_gemm_run(runs[p, early][i],
                                                                         stream()))
        quantize = lambda p, rows=False: abi.check(abi.lib.nvfp4_quantize(quantizers[p, rows],
                                                                          stream()))
        ways = {"cublas_f16": (len(self.w),
                               lambda i: torch.mm(self.xh, self.w[i].t(), out=self.d))}
        for p, name in enumerate(("codes", "packed")):
            p = bool(p)
            ways |= {
                name: (copies, lambda i, p=p: run(p, i)),
                f"quantize_{name}": (copies, lambda i, p=p: quantize(p)),
                f"quantize_rows_{name}": (copies, lambda i, p=p: quantize(p, True)),
                f"both_{name}": (copies, lambda i, p=p: (quantize(p), run(p, i))),
                f"both_{name}_early": (copies, lambda i, p=p: (quantize(p), run(p, i, True))),
            }
        return ways


def graph_of(count, call):
    for i in range(count):
        call(i)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(count):
            call(i)
    return graph


def measure(layer, rounds):
    ways = layer.ways()
    stream = torch.cuda.current_stream().cuda_stream
    for packed in (False, True):
        abi.check(abi.lib.nvfp4_quantize(layer.quantizer(packed), stream))
    graphs = {name: graph_of(*way) for name, way in ways.items()}
    times = {name: [] for name in ways}
    for _ in range(rounds):
        for name, graph in graphs.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            times[name].append(begin.elapsed_time(end) * 1000 / ways[name][0])

    def bits(packed):
        abi.check(abi.lib.nvfp4_gemm_run(layer.workspace(layer.product(packed, 0)), stream))
        return layer.d.view(torch.int16).clone()

    different = (bits(False) != bits(True)).float().mean().item()
    return {name: statistics.median(all_) for name, all_ in times.items()}, different


def main():
    listed = sys.argv[1] if len(sys.argv) > 1 else "32,64,128,256,512"
    tokens = [int(m) for m in listed.split(",")]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 15
    torch.zeros(1, device="cuda")  # makes a context
    abi.check(abi.lib.nvfp4_prepare())
    rows = csv.DictReader(open(pathlib.Path(__file__).parent / "drawn.csv"))
    layers = [(int(r["n"]), int(r["k"])) for r in rows]
    layers = [each for each in layers if each[0] * each[1] >= 16 << 20][:6]
    named = False
    for n, k in layers:
        for m in tokens:
            times, different = measure(Layer(m, n, k), rounds)
            if not named:
                print("m,n,k," + ",".join(times) + ",different_bits", flush=True)
                named = True
            print(f"{m},{n},{k}," + ",".join(f"{t:.2f}" for t in times.values())
                  + f",{different:.4f}", flush=True)


if __name__ == "__main__":
    main()
