# SPDX-License-Identifier: MIT
"""plot.py RESULT.csv RESULT.svg: microseconds over M for each (N, K) of `nvfp4_bench gpu`."""
import csv
import sys

LINES = [("us", "libnvfp4gemm", "o-"), ("fp16_us", "cuBLASLt fp16", "s--"),
         ("fp8_us", "cuBLASLt fp8", "^--"), ("nvfp4_us", "cuBLASLt NVFP4", "v--"),
         ("roofline_us", "roofline", "k:"), ("roofline_node_us", "roofline + empty node", "k-.")]


def read(path):
    """The head's comments by name, and the rows."""
    with open(path) as lines:
        text = lines.read().splitlines()
    head = dict(line[2:].split(None, 1) for line in text
                if line.startswith("# ") and len(line.split()) > 2)
    return head, list(csv.DictReader(line for line in text if not line.startswith("#")))


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


def main(source, target):
    matplotlib = backend()
    import matplotlib.pyplot as plt
    head, rows = read(source)
    pairs = sorted({(int(row["n"]), int(row["k"])) for row in rows}, key=lambda p: -p[0] * p[1])
    figure, axes = plt.subplots(1, len(pairs), figsize=(5 * len(pairs), 4.2), squeeze=False)
    for axis, pair in zip(axes[0], pairs):
        draw(axis, matplotlib.ticker, pair, best([r for r in rows if (int(r["n"]), int(r["k"])) == pair]))
    axes[0][0].legend(fontsize=8)
    figure.suptitle(f"{head.get('device', '?').split(',')[0]}, {head.get('date', '?')}: weights "
                    "cold, graph replay, median", fontsize=10)
    figure.tight_layout()
    figure.savefig(target, metadata={"Date": None})


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2])
