# SPDX-License-Identifier: MIT
"""draw.py LIBRARY [POOL]: 16 layers of bench/pool.csv, four of each class of weight bytes, drawn by
the library itself: the seed is the first eight hex digits of its SHA-256. Whoever tunes cannot know
them before the library is built, and whoever has the library can draw them again. Prints a file of
layers as `nvfp4_bench gpu --layers` reads it.

The pool's numbers follow from each model's config.json: hidden_size, intermediate_size,
num_attention_heads, num_key_value_heads and head_dim, cut along n (qkv, gate-up, up) or k (o, down)
for tensor parallelism. All are multiples of 128, as Marlin wants them. When the pool was made, no
line of any file of the repository had both numbers of a layer; after a drawing the next pool needs
other layers."""
import csv
import hashlib
import os
import random
import sys

LIMITS = (4e6, 16e6, 48e6)  # bytes of codes and scales
FROM_EACH = 4


def weight_class(layer):
    return sum(int(layer["n"]) * int(layer["k"]) * 0.5625 >= limit for limit in LIMITS)


def main():
    library = sys.argv[1]
    pool = sys.argv[2] if len(sys.argv) > 2 else os.path.join(os.path.dirname(__file__), "pool.csv")
    with open(library, "rb") as file:
        seed = hashlib.sha256(file.read()).hexdigest()[:8]
    with open(pool, encoding="utf-8") as file:
        rows = csv.DictReader(file)
        layers, columns = list(rows), rows.fieldnames
    drawn = random.Random(seed)
    out = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
    out.writeheader()
    for which in range(len(LIMITS) + 1):
        of_class = [layer for layer in layers if weight_class(layer) == which]
        out.writerows(drawn.sample(of_class, FROM_EACH))
    print(f"drawn by {seed}", file=sys.stderr)


if __name__ == "__main__":
    main()
