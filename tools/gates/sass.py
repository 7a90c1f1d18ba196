#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""sass.py COMPILER FAMILY CUBIN [update]: what a trip through each kernel's main loop costs to
issue, read from the machine code's control bits, beside the figures of tools/gates/sass.txt; larger
ones
fail. Another compiler than the one of that file makes other code, so then nothing is compared.

A trip of sm_100 is one k-block: the wait, its four steps one after the
other, the commit, the next stage."""
import functools
import importlib.metadata
import os
import shutil
import subprocess
import sys

from machine_code import (cheapest, cheapest_path, clocks, functions, half_addresses,
                          loops_around, named, round_trip)
from sass_tails import tail_rows

HERE = os.path.dirname(os.path.abspath(__file__))
# What the main loop of a family is known by: a multiplication, and what else it holds. On sm_100 a
# k-block gives its stage back, which the loop over the steps of an incomplete one does not.
MARK = {"sm100": ("UTCOMMA", "UTCBAR"), "sm90": ("HGMMA", "HGMMA"), "sm80": ("HMMA", "HMMA"),
        "sm120": ("OMMA", "OMMA")}


def loop_of(family, instructions, labels):
    mark, also = MARK[family]
    loops = [loop for loop in loops_around(instructions, labels, mark)
             if named(instructions, loop, also)]
    return loops[0] if loops else None


def rows_of_registers(family, _, instructions, labels):
    local = sum(i.opcode.split(".")[0] in ("LDL", "STL") for i in instructions)
    yield "local-memory instructions", local
    if copies := half_addresses(instructions):  # a figure that sass.txt never has
        yield "copies from half an address", copies
    # More of them: a loop of copies whose thread ptxas no longer knows to be its warp's only one.
    yield "R2UR in all", len(named(instructions, (0, len(instructions) - 1), "R2UR"))
    trip = loop_of(family, instructions, labels)
    if not trip:
        return
    yield "R2UR in the loop", len(named(instructions, trip, "R2UR"))
    steps = named(instructions, trip, MARK[family][0])
    yield "stall clocks of the loop", round_trip(instructions, labels, trip[0], trip, steps)


def rows_of_start(instructions, labels):
    """What the thread that issues the first load executes before it. That thread has initialised
    a barrier, so its path leads through one: two branches ask which thread is elected, and a path
    that takes only one of them is no thread's. The launch chooses which load is the first one, so
    the nearest counts."""
    everything = (0, len(instructions) - 1)

    def nearest(start, opcode):
        ways = [cheapest_path(instructions, labels, start, goal, everything)
                for goal in named(instructions, everything, opcode)]
        return min((way for way in ways if way[0] is not None), key=lambda way: way[0],
                   default=(None, ()))

    barrier = named(instructions, everything, "SYNCS.EXCH")[0]
    cost, path = cheapest_path(instructions, labels, 0, barrier, everything)
    more, rest = nearest(barrier, "UTMALDG")
    yield "stall clocks before the first load", cost + more
    yield "clocks before the first load", clocks(instructions, path + rest)
    # Packed weights come without a tensor map, but to a pair.
    if (bulk := nearest(barrier, "UBLKCP")[1]):
        yield "clocks before the first bulk copy", clocks(instructions, path + bulk)
    yield "clocks before the first map", clocks(instructions, nearest(0, "UTMACCTL.PF")[1])


def rows_of_sm100(name, instructions, labels):
    trip = loop_of("sm100", instructions, labels)
    if not trip:
        return
    mark, also = MARK["sm100"]
    steps = named(instructions, trip, mark)
    yield from rows_of_start(instructions, labels)
    whole = round_trip(instructions, labels, trip[0], trip,
                       steps + named(instructions, trip, also)[:1])
    between = [cheapest(instructions, labels, a, b, trip) for a, b in zip(steps, steps[1:])]
    if whole is None or None in between or not between:
        yield "stall clocks a step", None
        return
    yield "stall clocks of a k-block", whole
    yield "stall clocks from step to step", round(sum(between) / len(between))
    yield "stall clocks a step", round(whole / len(steps))
    yield from tail_rows(name, instructions, labels)


ROWS = {"sm100": rows_of_sm100, "sm90": functools.partial(rows_of_registers, "sm90"),
        "sm80": functools.partial(rows_of_registers, "sm80"),
        "sm120": functools.partial(rows_of_registers, "sm120")}


def figures(family, listing):
    """[(what, clocks or count)] of each kernel of a family."""
    return [(f"{name} {what}", number)
            for name, (instructions, labels) in sorted(functions(listing).items())
            for what, number in ROWS[family](name, instructions, labels)]


def nvdisasm():
    """The environment's; where PYTHON= names an environment without one, the toolkit's."""
    try:
        for file in importlib.metadata.files("nvidia-cuda-nvdisasm"):
            if file.name == "nvdisasm":
                return str(file.locate())
    except importlib.metadata.PackageNotFoundError:
        if found := shutil.which("nvdisasm"):
            return found
    sys.exit("sass: neither the package nvidia-cuda-nvdisasm nor PATH has nvdisasm")


def committed(path):
    """(compiler, {what: figure}) of tools/gates/sass.txt."""
    compiler, most = "", {}
    with open(path, encoding="utf-8") as text:
        for line in text:
            if line.startswith("compiler "):
                compiler = line.split()[1]
            elif line.strip() and not line.startswith("#"):
                name, figures_of_it = line.split(None, 1)
                for figure in figures_of_it.split(";"):
                    what, number = figure.rsplit(None, 1)
                    most[f"{name} {what.strip()}"] = int(number)
    return compiler, most


def lines_of(rows):
    """The lines of sass.txt: a kernel, and its figures with "; " between them."""
    of_kernel = {}
    for what, number in rows:
        name, rest = what.split(" ", 1)
        of_kernel.setdefault(name, []).append(f"{rest} {number}")
    return [f"{name} {'; '.join(each)}" for name, each in of_kernel.items()]


def main():
    compiler, family, cubin = sys.argv[1:4]
    listing = subprocess.check_output([nvdisasm(), "-hex", "-c", cubin], text=True)
    rows = figures(family, listing)
    if sys.argv[4:] == ["update"]:
        print("\n".join(lines_of(rows)))
        return 0
    known, most = committed(os.path.join(HERE, "sass.txt"))
    if compiler != known:
        print(f"sass: the figures are of ptxas {known}, this is {compiler}: nothing compared")
        return 0
    worse = [(what, number) for what, number in rows
             if number is None or number > most.get(what, -1)]
    for what, number in worse:
        print(f"sass: {what}: {number}, at most {most.get(what)} committed in tools/gates/sass.txt")
    of_family = {what for what in most if what.startswith(f"nvfp4_gemm_{family}_")}
    gone = of_family - {what for what, _ in rows}
    for what in sorted(gone):
        print(f"sass: {what} is committed, but {cubin} has no such loop")
    steps = [f"{number} {what.split('_')[-1].split()[0]}" for what, number in rows
             if what.endswith(("clocks a step", "clocks of the loop"))]
    print(f"{cubin}: stall clocks {'a step' if family == 'sm100' else 'a trip'}: {', '.join(steps)}")
    return len(worse) + len(gone) > 0


if __name__ == "__main__":
    sys.exit(main())
