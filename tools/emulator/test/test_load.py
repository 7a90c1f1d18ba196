# SPDX-License-Identifier: MIT
"""tools/emulator/load.py: what it counts, and whom it asks."""
import os
import subprocess
import sys
import tempfile
import unittest

LOAD = os.path.join(os.path.dirname(__file__), "../load.py")
EMULATOR = os.path.join(os.environ["NVFP4_BUILD"], "emulator", "libcuda.so.1")


def module(target, body):
    return (f".version 8.7\n.target {target}\n.address_size 64\n"
            f".visible .entry k()\n{{\n{body}\nret;\n}}\n")


class Load(unittest.TestCase):
    def load(self, files, *arguments):
        with tempfile.TemporaryDirectory() as folder:
            for name, text in files.items():
                os.makedirs(os.path.join(folder, os.path.dirname(name)), exist_ok=True)
                with open(os.path.join(folder, name), "w") as file:
                    file.write(text)
            done = subprocess.run([sys.executable, LOAD, "--library", EMULATOR, *arguments, folder],
                                  capture_output=True, text=True)
        return done.returncode, done.stdout + done.stderr

    def test_every_file_on_a_device_of_its_target(self):
        files = {"a/one.ptx": module("sm_90a", "wgmma.fence.sync.aligned;"),
                 "a/two.ptx": module("sm_100a", "tcgen05.wait::ld.sync.aligned;"),
                 "b/three.ptx": module("sm_120a", "") + module("sm_120a", "").split("\n", 3)[3]
                 .replace("k()", "l()")}
        status, out = self.load(files)
        self.assertEqual(status, 0, out)
        self.assertIn(f"{3:14}{4:14}{3:14}", out)

    def test_refusals_are_counted_by_their_words(self):
        body = ".reg .b32 %r<9>; no_such_instruction %r{}, {};"
        files = {f"{i}.ptx": module("sm_100a", body.format(i, 5 * i)) for i in range(3)}
        status, out = self.load({**files, "right.ptx": module("sm_100a", "")})
        self.assertEqual(status, 1)
        self.assertIn("    3  unknown instruction 'no_such_instruction %r, N'", out)
        self.assertIn(f"{4:14}{4:14}{1:14}", out)


if __name__ == "__main__":
    unittest.main()
