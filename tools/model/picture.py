#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""picture.py SHAPES.csv COMPARISONS.txt OUT.svg: what `build/model` wrote, drawn. Above: what was
measured against what the model says. Below: each shape's predicted time as a multiple of the least
that bytes and products allow, with the band, coloured by what binds."""
import csv
import html
import math
import re
import sys

COLOURS = {"DRAM": "#0072b2", "L2 to SM": "#56b4e9", "tensor core": "#d55e00", "issue": "#cc79a7",
           "latency": "#999999", "epilogue": "#009e73"}
INK, FAINT = "#222222", "#d0d0d0"
WIDTH, LEFT, RIGHT = 1180, 150, 40


class Svg:
    def __init__(self):
        self.parts = []

    def line(self, x1, y1, x2, y2, colour=INK, width=1.0, dash=""):
        self.parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" '
                          f'stroke="{colour}" stroke-width="{width}" stroke-dasharray="{dash}"/>')

    def dot(self, x, y, colour, radius, title):
        self.parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{colour}" '
                          f'fill-opacity="0.75"><title>{html.escape(title)}</title></circle>')

    def bar(self, x, y, width, height, colour, title):
        self.parts.append(f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height}" '
                          f'fill="{colour}"><title>{html.escape(title)}</title></rect>')

    def text(self, x, y, text, size=12, anchor="start", colour=INK, bold=False):
        weight = ' font-weight="bold"' if bold else ""
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
                          f'text-anchor="{anchor}" fill="{colour}"{weight}>'
                          f'{html.escape(text)}</text>')

    def write(self, path, height):
        with open(path, "w", encoding="utf-8") as file:
            file.write('<svg xmlns="http://www.w3.org/2000/svg" '
                       f'viewBox="0 0 {WIDTH} {height:.0f}" font-family="sans-serif">\n'
                       '<rect width="100%" height="100%" fill="white"/>\n'
                       + "\n".join(self.parts) + "\n</svg>\n")


def comparisons(path):
    """{title: [(what, measured, model)]}."""
    found, title = {}, None
    with open(path, encoding="utf-8") as file:
        for line in file:
            head = re.match(r"# (.*): measured, model, difference", line)
            row = re.match(r"(.+?) +([\d.]+) +([\d.]+) +[-+]", line)
            if head:
                title = head[1]
            elif row and title:
                found.setdefault(title, []).append((row[1].strip(), float(row[2]), float(row[3])))
    return found


def scatter(svg, top, left, size, title, rows, margin):
    """Ratio of model to measured over what was measured; dashed: the criterion."""
    low, high = min(r[1] for r in rows) * 0.8, max(r[1] for r in rows) * 1.25

    def x(value):
        return left + size * math.log(value / low) / math.log(high / low)

    def y(ratio):
        return top + 90 - 90 * (ratio - 1) / 0.3

    svg.text(left, top - 12, title, 13, bold=True)
    for ratio in (0.8, 0.9, 1.0, 1.1, 1.2):
        svg.line(left, y(ratio), left + size, y(ratio), INK if ratio == 1 else FAINT)
        svg.text(left - 6, y(ratio) + 4, f"{ratio:.1f}", 11, "end")
    for edge in (1 - margin, 1 + margin):
        svg.line(left, y(edge), left + size, y(edge), "#d55e00", 1.2, "5,4")
    tick = 10 ** math.floor(math.log10(low))
    while tick < high:
        for step in (1, 2, 5):
            if low <= step * tick <= high:
                svg.line(x(step * tick), y(0.72), x(step * tick), y(0.72) + 5)
                svg.text(x(step * tick), y(0.72) + 18, f"{step * tick:g}", 11, "middle")
        tick *= 10
    for what, measured, model in rows:
        svg.dot(x(measured), y(max(0.72, min(1.28, model / measured))), "#0072b2", 3.2,
                f"{what}: {measured:g}, model {model:g}")


def bars(svg, top, shapes):
    """Returns where it ends."""
    most = max(float(s["high_us"]) / float(s["light_us"]) for s in shapes)
    scale = (WIDTH - LEFT - RIGHT - 190) / most
    at = LEFT
    for name, colour in COLOURS.items():
        svg.bar(at, top - 12, 12, 12, colour, name)
        svg.text(at + 17, top - 2, name, 12)
        at += 32 + 8 * len(name)
    for times in range(0, int(most) + 1):
        svg.line(LEFT + times * scale, top + 8, LEFT + times * scale, top + 14 + 15.5 * len(shapes),
                 FAINT)
        svg.text(LEFT + times * scale, top + 28 + 15.5 * len(shapes), f"{times}x", 11, "middle")
    y = top + 14
    for s in shapes:
        light, us = float(s["light_us"]), float(s["us"])
        low, high = (LEFT + float(s[name]) / light * scale for name in ("low_us", "high_us"))
        shape = Svg()
        shape.text(LEFT - 6, y + 10, f'{s["m"]} x {s["n"]} x {s["k"]}', 11, "end")
        shape.bar(LEFT, y + 1, us / light * scale, 11, COLOURS[s["binds"]],
                  f'{us} us by {s["kernel"]}, {s["binds"]}, {s["clock_ghz"]} GHz')
        shape.line(low, y + 6.5, high, y + 6.5, INK, 1.4)
        shape.text(high + 6, y + 10, f'{us:.1f} us  {s["kernel"].replace("sm100_", "")}', 11)
        svg.parts.append("".join(shape.parts))  # a shape is a line of the file
        y += 15.5
    return y + 30


def main():
    shapes_path, comparisons_path, out = sys.argv[1:]
    with open(shapes_path, encoding="utf-8") as file:
        shapes = list(csv.DictReader(line for line in file if not line.startswith("#")))
    svg = Svg()
    svg.text(24, 32, "The timing model: what it is worth, and what it says of the sm_100a kernel",
             18, bold=True)
    svg.text(24, 52, "model / measured; dashed: the criterion. No B200 has run the kernel below.",
             12)
    criteria = {"public micro-benchmarks": 0.05, "public kernels": 0.2, "H200": 0.2}
    drawn = {}
    for title, rows in comparisons(comparisons_path).items():
        if "graph of" not in title:
            drawn.setdefault(title.replace(" below 20 us", ""), []).extend(rows)
    for column, (title, rows) in enumerate(drawn.items()):
        margin = next(value for name, value in criteria.items() if title.startswith(name))
        name = re.sub(r" of .*clocks-h200.*", ", first start to last store", title)
        scatter(svg, 95, 60 + column * 385, 310, name, rows, margin)
    svg.text(24, 330, "Predicted time over the least that bytes (7.68 TB/s) and products allow; "
             "the line is the band of the public kernels", 13, bold=True)
    svg.write(out, bars(svg, 360, shapes))


if __name__ == "__main__":
    main()
