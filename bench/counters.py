#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""counters.py BENCH [--cell TOKENS:MxNxK[:VARIANT] | TOKENS:LAYER@ROWS | run:OPTIONS ..]: what
Nsight Compute counts in one launch of the product's kernel, caches flushed before each pass, the
GPU's own clocks: a CSV row a cell to stdout. BENCH is build/nvfp4_bench, whose first launch is
counted and verified; TOKENS is nvfp4, f16, bf16, or packed: bf16 with packed weights; LAYER@ROWS is
a layer of experts.def whose groups have ROWS rows each; OPTIONS are those of `nvfp4 run`, a program
beside BENCH. `ncu` must be on the PATH and may need root."""
import argparse
import csv
import io
import os
import subprocess
import sys

# Cells of the layers drawn on 26 November 2026 that miss a goal, one for each kernel and cause.
CELLS = ["bf16:1x5376x21504", "bf16:8x12800x5120", "bf16:16x5376x10752:sm80_bf16_64x16w4x128/4",
         "bf16:64x5376x21504", "bf16:128x4608x2048", "bf16:256x5376x10752", "bf16:512x2304x2048",
         "nvfp4:64x4608x2048", "nvfp4:512x2304x2048"]
PEAK = ".avg.pct_of_peak_sustained_elapsed"
COLUMNS = {
    "us": "gpu__time_duration.sum",
    "dram_percent": "dram__throughput" + PEAK,
    "l2_percent": "lts__throughput" + PEAK,
    "issue_percent": "smsp__issue_active" + PEAK,
    "alu_percent": "sm__inst_executed_pipe_alu" + PEAK,
    "fma_percent": "sm__inst_executed_pipe_fma" + PEAK,
    "tensor_percent": "sm__pipe_tensor_cycles_active" + PEAK,
    "sm_active_percent": "sm__cycles_active" + PEAK,
    "occupancy_percent": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "waves": "launch__waves_per_multiprocessor",
    "ctas": "launch__grid_size",
    "registers": "launch__registers_per_thread",
}
REASONS = ["barrier", "branch_resolving", "dispatch_stall", "drain", "gmma", "imc_miss",
           "lg_throttle", "long_scoreboard", "math_pipe_throttle", "membar", "mio_throttle", "misc",
           "no_instruction", "not_selected", "selected", "short_scoreboard", "sleeping",
           "tex_throttle", "wait"]


def stalled(reason):
    return f"smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio"


def bench_command(bench, tokens, shape, *variant):
    if tokens == "run":
        return [os.path.join(os.path.dirname(bench), "nvfp4"), "run", *shape.split()]
    if "@" in shape:
        layer, rows = shape.split("@")
        command = [bench, "grouped", "--layer", layer, "--rows", rows, "--replays", "3"]
    elif tokens == "packed":
        command, tokens = [bench, "packed", "--shape", shape, "--replays", "3"], "bf16"
    else:
        command = [bench, "gpu", "--shape", shape, "--no-cublas", "--replays", "3"]
    command += [] if tokens == "nvfp4" else ["--a-type", tokens]
    return command + (["--variant", *variant] if variant else [])


def count(bench, tokens, shape, *variant):
    """Names and values of the launch, as Nsight Compute prints them."""
    metrics = [*COLUMNS.values(), *map(stalled, REASONS)]
    command = ["ncu", "--clock-control", "none", "--cache-control", "all", "--csv", "--page", "raw",
               "--print-units", "base", "--kernel-name",
               "regex:^nvfp4_gemm" + (".*_grouped" if "@" in shape else ""), "--launch-count", "1",
               "--metrics", ",".join(metrics),
               *bench_command(bench, tokens, shape, *variant)]
    done = subprocess.run(command, capture_output=True, text=True)
    lines = done.stdout.splitlines()
    start = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if start is None:
        sys.exit(f"ncu counted nothing of {tokens} {shape}:\n{done.stdout}{done.stderr}")
    if done.returncode != 0:
        sys.exit(f"{tokens} {shape} failed:\n{done.stdout}{done.stderr}")
    rows = list(csv.DictReader(io.StringIO("\n".join(lines[start:]))))
    return rows[1]  # behind the row of units


def value(row, name):
    text = row.get(name, "").replace(",", "")
    try:
        return float(text)
    except ValueError:
        return None


def cells_of(row):
    out = {}
    for column, name in COLUMNS.items():
        number = value(row, name)
        if number is not None and column == "us":
            number /= 1e3
        out[column] = "" if number is None else f"{number:.4g}"
    waiting = {reason: value(row, stalled(reason)) or 0
               for reason in REASONS if reason != "selected"}
    every = sum(waiting.values())
    top = sorted(waiting, key=waiting.get, reverse=True)[:4]
    out["stalls"] = "; ".join(f"{reason} {100 * waiting[reason] / every:.0f}" for reason in top)
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bench")
    parser.add_argument("--cell", nargs="+", default=CELLS)
    arguments = parser.parse_args()
    print("# Nsight Compute, --clock-control none, one launch with flushed caches; percent of the "
          "peak of all SMs,\n# occupancy of SMs that are busy, stalls: percent of the clocks that "
          "warps wait, the four largest")
    writer = None
    for cell in arguments.cell:
        tokens, shape, *variant = cell.split(":")
        row = count(arguments.bench, tokens, shape, *variant)
        figures = {"tokens": tokens, "shape": shape,
                   "kernel": row["Kernel Name"].split("(")[0], **cells_of(row)}
        if writer is None:
            writer = csv.DictWriter(sys.stdout, figures, lineterminator="\n")
            writer.writeheader()
        writer.writerow(figures)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
