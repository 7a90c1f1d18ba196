# SPDX-License-Identifier: MIT
"""draw.py NUMBERS FOLDER: the drawings of the walk-through (kernel/sm100/README.md) as SVG; NUMBERS
is what tools/draw/numbers.cc prints. What a cell stands for is in its title, which test_drawings
reads."""
import collections
import os
import sys
from xml.sax.saxutils import escape

BANDS = ("#9dbbe0", "#b5e3f5", "#9dd3a0", "#e8dc8a")
WEIGHTS, TOKENS, WEIGHT_SCALES, TOKEN_SCALES = "#9dbbe0", "#9dd3a0", "#4477aa", "#228833"
STAGING = "#ee9944"


def tenths(number):
    return f"{round(number, 1):g}"


def words_at(x, y, words, anchor, size):
    look = "" if anchor == "middle" else f' text-anchor="{anchor}"'
    look += "" if size == 10 else f' font-size="{size}"'
    return f'<text x="{tenths(x)}" y="{tenths(y)}"{look}>{escape(words)}</text>'


class Svg:
    def __init__(self, width, height, title):
        self.size = (width, height)
        self.out = []
        self.text(10, 20, title, size=14)

    def text(self, x, y, words, anchor="start", size=11):
        self.out.append(words_at(x, y, words, anchor, size))

    def box(self, x, y, width, height, fill, title, words=""):
        self.out.append(
            f'<rect x="{tenths(x)}" y="{y:g}" width="{tenths(width)}" height="{height:g}" '
            f'fill="{fill}"><title>{escape(title)}</title></rect>' +
            (words_at(x + width / 2, y + height / 2 + 4, words, "middle", 10) if words else ""))

    def save(self, path):
        width, height = self.size
        with open(path, "w", encoding="utf-8") as file:
            file.write(
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
                'font-family="sans-serif" font-size="10" text-anchor="middle">\n'
                '<style>rect { stroke: white }</style>\n'
                '<rect width="100%" height="100%" fill="white"/>\n' +
                "\n".join(self.out) + "\n</svg>\n")


def scale_tile(path):
    svg = Svg(720, 640, "A scale tile: 128 rows, 64 elements of K, 512 bytes")
    svg.text(
        10, 38, "A line here is 16 bytes of memory, which tcgen05.cp.32x128b copies to one lane of "
        "tensor memory.")
    for lane in range(32):
        svg.text(70, 70 + 17 * lane, f"byte {16 * lane}", "end", 10)
        for band, colour in enumerate(BANDS):
            row, at = lane + 32 * band, 16 * lane + 4 * band
            svg.box(80 + 152 * band, 58 + 17 * lane, 152, 17, colour,
                    f"bytes {at} to {at + 3}: row {row}",
                    "\u2003".join(f"{row}.{block}" for block in range(4)))
    svg.text(80, 622, "12.3: row 12, fourth block of 16 along K. Rows 32 apart lie side by side.")
    svg.save(path)


def swizzle(path):
    svg = Svg(720, 250, "A stage's rows in shared memory: 128 bytes each, chunks of 16 swizzled")
    svg.text(10, 38, "A row is 256 elements of K. Chunk c of row r lies at place c xor (r mod 8): "
                     "the same chunk of eight rows is in all the banks.")
    for row in range(8):
        svg.text(70, 74 + 20 * row, f"row {row}", "end")
        for place in range(8):
            chunk = place ^ row % 8
            svg.box(
                80 + 76 * place, 60 + 20 * row, 76, 20, BANDS[chunk // 2],
                f"byte {128 * row + 16 * place}: row {row}, k {32 * chunk} to {32 * chunk + 31}",
                f"k {32 * chunk} to {32 * chunk + 31}")
    svg.text(
        80, 238,
        "Colours: the four steps of 64 that an MMA takes. Rows 8 to 15 begin again at byte 1024.")
    svg.save(path)


def heading(label, n):
    """What a row of kernel/sm100/tiles.def is called above its drawing."""
    weights, tokens = label.split("x")
    of_pair = ", one CTA of a pair" if n["ctas"] == 2 else ""
    return f"{weights} weights x {tokens} tokens{of_pair}"


def shared_memory(path, tiles):
    svg = Svg(900, 60 + 70 * len(tiles),
              "Shared memory of a CTA on 10.x: the ring, operand by operand")
    regions = (("weights_at", "tokens_at", WEIGHTS, "weights"),
               ("tokens_at", "token_scales_at", TOKENS, "tokens"),
               ("token_scales_at", "staging_at", TOKEN_SCALES, "scales of tokens"))
    for number, (label, n) in enumerate(tiles.items()):
        y = 50 + 70 * number
        svg.text(10, y, f"{heading(label, n)}: {n['stages']} stages, {n['bytes']} bytes")
        unit = 870 / n["bytes"]
        for begin, end, colour, what in regions:
            slot = (n[end] - n[begin]) // n["stages"]
            codes = n["code_bytes"] if what == "weights" else slot
            for stage in range(n["stages"]):
                at = n[begin] + stage * slot
                svg.box(10 + unit * at, y + 8, unit * codes, 26, colour,
                        f"byte {at}: {what} of stage {stage}, {codes} bytes",
                        str(stage) if unit * codes > 14 else "")
                if codes < slot:
                    svg.box(10 + unit * (at + codes), y + 8, unit * (slot - codes), 26,
                            WEIGHT_SCALES, f"byte {at + codes}: scales of weights of stage {stage},"
                                           f" {slot - codes} bytes")
            if not what.startswith("scales"):
                scales = " and their scales" if codes < slot else ""
                svg.text(10 + unit * n[begin], y + 46, what + scales, size=10)
        staging = n["barriers_at"] - n["staging_at"]
        if staging:
            svg.box(10 + unit * n["staging_at"], y + 8, unit * staging, 26, STAGING,
                    f"byte {n['staging_at']}: staging buffers of the epilogue, {staging} bytes")
        last = "staging, barriers" if staging else "barriers"
        svg.text(10 + unit * n["bytes"], y + 46, f"scales of tokens, {last}", "end", 10)
        svg.box(10 + unit * n["barriers_at"], y + 8, 3, 26, "#cc3311",
                f"byte {n['barriers_at']}: barriers")
    svg.save(path)


def tensor_memory(path, tiles):
    svg = Svg(900, 70 + 70 * len(tiles), "Tensor memory of a CTA on 10.x: 128 lanes, 512 columns")
    for number, (label, n) in enumerate(tiles.items()):
        y, unit = 50 + 70 * number, 870 / 512
        svg.text(10, y, f"{heading(label, n)}: {n['columns_used']} columns used, "
                        f"{n['columns_allocated']} allocated")
        svg.box(10, y + 8, unit * 512, 26, "#eeeeee", "what there is")
        columns = int(label.split("x")[1])
        for accumulator in range(n["accumulators"]):
            at = accumulator * n["second_at"]
            svg.box(10 + unit * at, y + 8, unit * columns, 26, "#ee9944",
                    f"column {at}: {columns} of sums, a token each, a weight a lane", "sums")
        both = columns - n["second_at"]
        if n["accumulators"] == 2 and both > 0:
            svg.box(10 + unit * n["second_at"], y + 8, unit * both, 26, "#cc6622",
                    f"column {n['second_at']}: {both} that both accumulators share", "both")
        at = n["scale_columns_at"]
        for stage in range(n["scale_stages"]):
            for step in range(n["steps"]):
                for columns, colour, what in (("weight_scale_columns", WEIGHT_SCALES, "weights"),
                                              ("token_scale_columns", TOKEN_SCALES, "tokens")):
                    svg.box(10 + unit * at, y + 8, unit * n[columns], 26, colour,
                            f"column {at}: scales of {what}, stage {stage}, step {step}")
                    at += n[columns]
        if at != n["columns_used"]:
            sys.exit(f"{label}: {at} columns drawn, {n['columns_used']} used")
    svg.text(
        10, 55 + 70 * len(tiles),
        "After the sums, stage after stage and step after step: scales of "
        "weights (blue), of tokens (green).")
    svg.save(path)


def main(numbers, folder):
    tiles = collections.defaultdict(dict)
    with open(numbers, encoding="ascii") as lines:
        for line in lines:
            label, name, value = line.split()
            tiles[label][name] = int(value)
    os.makedirs(folder, exist_ok=True)
    scale_tile(os.path.join(folder, "scale-tile.svg"))
    swizzle(os.path.join(folder, "swizzle.svg"))
    shared_memory(os.path.join(folder, "shared-memory.svg"), tiles)
    tensor_memory(os.path.join(folder, "tensor-memory.svg"), tiles)


if __name__ == "__main__":
    main(*sys.argv[1:])
