# SPDX-License-Identifier: MIT
"""What a transformers block of experts says of itself, beside what a file has for it: its gate,
biases, number of experts and shapes; and experts that were saved."""
import unittest

import package  # noqa: F401
import torch
from transformers import AutoModelForCausalLM

import small
from nvfp4gemm import _experts, quantize
from nvfp4gemm.nn import Experts, Refused, load_linear

EXPERTS, N, K = 3, 48, 64


def setUpModule():
    torch.set_num_threads(1)


class Block(torch.nn.Module):
    """As transformers 5 decorates one."""

    num_experts, is_concatenated, is_transposed = EXPERTS, True, False
    has_bias = False

    def __init__(self, **attributes):
        super().__init__()
        self.gate_up_proj = torch.nn.Parameter(torch.empty(EXPERTS, 2 * N, K, device="meta"))
        self.down_proj = torch.nn.Parameter(torch.empty(EXPERTS, K, N, device="meta"))
        vars(self).update(attributes)

    def _apply_gate(self, gate_up):
        gate, up = gate_up.chunk(2, -1)
        return torch.nn.functional.silu(gate) * up


class Clamped(Block):
    def _apply_gate(self, gate_up):
        gate, up = gate_up.chunk(2, -1)
        cut = self.cut()
        return torch.nn.functional.silu(gate.clamp(max=cut)) * up.clamp(-cut, cut)

    def cut(self):
        return next(getattr(self, name) for name in ("limit", "swiglu_limit")
                    if hasattr(self, name))


class ByLayer(Clamped):
    """Its limit is no number of its own."""

    def cut(self):
        return self.limits[1]


class Gates(unittest.TestCase):
    def limit(self, block):
        options = _experts._gate_of(block, "experts")
        self.assertEqual(options["activation"], "silu")
        return options.get("limit")

    def test_a_limit_of_any_size(self):
        for name in ("limit", "swiglu_limit"):
            for limit in (0.5, 7.0, 10, 16.0, 100.0, 3000.0):
                with self.subTest(name, limit=limit):
                    self.assertEqual(self.limit(Clamped(**{name: limit})), limit)

    def test_a_limit_that_does_not_cut(self):
        self.assertIsNone(self.limit(Clamped(limit=float("inf"))))
        self.assertIsNone(self.limit(Block(limit=7.0)))

    def test_a_limit_that_is_not_known(self):
        for limit in (7.0, 16.0, 1000.0):
            with self.subTest(limit=limit), self.assertRaises(ValueError):
                _experts._gate_of(ByLayer(limits=[0, limit]), "experts")


def loaded(experts=EXPERTS, n=N, k=K, bias=()):
    """What checkpoints.load() returns; the matrices named in `bias` have one."""
    found = {}
    for e in range(experts):
        for part, shape in (("gate_proj", (n, k)), ("up_proj", (n, k)), ("down_proj", (k, n))):
            made = quantize(torch.full(shape, 0.5).bfloat16(), scale_layout="128x4")
            made = _experts.Weight(made.codes, made.scales, *shape, made.tensor_scale)
            if f"{e}.{part}" in bias:
                made = made.beside(bias=torch.ones(shape[0]).bfloat16())
            found[f"experts.{e}.{part}"] = made
    return found


ALL = {f"{e}.{part}_proj" for e in range(EXPERTS) for part in ("gate", "up", "down")}


class Files(unittest.TestCase):
    def of_block(self, block, **options):
        return _experts.of_block(block, "experts", loaded(**options))

    def test_biases_of_all_or_of_none(self):
        self.assertIsNone(self.of_block(Block()).down_bias)
        self.assertIsNotNone(self.of_block(Block(has_bias=True), bias=ALL).down_bias)
        cases = [(True, one) for one in ({"0.down_proj"}, ALL - {"0.down_proj"},
                                         ALL - {"2.up_proj"},
                                         {f"{e}.down_proj" for e in range(EXPERTS)}, set())]
        for has_bias, bias in cases + [(False, ALL)]:
            with self.subTest(has_bias=has_bias, bias=sorted(bias)):
                with self.assertRaises(Refused) as refusal:
                    self.of_block(Block(has_bias=has_bias), bias=bias)
                self.assertEqual(refusal.exception.argument, "bias")

    def test_norms_after_experts(self):
        """Transformers 5.17 has no such attribute, and its blocks were none to us."""
        for block in (Block(), Block(has_post_expert_norm=False)):
            model = torch.nn.ModuleDict({"experts": block})
            self.assertEqual(list(_experts.blocks_of(model)), ["experts"])
            self.of_block(block)
        with self.assertRaisesRegex(ValueError, "a norm after each expert"):
            self.of_block(Block(has_post_expert_norm=True))

    def test_shapes(self):
        self.of_block(Block())
        for sizes in ({"n": 32}, {"n": 64}, {"k": 32}, {"k": 80}):
            with self.subTest(sizes), self.assertRaises(Refused) as refusal:
                self.of_block(Block(), **sizes)
            self.assertEqual(refusal.exception.argument, "shape")

    def test_number_of_experts(self):
        block = Block()
        for experts in (EXPERTS - 1, EXPERTS + 1):
            with self.subTest(experts), self.assertRaises(ValueError):
                _experts.gathered(set(loaded(experts)), {"experts": block})
        whole, names = _experts.gathered(set(loaded()) | {"lm_head"}, {"experts": block})
        self.assertEqual((whole, len(names["experts"])), ({"experts", "lm_head"}, 3 * EXPERTS))

    def test_number_of_experts_together(self):
        made = small.Model("gpt-oss")
        for experts in (7, 9):
            made.config.num_local_experts = experts
            model = AutoModelForCausalLM.from_config(made.config)
            with self.subTest(experts), self.assertRaises(Refused) as refusal:
                load_linear(model, made.folder.name, "cpu", names=["model.layers.0.mlp.experts"])
            self.assertEqual(refusal.exception.argument, "experts")


class Saved(unittest.TestCase):
    """state_dict() of Experts, which says all that makes them again."""

    def experts(self, format, n, k):
        torch.manual_seed(n)
        matrices = [[quantize(torch.randn(shape).bfloat16(), 1.0 if format == "nvfp4" else None,
                              format=format) for _ in range(EXPERTS)]
                    for shape in ((n, k), (n, k), (k, n))]
        return Experts(*matrices)

    def test_each_format(self):
        for n, k in ((N, K), (32, 32), (64, 64), (128, 192)):
            for format in ("nvfp4", "mxfp4", "e2m1_ue8m0"):
                if format == "mxfp4" and n % 32:
                    continue
                with self.subTest(format, n=n, k=k):
                    made, block = self.experts(format, n, k), Block()
                    block.gate_up_proj = torch.nn.Parameter(torch.empty(EXPERTS, 2 * n, k))
                    block.down_proj = torch.nn.Parameter(torch.empty(EXPERTS, k, n))
                    state = made.state_dict()
                    again = _experts.of_state(block, "experts", state)
                    self.assertEqual(again._formats, made._formats)
                    self.assertEqual(set(again.state_dict()), set(state))
                    for key, tensor in again.state_dict().items():
                        self.assertTrue(torch.equal(tensor, state[key]), key)

    def test_other_shapes_and_numbers(self):
        state = self.experts("nvfp4", N, K).state_dict()
        for attributes, argument in (({"num_experts": 4}, "experts"),
                                     ({"num_experts": 2}, "experts"),
                                     ({"has_bias": True}, "bias")):
            with self.subTest(attributes), self.assertRaises(Refused) as refusal:
                _experts.of_state(Block(**attributes), "experts", state)
            self.assertEqual(refusal.exception.argument, argument)
        block = Block()
        block.gate_up_proj = torch.nn.Parameter(torch.empty(EXPERTS, 4 * N, K))
        with self.assertRaises(Refused) as refusal:
            _experts.of_state(block, "experts", state)
        self.assertEqual(refusal.exception.argument, "shape")


if __name__ == "__main__":
    unittest.main()
