# SPDX-License-Identifier: MIT
"""Gated products beside what a user without them would launch: the product of 2N in bf16, then
silu(x) * y by a Triton kernel, in one CUDA graph. Microseconds by graph replay with cold weights;
replays of the two take turns. Needs a GPU, torch and Triton:

    NVFP4GEMM_LIBRARY=build/libnvfp4gemm.so.0 python3 bench/two_launches.py [MxNxK[:bf16] ..]
"""
import statistics
import sys

import torch
import triton
import triton.language as tl

import nvfp4gemm

SHAPES = [f"{m}x{n}x{k}{kind}" for kind in ("", ":bf16")
          for n, k in ((14336, 4096), (3072, 3072), (8192, 8192)) for m in (1, 16, 128, 512, 2048)]
L2 = 60e6
REPLAYS = 9


@triton.jit
def silu_mul(both, d, n, block: tl.constexpr):
    row, first = tl.program_id(0).to(tl.int64), tl.program_id(1) * block
    at = first + tl.arange(0, block)
    there = at < n
    x = tl.load(both + row * 2 * n + at, there).to(tl.float32)
    y = tl.load(both + row * 2 * n + n + at, there).to(tl.float32)
    tl.store(d + row * n + at, (x * tl.sigmoid(x) * y).to(tl.bfloat16), there)


def graph_of(run, count, rounds):
    for i in range(count):
        run(i)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for i in range(rounds):
            run(i % count)
    return graph


def times(graphs, rounds):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    all_times = [[] for _ in graphs]
    for _ in range(REPLAYS):
        for graph, own in zip(graphs, all_times):
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            own.append(begin.elapsed_time(end) * 1e3 / rounds)
    return [statistics.median(own) for own in all_times]


def measure(text):
    shape, _, kind = text.partition(":")
    m, n, k = map(int, shape.split("x"))
    count = min(12, int(2 * L2 / (n * k * 9 / 8)) + 2)
    rounds = max(count, 12) if m < 1024 else 4
    torch.manual_seed(1)
    x = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    a = x if kind else nvfp4gemm.quantize(x, 0.01)
    both = [nvfp4gemm.quantize(torch.randn(2 * n, k, device="cuda"), 0.01) for _ in range(count)]
    halves = [nvfp4gemm.layouts.split_gate_up(one) for one in both]
    wide = torch.empty(m, 2 * n, device="cuda", dtype=torch.bfloat16)
    sums = torch.empty(m, 2 * n, device="cuda", dtype=torch.float32)
    d = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
    block = 1024 if m * n >= 1024 * 264 else 256

    def two(i):
        nvfp4gemm.mm(a, both[i], out=wide)
        silu_mul[(m, triton.cdiv(n, block))](wide, d, n, block)

    def one(i):
        nvfp4gemm.gated_linear(a, *halves[i], out=d)

    def product(i):
        nvfp4gemm.mm(a, both[i], out=wide)

    def product_f32(i):
        nvfp4gemm.mm(a, both[i], out=sums)

    graphs = [graph_of(run, count, rounds) for run in (two, one, product, product_f32)]
    us = times(graphs, rounds)
    print(f"{m},{n},{k},{kind or 'nvfp4'}," + ",".join(f"{x:.2f}" for x in us) +
          f",{us[1] / us[0]:.3f}", flush=True)


def main():
    print(f"# {torch.cuda.get_device_name()}, torch {torch.__version__}; median of {REPLAYS}")
    print("m,n,k,tokens,two_launches_us,gated_us,product_of_2n_us,product_in_f32_us,gated_over_two")
    for text in sys.argv[1:] or SHAPES:
        measure(text)


if __name__ == "__main__":
    main()
