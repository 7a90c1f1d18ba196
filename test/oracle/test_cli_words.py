# SPDX-License-Identifier: MIT
"""build/nvfp4: words, options and their help, the man page and the completion made from them."""
import json
import os
import pty
import re
import subprocess
import tempfile
import unittest

import numpy as np

from test_cli import PROGRAM, run

COMMANDS = ("info", "explain", "bench", "tune", "quantize", "check", "run", "generate")


def options_in_help(command):
    # CLI11 2.5 and later have long names in a column of their own.
    return sorted(set(re.findall(r"^(?:  (?:-h, *)?| {10})(--[a-z0-9-]+)",
                                 run(command, "--help").stdout, re.M)))


class Mistakes(unittest.TestCase):
    def refused(self, *arguments, words):
        done = run(*arguments)
        self.assertEqual((done.returncode, done.stderr.count("\n")), (2, 1), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def test_what_is_no_number_of_an_option(self):
        wholes = {"--m": (), "--l": (), "--a-ld": (), "--a-batch-stride": (), "--sms": (),
                  "--c-ld": ("--c-type", "f16"), "--b-tensor-scale": (), "--pdl": ()}
        numbers = {"--alpha": (), "--beta": ("--c-type", "f16"), "--alpha2": ("--gated",),
                   "--gate-limit": ("--gated",), "--gate-alpha": ("--gated",),
                   "--gate-beta": ("--gated",)}
        for option, others in {**wholes, **numbers}.items():
            kind = "whole number" if option in wholes else "number"
            for text in ("x", "3,", "3,,4", "1 2"):
                self.refused("explain", option, text, *others,
                             words=[f"{option}: {text} is no {kind}"])
            self.refused("explain", option, "", *others, words=[f"{option}: the value is empty"])
            self.refused("explain", option, "1e400", *others,
                         words=[f"{option}: 1e400 is " + ("no whole number" if option in wholes else
                                                          "beyond the range of fp32")])
        for option in wholes:
            self.refused("explain", option, "-1", *wholes[option], words=[option, "-1"])
            self.refused("explain", option, "nan", *wholes[option], words=[option, "nan"])
            self.refused("explain", option, 30 * "9", *wholes[option], words=[option, 30 * "9"])
        for number in ("nan", "inf", "-inf", "-1"):
            self.assertEqual(run("explain", "--alpha", number).returncode, 0, number)
        for option in ("--variant", "--gpu", "--compute-capability", "--format", "--d-type"):
            self.refused("explain", option, "", words=[f"{option}: the value is empty"])

    def test_seeds_groups_scales_and_shapes(self):
        small = ("--n", "16", "--k", "64")
        for seed in ("", "x", "-1", "1.5", "nan", "1e400", 20 * "9"):
            self.refused("run", "--m", "4", *small, "--seed", seed, words=["--seed", seed])
        for groups, words in (("", "is empty"), ("0", "no group has a row"),
                              ("0,0", "no group has a row"), ("3,,4", "between commas"),
                              (",3", "between commas"), ("3,", "between commas"),
                              ("3,-1", "-1 is not within 0"), ("x", "x is no whole number"),
                              ("2147483647,1", "2147483648 rows in all")):
            self.refused("run", *small, "--groups", groups, words=["--groups", words])
        for shape in ("", "4x16x64,", " 4x16x64", "+4x16x64", "4x16x64x", "4x16", "0x16x64", "nan",
                      "-1x16x64"):
            self.refused("tune", "--candidates", shape, words=["shape"])
        with tempfile.TemporaryDirectory() as folder:
            matrix = os.path.join(folder, "w.npy")
            np.save(matrix, np.ones((2, 16), dtype=np.float32))
            for scale in ("", "x", "-1", "0", "nan", "inf", "1e400", "1e-46", "3,"):
                self.refused("quantize", matrix, "--out", os.path.join(folder, "w"),
                             "--tensor-scale", scale, words=["scale"])
            self.refused("quantize", matrix, "--out", "", words=["--out: the value is empty"])
            self.assertEqual(os.listdir(folder), ["w.npy"])

    def test_the_nearest_command_is_named(self):
        for wrong, right in [("rnu", "run"), ("inof", "info"), ("explian", "explain"),
                             ("quantise", "quantize")]:
            self.refused(wrong, words=[f"{wrong} is no command; did you mean {right}?"])
        self.refused("walk-the-dog",
                     words=["walk-the-dog is no command", "There are " + ", ".join(COMMANDS)])
        self.assertNotIn("mean", run("walk-the-dog").stderr)
        self.refused(words=["which command?", *COMMANDS])

    def test_a_number_below_its_range(self):
        for command, option, value, least in (("run", "--device", "-1", 0),
                                              ("run", "--groups", "3,-1", 0),
                                              ("explain", "--sms", "0", 1)):
            wrong = value.split(",")[-1]
            self.refused(command, option, value,
                         words=[f"{option}: {wrong} is not within {least} to 2147483647"])

    def test_the_nearest_option_is_named(self):
        self.refused("run", "--hedline", words=["--hedline; did you mean --headline?"])
        self.refused("explain", "--varaint=x", words=["did you mean --variant?"])
        self.assertNotIn("mean", run("run", "--xyzzyplugh").stderr)


class Unproven(unittest.TestCase):
    def test_a_variant_of_another_gpu_is_taken_only_if_asked_for(self):
        shape = ["explain", "--m", "9", "--n", "136", "--k", "320", "--gpu"]
        for gpu in ("THOR", "RUBIN"):
            done = run(*shape, gpu)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertIn("variant", done.stderr)
            asked = run(*shape, gpu, "--allow-unproven").stdout
            self.assertIn("proof     assembled", asked)
            b200 = run(*shape, "B200").stdout
            self.assertEqual(*(re.search("^variant.*$", text, re.M)[0] for text in (asked, b200)))


class Gpus(unittest.TestCase):
    def device_line(self, *arguments):
        done = run("explain", *arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return re.search(r"^device +(.*)$", done.stdout, re.M)[1]

    def test_by_name_and_by_capability(self):
        for words in (["--gpu", "H200"], ["--gpu", "h200"], ["--compute-capability", "9.0"],
                      ["--compute-capability", "90"]):
            self.assertEqual(self.device_line(*words), "compute capability 9.0, 132 SMs", words)
        self.assertEqual(self.device_line(), "compute capability 10.0, 148 SMs")
        self.assertEqual(self.device_line("--gpu", "B300"),
                         self.device_line("--compute-capability", "103"))
        self.assertEqual(self.device_line("--gpu", "H100"), self.device_line("--gpu", "H200"))
        self.assertEqual(self.device_line("--gpu", "H200", "--sms", "7"),
                         "compute capability 9.0, 7 SMs")

    def test_the_sms_are_those_of_the_emulated_gpus(self):
        for gpu in ("B200", "B300", "H200"):
            there = run("info", EMU_DEVICE=gpu).stdout
            if f"{gpu} (emulated)" not in there:
                self.skipTest("the driver is a GPU's")
            capability, sms = re.search(r"compute capability ([0-9.]+), (\d+) SMs", there).groups()
            self.assertEqual(self.device_line("--gpu", gpu),
                             f"compute capability {capability}, {sms} SMs")

    def test_what_is_no_capability(self):
        for text in ("9.", "x", "9.0.0", "9", "1000", "-90", "9.10", ""):
            done = run("explain", "--compute-capability", text)
            self.assertEqual(done.returncode, 2, text)
            self.assertEqual(done.stderr.count("\n"), 1)


class NoDriver(unittest.TestCase):
    def test_the_way_out_is_named(self):
        done = run("run", LD_LIBRARY_PATH="")
        if done.returncode == 0:
            self.skipTest("this machine has a driver of its own")
        self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
        self.assertIn("no CUDA driver", done.stderr)
        self.assertIn("nvfp4 --emulate", done.stderr)


class OldDriver(unittest.TestCase):
    def info(self, version, gpu, *options):
        done = run("info", *options, EMU_DRIVER_VERSION=version, EMU_DEVICE=gpu)
        if "(emulated)" not in done.stdout:
            self.skipTest("the driver is a GPU's")
        return done

    def test_info_says_what_the_library_says(self):
        # Each version from 12.0 on has the calls that the command makes; the library needs 12.4.
        for version in ("12000", "12030"):
            done = self.info(version, "A100", "--require-device")
            self.assertEqual(done.returncode, 1, done.stdout)
            self.assertEqual(self.info(version, "A100").returncode, 0)  # it has answered
            self.assertNotIn("runs the kernels", done.stdout)
            said = done.stdout.split("\n")[-2].strip()
            self.assertIn("needs 12.4 or newer", said)
            self.assertIn(said, run("run", EMU_DRIVER_VERSION=version, EMU_DEVICE="A100").stderr)

    def test_info_says_which_tokens_the_driver_serves(self):
        for version, gpu, nvfp4 in (("12040", "A100", False), ("12040", "H200", False),
                                    ("12080", "H200", False), ("12080", "B200", False),
                                    ("13000", "A100", False), ("13000", "H200", True)):
            row = json.loads(self.info(version, gpu, "--json", "--require-device").stdout)
            device = row["devices"][0]
            self.assertEqual(device["tokens"], ["NVFP4"] * nvfp4 + ["fp16", "bf16"], device)
            text = self.info(version, gpu).stdout
            refused = re.search("not for NVFP4 tokens: (.*)", text)
            self.assertEqual(refused is None, nvfp4, text)
            if refused:
                done = run("run", EMU_DRIVER_VERSION=version, EMU_DEVICE=gpu)
                self.assertEqual((done.returncode, done.stderr), (1, f"nvfp4: {refused[1]}\n"))

    def test_16_bit_tokens_have_the_reference_s_bits(self):
        self.info("12040", "H200")
        for gpu in ("H200", "B200"):
            for words in ("--m 3 --n 200 --k 5120",
                          "--m 20 --n 136 --k 1088 --l 2 --b-scales linear",
                          "--m 9 --n 64 --k 256 --format mxfp4 --d-type f32",
                          "--m 5 --n 64 --k 512 --activation silu --bias-type f32 --d-type bf16",
                          "--m 5 --n 64 --k 512 --batch-invariant", "--m 5 --n 64 --k 0"):
                done = run("run", "--a-type", "bf16", *words.split(),
                           EMU_DRIVER_VERSION="12040", EMU_DEVICE=gpu)
                self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
                self.assertRegex(done.stdout, "compute_80|image +none")
                self.assertIn("PASS", done.stdout)

    def test_what_those_kernels_do_not_compute_names_the_driver_that_has_it(self):
        self.info("12040", "H200")
        for words in ("--m 3", "--m 40 --a-type bf16 --variant sm90_bf16_64x64x256",
                      "--groups 3,4 --a-type bf16", "--m 3 --a-type bf16 --gated"):
            done = run("run", *words.split(), "--n", "128", "--k", "256",
                       EMU_DRIVER_VERSION="12040", EMU_DEVICE="H200")
            self.assertEqual((done.returncode, done.stderr.count("\n")), (1, 1), done.stderr)
            self.assertRegex(done.stderr, r"supports CUDA 12\.4; .* needs 1\d\.\d or newer")


class Light(unittest.TestCase):
    def test_run_and_explain_have_the_same_roofline_on_every_gpu(self):
        shape = ("--m", "1", "--n", "512", "--k", "1024")
        for gpu in ("B200", "B300", "H200"):
            text = run("run", *shape, EMU_DEVICE=gpu).stdout
            if f"{gpu} (emulated)" not in text:
                self.skipTest("the driver is a GPU's")
            mine = re.search(r"^bound +([0-9.]+) us", text, re.M)[1]
            self.assertIn(f"bound     {mine} us", run("explain", *shape, "--gpu", gpu).stdout)


class Help(unittest.TestCase):
    def test_version(self):
        done = run("--version", LD_LIBRARY_PATH="")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"\Anvfp4 \d+\.\d+\.\d+\n\Z")

    def test_help_shows_words_and_no_numbers_behind_them(self):
        for command in COMMANDS:
            self.assertNotIn("->", run(command, "--help").stdout)

    def test_a_size_is_a_whole_number_within_the_range(self):
        for text in ("abc", "1.5", "12x", "", "0", "-4", "2147483648", "99999999999999999999"):
            self.assertEqual(run("explain", "--m", text).returncode, 2, text)

    def test_every_command_has_defaults_and_examples(self):
        for command in COMMANDS:
            text = run(command, "--help").stdout
            self.assertRegex(text, r"Examples?:\n  nvfp4 " + command)
            self.assertLess(max(map(len, text.splitlines())), 131, command)
        for option, default in [("--m", "128"), ("--seed", "1"), ("--data", "gpumode"),
                                ("--pdl", "0")]:
            self.assertRegex(run("run", "--help").stdout, rf"(?s){option} [^[]*\[{default}\]")

    def test_no_argument_has_the_name_of_an_option(self):
        # CLI11 2.4, of Debian 13, ends the program where one has.
        for command in COMMANDS:
            arguments = re.findall(r"(?m)^  ([a-z]+) ", run(command, "--help").stdout)
            for name in arguments:
                self.assertNotIn("--" + name, options_in_help(command), command)
        self.assertEqual(arguments, ["what"])

    def test_the_examples_parse(self):
        for command in ("info", "explain"):
            for line in re.findall(r"^  nvfp4 (.*)$", run(command, "--help").stdout, re.M):
                self.assertEqual(run(*line.split()).returncode, 0, line)

    def test_the_man_page_has_every_option_and_is_clean(self):
        page = run("generate", "man").stdout
        for command in COMMANDS:
            section = page.split(f".SS nvfp4 {command}\n")[1].split(".SS ")[0].split(".SH ")[0]
            found = re.findall(r"^\\fB((?:\\-)+[a-z0-9\\-]+)\\fR", section, re.M)
            self.assertEqual(sorted(name.replace("\\", "") for name in found),
                             options_in_help(command))
        for line in page.splitlines():
            self.assertNotRegex(line, r"(?<!\\)-", line)
        try:
            done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", "-z"], input=page,
                                  capture_output=True, text=True)
        except FileNotFoundError:
            self.skipTest("no groff here to read the page")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def completed(self, *words):
        script = run("generate", "bash").stdout + f"""
            COMP_WORDS=(nvfp4 {" ".join(f"'{word}'" for word in words)})
            COMP_CWORD={len(words)}
            _nvfp4
            printf '%s\\n' "${{COMPREPLY[@]}}"
        """
        done = subprocess.run(["bash", "-eu", "-c", script], capture_output=True, text=True)
        self.assertEqual(done.stderr, "")
        return done.stdout.split()

    def test_completion(self):
        self.assertEqual(sorted(self.completed("")),
                         sorted([*COMMANDS, "--emulate", "--help", "--version"]))
        self.assertEqual(self.completed("ex"), ["explain"])
        for command in COMMANDS:
            self.assertEqual(sorted(self.completed(command, "--")), options_in_help(command))
        self.assertEqual(sorted(self.completed("explain", "--gpu", "")),
                         ["A100", "A40", "B200", "B300", "GB10", "H100", "H200", "RTX4090",
                          "RTX5090", "RUBIN", "THOR"])
        self.assertEqual(self.completed("run", "--data", "g"), ["gpumode"])
        self.assertEqual(sorted(self.completed("generate", "")), sorted(["man", "bash", "--help"]))


class Progress(unittest.TestCase):
    def test_on_a_terminal_with_percent(self):
        main, end = pty.openpty()
        done = subprocess.run([PROGRAM, "run", "--m", "512", "--n", "1024", "--k", "2048", "--data",
                               "random"], stdout=subprocess.PIPE, stderr=end, text=True)
        os.close(end)
        shown = b""
        while True:
            try:
                part = os.read(main, 65536)
            except OSError:
                break
            shown += part
        os.close(main)
        self.assertIn("verdict   PASS", done.stdout)
        self.assertRegex(shown.decode(), r"512 x 1024 x 2048: (reference|error bound) \d+ %")
        self.assertTrue(shown.endswith(b"\r\x1b[K"))


if __name__ == "__main__":
    unittest.main()
