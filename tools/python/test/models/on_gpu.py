# SPDX-License-Identifier: MIT
"""The small models on a GPU, generating in a CUDA graph, beside float64 on the CPU; `make check-hw
PART=python` runs it, with a Python that has torch and transformers 5."""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import package  # noqa: E402, F401
import torch  # noqa: E402

import decode  # noqa: E402
import gpus  # noqa: E402
import routing  # noqa: E402
import small  # noqa: E402
from test_models import INPUT_SCALE, NEAR, NORM, QUANTIZED, QUANTIZED_NEAR, tokens  # noqa: E402

STEPS = 8


class OnGpu(unittest.TestCase):
    def setUp(self):
        self.assertEqual(gpus.why_not(torch, 1), "")

    def beside_float64(self, made, found, chosen, norm, near):
        sequences, logits = (part.cpu() for part in found)
        each = len(chosen) // STEPS
        chosen = routing.joined([index.cpu() for index in chosen], each, len(sequences))
        with torch.no_grad(), routing.repeated(chosen) as lacks:
            expected = made.exact()(sequences[:, :-1]).logits[:, -STEPS:]
        self.assertLess(max(lacks), near)
        self.assertLess(float((logits.double() - expected).norm() / expected.norm()), norm)

    def check(self, made, norm, near, **options):
        model, prompt = made.ours("cuda", **options), tokens().cuda()
        with routing.recorded() as chosen:
            eager = decode.generate(model, prompt, STEPS)
        self.beside_float64(made, eager, chosen, norm, near)
        graph = decode.generate(model, prompt, STEPS, capture=True)
        self.assertTrue(torch.equal(eager[0], graph[0]))
        self.assertLess(float((eager[1] - graph[1]).float().norm() / eager[1].float().norm()), NORM)
        # By transformers' own loop, whose cache grows.
        whole = model.generate(prompt, max_new_tokens=STEPS, min_new_tokens=STEPS, do_sample=False,
                               pad_token_id=0, output_logits=True, return_dict_in_generate=True)
        self.assertEqual(whole.sequences.shape, eager[0].shape)
        first, expected = whole.logits[0].double(), eager[1][:, 0].double()
        self.assertLess(float((first - expected).norm() / expected.norm()), norm)

    def test_tokens_of_16_bits(self):
        for name in small.CONFIGS:
            with self.subTest(name):
                self.check(small.Model(name), NORM, NEAR)

    def test_tokens_of_4_bits(self):
        for name in small.CONFIGS:
            with self.subTest(name):
                self.check(small.Model(name, INPUT_SCALE), QUANTIZED, QUANTIZED_NEAR,
                           quantize_input=True)


if __name__ == "__main__":
    unittest.main()
