# SPDX-License-Identifier: MIT
"""tools/gates/check_hw.sh with programs that stand for a GPU's: what it starts, what it says, its
exit
code."""
import os
import subprocess
import unittest

import stand_in

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SCRIPT = os.path.join(ROOT, "tools", "gates", "check_hw.sh")
SANITIZER = """
# compute-sanitizer --tool NAME ... PROGRAM ARGUMENTS: runs the program; the bad tool finds
# something.
name=$2
while [ "$1" != --print-limit ]; do shift; done
shift 2
echo "$name: $*" >>"$CALLS"
"$@" || exit
[ "$name" != "${BAD:-none}" ] || { echo "a race"; exit 9; }
"""


class CheckHw(stand_in.StandIns):
    def setUp(self):
        super().setUp()
        self.calls = os.path.join(self.build, "calls")
        self.write("nvfp4", "echo 'device 0  NVIDIA H200'")
        self.write("nvfp4_test", "echo '{\"products\": 54, \"variants\": 6}'")
        self.write("compute-sanitizer", SANITIZER)

    def run_script(self, *arguments, **environment):
        path = self.build + os.pathsep + os.environ["PATH"]
        return subprocess.run([SCRIPT, self.build, *arguments],
                              capture_output=True,
                              text=True,
                              env={
                                  **os.environ, "PATH": path,
                                  "CALLS": self.calls,
                                  **environment
                              })

    def test_each_tool_runs_the_products_once(self):
        done = self.run_script("sanitize")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with open(self.calls) as file:
            self.assertEqual([line.split(":")[0] for line in file],
                             ["memcheck", "racecheck", "initcheck", "synccheck"])
        self.assertEqual(done.stdout.count('{"products": 54, '), 4)
        self.assertIn("0 tools with findings", done.stdout)

    def test_one_tool_can_be_named(self):
        self.assertEqual(self.run_script("sanitize", "racecheck").returncode, 0)
        with open(self.calls) as file:
            self.assertEqual(file.read(), f"racecheck: {self.build}/nvfp4_test [sanitize]~[list]\n")

    def test_a_finding_is_shown_and_fails(self):
        done = self.run_script("sanitize", BAD="racecheck")
        self.assertEqual(done.returncode, 1)
        self.assertIn("not   racecheck", done.stdout)
        self.assertIn("a race", done.stdout)
        self.assertIn("ok    synccheck", done.stdout)

    def test_a_test_that_ran_nothing_fails(self):
        self.write("nvfp4_test", "echo nothing\n")
        self.assertEqual(self.run_script("sanitize", "memcheck").returncode, 1)

    def test_what_hung_a_gpu_runs_first_and_ends_the_part(self):
        self.write("nvfp4_test", 'echo "$1"; [ "$1" != "$BAD" ]\n')
        done = self.run_script("gemm", BAD="nothing")
        self.assertEqual((done.returncode, done.stdout), (0, "[late]\n~[late]~[.]\n"))
        for bad in ("[late]", "~[late]~[.]"):
            done = self.run_script("gemm", BAD=bad)
            self.assertEqual((done.returncode, done.stdout), (1, "[late]\n~[late]~[.]\n"))
        # Products that this GPU has no kernel for are no failure, and no reason to run no others.
        self.write("nvfp4_test", 'echo "$1"; [ "$1" != "[late]" ] || exit 77\n')
        done = self.run_script("gemm")
        self.assertEqual((done.returncode, done.stdout), (0, "[late]\n~[late]~[.]\n"))
        self.write("nvfp4_test", 'exit 77\n')
        self.assertEqual(self.run_script("gemm").returncode, 77)
        # A time limit that passes has the status 124.
        self.write("nvfp4_test", 'echo "$1"; exit 124\n')
        done = self.run_script("gemm")
        self.assertEqual((done.returncode, done.stdout), (1, "[late]\n"))
        self.assertIn("did not end", done.stderr)

    def test_instructions_are_tested_apart(self):
        self.write("emulator_hw_test", "echo \"$1\"; [ \"$1\" != '[tma]' ]\n")
        done = self.run_script("ptx")
        self.assertEqual(done.returncode, 1)
        # The last program's "passed" hid that another had failed (H200, 2026-11-22).
        self.assertEqual(done.stdout.split("\n"),
                         ["[call]", "[carry]", "[tma]", "[mma]", "[wgmma]", "[fragments]",
                          "failed: tma", ""])
        self.write("emulator_hw_test", ":")
        done = self.run_script("ptx")
        self.assertEqual((done.returncode, done.stdout), (0, "failed: nothing\n"))
        self.write("emulator_hw_test", "[ \"$1\" != '[wgmma]' ] || exit 77\n")
        done = self.run_script("ptx")
        self.assertEqual((done.returncode, done.stdout),
                         (0, "other GPUs' tests: wgmma\nfailed: nothing\n"))

    def test_each_part_of_the_package_is_tested_and_counts(self):
        self.write("torch-python", """
[ "$1" != -c ] || exit 0
echo "$NVFP4_BUILD: $*"
case $1 in *_$BAD.py) exit 1 ;; esac
""")
        python = os.path.join(self.build, "torch-python")
        done = self.run_script("python", TORCH_PYTHON=python, BAD="nn")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stdout.split("\n"), [
            *(f"{self.build}: tools/python/test/test_python_{part}.py -v"
              for part in ("torch", "door_torch", "gated", "grouped", "gradients", "dialects", "nn",
                           "parallel")),
            f"{self.build}: tools/python/test/models/on_gpu.py -v", "failed: nn", ""])
        done = self.run_script("python", TORCH_PYTHON=python, BAD="none")
        self.assertEqual((done.returncode, done.stdout.split("\n")[-2]), (0, "failed: nothing"))

    def test_each_pair_runs_in_both_variants_under_three_tools(self):
        self.write(
            "emulator_hw_test",
            '[ -f "$2/shared.ptx" ] && [ $# -eq 2 ] && echo store_load\nexit 0\n')
        done = self.run_script("hazard")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line.split("\t")[:3] for line in done.stdout.splitlines()],
                         [["store_load", variant, tool] for variant in ("racy", "repaired")
                          for tool in ("memcheck", "racecheck", "synccheck")])

    def test_the_emulator_is_no_gpu(self):
        self.write("nvfp4", "echo 'device 0  NVIDIA H200 (emulated)'\n")
        done = self.run_script("sanitize")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the driver is the emulator", done.stderr)

    def test_an_unknown_part_is_refused(self):
        self.assertIn("PART is", self.run_script("nothing").stderr)


if __name__ == "__main__":
    unittest.main()
