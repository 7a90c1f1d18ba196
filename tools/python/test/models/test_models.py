# SPDX-License-Identifier: MIT
"""The small models on the CPU, whole, beside float64 of the same weights."""
import unittest

import package  # noqa: F401
import torch

import calls
import decode
import routing
import small
from nvfp4gemm import abi
from nvfp4gemm.nn import Experts

# Shares of the logits' norm, and, for the largest element, of the largest logit. bfloat16 rounds to
# 2^-9 of each number; a token goes through about 20 such numbers one after the other.
NORM, LARGEST = 1 / 50, 1 / 25
QUANTIZED = 1 / 4  # the norm, where tokens have 4 bits, too
INPUT_SCALE = 6 / 2688  # for tokens of about 1
# The input_scale of the file, and whether tokens are quantized: without it each row by itself.
TOKENS = (None, False), (INPUT_SCALE, True), (None, True)
# A choice of experts may fall otherwise than in float64: by so much of the spread of what the
# router chooses by.
NEAR, QUANTIZED_NEAR = 0.1, 1.5


def setUpModule():
    torch.set_num_threads(1)


def tokens(rows=2, length=11):
    return torch.randint(0, small.SIZES["vocab_size"], (rows, length),
                         generator=torch.Generator().manual_seed(rows))


def blocks(model):
    return [module for module in model.modules() if isinstance(module, Experts)]


class Logits(unittest.TestCase):
    def check(self, made, norm=NORM, largest=LARGEST, near=NEAR, **options):
        ours, ids = made.ours(**options), tokens()
        with torch.no_grad(), routing.recorded() as chosen, calls.recorded() as products:
            found = ours(ids).logits.double()
        # Two products of each block, whatever the number of its experts.
        self.assertEqual([call.gated for call in products], [True, False] * len(blocks(ours)))
        self.assertGreater(len(products), 0)
        for call in products:  # MXFP4 has no tensor scale
            scales = [call.arrays.get(field) for field in ("group_alpha", "group_alpha2")]
            self.assertEqual([scale is not None for scale in scales],
                             [made.name != "gpt-oss", made.name != "gpt-oss" and call.gated])
            self.assertTrue(made.name == "gpt-oss" or scales[0] != scales[1])
            self.assertEqual(call.bias_group_stride,
                             call.desc().n if made.name == "gpt-oss" else 0)
        in_16_bits = {call.desc().a_type == abi.BF16 for call in products}
        self.assertEqual(in_16_bits, {not options.get("quantize_input")})
        with torch.no_grad(), routing.repeated(chosen) as lacks:
            expected = made.exact()(ids).logits
        self.assertLess(max(lacks), near)
        self.assertLess(float((found - expected).norm() / expected.norm()), norm)
        self.assertLess(float((found - expected).abs().max() / expected.abs().max()), largest)

    def test_in_16_bits(self):
        for name in small.CONFIGS:
            with self.subTest(name):
                self.check(small.Model(name))

    def test_packed_experts_have_the_same_logits(self):
        for name in small.CONFIGS:
            with self.subTest(name), torch.no_grad():
                made = small.Model(name)
                plain, packed = made.ours(), made.ours(pack=True)
                self.assertTrue(all(block.is_packed for block in blocks(packed)))
                self.assertTrue(torch.equal(packed(tokens()).logits, plain(tokens()).logits))
                state = plain.state_dict()
                self.assertEqual(list(packed.state_dict()), list(state))
                for key, tensor in packed.state_dict().items():
                    self.assertTrue(torch.equal(tensor, state[key]), key)

    def test_tokens_in_4_bits(self):
        for name in small.CONFIGS:
            for scale in INPUT_SCALE, None:
                with self.subTest(name, input_scale=scale):
                    self.check(small.Model(name, scale), QUANTIZED, QUANTIZED, QUANTIZED_NEAR,
                               quantize_input=True)

    def test_generate(self):
        for name in small.CONFIGS:
            with self.subTest(name):
                self.generate(small.Model(name))

    def generate(self, made, steps=5):
        ours, ids = made.ours(), tokens()
        with routing.recorded() as chosen, calls.recorded() as products:
            out = ours.generate(ids, max_new_tokens=steps, min_new_tokens=steps, do_sample=False,
                                pad_token_id=0, output_logits=True, return_dict_in_generate=True)
        self.assertTrue(torch.equal(decode.generate(ours, ids, steps)[0], out.sequences))
        each = len(chosen) // steps
        self.assertEqual(len(products), 2 * len(blocks(ours)) * steps)
        begin = ids.shape[1]
        chosen = routing.joined(chosen, each, len(ids))
        with torch.no_grad(), routing.repeated(chosen) as lacks:
            expected = made.exact()(out.sequences[:, :-1]).logits[:, begin - 1:]
        self.assertLess(max(lacks), NEAR)
        found = torch.stack(out.logits, 1).double()
        self.assertLess(float((found - expected).norm() / expected.norm()), NORM)


class Rows(unittest.TestCase):
    """A row of a block of experts has its bits, whatever lies beside it."""

    def block(self, name, input_scale=None, **options):
        made = small.Model(name, input_scale)
        model, exact = made.ours(**options), made.exact()
        at, block = next((at, module) for at, module in model.named_modules()
                         if isinstance(module, Experts))
        return block, exact.get_submodule(at)

    def rows(self):
        """One of norm 0.03, one of norm 6e4, and others."""
        x = torch.randn(6, small.SIZES["hidden_size"],
                        generator=torch.Generator().manual_seed(1))
        x[0] *= 0.03 / x[0].norm()
        x[1] *= 6e4 / x[1].norm()
        return x.bfloat16()

    def routed(self, block, tokens_, chosen=4):
        generator = torch.Generator().manual_seed(2)
        index = torch.stack([torch.randperm(block.num_experts, generator=generator)[:chosen]
                             for _ in range(tokens_)])
        return index, torch.rand(tokens_, chosen, generator=generator)

    def test_alone_and_beside_others(self):
        for name in small.CONFIGS:
            for scale, quantized in TOKENS:
                with self.subTest(name, input_scale=scale, quantized=quantized):
                    block, exact = self.block(name, scale, quantize_input=quantized)
                    x = self.rows()
                    index, weights = self.routed(block, len(x))
                    y = block(x, index, weights)
                    self.assertEqual((y.shape, y.dtype), (x.shape, x.dtype))
                    for i in range(len(x)):
                        one = slice(i, i + 1)
                        alone = block(x[one], index[one], weights[one])
                        self.assertTrue(torch.equal(alone, y[one]))
                    if not quantized:
                        with torch.no_grad():
                            expected = exact(x.double(), index, weights.double())
                        error = (y.double() - expected).norm(dim=1) / expected.norm(dim=1)
                        self.assertLess(float(error.max()), NORM)

    def test_stale_rows(self):
        """Rows of padding, with whatever was there: routed to no expert, or as they may be."""
        for name in small.CONFIGS:
            for scale, quantized in TOKENS:
                with self.subTest(name, input_scale=scale, quantized=quantized):
                    block, _ = self.block(name, scale, quantize_input=quantized)
                    x = self.rows()
                    index, weights = self.routed(block, len(x))
                    expected = block(x, index, weights)
                    stale = x.clone()
                    stale[2:4] = torch.tensor([[float("nan")], [6e4]]).bfloat16()
                    fresh = [0, 1, 4, 5]
                    y = block(stale, index, weights)
                    self.assertTrue(torch.equal(y[fresh], expected[fresh]))
                    for nowhere in (block.num_experts, -1):
                        index[2:4] = nowhere
                        y = block(stale, index, weights)
                        self.assertTrue(torch.equal(y[fresh], expected[fresh]))
                        self.assertTrue(bool((y[2:4] == 0).all()))

if __name__ == "__main__":
    unittest.main()
