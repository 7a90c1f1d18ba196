# SPDX-License-Identifier: MIT
"""from_pretrained with a tensor-parallel plan, in two processes that meet by gloo. They are forked,
so that each has what this one has imported."""
import multiprocessing
import os
import tempfile
import traceback
import unittest

import package  # noqa: F401
import small
import torch
import torch.distributed as dist
from test_transformers import llama, logits, tokens, with_config
from transformers import AutoModelForCausalLM
from transformers.distributed import DistributedConfig
from transformers.utils import logging

import nvfp4gemm.integrations.transformers as integration
from nvfp4gemm.nn import Experts, Linear, replace_linear
from nvfp4gemm.parallel import ColumnLinear, RowLinear

RANKS = 2


def setUpModule():
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    integration.register()


def _rank(rank, file, pipe, work):
    try:
        os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(RANKS))
        dist.init_process_group("gloo", init_method=f"file://{file}", rank=rank, world_size=RANKS)
        pipe.send((True, work()))
        dist.destroy_process_group()
    except BaseException:
        pipe.send((False, traceback.format_exc()))
    os._exit(0)


def in_ranks(work):
    """What work() returns on each rank; raises with what was said where one fails."""
    context = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        ends = [context.Pipe(duplex=False) for _ in range(RANKS)]
        ranks = [context.Process(target=_rank, args=(
            rank, os.path.join(folder, "meet"), end[1], work)) for rank, end in enumerate(ends)]
        try:
            for rank in ranks:
                rank.start()
            said = [end[0].recv() if end[0].poll(120) else (False, "no answer") for end in ends]
        finally:
            for rank in ranks:
                rank.kill()
                rank.join()
    if not all(right for right, _ in said):
        raise AssertionError("\n".join(str(what) for right, what in said if not right))
    return [what for _, what in said]


def divided(folder, **config):
    return AutoModelForCausalLM.from_pretrained(
        folder, attn_implementation="eager",
        distributed_config=DistributedConfig(tp_size=RANKS, **config))


def refused(folder, **config):
    """The words of the refusal of each rank."""
    try:
        divided(folder, **config)
    except ValueError as error:
        return str(error)
    return None


class Work:
    """What each rank does, all of it at one meeting: {what: its result}."""

    def __init__(self, folder, whole, other):
        self.folder, self.whole, self.other = folder, whole, other

    def __call__(self):
        model = divided(self.folder)
        return {"logits": logits(model), "saved": self.saved(model),
                "kinds": {name: (type(layer), layer.in_features, layer.out_features)
                          for name, layer in model.named_modules() if isinstance(layer, Linear)},
                "experts": sum(isinstance(layer, Experts) for layer in model.modules()),
                "gathered": logits(divided(self.whole, tp_plan=self.gathers())),
                "style": refused(self.folder, tp_plan={
                    "model.layers.*.self_attn.q_proj": "sequence_parallel"}),
                "size": refused(self.other), "ep_size": refused(self.folder, ep_size=RANKS)}

    @staticmethod
    def gathers():
        attention = "model.layers.*.self_attn."
        return {attention + "o_proj": "rowwise_split_input",
                **{f"{attention}{name}_proj": "colwise_gather_output" for name in "qkv"},
                **{f"{attention}{name}_norm": "replicate" for name in "qk"}}

    @staticmethod
    def saved(model):
        with tempfile.TemporaryDirectory() as folder:
            try:
                model.save_pretrained(folder)
            except ValueError:
                return False
        return True


class TensorParallel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        made = small.Model("Qwen3-MoE")
        folder = with_config(made)
        cls.whole = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
        with torch.no_grad():
            cls.exact = made.exact()(tokens()).logits
        other = llama()
        replace_linear(other, skip=["lm_head"])
        other.config.quantization_config = integration.Config()
        with tempfile.TemporaryDirectory() as saved, tempfile.TemporaryDirectory() as odd:
            cls.whole.save_pretrained(saved)
            other.save_pretrained(odd)
            cls.ranks = in_ranks(Work(folder, saved, odd))

    def error(self, found):
        return float((found.double() - self.exact).norm() / self.exact.norm())

    def near(self, found):
        self.assertLess(self.error(found), 1.25 * self.error(logits(self.whole)))

    def test_by_the_models_plan(self):
        for said in self.ranks:
            self.near(said["logits"])
            for name, (kind, k, n) in said["kinds"].items():
                layer = self.whole.get_submodule(name)
                row = name.endswith("o_proj")
                self.assertIs(kind, RowLinear if row else ColumnLinear)
                self.assertEqual((k, n), (layer.in_features // 2, layer.out_features) if row else
                                 (layer.in_features, layer.out_features // 2))
            self.assertEqual((len(said["kinds"]), said["experts"]), (12, 3))
            self.assertFalse(said["saved"])

    def test_by_a_plan_that_gathers(self):
        """Of a folder that save_pretrained wrote."""
        for said in self.ranks:
            self.near(said["gathered"])

    def test_what_is_refused(self):
        for said in self.ranks:
            self.assertRegex(said["style"], "tp_plan has 'sequence_parallel' for model.layers.0."
                             "self_attn.q_proj, which the folder has in 4 bits; there are 'col")
            self.assertRegex(said["size"], "^model.layers.0.mlp.down_proj: in_features 96 is no "
                             "multiple of 32 for each of 2 ranks; tp_plan has 'rowwise' for it")
            self.assertRegex(said["ep_size"], "distributed_config has ep_size = 2; .* tp_size")


if __name__ == "__main__":
    unittest.main()
