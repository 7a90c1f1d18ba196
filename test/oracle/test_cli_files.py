# SPDX-License-Identifier: MIT
"""build/nvfp4 and files: what it says of bad ones, and what it leaves where it cannot write."""
import os
import re
import resource
import signal
import struct
import subprocess
import tempfile
import unittest

import numpy as np

import test_packing
from test_cli import PROGRAM, run


def npy(header, values=b"", version=(1, 0)):
    """A file in NumPy's format with that text as its header."""
    text = header.encode() + b"\n"
    length = struct.pack("<H" if version[0] == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes(version) + length + text + values


def header(descr="'<f4'", order="False", shape="(2, 32)"):
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}"


class InFolder(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def saved(self, name, array):
        np.save(self.path(name), array)
        return self.path(name)

    def content(self):
        files = {}
        for name in os.listdir(self.folder):
            with open(self.path(name), "rb") as file:
                files[name] = file.read()
        return files


class BadFiles(InFolder):
    def test_each_is_named_for_what_it_is(self):
        values = bytes(2 * 32 * 4)
        for name, data, words in [
                ("empty", b"", "is empty"),
                ("more", npy(header() + " xyz", values), "in its header"),
                ("open", npy(header().rstrip("}"), values), "in its header"),
                ("npz", b"PK\x03\x04rest", "zip archive"),
                ("pickle", b"\x80\x04rest", "pickle"),
                ("hdf5", b"\x89HDF\r\n\x1a\n", "HDF5"),
                ("text", b"1 2 3 4 5 6 7", "no .npy file"),
                ("magic", b"\x93NUMPY", "cut within its header"),
                ("version 0", npy(header(), values, (0, 0)), "version 0.0"),
                ("version 9", npy(header(), values, (9, 0)), "version 9.0"),
                ("version 1.7", npy(header(), values, (1, 7)), "version 1.7"),
                ("cut header", npy(header())[:40], "cut within its header"),
                ("long header", npy(" " * 9000), "9001 bytes"),
                ("no header", npy("hello"), "numpy.save does not write"),
                ("order", npy(header(order="Maybe"), values), "neither True nor False: Maybe"),
                ("order 0", npy(header(order="0"), values), "neither True nor False: 0"),
                ("f8", npy(header("'<f8'"), 2 * values), "fp64"),
                ("big", npy(header("'>f4'"), values), "big-endian"),
                ("objects", npy(header("'|O'"), values), "Python objects"),
                ("fields", npy(header("[('a', '<f4')]"), values), "several fields"),
                ("i4", npy(header("'<i4'"), values), "type <i4"),
                ("three", npy(header(shape="(2, 4, 8)"), values), "3 dimensions"),
                ("one", npy(header(shape="(64,)"), values), "1 dimension,"),
                ("shape", npy(header(shape="(2, x)"), values), "no tuple of sizes"),
                ("huge", npy(header(shape="(99999999999999999999, 2)"), values), "beyond 2^63"),
                ("short", npy(header(), values[:-1]), "shorter than its header says"),
        ]:
            with self.subTest(name):
                path = self.path("x.npy")
                with open(path, "wb") as file:
                    file.write(data)
                done = run("quantize", path, "--out", self.path("q"))
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
                self.assertIn(path + ": ", done.stderr)
                self.assertIn(words, done.stderr)

    def test_versions_1_to_3_are_read(self):
        values = np.ones((2, 32), np.float32).tobytes()
        for version in ((1, 0), (2, 0), (3, 0)):
            with open(self.path("x.npy"), "wb") as file:
                file.write(npy(header(), values, version))
            done = run("quantize", self.path("x.npy"), "--out", self.path("q"))
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_pipe_is_said_to_be_one(self):
        os.mkfifo(self.path("pipe.npy"))
        done = run("quantize", self.path("pipe.npy"), "--out", self.path("q"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("pipe", done.stderr)

    def test_a_scale_for_each_row_is_that_of_the_row_alone(self):
        values = np.random.default_rng(1).standard_normal((3, 64)).astype(np.float32)
        values *= np.float32([[1e-3], [1], [500]])
        x = self.saved("x.npy", values)
        done = run("quantize", x, "--out", self.path("q"), "--rows")
        self.assertEqual(done.returncode, 0, done.stderr)
        scales, codes = (np.load(self.path(f"q.{name}.npy")) for name in ("tensor_scale", "codes"))
        self.assertEqual(scales.shape, (3,))
        for i in range(3):
            one = self.saved("one.npy", values[i:i + 1])
            self.assertEqual(run("quantize", one, "--out", self.path("o")).returncode, 0)
            self.assertEqual(np.load(self.path("o.tensor_scale.npy"))[0], scales[i])
            np.testing.assert_array_equal(np.load(self.path("o.codes.npy"))[0], codes[i])
        both = run("quantize", x, "--out", self.path("q"), "--rows", "--tensor-scale", "1")
        self.assertEqual(both.returncode, 2)

    def test_values_too_small_for_a_tensor_scale(self):
        tiny = self.saved("tiny.npy", np.full((2, 64), 1e-44, np.float32))
        for arguments in (("quantize", tiny, "--out", self.path("q")), ("run", "--a", tiny, "--b",
                                                                        tiny)):
            done = run(*arguments)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            for word in ("tiny.npy", "2688", "power of two"):
                self.assertIn(word, done.stderr)
        self.assertEqual(list(self.content()), ["tiny.npy"])


def with_full_disk(*arguments, bytes_left):
    """As run(), where no file can grow beyond that size: a write then fails as on a full disk."""
    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (bytes_left, bytes_left))
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, preexec_fn=limit)


class Outputs(InFolder):
    def test_the_written_files_are_numpys_own(self):
        x = self.saved("x.npy",
                       np.random.default_rng(1).standard_normal((130, 64)).astype(np.float32))
        self.assertEqual(run("quantize", x, "--out", self.path("q")).returncode, 0)
        self.assertEqual(
            run("run", "--m", "3", "--l", "2", "--out", self.path("d.npy")).returncode, 0)
        written = self.content()
        for name in ("q.codes.npy", "q.scales.npy", "q.tensor_scale.npy", "d.npy"):
            array = np.load(self.path(name))
            self.saved("again.npy", array)
            self.assertEqual(written[name], self.content()["again.npy"], name)

    def test_run_takes_what_quantize_wrote(self):
        rng = np.random.default_rng(2)
        raw, made = {}, {}
        for name, rows, layout in (("a", 3, "linear"), ("b", 130, "128x4")):
            raw[name] = self.saved(f"{name}.npy", rng.standard_normal((rows, 272), np.float32))
            made[name] = self.path(name)
            done = run("quantize", raw[name], "--out", made[name], "--layout", layout)
            self.assertEqual(done.returncode, 0, done.stderr)
        results = []
        for a in (("--a", raw["a"]), ("--a-quantized", made["a"])):
            for b in (("--b", raw["b"]), ("--b-quantized", made["b"])):
                done = run("run", *a, *b, "--alpha", "0.3", "--out", self.path("d.npy"))
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertEqual("fp32 product" in done.stdout, len(a[0] + b[0]) == 6)
                results.append((self.content()["d.npy"],
                                re.search(r"^(bits .*)$", done.stdout, re.M)[1]))
        self.assertEqual(len(set(results)), 1, results)
        missing = run("run", "--a-quantized", made["a"])
        self.assertEqual((missing.returncode, missing.stderr.count("\n")), (2, 1))
        self.assertIn("--b-quantized PREFIX", missing.stderr)

    def test_packed_weights_are_written_beside_codes_and_read_by_run(self):
        w = self.saved("w.npy", np.random.default_rng(4).standard_normal((70, 96), np.float32))
        prefix, a = self.path("w"), self.saved("a.npy", np.ones((3, 96), np.float32))
        for layout in "128x4", "linear":
            done = run("quantize", w, "--out", prefix, "--layout", layout, "--pack", "90")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn(".packed.npy", done.stdout)
            codes = np.load(prefix + ".codes.npy")
            scales = np.load(prefix + ".scales.npy")
            if layout == "linear":
                each = np.stack([codes & 15, codes >> 4], axis=-1).reshape(70, 96)
                want = test_packing.sm90_by_numpy(each, scales, test_packing.NVFP4)
                np.testing.assert_array_equal(np.load(prefix + ".packed.npy").reshape(-1), want)
        self.assertEqual(np.load(prefix + ".packed.npy").shape, (2, 2, 2304))
        done = run("run", "--a", a, "--b-quantized", prefix)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("b_packing = NVFP4_PACKING_SM90_1: no kernel", done.stdout + done.stderr)
        done = run("quantize", w, "--out", prefix, "--layout", "linear", "--pack", "100")
        self.assertEqual(done.returncode, 0, done.stderr)
        want = test_packing.sm100_by_numpy(each, scales, test_packing.NVFP4)
        packed = np.load(prefix + ".packed.npy")
        self.assertEqual(packed.shape, (1, 2, 4608))
        np.testing.assert_array_equal(packed.reshape(-1), want)
        done = run("run", "--a", a, "--b-quantized", prefix)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_explain_plans_packed_weights(self):
        for kind in ("--m", "20"), ("--m", "20", "--gated"), ("--groups", "3,17"), (
                "--groups", "3,17", "--gated"):
            with self.subTest(kind):
                done = run("explain", *kind, "--n", "200", "--k", "528", "--a-type", "bf16",
                           "--b-packing", "sm90-1", "--gpu", "H200")
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertIn("packed, NVFP4_PACKING_SM90_1", done.stdout)

    def test_packed_weights_of_other_codes_are_refused(self):
        rng = np.random.default_rng(5)
        w = self.saved("w.npy", rng.standard_normal((70, 96), np.float32))
        prefix, a = self.path("w"), self.saved("a.npy", np.ones((3, 96), np.float32))
        self.assertEqual(run("quantize", w, "--out", prefix, "--pack", "90").returncode, 0)
        packed = np.load(prefix + ".packed.npy")
        other = "w.packed.npy: is 1 x 2 x 2304; expected 2 x 2 x 2304 or 1 x 2 x 4608, units"
        for array, words in ((packed[:1], other),
                             (packed[::-1].copy(), "w.packed.npy: holds other weights")):
            np.save(prefix + ".packed.npy", array)
            done = run("run", "--a", a, "--b-quantized", prefix)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr)

    def test_quantized_files_that_do_not_fit_are_refused_by_name(self):
        for prefix, rows in (("q", 2), ("other", 5)):
            x = self.saved("x.npy", np.ones((rows, 64), np.float32))
            self.assertEqual(run("quantize", x, "--out", self.path(prefix)).returncode, 0)
        good = {name: np.load(self.path(f"q.{name}.npy"))
                for name in ("codes", "scales", "tensor_scale")}
        for name, array, words in [
                ("codes", good["codes"].astype(np.float32), "expected bytes"),
                ("codes", good["codes"][:, :15], "2 x 15; expected rows x K / 2"),
                ("codes", good["codes"][:0], "0 x 32; expected"),
                ("codes", np.asfortranarray(good["codes"]), "columns first"),
                ("scales", good["scales"][0], "1 x 512; expected 2 x 4, linear, or 1 x 1 x 512"),
                ("scales", np.zeros((3, 4), np.uint8), "3 x 4; expected 2 x 4"),
                ("tensor_scale", np.ones(2, np.float32), "none for each row"),
                ("tensor_scale", np.ones(1), "expected fp32"),
                ("tensor_scale", np.float32([np.nan]), "not finite and positive"),
                ("tensor_scale", np.float32([-1]), "not finite and positive")]:
            with self.subTest(words):
                self.saved(f"q.{name}.npy", array)
                done = run("run", "--a-quantized", self.path("q"), "--b-quantized",
                           self.path("other"))
                self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
                self.assertIn(f"q.{name}.npy: ", done.stderr)
                self.assertIn(words, done.stderr)
                self.saved(f"q.{name}.npy", good[name])

    def test_a_full_disk_leaves_what_was_there(self):
        x = self.saved("x.npy", np.ones((2, 1024), np.float32))
        for name in ("q.codes.npy", "q.scales.npy", "q.tensor_scale.npy", "d.npy"):
            with open(self.path(name), "w") as file:
                file.write("old " + name)
        before = self.content()
        # The codes are 1 KiB, the scales 8 KiB in their tile, D is more.
        for arguments in (("quantize", x, "--out", self.path("q")), ("run", "--out",
                                                                     self.path("d.npy"))):
            done = with_full_disk(*arguments, bytes_left=5000)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            self.assertIn("cannot be written: ", done.stderr)
            self.assertNotIn("PASS", done.stdout)
            self.assertEqual(self.content(), before)

    def test_no_half_of_a_set_where_a_name_is_taken(self):
        x = self.saved("x.npy", np.ones((2, 64), np.float32))
        os.mkdir(self.path("q.tensor_scale.npy"))
        done = run("quantize", x, "--out", self.path("q"))
        self.assertEqual(done.returncode, 1)
        self.assertIn("q.tensor_scale.npy: cannot be written: Is a directory", done.stderr)
        self.assertEqual(sorted(os.listdir(self.folder)), ["q.tensor_scale.npy", "x.npy"])

    def test_links_modes_and_devices(self):
        with open(self.path("real.npy"), "w") as file:
            file.write("old")
        os.chmod(self.path("real.npy"), 0o640)
        os.symlink("real.npy", self.path("link.npy"))
        self.assertEqual(run("run", "--out", self.path("link.npy")).returncode, 0)
        self.assertTrue(os.path.islink(self.path("link.npy")))
        self.assertEqual(np.load(self.path("real.npy")).shape, (128, 256))
        self.assertEqual(os.stat(self.path("real.npy")).st_mode & 0o777, 0o640)
        self.assertEqual(run("run", "--out", "/dev/null").returncode, 0)
        for device in ("/dev/full", "/dev/null"):
            self.assertEqual(run("run", "--trace", device).returncode, 2, device)
        full = run("run", "--out", "/dev/full")
        self.assertEqual(full.returncode, 1)
        self.assertIn("/dev/full: cannot be written: No space left", full.stderr)

    def test_standard_output_that_takes_nothing_is_an_error(self):
        for arguments in (["info"], ["explain"], ["run"], ["run",
                                                           "--json"], ["--help"], ["--version"]):
            with open("/dev/full", "w") as full:
                done = subprocess.run([PROGRAM, *arguments],
                                      stdout=full,
                                      stderr=subprocess.PIPE,
                                      text=True)
            self.assertEqual(done.returncode, 1, arguments)
            self.assertIn("standard output cannot be written: No space left", done.stderr)

    def test_traces(self):
        if "(emulated)" not in run("run").stdout:
            self.skipTest("a GPU writes no trace")
        trace = self.path("trace.json")
        self.assertEqual(run("run", "--trace", trace).returncode, 0)
        self.assertGreater(os.path.getsize(trace), 1000)
        before = self.content()
        for bad, words, environment in [
                (self.path("no/trace.json"), "No such file", {}),
                (self.folder, "Is a directory", {}),
                (trace, "traced no event", {"EMU_TRACE_BLOCKS": "77"})]:
            done = run("run", "--trace", bad, **environment)
            self.assertEqual(done.returncode, 1, done.stderr)
            self.assertIn(words, done.stderr)
            self.assertNotIn("PASS", done.stdout)
            self.assertEqual(self.content(), before)
        done = with_full_disk("run", "--trace", trace, bytes_left=100)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(self.content(), before)


if __name__ == "__main__":
    unittest.main()
