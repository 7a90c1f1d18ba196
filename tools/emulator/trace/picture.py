# SPDX-License-Identifier: MIT
"""picture.py TRACE.json OUT.svg [--block N] [--from T] [--to T] [--brief]: one block of a time line
as a picture: a row per warp and unit, a bar per instruction or piece of asynchronous work, an arrow
from what ended a phase to the wait that it released. Bars say what they are when pointed at."""
import argparse
import json
import math
from xml.sax.saxutils import escape, quoteattr

COLOURS = {"tma": "#4477aa", "bulk": "#66ccee", "copy": "#88ccaa", "cp": "#ccbb44",
           "mma": "#228833", "commit": "#aa3377", "wait": "#dddddd", "barrier": "#ee6677",
           "tensor memory": "#ee9944", "store": "#775533", "load": "#997755", "fence": "#999999"}
LEFT, RIGHT, TOP, ROW, BAR, WIDTH = 150, 20, 70, 22, 16, 1100


def parse(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trace")
    parser.add_argument("picture")
    parser.add_argument("--block", type=int, default=1, help="which block of the file, from 1")
    parser.add_argument("--from", type=float, dest="begin", help="first instruction")
    parser.add_argument("--to", type=float, dest="end", help="last instruction")
    parser.add_argument("--brief", action="store_true", help="bars say their name and times alone")
    return parser.parse_args(arguments)


class Block:
    """The events of one process of the trace."""

    def __init__(self, trace, process):
        events = [e for e in trace["traceEvents"] if e["pid"] == process]
        if not events:
            raise SystemExit(f"the trace has no block {process}")
        names = {e["name"]: e["args"]["name"] for e in events
                 if e["ph"] == "M" and e["name"] == "process_name"}
        self.title = names["process_name"]
        self.rows = {e["tid"]: e["args"]["name"] for e in events
                     if e["ph"] == "M" and e["name"] == "thread_name"}
        self.spans = [e for e in events if e["ph"] == "X"]
        self.starts = {e["id"]: e for e in events if e["ph"] == "s"}
        self.ends = {e["id"]: e for e in events if e["ph"] == "f"}


class Picture:
    def __init__(self, block, begin, end, brief=False):
        self.block, self.brief = block, brief
        first = min(e["ts"] for e in block.spans)
        self.begin = first if begin is None else begin
        self.end = max(e["ts"] + e["dur"] for e in block.spans) if end is None else end
        if self.end <= self.begin:
            raise SystemExit("--to is not after --from")
        self.out = []

    def x(self, time):
        inside = min(max(time, self.begin), self.end)
        return LEFT + (inside - self.begin) / (self.end - self.begin) * (WIDTH - LEFT - RIGHT)

    def y(self, thread):
        return TOP + sorted(self.block.rows).index(thread) * ROW

    def text(self, x, y, words, anchor="start", size=12):
        self.out.append(f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" '
                        f'text-anchor="{anchor}">{escape(words)}</text>')

    def axis(self):
        length = self.end - self.begin
        step = 10 ** math.floor(math.log10(length))
        step = step / 5 if length / step < 3 else step
        bottom = TOP + len(self.block.rows) * ROW
        tick = math.ceil(self.begin / step) * step
        while tick <= self.end:
            x = self.x(tick)
            self.out.append(f'<path d="M{x:.1f} {TOP - 6}V{bottom}" stroke="#eeeeee"/>')
            self.text(x, TOP - 10, f"{tick:g}", "middle", 10)
            tick += step
        for thread, name in self.block.rows.items():
            self.text(LEFT - 8, self.y(thread) + BAR - 3, name, "end")

    def bar(self, e):
        if e["ts"] + e["dur"] < self.begin or e["ts"] > self.end:
            return
        x, width = self.x(e["ts"]), self.x(e["ts"] + e["dur"]) - self.x(e["ts"])
        known = () if self.brief else e["args"].items()
        told = "; ".join([e["name"], f'{e["ts"]:g} to {e["ts"] + e["dur"]:g}',
                          *(f"{k}: {v}".rstrip(";") for k, v in known)])
        self.out.append(f'<rect x="{x:.1f}" y="{self.y(e["tid"])}" width="{max(width, 0.6):.1f}" '
                        f'height="{BAR}" fill={quoteattr(COLOURS.get(e["cat"], "#000000"))}>'
                        f"<title>{escape(told)}</title></rect>")

    def arrow(self, start, end):
        if start["ts"] < self.begin or end["ts"] > self.end:
            return
        y0, y1 = self.y(start["tid"]) + BAR / 2, self.y(end["tid"]) + BAR / 2
        self.out.append(f'<path d="M{self.x(start["ts"]):.1f} {y0}L{self.x(end["ts"]):.1f} {y1}" '
                        'stroke="#bb0000" stroke-width="0.7" fill="none" '
                        'marker-end="url(#head)"/>')

    def legend(self):
        x = LEFT
        for category in COLOURS:
            if any(e["cat"] == category for e in self.block.spans):
                self.out.append(f'<rect x="{x}" y="30" width="10" height="10" '
                                f'fill="{COLOURS[category]}"/>')
                self.text(x + 14, 39, category, size=11)
                x += 24 + 7 * len(category)

    def svg(self):
        self.text(LEFT, 18, self.block.title + "; time in warp instructions of the cluster")
        self.legend()
        self.axis()
        # Long bars first: what lies inside a wait stays visible.
        for e in sorted(self.block.spans, key=lambda e: -e["dur"]):
            self.bar(e)
        for identity, start in self.block.starts.items():
            if identity in self.block.ends:
                self.arrow(start, self.block.ends[identity])
        height = TOP + len(self.block.rows) * ROW + 10
        head = ('<marker id="head" viewBox="0 0 6 6" refX="6" refY="3" markerWidth="6" '
                'markerHeight="6" orient="auto"><path d="M0 0L6 3L0 6Z" fill="#bb0000"/></marker>')
        return (f'<?xml version="1.0"?>\n<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" '
                f'height="{height}" font-family="sans-serif">\n<defs>{head}</defs>\n'
                f'<rect width="100%" height="100%" fill="white"/>\n' + "\n".join(self.out) +
                "\n</svg>\n")


def main():
    options = parse()
    with open(options.trace) as text:
        block = Block(json.load(text), options.block)
    with open(options.picture, "w") as out:
        out.write(Picture(block, options.begin, options.end, options.brief).svg())


if __name__ == "__main__":
    main()
