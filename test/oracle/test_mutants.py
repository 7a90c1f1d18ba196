# SPDX-License-Identifier: MIT
"""Each bug of tools/mutate/mutants.txt can still be planted: the line it changes stands once in the
source. `make mutants` takes minutes and would say so only then."""
import os
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools", "mutate"))
import mutate  # noqa: E402


class Mutants(unittest.TestCase):
    def test_each_line_stands_once_in_the_source(self):
        for mutant in mutate.read_mutants(os.path.join(ROOT, "tools", "mutate", "mutants.txt")):
            with self.subTest(mutant.name), open(os.path.join(ROOT, mutant.file)) as source:
                self.assertIn(mutant.new, mutate.mutated(source.read(), mutant))


if __name__ == "__main__":
    unittest.main()
