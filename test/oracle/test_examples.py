# SPDX-License-Identifier: MIT
"""The examples run and say that their result is right."""
import os
import subprocess
import sys
import unittest

import nvfp4

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Examples(unittest.TestCase):
    def succeeds(self, *command):
        done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def test_c(self):
        out = self.succeeds(os.path.join(nvfp4.BUILD, "example_gemm"))
        self.assertIn("device:", out)

    def test_python(self):
        self.succeeds(sys.executable, os.path.join(ROOT, "examples", "python", "nvfp4gemm.py"))


if __name__ == "__main__":
    unittest.main()
