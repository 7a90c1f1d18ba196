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
from test_transformers import logits, tokens, with_config
from transformers import AutoModelForCausalLM
from transformers.distributed import DistributedConfig
from transformers.utils import logging

import nvfp4gemm.integrations.transformers as integration
from nvfp4gemm.nn import Experts, Linear
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


class TensorParallel(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = small.Model("Qwen3-MoE", alike=True)
        cls.folder = with_config(cls.made)
        cls.whole = AutoModelForCausalLM.from_pretrained(cls.folder, attn_implementation="eager")
        with torch.no_grad():
            cls.exact = cls.made.exact()(tokens()).logits

    def error(self, found):
        return float((found.double() - self.exact).norm() / self.exact.norm())

    def near(self, found):
        self.assertLess(self.error(found), 1.25 * self.error(logits(self.whole)))

    def test_by_the_models_plan(self):
        def work():
            model = divided(self.folder)
            kinds = {name: (type(layer), layer.in_features, layer.out_features)
                     for name, layer in model.named_modules() if isinstance(layer, Linear)}
            wholes = [name for name, layer in model.named_modules() if isinstance(layer, Experts)]
            with tempfile.TemporaryDirectory() as other:
                try:
                    model.save_pretrained(other)
                    saved = True
                except ValueError:
                    saved = False
            return logits(model), kinds, wholes, saved

        for found, kinds, wholes, saved in in_ranks(work):
            self.near(found)
            for name, (kind, k, n) in kinds.items():
                layer = self.whole.get_submodule(name)
                row = name.endswith("o_proj")
                self.assertIs(kind, RowLinear if row else ColumnLinear)
                self.assertEqual((k, n), (layer.in_features // 2, layer.out_features) if row else
                                 (layer.in_features, layer.out_features // 2))
            self.assertEqual((len(kinds), len(wholes)), (12, 3))
            self.assertFalse(saved)

    def test_by_a_plan_that_gathers(self):
        """Of a folder that save_pretrained wrote."""
        plan = {f"model.layers.*.self_attn.{name}_proj": "colwise_gather_output" for name in "qkv"}
        plan["model.layers.*.self_attn.o_proj"] = "rowwise_split_input"
        plan.update({f"model.layers.*.self_attn.{name}_norm": "replicate" for name in "qk"})
        with tempfile.TemporaryDirectory() as folder:
            self.whole.save_pretrained(folder)
            for found in in_ranks(lambda: logits(divided(folder, tp_plan=plan))):
                self.near(found)

    def test_what_is_refused(self):
        other = small.Model("DeepSeek-V3", alike=True)
        folder = with_config(other)

        def work():
            name = "model.layers.*.self_attn.q_proj"
            return (refused(self.folder, tp_plan={name: "sequence_parallel"}), refused(folder),
                    refused(self.folder, ep_size=RANKS))

        for style, size, experts in in_ranks(work):
            self.assertRegex(style, "tp_plan has 'sequence_parallel' for model.layers.0.self_attn."
                                    "q_proj, which the folder has in 4 bits; there are 'colwise',")
            self.assertRegex(size, r"^model.layers.0.mlp.down_proj: in_features 96 is no"
                                   " multiple of 32 for each of 2 ranks; tp_plan has 'rowwise'")
            self.assertRegex(experts, "distributed_config has ep_size = 2; .* tp_size alone")


if __name__ == "__main__":
    unittest.main()
