# SPDX-License-Identifier: MIT
"""plot.py RESULT.csv... RESULT.svg: microseconds over M for each (N, K) of `nvfp4_bench gpu`; of a
table of many layers how many times as fast as others, cuBLASLt at its best among them, and the
share of the yardstick; of `nvfp4_bench grouped` how many times as fast as a loop of products, and
the share of what reading the experts' weights takes; of `bench/model.py` how many times as fast as
with bf16 weights, and the memory. With several tables the head of the first names the machine."""
import csv
import itertools
import re
import sys
import xml.etree.ElementTree as ElementTree

# cuBLASLt at the best of its proposals, as the tables in docs/performance.md have it.
LINES = [("us", "libnvfp4gemm", "o-"), ("fp16_best_us", "cuBLASLt fp16", "s--"),
         ("fp8_best_us", "cuBLASLt fp8", "^--"), ("nvfp4_best_us", "cuBLASLt NVFP4", "v--"),
         ("roofline_us", "roofline", "k:"), ("roofline_node_us", "roofline + empty node", "k-.")]


# With more pairs (N, K) than this a picture has their medians.
MOST_PAIRS = 6

# For many layers: what is compared, in which colour, and with which yardstick.
SPEED_UPS = [("w4a16_bf16_us", "bf16_best_us", "bf16 tokens, against bf16", "C0",
              "w4a16_bf16_roofline_us"),
             ("us", "fp16_best_us", "NVFP4 tokens, against fp16", "C1", "roofline_us"),
             ("us", "fp8_best_us", "NVFP4 tokens, against fp8", "C3", None),
             ("w4a16_bf16_us", "peer_us", "bf16 tokens, against Marlin", "C2", None),
             ("w4a16_bf16_us", "humming_us", "bf16 tokens, against Humming", "C4", None)]


def head_of(lines):
    return dict(line[2:].split(None, 1) for line in lines
                if line.startswith("# ") and len(line.split()) > 2)


def read(path):
    """The head's comments by name, and a row for each time."""
    with open(path) as lines:
        text = lines.read().splitlines()
    return head_of(text), list(csv.DictReader(line for line in text if not line.startswith("#")))


def rows_of(tables):
    """The rows of all, without the shapes that a table has as a check of itself."""
    return [row for _, table in tables for row in table if row.get("layer") != "check"]


def best(rows):
    """The fastest variant of each M, in order of M."""
    chosen = {}
    for row in rows:
        m = int(row["m"])
        if m not in chosen or float(row["us"]) < float(chosen[m]["us"]):
            chosen[m] = row
    return [chosen[m] for m in sorted(chosen)]


def lines(rows):
    """(label, style, points) of each column that has figures."""
    for column, label, style in LINES:
        points = [(int(row["m"]), float(row[column])) for row in rows if row[column]]
        if points:
            yield label, style, points


def quantile(values, q):
    return sorted(values)[round(q * (len(values) - 1))]


def spread(rows, ours, theirs):
    """[(M, 10th percentile, median, 90th percentile of theirs / ours)] of the layers that have
    both."""
    of_m = {}
    for row in rows:
        if row.get(ours) and row.get(theirs):
            of_m.setdefault(int(row["m"]), []).append(float(row[theirs]) / float(row[ours]))
    return [(m, *(quantile(of_m[m], q) for q in (0.1, 0.5, 0.9))) for m in sorted(of_m)]


def draw_spread(axes, points, label, colour):
    if not points:
        return
    m, low, middle, high = zip(*points)
    axes.plot(m, middle, "o-", color=colour, label=label, markersize=4)
    axes.fill_between(m, low, high, color=colour, alpha=0.15, linewidth=0)


def draw_layers(figure, rows):
    """Two pictures side by side: ours against cuBLASLt's best, and against what the machine
    allows."""
    speed, share = figure.subplots(1, 2)
    for ours, theirs, label, colour, yardstick in SPEED_UPS:
        draw_spread(speed, spread(rows, ours, theirs), label, colour)
        if yardstick:
            points = [(m, *(100 * part for part in parts))
                      for m, *parts in spread(rows, ours, yardstick)]
            draw_spread(share, points, label.split(",")[0], colour)
    speed.axhline(1, color="black", linewidth=1)
    speed.set(ylabel="times as fast as the other", yscale="log",
              title="above 1 we are faster; cuBLASLt at its best")
    speed.set_yticks([0.5, 0.75, 1, 1.5, 2, 3, 4], ["0.5", "0.75", "1", "1.5", "2", "3", "4"])
    share.set(ylabel="% of the yardstick", ylim=(0, 100),
              title="of what memory and fp16 units allow")
    ticks = sorted({int(row["m"]) for row in rows})
    ticks = [m for m in ticks if m & (m - 1) == 0] or ticks  # others would touch their labels
    for axes in (speed, share):
        axes.set(xscale="log", xlabel="tokens, M")
        axes.set_xticks(ticks, [str(m) for m in ticks])
        axes.minorticks_off()
        axes.grid(True, alpha=0.3)
        axes.legend(fontsize=8)


# How rows are divided among experts, and in which colour.
ROUTINGS = {"even": "C0", "skewed": "C1", "half-empty": "C2"}

# Lines of the two pictures of grouped products: routing, ours, theirs, label, colour.
GROUPED_SPEED = [(routing, "grouped_us", "loop_us", f"a loop, {routing}", colour)
                 for routing, colour in ROUTINGS.items()
                 ] + [("even", "grouped_us", "torch_us", "torch._grouped_mm in bf16, even", "C3")]
GROUPED_SHARE = [(routing, "grouped_us", "read_us", routing, colour)
                 for routing, colour in ROUTINGS.items()
                 ] + [("even", "counts_us", "read_us", "even, COUNTS", "C3")]


def spread_of_routing(rows, routing, ours, theirs):
    """As spread() has it, of the rows of a group."""
    return spread([{**row, "m": row["rows_a_group"]} for row in rows
                   if row["routing"] == routing], ours, theirs)


def draw_grouped(figure, rows):
    """Grouped products of all layers: how many times as fast as a loop and as torch, and the share
    of the time that reading the weights of experts with rows takes."""
    speed, share = figure.subplots(1, 2)
    for axes, drawn in ((speed, GROUPED_SPEED), (share, GROUPED_SHARE)):
        for routing, ours, theirs, label, colour in drawn:
            draw_spread(axes, spread_of_routing(rows, routing, ours, theirs), label, colour)
    speed.axhline(1.3, color="black", linewidth=1, linestyle=":")
    share.axhline(0.85, color="black", linewidth=1, linestyle=":")
    speed.set(yscale="log", ylabel="times as fast as the other")
    speed.set_yticks([1, 1.3, 2, 4, 8], ["1", "1.3", "2", "4", "8"])
    share.set(ylabel="time to read weights / time", ylim=(0, 1.05))
    ticks = sorted({int(row["rows_a_group"]) for row in rows})
    for axes in (speed, share):
        axes.set(xscale="log", xlabel="rows a group")
        axes.set_xticks(ticks, [str(m) for m in ticks])
        axes.minorticks_off()
        axes.grid(True, alpha=0.3)
        axes.legend(fontsize=8)


# Kinds of weights and tokens in bench/model.py, and their colours.
MODEL_KINDS = {"w4a16_packed": ("packed 4-bit weights, bf16 tokens", "C2"),
               "w4a16": ("4-bit weights, bf16 tokens", "C0"),
               "w4a4": ("4-bit weights, 4-bit tokens", "C1")}


def of_model(rows, kind, column):
    """{(work, sequences, tokens): the kind's value}, in the table's order."""
    return {(row["work"], row["sequences"], row["tokens"]): float(row[column])
            for row in rows if row["kind"] == kind}


def faster_model(rows, kind, column):
    """Times as fast as bf16 weights, of each work in the table's order."""
    slow = of_model(rows, "bf16", column)
    return [slow[work] / us for work, us in of_model(rows, kind, column).items()]


def draw_bars(axes, kinds, values):
    """Bars of each kind side by side; yields each kind, its colour and where its bars are."""
    width = 0.8 / len(kinds)
    for place, (kind, (label, colour)) in enumerate(kinds.items()):
        at = [x + (place - (len(kinds) - 1) / 2) * width for x in range(len(values[kind]))]
        axes.bar(at, values[kind], width, color=colour, label=label)
        yield kind, colour, at


def draw_model(figure, rows):
    """A whole model: bars for steps, marks for their products alone, and the memory."""
    speed, memory = figure.subplots(1, 2, width_ratios=[3, 2])
    faster = {kind: faster_model(rows, kind, "us") for kind in MODEL_KINDS}
    for kind, colour, at in draw_bars(speed, MODEL_KINDS, faster):
        speed.plot(at, faster_model(rows, kind, "products_us"), "D", color=colour,
                   markeredgecolor="black", markersize=5)
    speed.plot([], [], "D", color="white", markeredgecolor="black", label="its products alone")
    speed.axhline(1, color="black", linewidth=1)
    speed.set(ylabel="times as fast as bf16 weights", title="a step of the whole model")
    kinds = {"bf16": ("bf16 weights", "0.6"), **MODEL_KINDS}
    taken = {kind: list(of_model(rows, kind, "gb").values()) for kind in kinds}
    list(draw_bars(memory, kinds, taken))
    memory.set(ylabel="GB", title="memory", ylim=(0, 1.35 * max(map(max, taken.values()))))
    names, last = [], ""
    for work, sequences, tokens in of_model(rows, "bf16", "us"):
        size = f"batch {sequences}" if work == "decode" else f"prompt {tokens}"
        names.append(size if work != last else size.split()[1])  # more words would touch
        last = work
    for axes in (speed, memory):
        axes.set_xticks(range(len(names)), names, fontsize=8)
        axes.grid(True, axis="y", alpha=0.3)
        axes.set_axisbelow(True)
        axes.legend(fontsize=8)


def backend():
    try:
        import matplotlib
    except ImportError:
        sys.exit("plot.py: no matplotlib here; `make setup-plot` installs it")
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "nvfp4", "svg.fonttype": "none"})
    return matplotlib


def draw(axes, ticker, pair, rows):
    for label, style, points in lines(rows):
        axes.plot(*zip(*points), style, label=label, markersize=4)
    axes.set(xscale="log", yscale="log", xlabel="M", ylabel="us",
             title=f"N = {pair[0]}, K = {pair[1]}")
    ticks = [int(row["m"]) for row in rows]
    axes.set_xticks(ticks, [str(m) for m in ticks])
    axes.yaxis.set_major_locator(ticker.LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter("{x:g}")
    axes.minorticks_off()
    axes.grid(True, alpha=0.3)


def outline(path, dx=0.0, dy=0.0):
    """The outline of a path, moved, in tenths of a point; of a round mark two half circles."""
    words = path.get("d").split()
    if "C" in words and path.get("id"):
        radius = float(words[2])  # from its lowest point on
        half = f"a {radius:g} {radius:g} 0 1 0"
        words = f"M {-radius} 0".split()
        rest = f" {half} {2 * radius:g} 0 {half} {-2 * radius:g} 0"
    else:
        rest = ""
    step = itertools.cycle((dx, dy))
    return " ".join(f"{round(float(word) + next(step), 1):g}" if word[-1].isdigit() else word
                    for word in words) + rest


def in_few_words(root, texts):
    """What most texts have stands once, in the root; no text is turned by no degrees."""
    usual = {"font-size": "10px", "font-family": "sans-serif", "text-anchor": "middle"}
    for name, value in usual.items():
        root.set(name, value)
    for text in texts:
        style = re.sub("font-family: [^;]*sans-serif", "font-family: sans-serif",
                       text.attrib.pop("style"))  # not every family that matplotlib knows
        for name, value in (one.split(": ") for one in style.split("; ")):
            if usual.get(name) != value:
                text.set(name, value)
        for name in ("x", "y"):
            text.set(name, f"{round(float(text.get(name)), 1):g}")
        turn = re.match(r"rotate\((\S+)", text.attrib.pop("transform"))[1]
        if float(turn):
            text.set("transform", f"rotate({turn} {text.get('x')} {text.get('y')})")


def with_few_elements(path):
    """Writes matplotlib's picture again with an element a line: without groups that change nothing,
    comments and facts about the file; and one path for all marks, ticks or grid lines of a pair of
    axes that look alike."""
    names = {"": "http://www.w3.org/2000/svg", "xlink": "http://www.w3.org/1999/xlink"}
    for prefix, name in names.items():
        ElementTree.register_namespace(prefix, name)
    svg, use = (f"{{{names['']}}}", f"{{{names['xlink']}}}href")
    tree = ElementTree.parse(path)
    root = tree.getroot()
    root.remove(root.find("metadata", names))
    shapes = {shape.get("id"): shape for shape in root.iterfind(".//defs/path[@id]", names)}

    def drawn(parent, clip=None):
        """What is drawn inside, a path for each use of a shape."""
        for child in parent:
            clipped = child.get("clip-path", clip)
            if child.tag == svg + "g":
                yield from one_of_a_look(drawn(child, clipped), child.get("id", ""))
                continue
            shape = shapes.get(child.get(use, "")[1:])
            if shape is not None:
                style = "; ".join(dict.fromkeys(
                    one for each in (child, shape) for one in each.get("style", "").split("; ")
                    if one))
                child = ElementTree.Element(svg + "path", {
                    "d": outline(shape, float(child.get("x")), float(child.get("y"))),
                    "style": style})
            elif child.tag == svg + "path":
                child.set("d", outline(child))
            if clipped:
                child.set("clip-path", clipped)
            if not child.findall("path[@id]", names):
                yield child

    def one_of_a_look(children, group):
        looks = {}
        for child in children:
            look = (child.get("clip-path"), child.get("style"))
            if child.tag != svg + "path" or not group.startswith("axes"):
                yield child
            elif look in looks:
                looks[look].set("d", f"{looks[look].get('d')} {child.get('d')}")
            else:
                looks[look] = child
                yield child

    root[:] = list(drawn(root))
    in_few_words(root, root.iter(svg + "text"))
    ElementTree.indent(tree, "")
    tree.write(path, encoding="unicode")
    with open(path, "a") as file:
        file.write("\n")


def main(*paths):
    *sources, target = paths
    matplotlib = backend()
    import matplotlib.pyplot as plt
    tables = [read(source) for source in sources]
    head, rows = tables[0][0], rows_of(tables)
    pairs = sorted({(int(row["n"]), int(row["k"])) for row in rows if "n" in row},
                   key=lambda p: -p[0] * p[1])
    machine = f"{head.get('device', '?').split(',')[0]}, {head.get('date', '?')}"
    if "products_us" in rows[0]:
        figure = plt.figure(figsize=(11, 4.2))
        draw_model(figure, rows)
        figure.suptitle(f"{machine}: {head['model']}; CUDA graphs, median", fontsize=9)
    elif "grouped_us" in rows[0]:
        figure = plt.figure(figsize=(9, 4.2))
        draw_grouped(figure, rows)
        layers = len({row["layer"] for row in rows})
        figure.suptitle(f"{machine}: experts of {layers} layers in one launch, the median and the "
                        "middle 80 %; weights cold, graph replay; dotted: goals", fontsize=9)
    elif len(pairs) > MOST_PAIRS:
        figure = plt.figure(figsize=(11, 4.2))
        draw_layers(figure, rows)
        figure.suptitle(f"{machine}: {len(pairs)} layers of public models, the median and the "
                        "middle 80 %; weights cold, graph replay", fontsize=10)
    else:
        figure, axes = plt.subplots(1, len(pairs), figsize=(5 * len(pairs), 4.2), squeeze=False)
        for axis, pair in zip(axes[0], pairs):
            draw(axis, matplotlib.ticker, pair,
                 best([r for r in rows if (int(r["n"]), int(r["k"])) == pair]))
        axes[0][0].legend(fontsize=8)
        figure.suptitle(f"{machine}: weights cold, graph replay, median; cuBLASLt at its best",
                        fontsize=10)
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})
    with_few_elements(target)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
