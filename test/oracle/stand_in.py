# SPDX-License-Identifier: MIT
"""A build folder of shell scripts that stand for a GPU's programs."""
import os
import tempfile
import unittest


class StandIns(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.build = folder.name

    def write(self, name, text):
        """A program of the folder; /bin/sh runs its text."""
        path = os.path.join(self.build, name)
        with open(path, "w", encoding="utf-8") as file:
            file.write("#!/bin/sh\n" + text + "\n")
        os.chmod(path, 0o755)
