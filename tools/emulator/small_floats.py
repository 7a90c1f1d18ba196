# SPDX-License-Identifier: MIT
"""small_floats.py PTXAS...: writes test/golden/small_floats.csv, which says for every form of cvt
with floats of 8 bits and fewer, and of block-scaled mma.sync, on which targets the given ptxas take
it. The tests compare the emulator's front end with it. A cell holds a letter for each ptxas, in the
order given: y, n, or - where it does not know the target."""
import csv
import itertools
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TARGETS = ["75", "80", "89", "90", "90a", "100", "100a", "100f", "103", "103a", "103f", "107",
           "107a", "107f", "110", "110a", "110f", "120", "120a", "120f", "121", "121a", "121f"]
PAIRS = ["e4m3x2", "e5m2x2", "e2m3x2", "e3m2x2", "e2m1x2"]


def conversions():
    for pair in PAIRS:
        to = "%b0" if pair == "e2m1x2" else "%h0"
        back = "%b1" if pair == "e2m1x2" else "%h1"
        for relu, sat in itertools.product(("", ".relu"), (".satfinite", "")):
            yield f"cvt.rn{sat}{relu}.{pair}.f32 {to}, %f1, %f2;"
            yield f"cvt.rn{sat}{relu}.{pair}.f16x2 {to}, %r1;"
            yield f"cvt.rn{sat}{relu}.{pair}.bf16x2 {to}, %r1;"
            yield f"cvt.rn{sat}{relu}.f16x2.{pair} %r0, {back};"
            yield f"cvt.rn{sat}{relu}.bf16x2.{pair} %r0, {back};"
    for mode, sat, source in itertools.product(("rz", "rp", "rn"), (".satfinite", ""),
                                               (".f32 %h0, %f1, %f2;", ".bf16x2 %h0, %r1;")):
        yield f"cvt.{mode}{sat}.ue8m0x2{source}"
    yield "cvt.rn.bf16x2.ue8m0x2 %r0, %h1;"


def products():
    fragments = "{%f0,%f1,%f2,%f3}, {%r0,%r1,%r2,%r3}, {%r4,%r5}, {%f0,%f1,%f2,%f3}"
    selectors = "%r6, {%h0,%h1}, %r7, {%h0,%h1}"
    small = ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1"]
    for a, b in itertools.product(small, small):
        yield f"mma.sync.aligned.m16n8k32.row.col.kind::f8f6f4.f32.{a}.{b}.f32 {fragments};"
        yield ("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X"
               f".f32.{a}.{b}.f32.ue8m0 {fragments}, {selectors};")
    for a, b in itertools.product(small[:2], small[:2]):
        yield f"mma.sync.aligned.m16n8k32.row.col.f32.{a}.{b}.f32 {fragments};"
    for kind, vectors, scale in itertools.product(("mxf4", "mxf4nvf4"), ("2X", "4X"),
                                                  ("ue8m0", "ue4m3")):
        yield (f"mma.sync.aligned.m16n8k64.row.col.kind::{kind}.block_scale.scale_vec::{vectors}"
               f".f32.e2m1.e2m1.f32.{scale} {fragments}, {selectors};")


def version_of(ptxas):
    said = subprocess.run([ptxas, "--version"], capture_output=True, text=True, check=True).stdout
    release = re.search(r"release (\d+)\.(\d+)", said)
    return f"{int(release[1]) - 4}.{release[2]}", f"{release[1]}.{release[2]}"


def takes(ptxas, isa, target, form):
    text = (f".version {isa}\n.target sm_{target}\n.address_size 64\n.visible .entry k() {{\n"
            ".reg .b8 %b<4>; .reg .b16 %h<4>; .reg .b32 %r<8>; .reg .f32 %f<4>;\n"
            f"{form}\nret;\n}}\n")
    with tempfile.NamedTemporaryFile("w", suffix=".ptx") as file:
        file.write(text)
        file.flush()
        done = subprocess.run([ptxas, f"-arch=sm_{target}", "-O0", "-o", "/dev/null", file.name],
                              capture_output=True, text=True)
    if "is not defined for option" in done.stdout + done.stderr:
        return "-"
    return "n" if done.returncode else "y"


def main(all_ptxas):
    versions = [version_of(p) for p in all_ptxas]
    table = (HERE / "test/golden/small_floats.csv").open("w", newline="")
    out = csv.writer(table, lineterminator="\n", delimiter="\t", quoting=csv.QUOTE_NONE)
    out.writerow(["ptxas " + " and ".join(release for _, release in versions)] + TARGETS)
    for form in itertools.chain(conversions(), products()):
        cells = ["".join(takes(p, isa, t, form) for p, (isa, _) in zip(all_ptxas, versions))
                 for t in TARGETS]
        out.writerow([form] + cells)


if __name__ == "__main__":
    main(sys.argv[1:])
