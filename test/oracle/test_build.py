# SPDX-License-Identifier: MIT
"""The Makefile and set-up as a packager meets them: flags, words about what is missing."""
import glob
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def execute(*command, folder=ROOT, **environment):
    # Without what a make around the tests left there.
    clean = {
        key: value
        for key, value in os.environ.items()
        if key not in ("NVFP4_TALLY", "MAKEFLAGS", "MFLAGS", "MAKELEVEL", "MAKEOVERRIDES", "NVCC",
                       "PYTHON")
    }
    return subprocess.run(command,
                          cwd=folder,
                          capture_output=True,
                          text=True,
                          stdin=subprocess.DEVNULL,
                          env={
                              **clean,
                              **environment
                          })


class Make(unittest.TestCase):
    def test_without_tools_it_names_make_setup(self):
        done = execute("make", "SETUP=/no/setup.mk", "CXX=/no/g++", "NVCC=")
        self.assertNotEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r'missing here: g\+\+ .*nvcc. "make setup" installs it')
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        for goal in ("help", "clean", "library"):
            self.assertEqual(
                execute("make", "-n", "SETUP=/no/setup.mk", "CXX=/no/g++", goal).returncode, 0)

    def test_an_nvcc_that_is_none_is_refused(self):
        done = execute("make", "-n", "NVCC=/no/nvcc")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("NVCC=/no/nvcc is no program", done.stderr)

    def test_the_emulator_is_built_where_cuda_h_is(self):
        def goals(nvcc):
            with tempfile.TemporaryDirectory() as build:
                done = execute("make", "-n", f"B={build}", "SETUP=/no/setup.mk", "NVCC=" + nvcc,
                               "CXX=g++ -nostdinc", "all", "library")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("nvfp4 ", done.stdout)
            return done.stdout
        with tempfile.TemporaryDirectory() as cuda:
            for folder in ("bin", "include"):
                os.mkdir(os.path.join(cuda, folder))
            nvcc = os.path.join(cuda, "bin", "nvcc")
            with open(nvcc, "w") as out:
                out.write("#!/bin/sh\n")
            os.chmod(nvcc, 0o755)
            self.assertNotIn("tools/emulator/driver", goals(nvcc))
            with open(os.path.join(cuda, "include", "cuda.h"), "w"):
                self.assertIn("tools/emulator/driver", goals(nvcc))

    def test_every_flag_reaches_its_commands(self):
        with tempfile.TemporaryDirectory() as build:
            goals = [f"{build}/{name}" for name in
                     ("libnvfp4gemm.so", "libnvfp4gemm.a", "nvfp4", "emulator/libcuda.so.1")]
            done = execute("make", "-n", "V=1", f"B={build}", "CXX=my-g++", "CC=my-gcc", "AR=my-ar",
                           "CXXFLAGS=-Dcxx", "CFLAGS=-Dc", "CPPFLAGS=-D_FORTIFY_SOURCE=3",
                           "LDFLAGS=-Wl,-z,muldefs", "NVCC=" + sys.executable,
                           "SETUP=/no/setup.mk", *goals)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = done.stdout.replace("\\\n", " ").splitlines()
        compiled = [line for line in lines if line.startswith("my-g++") and " -c " in line]
        self.assertGreater(len(compiled), 60)
        for line in compiled:
            self.assertIn(" -D_FORTIFY_SOURCE=3 -Dcxx", line)
            self.assertNotIn("-D_FORTIFY_SOURCE=2", line)
        self.assertTrue(
            any(line.startswith("my-gcc -I. -D_FORTIFY_SOURCE=3 -Dc -c") for line in lines))
        linked = [
            line for line in lines if line.startswith("my-g") and " -o " in line and
            not re.search(" -c | -r | -x c[+][+]-header ", line)
        ]
        self.assertEqual(len(linked), 3, linked)
        for line in linked:
            self.assertIn(" -Wl,-z,muldefs", line)
        self.assertTrue(any(line.startswith("my-ar ") for line in lines))


class Jobs(unittest.TestCase):
    def test_make_run_counts_no_step_that_is_done(self):
        def steps(*words):
            return execute("make", "-n", "--no-print-directory", "first-run", *words).stdout.count(
                "printf '  ")
        self.assertGreater(steps(), 0)
        self.assertEqual(steps("ALWAYS="), 0)

    def test_a_make_that_make_starts_runs_no_more_jobs_at_once(self):
        # `make -j1 dist` started two compilers.
        with tempfile.NamedTemporaryFile("w", suffix=".mk", encoding="utf-8") as file:
            file.write("include Makefile\n"
                       f"outer:; @+$(MAKE) --no-print-directory -f {file.name} inner\n"
                       "inner:; @echo '[$(filter -j%,$(MAKEFLAGS))]'\n")
            file.flush()
            for option in ("-j1", "-j3"):
                done = execute("make", option, "-f", file.name, "outer")
                self.assertEqual((done.stderr, done.stdout), ("", f"[{option}]\n"))


class Wheels(unittest.TestCase):
    # Folder, name, goal of make, and what is in the wheel's folder alone.
    ROWS = (("tools/python", "nvfp4gemm", "wheel",
             ("version.txt", "LICENSE", "nvfp4gemm/libnvfp4gemm.so.0", "nvfp4gemm/dialects.def",
              "nvfp4gemm/fields.def")),
            ("tools/emulator/python", "nvfp4emu", "emulator-wheel",
             ("version.txt", "LICENSE", "nvfp4emu/emulator/libcuda.so.1")))

    def test_each_waits_for_its_set_up(self):
        for _, _, goal, _ in self.ROWS:
            def before(*goals):
                done = execute("make", "-npq", *goals)
                return re.search(rf"(?m)^{goal}:.*$", done.stdout)[0]
            self.assertIn("| setup-wheel", before("setup-wheel", goal))
            self.assertNotIn("setup-wheel", before(goal))

    def set_up(self, folder, source, parts, *words):
        for name in ("pyproject.toml", "setup.py", "README.md"):
            shutil.copy(os.path.join(ROOT, source, name), folder)
        for part in parts:
            os.makedirs(os.path.dirname(os.path.join(folder, part)), exist_ok=True)
            with open(os.path.join(folder, part), "w", encoding="utf-8") as file:
                file.write("1.2.3\n")
        return execute(sys.executable, "setup.py", *words, folder=folder)

    def test_a_folder_without_a_part_is_refused(self):
        # pip install ./tools/python made a package without the library, of version 0.0.0.
        for source, _, goal, all_parts in self.ROWS:
            for left_out in all_parts:
                with tempfile.TemporaryDirectory() as folder:
                    parts = [part for part in all_parts if part != left_out]
                    done = self.set_up(folder, source, parts, "--version")
                self.assertEqual(done.returncode, 1, done.stdout)
                self.assertIn(f"make setup-wheel {goal}", done.stderr)

    def test_this_python_s_setuptools_reads_what_each_says(self):
        # That of Debian 12 refuses a licence by its name.
        for source, name, _, parts in self.ROWS:
            with tempfile.TemporaryDirectory() as folder:
                done = self.set_up(folder, source, parts, "-q", "--name", "--version",
                                   "--classifiers")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stdout.split("\n")[:2], [name, "1.2.3"])
            self.assertIn("License :: OSI Approved :: MIT License", done.stdout)


class PipOfTheSources(unittest.TestCase):
    """What the pyproject.toml at the root does by tools/python/backend.py."""

    def backend(self, call, **environment):
        return execute(sys.executable, "-c", f"import backend; backend.{call}",
                       folder=os.path.join(ROOT, "tools/python"), **environment)

    def test_a_source_distribution_is_refused_in_words(self):
        done = self.backend("build_sdist('.')")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("is the tarball of `make dist`", done.stderr)

    def test_a_build_that_fails_says_what_it_needs(self):
        with tempfile.TemporaryDirectory() as folder:
            make = os.path.join(folder, "make")
            with open(make, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\nexit 2\n")
            os.chmod(make, 0o755)
            done = self.backend("build_wheel('.')", PATH=f"{folder}:{os.environ['PATH']}")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "`make library` failed in .* needs `make setup` first")


class Libdl(unittest.TestCase):
    """tools/package/libdl.sh."""

    def made(self, folder, **environment):
        out = os.path.join(folder, "libdl.so")
        done = execute(os.path.join(ROOT, "tools/package/libdl.sh"), out, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        return out

    @unittest.skipUnless(platform.libc_ver()[0] == "glibc", "another C library")
    def test_it_has_the_versions_of_the_first_glibc(self):
        with tempfile.TemporaryDirectory() as folder:
            out = self.made(folder)
            symbols = execute("nm", "-D", "--defined-only", out).stdout
            name = execute("readelf", "-dW", out).stdout
        first = {"x86_64": "GLIBC_2.2.5", "aarch64": "GLIBC_2.17"}[platform.machine()]
        self.assertEqual(set(re.findall(r"T (\S+)", symbols)),
                         {f"{name}@@{first}" for name in ("dlopen", "dlsym", "dlerror")})
        self.assertIn("[libdl.so.2]", name)

    def test_with_another_c_library_it_is_ldl(self):
        with tempfile.TemporaryDirectory() as folder:
            compiler = os.path.join(folder, "musl-gcc")
            with open(compiler, "w", encoding="utf-8") as file:
                file.write("#!/bin/sh\ncat >/dev/null\necho __GLIBC__\n")
            os.chmod(compiler, 0o755)
            with open(self.made(folder, CC=compiler), encoding="utf-8") as file:
                self.assertEqual(file.read(), "INPUT(-ldl)\n")


class Release(unittest.TestCase):
    def test_a_tag_of_another_version_is_refused(self):
        done = execute("tools/package/release.sh", "build", "v9.9.9")
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "the tag is v9.9.9; the header has version [0-9.]+$")


class Nvrtc(unittest.TestCase):
    def test_its_cstdint_has_what_the_kernels_take_from_there(self):
        # NVRTC brings no such header, and nothing but `make KERNELS=12.9` compiles with it.
        name = re.compile(
            r"\b(?:u?int(?:8|16|32|64|ptr)_t|(?:U?INT(?:8|16|32|64|PTR)|SIZE)_(?:MAX|MIN|C))\b")

        def names(path):
            with open(path, encoding="utf-8") as file:
                return set(name.findall(re.sub(r"//.*", "", file.read())))
        sources = [
            path for ending in ("cu", "cuh", "h", "def")
            for path in glob.glob(os.path.join(ROOT, "kernel/**/*." + ending), recursive=True)
        ]
        used = set().union(*map(names, sources))
        self.assertIn("uint32_t", used)
        self.assertLessEqual(used, names(os.path.join(ROOT, "tools/nvrtc/include/cstdint")))

    def test_variables_that_nothing_names_go(self):
        spec = importlib.util.spec_from_file_location("compile",
                                                      os.path.join(ROOT, "tools/nvrtc/compile.py"))
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        used = ".global .align 4 .b8 used[8] = {1,2};\n.visible .global .align 8 .b8 seen[16];\n"
        code = ".visible .entry f(){\nmov.u64 %rd1,used;\n}\n"
        unused = (".global .align 1 .u8 _ZN1a1bE;\n.global .align 4 .u32 use = 128;\n"
                  ".global .u64 x$[3];\n")
        self.assertEqual(module.without_unused(used + unused + code), used + code)


class Files(unittest.TestCase):
    def found(self, name, text, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, name)
            with open(path, "w", newline="") as file:
                file.write(text)
            done = execute(sys.executable, "tools/gates/check_files.py", *options, path)
            self.assertEqual(done.returncode, 1 if done.stdout else 0, done.stderr)
            return done.stdout.replace(path + ": ", "").splitlines()

    def test_the_form_of_files(self):
        licence = "// SPDX-License-Identifier: MIT\n"
        self.assertEqual(self.found("a.cc", licence + "int a;\n"), [])
        self.assertEqual(
            self.found("a.cc", licence + "int a; \n\tint b;\nint c;"),
            ["its last line has no end", "2: blanks at the end of the line", "3: a tab"])
        wide = "//" + 99 * "x" + "\n"
        self.assertEqual(self.found("b.cc", licence + wide),
                         ["2: 101 columns; 100 are the most"])
        self.assertEqual(self.found("c.cc", licence + "// clang-format off\n" + wide), [])
        self.assertEqual(self.found("d.cc", licence + 'a = R"(\n' + wide + ')";\n'), [])
        self.assertEqual(self.found("a.mk", "a:\n\tb\n"), ["no licence in its first two lines"])
        self.assertIn("carriage returns", self.found("a.md", "a\r\n"))

    def test_a_test_is_run_by_its_name(self):
        licence = "// SPDX-License-Identifier: MIT\n"
        for name, sign in (('"once, twice"', ","), ('"once and twice"', None),
                           ('\n    "once "\n    "[twice]"', "["), ('"a quote \\"', "\\"),
                           ('"~once"', "~"), ('"alpha * 0"', None), ('"alpha *"', "*")):
            for macro in ("TEST_CASE", "TEMPLATE_TEST_CASE"):
                self.assertEqual(
                    self.found("a.cc", f'{licence}{macro}({name}, "[a],[b]") {{}}\n'),
                    [f"2: a filter of Catch2 reads {sign} in a test's name as its own"]
                    if sign else [])

    def test_a_comment_names_files_that_are_there(self):
        licence = "// SPDX-License-Identifier: MIT\n"
        for path, stale in (("host/plan/variant.h", False), ("plan/variant.h", False),
                            ("plan/gone.cc", True), ("gone.cuh", True), ("family/NAME.cc", False),
                            ("cutlass/gone.h", False), ("cuda.h", False)):
            self.assertEqual(self.found("a.cc", f"{licence}int a;  // as in {path}.\n"),
                             [f"2: a comment names {path}, which is not there"] if stale else [])
            self.assertEqual(self.found("a.cc", f'{licence}f("{path}");\n'), [])

    def test_a_program_decides_nothing_by_the_words_of_a_message(self):
        for line, found in (
                ('if (std::strncmp(error.what(), "no", 2) == 0) return;', True),
                ('return std::string(nvfp4_last_error()).find("a") == 0;', True),
                ('if (contains(nvfp4_last_error(), "a")) return;', True),
                ("throw std::runtime_error(nvfp4_last_error());", False)):
            with tempfile.TemporaryDirectory() as folder:
                os.mkdir(os.path.join(folder, "host"))
                with open(os.path.join(folder, "host/a.cc"), "w", encoding="utf-8") as file:
                    file.write(f"// SPDX-License-Identifier: MIT\n{line}\n")
                done = execute(sys.executable, f"{ROOT}/tools/gates/check_files.py", "host/a.cc",
                               folder=folder)
            self.assertEqual("2: decides by the words" in done.stdout, found, line)

    def test_the_subject_of_a_commit(self):
        for subject in ("kernel: one line", "host, test: two rooms", "Merge branch 'a'",
                        "a: " + 69 * "b"):
            self.assertEqual(self.found("message", subject + "\n\nbody\n", "--message"), [])
        self.assertIn("73 characters", self.found("message", "a: " + 70 * "b", "--message")[0])
        self.assertIn("its area", self.found("message", "One line\n", "--message")[0])


class SetUp(unittest.TestCase):
    def refused(self, words, **environment):
        with tempfile.TemporaryDirectory() as folder:
            stamp = os.path.join(folder, "setup.mk")
            done = execute("tools/setup/setup.sh", stamp, **environment)
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertIn(words, done.stderr)
            self.assertFalse(os.path.exists(stamp))

    def test_what_is_given_is_used_or_refused(self):
        self.refused("PYTHON=/no/python does not run", PYTHON="/no/python")
        self.refused("compiles no kernel for compute_100f", NVCC="/bin/true", PYTHON=sys.executable)

    def test_a_python_that_is_given_is_used_as_it_is(self):
        with tempfile.TemporaryDirectory() as folder:
            stamp = os.path.join(folder, "setup.mk")
            done = execute("tools/setup/setup.sh", stamp, PYTHON=sys.executable, OFFLINE="1")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertNotIn("environment in .venv", done.stdout)
            with open(stamp) as text:
                self.assertIn("NVCC ?= ", text.read())


if __name__ == "__main__":
    unittest.main()
