# SPDX-License-Identifier: MIT
"""Lines that a reader copies: the examples' build lines, README's commands and its C, as written,
from a folder that looks like the root of the project."""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import nvfp4

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tools/python/test"))
import dialect_files  # noqa: E402


def text(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def block(start, language=""):
    """The first fenced block of README that begins with the words."""
    return re.search(rf"```{language}\n({re.escape(start)}.*?)```", text("README.md"), re.DOTALL)[1]


class Lines(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        for name, target in (("include", "include"), ("examples", "examples"), ("build",
                                                                                nvfp4.BUILD)):
            os.symlink(os.path.join(ROOT, target), os.path.join(self.folder, name))

    def succeeds(self, line, **environment):
        done = subprocess.run(["sh", "-c", line], cwd=self.folder, capture_output=True, text=True,
                              env={**os.environ, **environment})
        self.assertEqual(done.returncode, 0, f"{line}\n{done.stdout}{done.stderr}")
        return done.stdout

    def builds(self, source):
        line = re.search(r"^(?: \*|//) {5}((?:cc|c\+\+|rustc) .*)$", text(source), re.MULTILINE)[1]
        tool = line.split()[0]
        if not shutil.which(tool):
            self.skipTest(f"there is no {tool} here")
        self.succeeds(line)
        out = self.succeeds("./gemm", LD_LIBRARY_PATH=f"{nvfp4.BUILD}:{nvfp4.BUILD}/emulator")
        self.assertTrue("device:" in out or "batch" in out, out)

    def test_c(self):
        self.builds("examples/c/gemm.c")

    def test_cpp(self):
        self.builds("examples/cpp/gemm.cc")

    def test_cuda(self):
        nvcc = shutil.which("nvcc")
        if not nvcc:
            self.skipTest("there is no nvcc here")
        source = os.path.join(ROOT, "examples", "cuda", "one_tile.cu")
        shutil.copy(source, self.folder)
        # The wheels of nvcc have libraries where it does not look, and no libcuda.so.
        emulator = os.path.join(nvfp4.BUILD, "emulator")
        libraries = f"{emulator}:{os.path.dirname(os.path.realpath(nvcc))}/../lib"
        line = re.search(r"^// {5}(nvcc .*)$", text(source), re.MULTILINE)[1]
        self.succeeds(line, LIBRARY_PATH=libraries)
        self.assertIn("16384 of 16384", self.succeeds("./one_tile", LD_LIBRARY_PATH=emulator))

    def test_rust(self):
        if not shutil.which("rustc"):
            self.skipTest("there is no rustc here")
        version = self.succeeds("rustc --version")
        if tuple(int(part) for part in re.search(r"(\d+)\.(\d+)", version).groups()) < (1, 77):
            self.skipTest(f"{version.strip()} is older than 1.77")
        self.builds("examples/rust/gemm.rs")

    def test_the_commands_of_readme(self):
        rng = np.random.default_rng(20)
        for name, rows in (("a", 64), ("b", 96), ("w", 32)):
            np.save(os.path.join(self.folder, name + ".npy"),
                    rng.standard_normal((rows, 256), dtype=np.float32))
        os.mkdir(os.path.join(self.folder, "model"))
        dialect_files.modelopt().write(os.path.join(self.folder, "model", "m.safetensors"))
        lines = block("build/nvfp4 info").splitlines()
        self.assertGreater(len(lines), 4)
        for line in lines:
            self.succeeds(line, LD_LIBRARY_PATH=f"{nvfp4.BUILD}/emulator")
        for made in ("d.npy", "trace.json"):
            self.assertTrue(os.path.exists(os.path.join(self.folder, made)), made)

    def test_the_first_program_is_that_of_make_first(self):
        program = block("#include <nvfp4_gemm.h>", "c")
        self.assertTrue(text("examples/c/first.c").endswith("same lines */\n" + program))

    def test_the_first_program_and_its_build_line(self):
        if not shutil.which("pkg-config"):
            self.skipTest("there is no pkg-config here")
        with open(os.path.join(self.folder, "program.c"), "w") as out:
            out.write(block("#include <nvfp4_gemm.h>", "c"))
        # Its PREFIX is no system folder: with no more than its own lines, pkg-config and the loader
        # find what is there. The driver is the emulator.
        install = re.search(r"^make install PREFIX=(\S+)", text("README.md"), re.M)[1]
        build = block("export PKG_CONFIG_PATH=").splitlines()
        prefix = shlex.quote(install.replace("$HOME", self.folder))
        emulator = os.path.join(os.path.abspath(nvfp4.BUILD), "emulator")
        self.succeeds(
            f"cd {shlex.quote(ROOT)} && PREFIX={prefix} LIBDIR={prefix}/lib "
            f"INCLUDEDIR={prefix}/include BINDIR=- MANDIR=- BASHDIR=- DESTDIR= "
            f"tools/package/install.sh install {shlex.quote(os.path.relpath(nvfp4.BUILD, ROOT))}")
        said = self.succeeds("\n".join([*build, "./program"]), HOME=self.folder,
                             LIBRARY_PATH=emulator, LD_LIBRARY_PATH=emulator, PKG_CONFIG_PATH="")
        # The first row is -3 .. 3 over and over, which E2M1 holds exactly.
        self.assertEqual(float(said.split("=")[1]), sum((i % 7 - 3)**2 for i in range(64)))


if __name__ == "__main__":
    unittest.main()
