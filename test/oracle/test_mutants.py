# SPDX-License-Identifier: MIT
"""Each bug of the mutants.txt files can still be planted: its code stands once in its function, and
its test is there. `make mutants` takes minutes and would say so only then. And what decides which
mutants a change plants, and what of the kernels is built for them."""
import os
import subprocess
import sys
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
sys.path.insert(0, os.path.join(ROOT, "tools", "mutate"))
import copies  # noqa: E402
import entries  # noqa: E402
import place  # noqa: E402
import reach  # noqa: E402


SOURCE = """
int first(int a) { return a + 1; }

int second(const char* name,
           int b) {
  if (b < 0) return first(b,
                          b);
  return b + 1;
}
"""


class Mutants(unittest.TestCase):
    def test_each_bug_can_be_planted(self):
        self.assertEqual(list(entries.lost(entries.read_mutants())), [])

    def test_each_bug_has_a_test_that_is_there(self):
        sources = reach.Tree()
        self.assertEqual([m.name for m in entries.read_mutants()
                          if sources.test_of(m.program(), m.filter) is None], [])

    def test_a_bug_has_all_its_lines(self):
        mutant, = entries.parse("a  x.cc\n  test  t  f\n  tiles  64x1 64x4\n  in  g\n"
                                "  -  b();\n  -  c();\n  +  c();\n", "kernel/mutants.txt")
        part, = mutant.parts
        self.assertEqual((part.old, part.new), ("b();\nc();", "c();"))
        self.assertEqual((mutant.file, mutant.tiles), ("kernel/x.cc", "64x1 64x4"))

    def test_a_test_heads_the_mutants_below_it_and_a_missing_statement_is_a_semicolon(self):
        found = entries.parse("test  t  f\na  x.cc\n  -  b();\n\nb  x.cc\n  test  u  g\n  -  c();\n"
                              "\nc  x.cc\n  -  d();\n", "kernel/mutants.txt")
        self.assertEqual([(m.test, m.filter, m.parts[0].new) for m in found],
                         [("t", "f", ";"), ("u", "g", ";"), ("t", "f", ";")])

    def test_a_bug_may_change_several_places_and_files(self):
        mutant, = entries.parse("test  t  f\na  x.cc\n  in  g\n  -  b();\n  +  c();\n"
                                "  and  x.cc\n  -  d();\n  and  y/z.h\n  -  e();\n  +  f();\n",
                                "kernel/mutants.txt")
        self.assertEqual(mutant.file, "kernel/x.cc")
        self.assertEqual(mutant.files(), ["kernel/x.cc", "kernel/y/z.h"])
        texts = {"kernel/x.cc": "int g() { b(); }\nint h() { d(); }", "kernel/y/z.h": "e();"}
        self.assertEqual(mutant.mutated(texts),
                         {"kernel/x.cc": "int g() { c(); }\nint h() { ; }", "kernel/y/z.h": "f();"})
        self.assertEqual(texts["kernel/y/z.h"], "e();")
        with self.assertRaisesRegex(place.Lost, "kernel/y/z.h: not found"):
            mutant.mutated({**texts, "kernel/y/z.h": "g();"})

    def test_a_function_is_told_from_its_calls(self):
        start, end = next(place.functions(SOURCE, "first"))
        self.assertEqual(SOURCE[start:end], "first(int a) { return a + 1; }")
        self.assertEqual(len(list(place.functions(SOURCE, "first"))), 1)

    def test_a_function_says_which_of_equal_codes_is_meant(self):
        text = "a  x.cc\n  test  t  f\n  in  {}\n  -  + 1\n  +  + 2\n"
        meant = [entries.parse(text.format(name), "mutants.txt")[0]
                 for name in ("first", "second", "secnd")]
        self.assertEqual([m.parts[0].which(SOURCE) for m in meant], ["0", "1", "lost"])
        self.assertEqual(len({m.text() for m in meant}), 1)

    def test_line_breaks_do_not_count(self):
        start, end = place.place(SOURCE, "second", "return first(b, b);", "x.cc")
        self.assertEqual(SOURCE[start:end].split(), ["return", "first(b,", "b);"])

    def test_what_is_lost_is_told_with_the_nearest_line(self):
        with self.assertRaisesRegex(place.Lost, "nearest, line 8: return b"):
            place.place(SOURCE, "second", "return b + 2;", "x.cc")
        with self.assertRaisesRegex(place.Lost, "no function secnd; nearest: second"):
            place.place(SOURCE, "secnd", "return b + 1;", "x.cc")
        with self.assertRaisesRegex(place.Lost, "found 2 times, in lines 2, 8"):
            place.place(SOURCE, None, "+ 1;", "x.cc")


FILES = {
    "kernel/top.cuh": '#include "kernel/low.cuh"\nint top() { return low() + 1; }\n',
    "kernel/low.cuh": '#include "kernel/new.cuh"\nint low() { return 2; }  // two\n',
    "kernel/side.cuh": "int side() { return 3; }\n",
    "kernel/mutants.txt": "bug-of-top  top.cuh\n  test  t  the top\n  -  + 1\n  +  + 2\n"
                          "bug-of-low  low.cuh\n  test  t  the \"low\" one\n  -  2\n  +  1\n",
    "test/a.cc": '#include "test/help.h"\nint helper;\n'
                 'TEST_CASE("the top", "[x]") {\n  a();\n}\n\n'
                 'TEST_CASE("the \\"low\\" one") {\n  b();\n}\n',
    "test/help.h": "int help;\n",
}


class Reach(unittest.TestCase):
    """A small project with two mutants, and which of them a change plants."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        for path, text in FILES.items():
            self.write(path, text)
        self.git("init", "-q")
        self.git("add", ".")
        self.git("-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "a: b")

    def write(self, path, text):
        whole = os.path.join(self.folder.name, path)
        os.makedirs(os.path.dirname(whole), exist_ok=True)
        with open(whole, "w", encoding="utf-8") as out:
            out.write(text)

    def git(self, *words):
        subprocess.run(["git", *words], cwd=self.folder.name, check=True)

    def planted(self, path, old, new):
        """The mutants that are planted when this of the file is replaced."""
        self.assertIn(old, FILES[path])
        self.write(path, FILES[path].replace(old, new))
        mutants = entries.read_mutants(self.folder.name)
        changed = reach.changed_since("HEAD", mutants, self.folder.name)
        self.write(path, FILES[path])
        return [m.name.rpartition("-")[2] for m in changed]

    def test_a_change_plants_what_it_reaches(self):
        for path, old, new, expected in (
                ("kernel/top.cuh", "low()", "low(0)", ["top"]),
                ("kernel/low.cuh", "low()", "low(int)", ["top", "low"]),
                ("kernel/side.cuh", "3", "4", []),
                ("kernel/mutants.txt", "+ 2", "+ 3", ["top"]),
                ("kernel/mutants.txt", "bug-of-low", "new-of-low", ["low"]),
                ("test/a.cc", "a();", "c();", ["top"]),
                ("test/a.cc", "b();", "c();", ["low"]),
                ("test/a.cc", "helper", "other", ["top", "low"]),
                ("test/help.h", "help", "other", ["top", "low"])):
            with self.subTest(path, new=new):
                self.assertEqual(self.planted(path, old, new), expected)

    def test_a_comment_is_no_change(self):
        self.assertEqual(self.planted("kernel/low.cuh", "// two", "/* three */"), [])
        self.assertNotEqual(reach.bare('x = "// a";', "x.cc"), reach.bare('x = "// b";', "x.cc"))
        self.assertEqual(reach.bare("x = '\"';  // a", "x.cc"),
                         reach.bare("x = '\"';", "x.cc") + " ")

    def test_a_file_that_is_new_is_a_change(self):
        self.write("kernel/new.cuh", "int low();\n")
        self.assertEqual(self.planted("kernel/side.cuh", "3", "4"), ["top", "low"])

    def test_a_name_that_a_macro_composes_fits_any_part(self):
        name = reach.case_name('"the shape " #m " x " #n, "[task]") {')
        self.assertTrue(name.fullmatch("the shape 128 x 256"))
        self.assertFalse(name.fullmatch("the shape 128"))


class Images(unittest.TestCase):
    LOG = ("nvfp4: compute_90a PTX: cuLibraryGetKernel succeeds\n"
           'nvfp4: gemm m=1 image="compute_90a PTX" variant=sm90_64x1x256 grid=96\n'
           'nvfp4: gemm m=1 image="compute_90a PTX" variant=sm90_f16_64x16x256 grid=96\n')

    def wanted(self, file, test, log, name="any"):
        mutant = entries.Mutant("m", file)
        mutant.test, mutant.filter = test, name
        wanted = copies.images_of(mutant, copies.Loaded(log), reach.Tree())
        return {image for image in ("gemm_sm100.ptx", "gemm_sm90.ptx", "quantize.ptx",
                                    "quantize_sm100.ptx") if wanted(image)}

    def test_tiles_are_those_of_the_log(self):
        self.assertEqual(copies.Loaded(self.LOG).tiles, ["64x1", "f16_64x16"])
        self.assertEqual(copies.Loaded(self.LOG.replace("sm90", "sm100")).tiles,
                         ["64x1", "f16_64x16"])
        self.assertIsNone(copies.Loaded("").tiles)
        self.assertIsNone(copies.Loaded(None).images)

    def test_the_log_of_the_library_says_so(self):
        build = os.environ["NVFP4_BUILD"]
        done = subprocess.run([os.path.join(build, "nvfp4"), "run", "--m", "1", "--n", "64", "--k",
                               "256"], capture_output=True, text=True, check=True,
                              env={**os.environ, "NVFP4_LOG": "3", "EMU_DEVICE": "H200",
                                   "LD_LIBRARY_PATH": os.path.join(build, "emulator")})
        loaded = copies.Loaded(done.stderr)
        self.assertEqual((loaded.images, loaded.tiles), ({"gemm_sm90.ptx"}, ["64x1"]))

    def test_what_the_test_loads_of_what_the_file_is_in_is_built(self):
        hopper = "nvfp4_test@H200"
        self.assertEqual(self.wanted("kernel/sm90/load.cuh", hopper, self.LOG), {"gemm_sm90.ptx"})
        self.assertEqual(self.wanted("kernel/sm100/load.cuh", hopper, self.LOG), set())
        self.assertEqual(self.wanted("host/api/api.cc", hopper, self.LOG), set())
        self.assertEqual(self.wanted("kernel/sm90/load.cuh", hopper, None), {"gemm_sm90.ptx"})
        self.assertEqual(self.wanted("kernel/quantize/matrix.cuh", "nvfp4_test", None),
                         {"quantize.ptx", "quantize_sm100.ptx"})
        self.assertEqual(
            self.wanted("kernel/quantize/matrix.cuh", hopper,
                        "nvfp4: quantizer compute_90 PTX: cuLibraryGetKernel succeeds\n"),
            {"quantize.ptx"})

    def test_a_library_without_the_tile_is_told_from_a_wrong_one(self):
        refusal = ("nvfp4: NVFP4_STATUS_IMAGE_LOAD: cuLibraryGetKernel refuses the compute_90a PTX "
                   "with CUDA_ERROR_NOT_FOUND (500)\n")
        self.assertTrue(copies.NO_ENTRY.search(refusal))
        self.assertFalse(copies.NO_ENTRY.search(self.LOG))


if __name__ == "__main__":
    unittest.main()
