# SPDX-License-Identifier: MIT
"""host_python.py [--rounds N]: host time of calls of the Python package beside those of torch that
they take the place of, CSV with its circumstances to stdout. Needs a GPU of compute capability 9.0.

A call is so small that the GPU is done before the next one begins, so what is measured is the time
until it returns: medians of rounds of 50 calls, all rows in turns, after which the GPU is waited
for. A budget is the most that a row may take, in times of its yardstick."""
import argparse
import datetime
import platform
import statistics
import sys
import time

import torch
from torch.nn import functional

import nvfp4gemm
from nvfp4gemm import nn

M, N, K, GROUPS, CALLS = 1, 512, 1024, 8, 50
# call: its yardstick, and how many times the yardstick's time it may take.
BUDGETS = {
    "linear": ("F.linear", 1.25),
    "linear quantize_input": ("F.linear", 2.0),
    "grouped_linear": ("F.linear", 1.5),
    "compiled linear": ("compiled F.linear", 1.2),
    "nn.Linear": ("torch.nn.Linear", None),
    "compiled nn.Linear": ("compiled torch.nn.Linear", None),
    "mm of a Packed": ("F.linear", None),
    "quantize": ("F.linear", None),
}


def calls_on(device):
    """{name: a call without arguments}"""
    def normal(*shape):
        return torch.randn(shape, device=device).bfloat16()

    x, w, tokens = normal(M, K), normal(N, K), normal(GROUPS, K)
    weight, packed = nvfp4gemm.quantize(w), nvfp4gemm.quantize(x)
    experts = nvfp4gemm.stack([nvfp4gemm.quantize(normal(N, K)) for _ in range(GROUPS)])
    ends = torch.arange(1, GROUPS + 1, dtype=torch.int32, device=device)
    layer, plain = nn.Linear(weight), torch.nn.Linear(K, N, bias=False, device=device)
    plain = plain.bfloat16().requires_grad_(False)
    of_torch = torch.compile(lambda x: functional.linear(x, w))
    ours = torch.compile(lambda x: nvfp4gemm.linear(x, weight))
    compiled, compiled_plain = torch.compile(layer), torch.compile(plain)
    return {
        "F.linear": lambda: functional.linear(x, w),
        "linear": lambda: nvfp4gemm.linear(x, weight),
        "linear quantize_input": lambda: nvfp4gemm.linear(x, weight, quantize_input=True),
        "grouped_linear": lambda: nvfp4gemm.grouped_linear(tokens, ends, experts),
        "compiled F.linear": lambda: of_torch(x),
        "compiled linear": lambda: ours(x),
        "torch.nn.Linear": lambda: plain(x),
        "nn.Linear": lambda: layer(x),
        "compiled torch.nn.Linear": lambda: compiled_plain(x),
        "compiled nn.Linear": lambda: compiled(x),
        "mm of a Packed": lambda: nvfp4gemm.mm(packed, weight, torch.bfloat16),
        "quantize": lambda: nvfp4gemm.quantize(x),
    }


def microseconds(calls, rounds, wait):
    """{name: median of rounds}"""
    taken = {name: [] for name in calls}
    for round_ in range(-2, rounds):  # the first two compile, load and fill caches
        for name, call in calls.items():
            start = time.perf_counter_ns()
            for _ in range(CALLS):
                call()
            us = (time.perf_counter_ns() - start) / CALLS / 1e3
            wait()
            if round_ >= 0:
                taken[name].append(us)
    return {name: statistics.median(of_call) for name, of_call in taken.items()}


def print_table(us):
    """Returns whether each budget is kept."""
    kept = True
    print("call,us,yardstick,us of the yardstick,ratio,budget")
    for name, taken in us.items():
        yardstick, budget = BUDGETS.get(name, (name, None))
        ratio = taken / us[yardstick]
        kept = kept and (budget is None or ratio <= budget)
        print(f"{name},{taken:.2f},{yardstick},{us[yardstick]:.2f},{ratio:.2f},"
              f"{'' if budget is None else budget}")
    return kept


def processor():
    """The host's, as Linux calls it."""
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        return next((line.split(":")[1].strip() for line in file if line.startswith("model name")),
                    platform.machine())


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=41)
    rounds = parser.parse_args().rounds
    print(f"# Host time of a call from Python, {M} x {N} x {K} in bf16, {GROUPS} groups; us.\n"
          f"# date      {datetime.date.today()}\n"
          f"# machine   {torch.cuda.get_device_name()}, {processor()}\n"
          f"# software  torch {torch.__version__}, Python {platform.python_version()}\n"
          f"# command   make bench-python")
    with torch.no_grad():
        kept = print_table(microseconds(calls_on("cuda"), rounds, torch.cuda.synchronize))
    return 0 if kept else 1


if __name__ == "__main__":
    sys.exit(main())
