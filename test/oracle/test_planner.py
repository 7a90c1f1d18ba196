# SPDX-License-Identifier: MIT
"""bench/planner.py on tables whose answers are known, and the lists of shapes it is to judge."""
import csv
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
BENCH = os.path.join(ROOT, "bench")
sys.path.insert(0, BENCH)
import planner  # noqa: E402

HEAD = "m,n,k,l,a_type,the planner's choice,the others from the fastest on\n"


def row(m, *plans):
    return ",".join([f"{m},64,64,1,nvfp4", *plans]) + "\n"


# One token: the choice is 10 % behind a, predicted 10 % too low; b was only screened.
ONE = row(1, "c/1 9.90 21 11.000 11 11", "a/1 10.00 21 10.000 10 10", "b/1 10.00 5 9.000 9 9",
          "d/1 99.00")
TEXT = HEAD + ONE
# And twenty shapes more whose choice is the best, one of them predicted at twice the time.
MORE = "".join(row(m, f"c/1 {20 if m == 5 else 10}.00 21 10.000 10 10", "a/1 10.00 21 20.000 20 20")
               for m in range(2, 22))

# What nvfp4_bench packed writes: the choice with packed weights is 25 % behind b. Neither weights
# in a checkpoint's order nor cuBLASLt are its rivals.
PACKED = ("m,n,k,plan,packed,chosen,predicted_us,us\n8,64,64,a/2,0,1,3.00,3.00\n"
          "8,64,64,a/2,1,1,5.00,5.00\n8,64,64,b/even,1,0,6.00,4.00\n"
          "8,64,64,cublaslt,0,1,0.00,1.00\n")


# What nvfp4_bench plans writes: kinds of one product are products of their own. The choice with
# packed weights is 25 % behind b; of packed tokens there is one plan.
PLANS = ("m,n,k,a_type,packed,plan,chosen,predicted_us,us\n"
         "8,64,64,bf16,nothing,a/2,1,3.00,2.00\n8,64,64,bf16,weights,a/2,1,5.00,5.00\n"
         "8,64,64,bf16,weights,b/even,0,6.00,4.00\n8,64,64,nvfp4,tokens,c/1,1,1.00,1.00\n")


class Planner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def file(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("# device    A GPU\n" + text)
        return path

    def report(self, *arguments):
        done = subprocess.run([sys.executable, os.path.join(BENCH, "planner.py"), *arguments],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return " ".join(done.stdout.split())

    def test_mean_median_95_of_100_and_worst(self):
        text = self.report(self.file("a.csv", TEXT), self.file("b.csv", HEAD + MORE))
        self.assertIn("slower than the best by 21 0.48 % 0.0 % 0.0 % 10.0 %", text)
        self.assertIn("off, of the choice, by 21 5.24 % 0.0 % 10.0 % 100.0 %", text)
        self.assertIn("1x64x64 nvfp4 10.0 % c/1 11.000, a/1 10.000 us", text)
        self.assertIn("5x64x64 nvfp4 c/1: predicted 20.00, measured 10.000 us, +100.0 %", text)

    def test_what_was_not_timed_is_no_error(self):
        text = self.report(self.file("a.csv", TEXT))
        self.assertIn("off, of all timed, by 3 ", text)

    def test_another_planner_is_judged_by_the_same_times(self):
        measured = self.file("a.csv", TEXT)
        now = HEAD + row(1, "a/1 11.00", "c/1 12.00")
        text = self.report(measured, "--predicted", self.file("b.csv", now))
        self.assertIn("slower than the best by 1 0.00 % 0.0 % 0.0 % 0.0 %", text)
        self.assertIn("off, of the choice, by 1 10.00 % 10.0 % 10.0 % 10.0 %", text)

    def test_a_choice_without_a_time_is_named(self):
        measured = self.file("a.csv", TEXT + MORE)
        now = self.file("b.csv", HEAD + row(1, "e/1 9.00") + MORE)
        text = self.report(measured, "--predicted", now)
        self.assertIn("1x64x64: e/1, the choice, was not measured", text)
        self.assertIn("slower than the best by 20 ", text)
        with self.assertRaises(ValueError):  # a shape that nobody predicted
            planner.predict_anew(planner.read([measured]), {})

    def test_packed_weights(self):
        text = self.report(self.file("a.csv", PACKED))
        self.assertIn("slower than the best by 1 25.00 % 25.0 % 25.0 % 25.0 %", text)
        self.assertIn("off, of all timed, by 2 ", text)
        self.assertIn("8x64x64 packed 25.0 % a/2 5.00, b/even 4.00 us", text)

    def test_kinds_of_products(self):
        measured = self.file("a.csv", PLANS)
        text = self.report(measured)
        self.assertIn("slower than the best by 3 8.33 % 0.0 % 25.0 % 25.0 %", text)
        self.assertIn("8x64x64 bf16 weights 25.0 % a/2 5.00, b/even 4.00 us", text)
        predicted = [line.rsplit(",", 1)[0] + "," for line in PLANS.splitlines()[1:]]
        now = [line.replace("a/2,1", "a/2,0").replace("b/even,0", "b/even,1")
               if "weights" in line else line for line in predicted]
        head = PLANS.splitlines()[0]
        text = self.report(measured, "--predicted", self.file("b.csv", "\n".join([head, *now])))
        self.assertIn("slower than the best by 3 0.00 % 0.0 % 0.0 % 0.0 %", text)

    def test_tables_that_contradict_themselves_are_refused(self):
        for again, words in (("a/1 10.00 21 12.000 12 12", "by a/1 stands twice"),
                             ("e/1 10.00 21 12.000 12 12", "2 rows of a shape are chosen")):
            with self.assertRaisesRegex(ValueError, words):
                list(planner.report(planner.read([self.file("a.csv", TEXT + row(1, again))])))


class HeldOut(unittest.TestCase):
    """The planner's numbers were fitted on layers of bench/layers.csv and on rows of results."""

    def shapes(self, name):
        with open(os.path.join(BENCH, name), encoding="utf-8") as file:
            return [tuple(map(int, line.split("x"))) for line in file if not line.startswith("#")]

    def test_none_was_fitted(self):
        with open(os.path.join(BENCH, "layers.csv"), encoding="utf-8") as file:
            fitted = {(int(row["n"]), int(row["k"])) for row in csv.DictReader(file)}
        for name, least in (("held_out.txt", 60), ("held_out_16bit.txt", 10)):
            shapes = self.shapes(name)
            self.assertEqual(len(set(shapes)), len(shapes))
            self.assertGreaterEqual(len(shapes), least)
            self.assertFalse({(n, k) for _, n, k in shapes} & fitted)

    def test_they_have_odd_ones_too(self):
        shapes = self.shapes("held_out.txt")
        self.assertTrue(any(n % 2 for _, n, _ in shapes))
        self.assertTrue(any(k % 64 for _, _, k in shapes))
        self.assertTrue(any(m % 2 and m > 1 for m, _, _ in shapes))


if __name__ == "__main__":
    unittest.main()
