# SPDX-License-Identifier: MIT
"""The gate that compares HACKING.md's lists with what changes touched."""
import os
import sys
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools", "gates"))
import check_hacking


class Hacking(unittest.TestCase):
    def setUp(self):
        with open(os.path.join(ROOT, "HACKING.md"), encoding="utf-8") as file:
            self.text = file.read()

    def test_names(self):
        names = check_hacking.Names(
            "A row in `host/words/light.cc`, `enums.cc` in `host/problem/check/`, tests in "
            "`test/gemm/`, `kernel/sm*/params.h`.\n\nList: `git grep -l nvfp4_gemm_describe -- "
            "host/api`.")
        for file, named in (
                ("host/words/light.cc", True), ("host/problem/check/enums.cc", True),
                ("host/words/enums.cc", True), ("host/plan/enums.cc", False),
                ("test/gemm/gated.cc", True), ("host/problem/check/gemm.cc", False),
                ("kernel/sm90/params.h", True), ("host/api/api.cc", True),
                ("host/api/grouped.cc", False)):
            self.assertEqual(names.has(file), named, file)

    def test_what_is_taken_out_is_missed(self):
        kinds = check_hacking.table()
        self.assertGreater(len(kinds), 8)
        self.assertEqual(list(check_hacking.findings(self.text, kinds)), [])
        for heading in kinds:
            begin = self.text.index(f"\n### {heading}\n")
            section = self.text[begin:self.text.index("\n##", begin + 1)]
            for without in ("", f"\n### {heading}\n\nRead the code.\n"):
                found = list(check_hacking.findings(self.text.replace(section, without),
                                                    {heading: kinds[heading]}))
                self.assertEqual([sentence.split(":")[0] for sentence in found], [heading])


if __name__ == "__main__":
    unittest.main()
