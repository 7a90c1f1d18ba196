# SPDX-License-Identifier: MIT
"""build/nvfp4 from outside: what it prints, what it writes, its exit codes."""
import os
import re
import subprocess
import tempfile
import unittest

import numpy as np

import nvfp4
from nvfp4 import ml_dtypes
import four_over_six

PROGRAM = os.path.join(nvfp4.BUILD, "nvfp4")


def run(*arguments, **environment):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True,
                          env={**os.environ, **environment})


def quantized(x):
    """The values of x after quantization with tensor scale amax / 2688, without that scale."""
    t = np.float32(np.abs(x).max() / np.float32(2688))
    blocks = x.reshape(x.shape[0], -1, 16)
    scales = (np.abs(blocks).max(axis=2) / np.float32(6) / t).astype(ml_dtypes.float8_e4m3fn)
    ratio = blocks / (scales.astype(np.float32) * t)[:, :, None]
    codes = np.clip(ratio, np.float32(-6), np.float32(6)).astype(ml_dtypes.float4_e2m1fn)
    values = codes.astype(np.float64) * scales.astype(np.float64)[:, :, None]
    return values.reshape(x.shape), t


class Emulate(unittest.TestCase):
    def test_the_program_finds_the_emulator_itself(self):
        elsewhere = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
        for path in (None, "/nowhere"):
            environment = {**elsewhere, **({"LD_LIBRARY_PATH": path} if path else {})}
            done = subprocess.run([PROGRAM, "--emulate", "run"],
                                  capture_output=True, text=True, env=environment)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("(emulated)", done.stdout)

    def test_it_stands_before_the_subcommand(self):
        done = run("info", "--emulate")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--emulate", done.stderr)


class BadArguments(unittest.TestCase):
    def refused(self, *arguments, word):
        done = run(*arguments)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        self.assertIn(word, done.stderr)
        self.assertEqual(done.stdout, "")

    def test_each_is_one_line_and_exit_code_2(self):
        self.refused(word="which command")
        self.refused("walk", word="no command")
        self.refused("run", "--m", "0", word="--m")
        self.refused("run", "--k", "100", word="multiple of 16")
        self.refused("run", "--data", "noise", word="--data")
        self.refused("run", "--a", "missing.npy", "--b", "missing.npy", word="missing.npy")
        self.refused("run", "--headline", "--m", "128", word="--headline")
        self.refused("run", "--device", "99", word="--device")

    def test_files_of_the_wrong_kind(self):
        with tempfile.TemporaryDirectory() as folder:
            def saved(name, array):
                path = os.path.join(folder, name)
                np.save(path, array)
                return path
            good = saved("good.npy", np.ones((4, 64), np.float32))
            self.refused("run", "--a", good, word="--b")
            for name, array, word in [
                    ("f64.npy", np.ones((4, 64)), "fp32"),
                    ("flat.npy", np.ones(64, np.float32), "dimension"),
                    ("narrow.npy", np.ones((4, 128), np.float32), "columns"),
            ]:
                self.refused("run", "--a", good, "--b", saved(name, array), word=word)
            odd = saved("odd.npy", np.ones((4, 72), np.float32))
            self.refused("run", "--a", odd, "--b", odd, word="multiple of 16")
            with open(good, "rb") as whole, open(os.path.join(folder, "cut.npy"), "wb") as cut:
                cut.write(whole.read()[:-4])
            self.refused("run", "--a", good, "--b", cut.name, word="shorter")


class Info(unittest.TestCase):
    def test_names_library_driver_and_device(self):
        done = run("info")
        self.assertEqual(done.returncode, 0, done.stderr)
        for word in ("nvfp4gemm", "libcuda.so.1", "compute capability"):
            self.assertIn(word, done.stdout)

    def test_says_so_without_a_driver(self):
        for options in ((), ("--require-device",), ("--json",)):
            done = run("info", *options, LD_LIBRARY_PATH="")
            if "no CUDA driver" not in done.stdout:
                self.skipTest("this machine has a driver of its own")
            self.assertEqual(done.returncode, 1)


class Explain(unittest.TestCase):
    def test_needs_no_driver_and_its_replay_line_runs(self):
        done = run("explain", "--m", "65", "--n", "129", "--k", "320", "--l", "2", "--a-ld", "352",
                   "--d-ld", "131", "--b-batch-stride", "0", "--alpha", "0.5", "--pdl", "2",
                   "--variant", "sm100_128x128x256", LD_LIBRARY_PATH="")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("variant   sm100_128x128x256", done.stdout)
        replay = done.stdout.split("replay    nvfp4 ")[1].split()
        replayed = run(*replay, NVFP4_LOG="2")
        self.assertEqual(replayed.returncode, 0, replayed.stdout + replayed.stderr)
        self.assertIn("verdict   PASS", replayed.stdout)
        self.assertIn("variant   sm100_128x128x256", replayed.stdout)
        # The library logs the same line.
        self.assertIn(f'replay="nvfp4 {" ".join(replay)}"', replayed.stderr)

    def test_refusals(self):
        for arguments, word in [(("--k", "100"), "multiple of 16"),
                                (("--variant", "best"), "sm100_128x64x256"),
                                (("--compute-capability", "89"), "8.9"),
                                (("--m", "128", "--d-ld", "7"), "--d-ld")]:
            done = run("explain", *arguments)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn(word, done.stderr)


class Quantize(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def saved(self, array):
        path = os.path.join(self.folder, "x.npy")
        np.save(path, array)
        return path

    def files(self, array, *options):
        out = os.path.join(self.folder, "q")
        done = run("quantize", self.saved(array), "--out", out, *options, LD_LIBRARY_PATH="")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout, *(np.load(f"{out}.{part}.npy")
                              for part in ("codes", "scales", "tensor_scale"))

    def test_round_trip_by_ml_dtypes(self):
        x = np.random.default_rng(9).standard_normal((130, 336)).astype(np.float32)
        values, t = quantized(x)
        text, codes, scales, tensor_scale = self.files(x, "--layout", "linear")
        self.assertEqual((codes.dtype, codes.shape), (np.uint8, (130, 168)))
        self.assertEqual((scales.dtype, scales.shape), (np.uint8, (130, 21)))
        np.testing.assert_array_equal(tensor_scale, np.array([t]))
        np.testing.assert_array_equal(nvfp4.decode(codes, scales), values)
        error = np.linalg.norm(values * float(t) - x) / np.linalg.norm(x)
        self.assertIn(f"error         {error:.4f} of", text)

    def test_4over6_by_its_definition(self):
        x = np.random.default_rng(9).standard_normal((130, 336)).astype(np.float32)
        errors = [float(self.files(x, *options)[0].split("error")[1].split()[0])
                  for options in ((), ("--scale-rule", "4over6"))]
        self.assertLess(errors[1], 0.95 * errors[0])
        for options in ((), ("--rows",), ("--tensor-scale", "0.004")):
            _, codes, scales, tensor_scale = self.files(x, "--layout", "linear", "--scale-rule",
                                                        "4over6", *options)
            wanted, wanted_scales = four_over_six.quantized(x, tensor_scale)
            np.testing.assert_array_equal(scales, wanted_scales)
            np.testing.assert_array_equal(codes, wanted[:, 0::2] | wanted[:, 1::2] << 4)

    def test_tiled_scales_are_the_linear_ones_in_the_layout_of_the_header(self):
        x = np.random.default_rng(10).standard_normal((130, 336)).astype(np.float32)
        _, codes, linear, _ = self.files(x, "--layout", "linear")
        _, again, tiles, _ = self.files(x)
        np.testing.assert_array_equal(codes, again)
        self.assertEqual(tiles.shape, (2, 6, 512))
        padded = np.zeros((256, 24), np.uint8)
        padded[:130, :21] = linear
        row, ks = np.indices(padded.shape)
        np.testing.assert_array_equal(
            tiles[row // 128, ks // 4, row % 32 * 16 + row % 128 // 32 * 4 + ks % 4], padded)

    def test_fp16_in_either_order(self):
        x = np.random.default_rng(11).standard_normal((7, 64)).astype(np.float16)
        x[0, :3] = [6e-8, -65504, 0]  # a subnormal, the largest
        by_rows = self.files(x)[1:]
        for other in (self.files(np.asfortranarray(x))[1:], self.files(x.astype(np.float32))[1:]):
            for one, two in zip(by_rows, other):
                np.testing.assert_array_equal(one, two)

    def test_a_given_tensor_scale_and_values_that_are_not_finite(self):
        x = np.ones((2, 32), np.float32)
        x[0, 0], x[1, 20] = np.nan, np.inf
        text, codes, scales, tensor_scale = self.files(x, "--layout", "linear", "--tensor-scale",
                                                       "0.5")
        self.assertEqual(tensor_scale[0], 0.5)
        np.testing.assert_array_equal(scales, [[0x7F, 0x2B], [0x2B, 0x7E]])
        self.assertIn("not finite    2 values", text)

    def test_refusals_are_one_sentence(self):
        good = np.ones((2, 32), np.float32)
        for array, options, word in [
                (np.ones((2, 40), np.float32), (), "multiple of 16"),
                (np.ones((0, 32), np.float32), (), "positive"),
                (np.ones((2, 2, 32), np.float32), (), "3 dimensions"),
                (np.ones((2, 32), np.int32), (), "fp32 or fp16"),
                (good, ("--layout", "8x4"), "--layout"),
                (good, ("--tensor-scale", "-1"), "tensor_scale"),
                (good, ("--tensor-scale", "nan"), "tensor_scale")]:
            done = run("quantize", self.saved(array), "--out", os.path.join(self.folder, "q"),
                       *options)
            self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
            self.assertIn(word, done.stderr)
            self.assertEqual(os.listdir(self.folder), ["x.npy"])
        done = run("quantize", self.saved(good), "--out", os.path.join(self.folder, "no", "q"))
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("cannot be written", done.stderr)


class Run(unittest.TestCase):
    def test_verdict_image_and_variant(self):
        done = run("run", "--m", "65", "--n", "129", "--k", "320", "--l", "2")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("verdict   PASS", done.stdout)
        self.assertIn("16770 of 16770 equal", done.stdout)
        self.assertRegex(done.stdout, r"image     (sm_100a|compute_100f)")
        self.assertRegex(done.stdout, r"variant   sm100_")
        self.assertEqual(done.stderr, "")

    def test_the_logged_command_line_makes_the_same_problem(self):
        def logged(*arguments):
            done = run("run", *arguments, NVFP4_LOG="2")
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("verdict   PASS", done.stdout)
            lines = [x for x in done.stderr.splitlines() if x.startswith("nvfp4: gemm ")]
            self.assertEqual(len(lines), 1, done.stderr)
            return lines[0]

        def replay(line):
            program, *arguments = re.search(r'replay="([^"]*)"', line)[1].split(" ")
            self.assertEqual(program, "nvfp4")
            self.assertEqual(arguments[0], "run")
            return arguments[1:]

        for arguments in [
            ["--m", "65", "--n", "129", "--k", "320"],
            [
                "--m", "3", "--n", "130", "--k", "192", "--l", "2", "--a-ld", "224", "--d-ld",
                "131", "--a-batch-stride", "672", "--b-batch-stride", "24960", "--d-batch-stride",
                "400", "--pdl", "2", "--alpha", "0.1", "--variant", "sm100_256x128x256"
            ],
                # Rows of 48 are 64 apart, with and without words about it.
            ["--m", "3", "--n", "130", "--k", "48", "--l", "2"],
            ["--m", "3", "--n", "130", "--k", "48", "--a-ld", "96"],
        ]:
            line = logged(*arguments)
            self.assertEqual(replay(line), replay(logged(*replay(line))))
            self.assertEqual(line, logged(*replay(line)))
            explained = run("explain", *replay(line)).stdout
            self.assertIn("replay    nvfp4 run " + " ".join(replay(line)), explained)

    def test_a_line_of_16_bit_tokens_with_an_epilogue_runs_and_so_does_one_of_no_k(self):
        tokens = ["--a-type", "bf16", "--m", "5", "--n", "48", "--k", "48", "--a-ld", "48"]
        for arguments in (tokens, [*tokens, "--d-type", "f32", "--bias-type", "f16"],
                          [*tokens, "--l", "2", "--cd-order", "column", "--activation", "silu"],
                          ["--m", "5", "--n", "48", "--k", "0", "--a-type", "f16"],
                          ["--m", "5", "--k", "0", "--a-type", "f16", "--d-type", "bf16"]):
            explained = run("explain", *arguments, "--gpu", "A100")
            self.assertEqual(explained.returncode, 0, explained.stderr)
            line = re.search(r"^replay    nvfp4 (run .*)$", explained.stdout, re.M)[1]
            done = run(*line.split(), EMU_DEVICE="A100", NVFP4_LOG="2")
            self.assertEqual(done.returncode, 0, line + done.stderr)
            self.assertIn("verdict   PASS", done.stdout)
            self.assertIn(f'replay="nvfp4 {line}"', done.stderr)

    def test_the_rows_of_groups(self):
        problem = ("run", "--groups", "3,0,20,1", "--n", "136", "--k", "192", "--data", "exact",
                   "--a-scales", "linear")
        done = run(*problem)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("groups    4, of 24 rows in all", done.stdout)
        self.assertIn("variant   sm100_128x64x256", done.stdout)
        self.assertIn("3264 of 3264 equal", done.stdout)
        shared = run(*problem, "--b-shared")
        self.assertEqual(shared.returncode, 0, shared.stdout + shared.stderr)
        self.assertIn("groups    4, of 24 rows in all, that use one B", shared.stdout)
        self.assertEqual(run("run", "--b-shared").returncode, 2)
        for wrong in (("--m", "4"), ("--l", "2"), ("--out", "d.npy"), ("--a-batch-stride", "9600"),
                      ("--d-batch-stride", "9600"), ("--capacity", "19")):
            self.assertEqual(run(*problem, *wrong).returncode, 2, wrong)
        invariant = run(*problem, "--batch-invariant", EMU_DEVICE="H200")
        self.assertEqual(invariant.returncode, 0, invariant.stdout + invariant.stderr)
        self.assertIn("variant   sm90_64x32x256\n", invariant.stdout)

    def test_groups_with_options_of_the_epilogue_and_their_replay(self):
        for gpu, words in (
                ("B200", "--groups 130,0,3 --scale-rows --c-type f16 --beta 2 --d-type f32"),
                ("B200", "--groups 2x3 --a-scales linear --capacity 4 --activation relu --d-amax"),
                ("A100", "--groups 9x2,1 --a-type bf16 --gated --activation silu --bias-type f32 "
                 "--group-bias --group-alpha --a-tensor-scale --a-tensor-scale-rows"),
                ("A100", "--groups 9x3 --a-type bf16 --d-ld 160 --rows-hint 2 --b-shared")):
            problem = ("--n", "136", "--k", "192", *words.split())
            done = run("run", *problem, "--data", "exact", EMU_DEVICE=gpu, NVFP4_LOG="2")
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertIn("verdict   PASS", done.stdout)
            logged = re.search(r'replay="nvfp4 (run [^"]*)"', done.stderr)[1]
            explained = run("explain", *problem, "--gpu", gpu)
            self.assertEqual(explained.returncode, 0, explained.stderr)
            line = re.search(r"^replay    nvfp4 (run .*)$", explained.stdout, re.M)[1]
            variants = [re.search(r"^variant +(.*)$", text, re.M)[1]
                        for text in (done.stdout, explained.stdout)]
            self.assertEqual(variants[0], variants[1])
            for replay in (line, logged):
                again = run(*replay.split(), "--data", "exact", EMU_DEVICE=gpu)
                self.assertEqual(again.returncode, 0, replay + again.stderr)
                self.assertIn("verdict   PASS", again.stdout)

    def test_a_row_of_no_multiple_of_16_bytes_is_refused_where_it_is_asked_for(self):
        for command in ("run", "explain"):
            done = run(command, "--m", "3", "--n", "130", "--k", "48", "--b-ld", "48")
            self.assertNotEqual(done.returncode, 0, done.stdout)
            self.assertIn("48 is not a multiple of 32", done.stderr)

    def test_matrices_from_files(self):
        rng = np.random.default_rng(8)
        a = rng.standard_normal((65, 320)).astype(np.float32)
        b = rng.standard_normal((136, 320)).astype(np.float32)
        with tempfile.TemporaryDirectory() as folder:
            paths = [os.path.join(folder, name) for name in ("a.npy", "b.npy", "d.npy")]
            np.save(paths[0], a)
            np.save(paths[1], np.asfortranarray(b))
            done = run("run", "--a", paths[0], "--b", paths[1], "--out", paths[2])
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            d = np.load(paths[2])
        self.assertEqual(d.dtype, np.float32)
        (values_a, scale_a), (values_b, scale_b) = quantized(a), quantized(b)
        alpha = float(scale_a * scale_b)
        error = np.abs(d - alpha * (values_a @ values_b.T))
        bound = nvfp4.error_bound(values_a, values_b, 320, alpha, nvfp4.compute_capability())
        self.assertLessEqual((error / bound).max(), 1)

    def test_a_gpu_without_kernels_is_refused_with_its_capability(self):
        done = run("run", EMU_DEVICE="A100")
        if "8.0" not in done.stderr + done.stdout:
            self.assertIn("(emulated)", run("info").stdout)
        self.assertEqual(done.returncode, 1)
        self.assertIn("8.0", done.stderr)

    def test_a_device_of_few_sms_gets_the_same_plan_and_bits(self):
        whole = run("run", "--m", "300", "--n", "300", "--k", "192")
        for sms in ("1", "7", "18"):
            slice_ = run("run", "--m", "300", "--n", "300", "--k", "192", EMU_SMS=sms)
            self.assertEqual(slice_.returncode, 0, slice_.stderr)
            self.assertIn("verdict   PASS", slice_.stdout)
            plan = [x for x in slice_.stdout.splitlines() if x.startswith(("image", "variant"))]
            for line in plan:
                self.assertIn(line, whole.stdout)
        self.assertIn(f"{sms} SMs", run("info", EMU_SMS=sms).stdout)

    def test_b300_takes_its_own_image(self):
        done = run("run", EMU_DEVICE="B300")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("B300", done.stdout)


if __name__ == "__main__":
    unittest.main()
