#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""torch_grouped.py RESULT.csv...: adds to tables of `nvfp4_bench grouped` a column torch_us: the
same rows of the same layers by torch._grouped_mm in bf16, by graph replay, with cold weights. A
product that several tables have is timed once.

Needs torch and the GPU that the tables name."""
import statistics
import sys

import torch

# Sets of weights take turns, so that none is in L2 when its turn comes.
COLD_BYTES, MOST_SETS, REPLAYS = 600e6, 8, 5


def ends_of(experts, rows, routing):
    """Where the rows of each expert end, as bench/grouped.cc divides them."""
    total = experts * rows
    most, others = total * 6 // 10, experts - 1
    ends = []
    for i in range(experts):
        end = (i + 1) * rows
        if routing == "half-empty":
            end = (i // 2 + 1) * 2 * rows
        if routing == "skewed":
            end = (0 if i == 0 else most) + (total - most) * max(i, 1) // others
        ends.append(min(end, total))
    return torch.tensor(ends, dtype=torch.int32, device="cuda")


def sets_of(experts, n, k):
    count = max(1, min(MOST_SETS, -(-int(COLD_BYTES) // (2 * experts * n * k))))
    return [torch.randn(experts, n, k, dtype=torch.bfloat16, device="cuda") for _ in range(count)]


def microseconds(weights, tokens, ends):
    """The median of a product's time, where the sets take turns in one graph."""
    def run():
        for b in weights:
            torch._grouped_mm(tokens, b.transpose(1, 2), offs=ends)
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        run()
    times = []
    for _ in range(REPLAYS + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end) * 1000 / len(weights))
    return statistics.median(times[1:])


class Times:
    """microseconds() of each cell once; the weights of the last layer are kept."""

    def __init__(self):
        self.layer, self.weights, self.known = None, [], {}

    def __call__(self, experts, n, k, mean, routing):
        cell = experts, n, k, mean, routing
        if cell not in self.known:
            if self.layer != cell[:3]:
                self.weights = []  # first, for the memory
                self.weights, self.layer = sets_of(experts, n, k), cell[:3]
            tokens = torch.randn(experts * mean, k, dtype=torch.bfloat16, device="cuda")
            self.known[cell] = microseconds(self.weights, tokens, ends_of(experts, mean, routing))
        return self.known[cell]


def add_column(path, times):
    lines = open(path, encoding="utf-8").read().splitlines()
    head = [line for line in lines if line.startswith("#")]
    columns, *rows = [line.split(",") for line in lines if line and not line.startswith("#")]
    out = [*head, f"# torch_us  torch._grouped_mm in bf16, torch {torch.__version__}",
           ",".join([*columns, "torch_us"])]
    for row in rows:
        of = dict(zip(columns, row))
        cell = (int(of[name]) for name in ("experts", "n", "k", "rows_a_group"))
        out.append(",".join([*row, f"{times(*cell, of['routing']):.2f}"]))
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


def main():
    times = Times()
    for path in sys.argv[1:]:
        add_column(path, times)


if __name__ == "__main__":
    main()
