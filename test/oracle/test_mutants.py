# SPDX-License-Identifier: MIT
"""Each bug of the mutants.txt files can still be planted: its code stands once in its function.
`make mutants` takes minutes and would say so only then."""
import os
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools", "mutate"))
import mutate  # noqa: E402
import place  # noqa: E402


SOURCE = """
int first(int a) { return a + 1; }

int second(const char* name,
           int b) {
  if (b < 0) return first(b,
                          b);
  return b + 1;
}
"""


class Mutants(unittest.TestCase):
    def test_each_bug_can_be_planted(self):
        for mutant in mutate.read_mutants():
            with self.subTest(mutant.name), open(os.path.join(ROOT, mutant.file)) as source:
                text = source.read()
                self.assertIn(mutant.new, mutate.mutated(text, mutant))
                self.assertTrue(mutate.mutated(text, mutant) != text, "no bug at all")

    def test_a_bug_has_all_its_lines(self):
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
            file.write("a  x.cc\n  test  t  f\n  in  g\n  -  b();\n  -  c();\n  +  c();\n")
            file.flush()
            mutant, = mutate.read_file(file.name)
        self.assertEqual((mutant.old, mutant.new), ("b();\nc();", "c();"))

    def test_a_function_is_told_from_its_calls(self):
        start, end = next(place.functions(SOURCE, "first"))
        self.assertEqual(SOURCE[start:end], "first(int a) { return a + 1; }")
        self.assertEqual(len(list(place.functions(SOURCE, "first"))), 1)

    def test_line_breaks_do_not_count(self):
        start, end = place.place(SOURCE, "second", "return first(b, b);", "x.cc")
        self.assertEqual(SOURCE[start:end].split(), ["return", "first(b,", "b);"])

    def test_what_is_lost_is_told_with_the_nearest_line(self):
        with self.assertRaisesRegex(place.Lost, "nearest, line 8: return b"):
            place.place(SOURCE, "second", "return b + 2;", "x.cc")
        with self.assertRaisesRegex(place.Lost, "no function secnd; nearest: second"):
            place.place(SOURCE, "secnd", "return b + 1;", "x.cc")
        with self.assertRaisesRegex(place.Lost, "found 2 times, in lines 2, 8"):
            place.place(SOURCE, None, "+ 1;", "x.cc")


if __name__ == "__main__":
    unittest.main()
