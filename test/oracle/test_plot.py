# SPDX-License-Identifier: MIT
"""bench/plot.py: from the committed tables to the lines of the committed pictures."""
import glob
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
RESULTS = os.path.join(ROOT, "bench", "results")
PICTURES = sorted(glob.glob(os.path.join(RESULTS, "gpu-*.svg")))
# The tables that a picture shows, if not the one of its name.
TABLES = {"drawn-h200-2026-11-26.svg": ("drawn-h200-2026-11-26.csv", "humming-h200-2026-11-26.csv")}
PLOT = os.path.join(ROOT, "bench", "plot.py")
sys.path.insert(0, os.path.dirname(PLOT))
import merge  # noqa: E402
import plot  # noqa: E402

CSV = """# device    A GPU, 1 SM
# date      2026-01-02
m,n,k,variant,us,fp16_best_us,fp8_best_us,nvfp4_best_us,roofline_us,roofline_node_us
16,8,64,wide,5.0,6.0,,,1.0,1.5
1,8,64,narrow,3.0,4.0,,,1.0,1.5
1,8,64,wide,2.0,4.0,,,1.0,1.5
"""


SLICE = """# Microseconds by graph replay
# date      2026-01-02
# command   nvfp4_bench gpu --slice {number} 2
# device    A GPU, 1 SM
# driver    1
# library   nvfp4gemm 0.1.0
# build     {build}
# reading   {number} TB/s measured
# spread    of 15 replays
m,n,k,variant,us,fp16_best_us
{rows}
"""


class Merge(unittest.TestCase):
    def slices(self, *changes):
        return [(f"{i}.csv", SLICE.format(**{"number": i, "build": "ab", **change}))
                for i, change in enumerate(changes, 1)]

    def test_slices_become_a_table_that_names_each(self):
        text = merge.merged(
            self.slices({"rows": "16,9,64,a,5,6\n1,9,64,b,2,4"}, {"rows": "1,8,64,a,3,4"}))
        lines = text.splitlines()
        self.assertEqual(
            lines[-4:],
            ["m,n,k,variant,us,fp16_best_us", "1,8,64,a,3,4", "1,9,64,b,2,4", "16,9,64,a,5,6"])
        self.assertEqual(text.count("# build     ab"), 1)
        self.assertIn(
            "# slice 2   date: 2026-01-02; command: nvfp4_bench gpu --slice 2 2; reading: 2 TB/s",
            text)
        self.assertEqual(plot.head_of(lines)["device"], "A GPU, 1 SM")

    def test_builds_are_not_mixed(self):
        with self.assertRaisesRegex(ValueError, "2.csv has the build 'cd', 1.csv has 'ab'"):
            merge.merged(
                self.slices({"rows": "1,9,64,b,2,4"}, {
                    "rows": "1,8,64,a,3,4",
                    "build": "cd"
                }))

    def test_a_row_counts_once(self):
        with self.assertRaisesRegex(ValueError, "2.csv and 1.csv both have 1 x 9 x 64 by b"):
            merge.merged(self.slices({"rows": "1,9,64,b,2,4"}, {"rows": "1,9,64,b,3,4"}))


class Plot(unittest.TestCase):
    def test_layers_have_a_median_and_a_spread(self):
        rows = [{"m": "1", "us": "2", "fp16_best_us": str(theirs)} for theirs in range(2, 24, 2)]
        rows += [{
            "m": "4",
            "us": "2",
            "fp16_best_us": "3"
        }, {
            "m": "4",
            "us": "2",
            "fp16_best_us": ""
        }]
        self.assertEqual(plot.spread(rows, "us", "fp16_best_us"), [(1, 2, 6, 10),
                                                                   (4, 1.5, 1.5, 1.5)])

    def test_groups_have_a_point_for_each_number_of_rows(self):
        names = ("rows_a_group", "routing", "grouped_us", "loop_us")
        rows = [dict(zip(names, row)) for row in [("1", "even", "2.00", "8.00"),
                                                  ("4", "even", "4.00", "6.00"),
                                                  ("4", "skewed", "1.00", "6.00")]]
        self.assertEqual(plot.spread_of_routing(rows, "even", "grouped_us", "loop_us"),
                         [(1, 4, 4, 4), (4, 1.5, 1.5, 1.5)])

    def test_a_model_is_compared_with_bf16_weights(self):
        names = ("work", "sequences", "tokens", "kind", "us", "gb")
        rows = [dict(zip(names, row.split())) for row in (
            "decode 1 128 bf16 6 4", "decode 1 128 w4a16 3 1", "prompt 1 512 w4a16 8 2",
            "prompt 1 512 bf16 4 5")]
        self.assertEqual(plot.faster_model(rows, "w4a16", "us"), [2, 0.5])
        self.assertEqual(list(plot.of_model(rows, "w4a16", "gb").values()), [1, 2])

    def test_rows_are_read_and_the_fastest_variant_is_drawn(self):
        with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
            file.write(CSV)
            file.flush()
            head, rows = plot.read(file.name)
        self.assertEqual(head["date"], "2026-01-02")
        self.assertEqual(len(rows), 3)
        drawn = {label: points for label, _, points in plot.lines(plot.best(rows))}
        self.assertEqual(drawn["libnvfp4gemm"], [(1, 2.0), (16, 5.0)])
        self.assertEqual(drawn["cuBLASLt fp16"], [(1, 4.0), (16, 6.0)])
        self.assertNotIn("cuBLASLt fp8", drawn)  # nothing was measured

    def pictured(self, path, rows):
        """Labels and the number of markers are those of the rows."""
        with open(path, encoding="utf-8") as file:
            svg = file.read()
        pairs = {(row["n"], row["k"]) for row in rows}
        for n, k in pairs:
            self.assertIn(f"N = {n}, K = {k}", svg)
        for label, _, _ in plot.lines(rows):
            self.assertIn(label, svg)
        with_markers = sum(len(points) for pair in pairs for _, style, points in plot.lines(
            plot.best([r for r in rows if (r["n"], r["k"]) == pair])) if style[0] != "k")
        # One more per marked line, in the legend of the first picture.
        legend = sum(style[0] != "k" for _, style, _ in plot.lines(rows))
        marks = re.findall(r'<path d="([^"]*)"[^>]* style="fill: #[0-9a-f]+; stroke: #(?!000000)',
                           svg)
        self.assertEqual(sum(path.count("M") for path in marks), with_markers + legend)

    def test_each_committed_picture_shows_its_table(self):
        self.assertTrue(PICTURES)
        for path in PICTURES:
            with self.subTest(path=os.path.basename(path)):
                self.pictured(path, plot.read(path[:-3] + "csv")[1])

    def lines_in(self, svg):
        """The points of each line, by axes in their order."""
        axes = {}
        for path in re.findall(r"<path [^>]*>", svg):
            if "clip-path" in path and "fill: none" in path and "stroke-width: 1.5" in path:
                words = re.search(r'd="([^"]*)"', path)[1].replace("M", "L").split("L")[1:]
                clip = re.search(r'clip-path="([^"]*)"', path)[1]
                axes.setdefault(clip, []).append([tuple(map(float, w.split())) for w in words])
        return list(axes.values())

    def lines_of(self, rows):
        """The same of a table: by axes (whether its scale is a logarithm, the points of each
        line)."""
        def medians(spreads):
            return [[(m, middle) for m, _, middle, _ in points] for points in spreads if points]
        if "grouped_us" in rows[0]:
            return [(log, medians(plot.spread_of_routing(rows, *line[:3]) for line in drawn))
                    for log, drawn in ((True, plot.GROUPED_SPEED), (False, plot.GROUPED_SHARE))]
        pairs = sorted({(int(row["n"]), int(row["k"])) for row in rows}, key=lambda p: -p[0] * p[1])
        if len(pairs) > plot.MOST_PAIRS:
            return [(True, medians(plot.spread(rows, row[0], row[1]) for row in plot.SPEED_UPS)),
                    (False, medians(plot.spread(rows, row[0], row[4])
                                    for row in plot.SPEED_UPS if row[4]))]
        return [(True, [points for _, _, points in plot.lines(plot.best(
            [row for row in rows if (int(row["n"]), int(row["k"])) == pair]))]) for pair in pairs]

    def compare(self, name, svg, rows):
        """Each axes has one scale in which every point of the table lies where the picture has
        it."""
        found, expected = self.lines_in(svg), self.lines_of(rows)
        self.assertEqual([[len(line) for line in lines] for lines in found],
                         [[len(line) for line in lines] for _, lines in expected], name)
        for lines, (logarithm, of_table) in zip(found, expected):
            at = np.array([point for line in lines for point in line])
            values = np.array([point for line in of_table for point in line], dtype=float)
            for axis, log in ((0, True), (1, logarithm)):  # a picture has tenths of a point
                of_axis = np.log(values[:, axis]) if log else values[:, axis]
                scale = np.polyfit(of_axis, at[:, axis], 1)
                self.assertLess(np.abs(np.polyval(scale, of_axis) - at[:, axis]).max(), 0.07, name)

    def compare_bars(self, name, svg, rows):
        """The bars of a model are as high as its figures, by one scale for speed and one for
        memory."""
        bar = r"M \S+ (\S+) L \S+ \1 L \S+ (\S+) L \S+ \2 z"
        paths = [re.findall(bar, path) for path in re.findall(r'<path d="([^"]*)"', svg)]
        found = [[float(low) - float(high) for low, high in bars]
                 for bars in paths if len(bars) > 1]
        speed = [plot.faster_model(rows, kind, "us") for kind in plot.MODEL_KINDS]
        memory = [list(plot.of_model(rows, kind, "gb").values())
                  for kind in ("bf16", *plot.MODEL_KINDS)]
        self.assertEqual(len(found), len(speed) + len(memory), name)
        for heights, values in ((found[:len(speed)], speed), (found[len(speed):], memory)):
            at, of = np.array(heights).ravel(), np.array(values, dtype=float).ravel()
            self.assertLess(np.abs(at - of * (at @ of) / (of @ of)).max(), 0.15, name)

    def test_each_committed_picture_has_the_numbers_of_its_tables(self):
        pictures = sorted(glob.glob(os.path.join(RESULTS, "*.svg")))
        self.assertGreaterEqual(len(pictures), 3)
        for path in pictures:
            name = os.path.basename(path)
            tables = TABLES.get(name, (name[:-3] + "csv",))
            rows = plot.rows_of([plot.read(os.path.join(RESULTS, table)) for table in tables])
            with open(path, encoding="utf-8") as file:
                svg = file.read()
            with self.subTest(path=name):
                if "work" in rows[0]:
                    self.compare_bars(name, svg, rows)
                    continue
                self.compare(name, svg, rows)
                layers = len({row["layer"] for row in rows} if "grouped_us" in rows[0] else
                             {(row["n"], row["k"]) for row in rows})
                said = re.search(r"(\d+) layers", svg)
                self.assertEqual(int(said[1]) if said else None,
                                 None if name.startswith("gpu-") else layers)

    def test_the_picture_is_made_from_the_table(self):
        if importlib.util.find_spec("matplotlib") is None:
            self.skipTest("no matplotlib here; `make setup-plot` installs it")
        with tempfile.TemporaryDirectory() as folder:
            target = os.path.join(folder, "plot.svg")
            table = PICTURES[-1][:-3] + "csv"
            subprocess.run([sys.executable, PLOT, table, target], check=True)
            self.pictured(target, plot.read(table)[1])


if __name__ == "__main__":
    unittest.main()
