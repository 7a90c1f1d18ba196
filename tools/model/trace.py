#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""trace.py BUILD [update]: what the emulator counts of one tile at two lengths of K, beside
tools/model/traced.def, from which the timing model takes loads, bytes and products of a stage. A
difference fails; update writes the file."""
import ctypes
import itertools
import json
import os
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


def program(build, *arguments, **environment):
    """What build/nvfp4 says in JSON; None if it refuses the arguments."""
    done = subprocess.run([os.path.join(build, "nvfp4"), *arguments, "--json"],
                          env=dict(os.environ, **environment), capture_output=True, text=True)
    if done.returncode not in (0, 2):
        sys.exit(f"nvfp4 {' '.join(arguments)}: {done.stderr}")
    return json.loads(done.stdout) if done.returncode == 0 else None


def variants(build):
    """Those of quantized tokens: name, device, tile."""
    library = ctypes.CDLL(os.path.join(build, "libnvfp4gemm.so"))
    library.nvfp4_variant_name.restype = ctypes.c_char_p
    found = []
    for capability, device in ((100, "B200"), (90, "H200")):
        for index in itertools.count():
            name = library.nvfp4_variant_name(capability, index)
            if name is None:
                break
            plan = program(build, "explain", "--gpu", device, "--variant", name.decode())
            if plan:
                found.append((name.decode(), device, plan["tile"]))
    return found


def count(build, variant, device, tile, k):
    found = program(build, "run", "--counters", "--variant", variant, "--m", str(tile["m"]), "--n",
                    str(tile["n"]), "--k", str(k), EMU_DEVICE=device,
                    LD_LIBRARY_PATH=os.path.abspath(os.path.join(build, "emulator")))["counters"]
    counts = {name: found.get(name, 0) for name in [*COUNTERS, *STORED]}
    return {**counts, "stored": sum(counts[name] for name in STORED)}


def row(build, variant, device, tile):
    short, long = (count(build, variant, device, tile, k) for k in (SHORT, LONG))
    stages = (LONG - SHORT) // STAGE_K
    added = [(long[name] - short[name]) / stages for name in COUNTERS]
    if any(value != int(value) for value in added) or short["stored"] != long["stored"]:
        sys.exit(f"{variant}: a stage does not always add the same: {short} {long}")
    numbers = [*added, short["stored"]]
    return f"TRACED({', '.join([variant, *(str(int(v)) for v in numbers)])})\n"


def main():
    path = os.path.join(HERE, "traced.def")
    build = sys.argv[1]
    text = HEAD + "".join(row(build, *each) for each in variants(build)) + "#undef TRACED\n"
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
