# SPDX-License-Identifier: MIT
"""merge.py RESULT.csv SLICE.csv...: slices of one table, by `nvfp4_bench gpu --slice`, as one.

Refuses slices of different devices, drivers or builds of the library, and a row that two of them
have. Each slice measured yardsticks of its own: they stand in the head, one line a slice."""
import sys

import plot

SAME = ("device", "driver", "library", "build")
YARDSTICKS = ("date", "command", "reading", "fp16", "node")


def parts(text):
    """The lines of the head, and those of the table."""
    lines = text.splitlines()
    return ([line for line in lines if line.startswith("#")],
            [line for line in lines if line and not line.startswith("#")])


def merged(slices):
    """The text of the whole table, of [(name, its text)]."""
    heads, columns, rows, seen = [], None, [], {}
    for name, text in slices:
        lines, table = parts(text)
        head = plot.head_of(lines)
        heads.append(head)
        for key in SAME:
            if head.get(key) != heads[0].get(key):
                raise ValueError(f"{name} has the {key} {head.get(key)!r}, {slices[0][0]} has "
                                 f"{heads[0].get(key)!r}")
        if columns not in (None, table[0]):
            raise ValueError(f"{name} has other columns than {slices[0][0]}")
        columns = table[0]
        for row in table[1:]:
            key = tuple(row.split(",")[:4])
            if key in seen:
                shape = " x ".join(key[:3])
                raise ValueError(f"{name} and {seen[key]} both have {shape} by {key[3]}")
            seen[key] = name
            rows.append(row)
    rows.sort(key=lambda row: [int(row.split(",")[i]) for i in (1, 2, 0)])
    kept = [line for line in parts(slices[0][1])[0] if line.split()[1] not in YARDSTICKS]
    kept.insert(1, f"# date      {heads[0]['date']}")
    own = [f"# slice {i}   " + "; ".join(f"{key}: {head[key]}" for key in YARDSTICKS if key in head)
           for i, head in enumerate(heads, 1)]
    return "\n".join(kept + own + [columns] + rows) + "\n"


def main(target, *names):
    slices = []
    for name in names:
        with open(name, encoding="utf-8") as file:
            slices.append((name, file.read()))
    try:
        text = merged(slices)
    except ValueError as error:
        sys.exit(f"merge.py: {error}")
    with open(target, "w", encoding="utf-8") as file:
        file.write(text)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
