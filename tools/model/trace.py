#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""trace.py BUILD [update]: what the emulator counts of one tile at two lengths of K, beside
tools/model/traced.def, from which the timing model takes loads, bytes and products of a stage. A
difference fails; update writes the file."""
import ctypes
import itertools
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
STAGE_K = 256
SHORT, LONG = 2 * STAGE_K, 4 * STAGE_K
COUNTERS = ["tma_loads", "tma_bytes", "bulk_copies", "bulk_bytes", "global_load_bytes", "mmas",
            "scale_copies"]
STORED = ["global_store_bytes", "tma_store_bytes"]
HEAD = """// SPDX-License-Identifier: MIT
// Written by tools/model/trace.py from the counters of one tile with 2 and 4 stages of K in the
// emulator: what a stage adds, what is stored once. TRACED(variant, tensor-map loads, bytes, bulk
// copies, their bytes, bytes by ld.global, products (of warpgroups on 9.0), tcgen05.cp, bytes of D)
"""


def variants(build):
    """Those of quantized tokens."""
    library = ctypes.CDLL(os.path.join(build, "libnvfp4gemm.so"))
    library.nvfp4_variant_name.restype = ctypes.c_char_p
    names = []
    for capability in (100, 90):
        for index in itertools.count():
            name = library.nvfp4_variant_name(capability, index)
            if name is None:
                break
            names.append(name.decode())
    return [name for name in names if "f16" not in name]


def count(build, variant, k):
    weights, tokens = re.search(r"(\d+)x(\d+)x256", variant).groups()
    environment = dict(os.environ, EMU_DEVICE="B200" if "sm100" in variant else "H200",
                       LD_LIBRARY_PATH=os.path.abspath(os.path.join(build, "emulator")))
    text = subprocess.run([os.path.join(build, "nvfp4"), "run", "--counters", "--variant", variant,
                           "--m", tokens, "--n", weights, "--k", str(k)],
                          env=environment, check=True, capture_output=True, text=True).stdout
    found = dict(re.findall(r"^(\w+) +(\d+) ", text, re.M))
    counts = {name: int(found.get(name, 0)) for name in [*COUNTERS, *STORED]}
    return {**counts, "stored": sum(counts[name] for name in STORED)}


def row(build, variant):
    short, long = count(build, variant, SHORT), count(build, variant, LONG)
    stages = (LONG - SHORT) // STAGE_K
    added = [(long[name] - short[name]) / stages for name in COUNTERS]
    if any(value != int(value) for value in added) or short["stored"] != long["stored"]:
        sys.exit(f"{variant}: a stage does not always add the same: {short} {long}")
    numbers = [*added, short["stored"]]
    return f"TRACED({', '.join([variant, *(str(int(v)) for v in numbers)])})\n"


def main():
    path = os.path.join(HERE, "traced.def")
    build = sys.argv[1]
    text = HEAD + "".join(row(build, name) for name in variants(build)) + "#undef TRACED\n"
    if "update" in sys.argv:
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        return
    with open(path, encoding="utf-8") as file:
        same = file.read() == text
    tally = os.environ.get("NVFP4_TALLY")
    if tally:
        with open(tally, "a", encoding="utf-8") as file:
            file.write(f"{int(same)} passed, {int(not same)} failed, 0 skipped\n")
    if not same:
        sys.exit("tools/model/traced.def is not what the emulator counts:\n" + text)
    print("tools/model/traced.def is what the emulator counts")


if __name__ == "__main__":
    main()
