# SPDX-License-Identifier: MIT
"""What tools/gates/check_english.py counts, and that the counts may only fall."""
import os
import sys
import tempfile
import unittest
from unittest import mock

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools", "gates"))
import check_english  # noqa: E402


def lines(rule, text, name):
    return list(check_english.RULES[rule](text, name))


class English(unittest.TestCase):
    def test_a_sentence_that_begins_with_of(self):
        self.assertEqual(lines("of", "int a;  // Of its rows.\n", "a.cc"), [1])
        self.assertEqual(lines("of", "# All. Of its\n# rows.\n", "a.py"), [1])
        self.assertEqual(lines("of", "// It is the first.\n// Of its rows.\nint b;\n", "a.h"), [1])

    def test_a_line_that_begins_with_of_inside_a_sentence_is_none(self):
        for text, name in (("// The row\n// of the tile. Often\n", "a.cc"),
                           ('f("Of it");\n', "a.cc"),
                           ("// A row of it\n// Of A\n", "a.cc"), ("x = '#Of it'\n", "a.py"),
                           ("Of all.\n", "a.md")):
            with self.subTest(text):
                self.assertEqual(lines("of", text, name), [])

    def test_a_wide_line_of_markdown(self):
        wide = "word " * 21
        self.assertEqual(lines("wide", f"short\n{wide}\n", "a.md"), [2])
        for text, name in ((f"| {wide}|\n", "a.md"), (f"```\n{wide}\n```\n", "a.md"),
                           ("x" * 120 + "\n", "a.md"), (wide, "a.cc")):
            self.assertEqual(lines("wide", text, name), [])

    def test_more_than_before_is_a_finding_and_no_count_rises(self):
        with tempfile.TemporaryDirectory() as folder:
            counts = os.path.join(folder, "english.txt")
            text = os.path.join(folder, "a.cc")
            with open(text, "w", encoding="utf-8") as out:
                out.write("// Of one.\n\n// Of two.\n")
            for of, broken in ((1, True), (2, False), (3, False)):
                with open(counts, "w", encoding="utf-8") as out:
                    out.write(f"# head\nof {of}\nwide 0\n")
                with mock.patch.object(check_english, "COUNTS", counts):
                    found = list(check_english.findings([text]))
                    self.assertEqual([f.split(":")[0] for f in found], ["of"] if broken else [])
                    check_english.lower_counts(check_english.found_in([text]))
                    self.assertEqual(check_english.read_counts(), {"of": min(of, 2), "wide": 0})


if __name__ == "__main__":
    unittest.main()
