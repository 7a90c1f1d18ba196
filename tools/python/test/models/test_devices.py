# SPDX-License-Identifier: MIT
"""Every grouped product that a forward pass of the small models makes, again on emulated GPUs by
the C API, from the same bytes."""
import json
import os
import pickle
import subprocess
import sys
import tempfile
import unittest

import package
import torch

import calls
import small
from nvfp4gemm import grouped_gated_linear, grouped_linear, quantize, stack
from test_models import INPUT_SCALE, tokens

REPLAY = os.path.join(os.path.dirname(os.path.abspath(__file__)), "replay.py")
# {device: whether it multiplies tokens of 4 bits, too}
DEVICES = {"H200": True, "B200": True, "A100": False}
# A share of the largest element: a unit in the last place of bfloat16, which another order of a
# sum may turn. Or the share of elements of a D with scales that it may turn.
ERROR = 2 ** -8
FORMATS = {"nvfp4": 1 / 512, "mxfp4": 1.0}  # tensor scales of a D in them


def setUpModule():
    torch.set_num_threads(1)


def replayed(device, made, *words):
    """What replay.py says of these calls there."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "calls")
        with open(path, "wb") as file:
            pickle.dump(made, file)
        environment = {**os.environ, "EMU_DEVICE": device, "EMU_FORMAL": "stop", "EMU_WORKERS": "1",
                       "EMU_EXCEPT": "reused_columns:sm100_256x256",
                       "LD_LIBRARY_PATH": os.path.join(package.BUILD, "emulator"),
                       "PYTHONPATH": os.path.join(os.path.dirname(REPLAY), "..")}
        done = subprocess.run([sys.executable, REPLAY, path, *words], env=environment, text=True,
                              capture_output=True, timeout=600)
    if done.returncode:
        raise AssertionError(done.stdout + done.stderr)
    return [json.loads(line) for line in done.stdout.splitlines()]


def recorded(name, four_bits):
    model = small.Model(name, INPUT_SCALE if four_bits else None).ours(
        quantize_input=four_bits)
    with torch.no_grad(), calls.recorded() as made:
        model(tokens())
    return made


def in_4_bits(format_):
    """The two products of a layer of experts, of which the first makes the tokens of the second."""
    torch.manual_seed(len(format_))
    parts = [torch.randn(5, n, k) / k ** 0.5 for n, k in ((64, 96), (64, 96), (96, 64))]
    gate, up, down = (stack([quantize(one, format=format_) for one in part]) for part in parts)
    x = quantize(torch.randn(12, 96), format=format_, scale_layout="linear")
    ends = torch.tensor([3, 3, 4, 11, 12], dtype=torch.int32)
    with calls.recorded() as made:
        h = grouped_gated_linear(x, ends, gate, up, out_scale=FORMATS[format_])
        grouped_linear(h, ends, down, out_dtype=torch.bfloat16)
    return made


class Devices(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = {(name, four_bits): recorded(name, four_bits)
                    for name in small.CONFIGS for four_bits in (False, True)}

    def check(self, device, four_bits):
        for name in small.CONFIGS:
            with self.subTest(name):
                self.check_calls(device, self.made[name, four_bits])

    def check_calls(self, device, made):
        self.assertGreater(len(made), 0)
        for i, (call, said) in enumerate(zip(made, replayed(device, made), strict=True)):
            with self.subTest(product=i, groups=call.desc().l):
                self.assertEqual(said["status"], 0)
                # Whatever the number of groups. Where there is a workspace, one kernel before
                # writes the tokens or their scales into it.
                self.assertEqual(said["launches"], 1 + (said["workspace"] > 0))
                self.assertLessEqual(said["error"], ERROR)

    def test_tokens_of_16_bits(self):
        for device in DEVICES:
            with self.subTest(device):
                self.check(device, False)

    def test_tokens_of_4_bits(self):
        for device, four_bits in DEVICES.items():
            if four_bits:
                with self.subTest(device):
                    self.check(device, True)

    def test_a_graph_whose_routing_changes(self):
        for name in small.CONFIGS:
            with self.subTest(name):
                self.check_graph(self.made[name, False][:2])

    def check_graph(self, made):
        errors = replayed("H200", made, "graph")[-1]["graph"]
        self.assertEqual(len(errors), 4)
        self.assertLessEqual(max(max(pair) for pair in errors), ERROR)

    def test_tokens_that_a_product_made(self):
        for format_ in FORMATS:
            made = in_4_bits(format_)
            self.assertEqual([len(call.expected) for call in made], [2, 1])
            self.assertEqual(made[0].expected["d"], made[1].arrays["a"])
            for device in ("H200", "B200"):
                with self.subTest(format_, device=device):
                    self.check_calls(device, made)
        with self.subTest(format_, graph=True):
            self.check_graph(made)


if __name__ == "__main__":
    unittest.main()
