# SPDX-License-Identifier: MIT
"""tools/gates/check_hw.sh with programs that stand for a GPU's: what it starts, what it says, its
exit
code."""
import os
import re
import shutil
import subprocess
import unittest

import stand_in

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
SCRIPT = os.path.join(ROOT, "tools", "gates", "check_hw.sh")
BUILD = os.path.abspath(os.environ.get("NVFP4_BUILD", "build"))
SANITIZER = """
# compute-sanitizer --tool NAME ... PROGRAM ARGUMENTS: runs the program; the bad tool finds
# something.
name=$2
case "$*" in
*--print-limit*) while [ "$1" != --print-limit ]; do shift; done ;;
esac
shift 2
echo "$name: $*" >>"$CALLS"
"$@" || exit
[ "$name" != "${BAD:-none}" ] || { echo "a race"; exit 9; }
case "$name $*" in
"${REPORTED:-none} "*" racy") echo "=== SUMMARY: 2 hazards displayed (1 error, 1 warning)" ;;
*) echo "=== SUMMARY: 0 errors" ;;
esac
"""


def tags_in(tests):
    return re.findall(r"\[#\w+\]", tests)


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
            self.assertEqual(file.read(), f"racecheck: {self.build}/nvfp4_test [sanitize]\n")

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
        last = 'for tests; do :; done; echo "$tests";'
        self.write("nvfp4_test", f'{last} [ "$tests" != "$BAD" ]\n')
        done = self.run_script("gemm", BAD="nothing")
        first, *files, rest, verdict = done.stdout.splitlines()
        self.assertEqual((done.returncode, first, verdict), (0, "[late]", "failed: nothing"))
        # The files that run by themselves are those that the rest leaves out, and none is twice.
        tags = tags_in(",".join(files))
        self.assertEqual(rest, "~[late]~[.]" + "".join(f"~{tag}" for tag in tags_in(rest)))
        self.assertEqual(sorted(tags), sorted(set(tags_in(rest))))
        for tests in files:
            for alternative in tests.split(","):
                self.assertRegex(alternative, r"^\[#\w+\]~\[late\]~\[\.\]$")
        for bad in ("[late]", files[0], rest):
            done = self.run_script("gemm", BAD=bad)
            self.assertEqual((done.returncode, len(done.stdout.splitlines())), (1, len(files) + 3))
        # Products that this GPU has no kernel for are no failure, and no reason to run no others.
        self.write("nvfp4_test", f'{last} [ "$tests" != "[late]" ] || exit 77\n')
        done = self.run_script("gemm")
        self.assertEqual((done.returncode, done.stdout.splitlines()[-2:]), (0, [rest, verdict]))
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
[ -n "$NVFP4_GPU_NEEDED" ] || exit 1
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
        done = self.run_script("hazard", REPORTED="racecheck")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([line.split("\t")[:3] for line in done.stdout.splitlines()[:-1]],
                         [["store_load", variant, tool] for variant in ("racy", "repaired")
                          for tool in ("memcheck", "racecheck", "synccheck")])
        self.assertIn("\n2 programs, 0 differ", done.stdout)
        for reported, words in (("none", "silent"), ("synccheck", "synccheck error")):
            done = self.run_script("hazard", REPORTED=reported)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"differs: store_load, racy: {words}; README.md says racecheck error",
                          done.stdout)
            self.assertIn("\n2 programs, 1 differ", done.stdout)
        self.write("emulator_hw_test", "")
        self.assertEqual(self.run_script("hazard").returncode, 1)

    def test_the_emulator_is_no_gpu(self):
        self.write("nvfp4", "echo 'device 0  NVIDIA H200 (emulated)'\n")
        done = self.run_script("sanitize")
        self.assertEqual(done.returncode, 1)
        self.assertIn("the driver is the emulator", done.stderr)

    def test_probes_find_the_files_of_their_own_build(self):
        """A build may come from elsewhere: they looked into the folder where it had been made."""
        os.makedirs(os.path.join(self.build, "emulator"))
        shutil.copytree(os.path.join(BUILD, "emulator", "test"),
                        os.path.join(self.build, "emulator", "test"))
        program = shutil.copy(os.path.join(BUILD, "emulator_hw_test"), self.build)
        # What it counts is not ours.
        environment = {name: value for name, value in os.environ.items()
                       if name not in ("NVFP4_TALLY", "NVFP4_TIMES")}
        for tag, file in (("[carry]", "carry_probe"), ("[tma]", "load_probe.lineinfo")):
            for left in (0, 1):
                done = subprocess.run([program, tag], capture_output=True, text=True, cwd=ROOT,
                                      env={**environment, "EMU_DEVICE": "H200", "LD_LIBRARY_PATH":
                                           os.path.join(BUILD, "emulator")})
                self.assertEqual(done.returncode == 0, left == 0, done.stdout)
                if left == 0:
                    os.remove(os.path.join(self.build, "emulator", "test", f"{file}.ptx"))

    def test_an_unknown_part_is_refused(self):
        self.assertIn("PART is", self.run_script("nothing").stderr)


if __name__ == "__main__":
    unittest.main()
