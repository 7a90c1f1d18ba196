#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""grouped_quantized.py: gate and up of experts with a D of 4 bits, in one launch (out_scale), and
in bf16 with quantize() after it; CSV. The bits are those of the result in float32, quantized, or
nothing is timed.

Needs torch, the package and a GPU of compute capability 9.0 or 10.x. The weights of each layer are
several times as large as an L2, so that they are cold."""
import statistics

import torch

import nvfp4gemm

# name: experts, n of gate and of up, k
LAYERS = {"qwen3-30b": (128, 768, 2048), "qwen3-235b": (128, 1536, 4096),
          "deepseek-v3 1-of-8": (32, 2048, 7168), "mixtral-8x7b": (8, 14336, 4096),
          "qwen3-next": (512, 512, 2048), "gpt-oss-20b": (32, 2880, 2880)}
SCALE, REPLAYS = 0.01, 7


def random_stack(experts, n, k, format_):
    """Random codes, and scales near 1, far from NaN."""
    codes = torch.randint(0, 256, (experts, n, k // 2), dtype=torch.uint8, device="cuda")
    blocks = k // (32 if format_ == "mxfp4" else 16)
    scales = experts * -(-n // 128) * 128 * -(-blocks // 4) * 4
    least, most = (40, 64) if format_ == "nvfp4" else (120, 128)
    scales = torch.randint(least, most, (scales,), dtype=torch.uint8, device="cuda")
    factor = torch.full((experts,), SCALE, device="cuda") if format_ == "nvfp4" else 1.0
    return nvfp4gemm.Stack(codes, scales, experts, n, k, factor, "128x4", format_)


def graph_of(call, times):
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(times):
            call()
    return graph


def microseconds(graph, times):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    graph.replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1000 / times


def time_rows(gate, up, format_, rows):
    """Medians of one launch, of both parts, and of the product in bf16."""
    scale = torch.tensor(SCALE, device="cuda") if format_ == "nvfp4" else None
    ends = torch.arange(1, gate.groups + 1, device="cuda", dtype=torch.int32) * rows
    x = torch.randn(gate.groups * rows, gate.k, device="cuda").bfloat16()

    def quantized(values):
        return nvfp4gemm.quantize(values, scale, scale_layout="linear", format=format_)

    x = quantized(x)

    def product(**result):
        return nvfp4gemm.grouped_gated_linear(x, ends, gate, up, **result)

    def fused():
        return product(out_scale=1.0 if scale is None else scale)

    found, expected = fused(), quantized(product(out_dtype=torch.float32))
    if not (torch.equal(found.codes, expected.codes) and
            torch.equal(found.scales, expected.scales)):
        raise RuntimeError("one launch has other bits than the quantized result in float32")
    times = 10 if rows < 64 else 4
    graphs = [graph_of(call, times) for call in (
        fused, lambda: quantized(product(out_dtype=torch.bfloat16)),
        lambda: product(out_dtype=torch.bfloat16))]
    taken = [[microseconds(graph, times) for graph in graphs] for _ in range(REPLAYS)]
    return map(statistics.median, zip(*taken))


def main():
    print("layer,experts,n,k,format,rows,fused_us,parts_us,product_us,fused_over_parts")
    for name, (experts, n, k) in LAYERS.items():
        for format_ in ("nvfp4", "mxfp4"):
            gate, up = (random_stack(experts, n, k, format_) for _ in range(2))
            for rows in (1, 4, 16, 64, 256):
                fused, parts, product = time_rows(gate, up, format_, rows)
                print(f"{name},{experts},{n},{k},{format_},{rows},{fused:.2f},{parts:.2f},"
                      f"{product:.2f},{fused / parts:.3f}", flush=True)


if __name__ == "__main__":
    main()
