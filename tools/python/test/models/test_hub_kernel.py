# SPDX-License-Identifier: MIT
"""transformers' own NVFP4 layers over the kernel that nvfp4gemm.integrations.hub_kernel writes,
loaded by the package kernels."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
import weakref
from unittest import mock

import package  # noqa: F401
import kernels
import torch
from torch._subclasses import FakeTensorMode
from transformers import AutoModelForCausalLM, LlamaConfig
from transformers.integrations import nvfp4

import nvfp4gemm
from nvfp4gemm.integrations import hub_kernel


def setUpModule():
    torch.set_num_threads(1)


class HubKernel(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_folder_that_the_package_loads(self):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        subprocess.run([sys.executable, "-m", "nvfp4gemm.integrations.hub_kernel", self.folder],
                       env=environment, check=True)
        for backend in ("cuda", "cpu"):
            kernel = kernels.get_local_kernel(self.folder, backend=backend)
            self.assertIs(kernel.gemm, hub_kernel.gemm)

    def test_packs_and_multiplies(self):
        for n, k in ((128, 128), (72, 80), (40, 48)):
            torch.manual_seed(n)
            w, x = torch.randn(n, k).bfloat16(), torch.randn(2, 3, k).bfloat16()
            made = hub_kernel.pack(w)
            self.assertEqual((made.qweight.shape, made.sf.shape, made.sf_rowmajor.shape),
                             ((n, k // 2), hub_kernel.swizzled_sf_shape(n, k), (n, k // 16)))
            self.assertTrue(torch.equal(hub_kernel.gemm(made, x),
                                        nvfp4gemm.linear(x, nvfp4gemm.quantize(w))))

    def test_all_parts_lie_on_the_device(self):
        """That a weight goes to, in place of its own."""
        with FakeTensorMode():
            made = hub_kernel.pack(torch.empty(72, 48, dtype=torch.bfloat16), "cuda")
            parts = made.qweight, made.sf, made.global_scale, made.sf_rowmajor
        self.assertEqual({part.device.type for part in parts}, {"cuda"})

    def test_calls_share_a_matrix(self):
        """One Packed for the tensors of a layer, by which plans are kept, while they live and lie
        where they do; codes whose rows had to be copied follow theirs."""
        def again(packed):
            return hub_kernel.PackedWeight(packed.qweight, packed.sf, packed.global_scale, packed.n,
                                           packed.k)

        for n, k in ((72, 64), (40, 48)):
            torch.manual_seed(n)
            weights = [torch.randn(n, k).bfloat16() for _ in range(2)]
            x = torch.randn(3, k).bfloat16()
            one, other = map(hub_kernel.pack, weights)
            y = hub_kernel.gemm(one, x)
            kept = hub_kernel._packed_of(one)
            self.assertIs(hub_kernel._packed_of(again(one)), kept)
            with torch.inference_mode():
                self.assertTrue(torch.equal(hub_kernel.gemm(again(one), x), y))
            for part in ("qweight", "sf", "global_scale"):
                changed = again(one)
                setattr(changed, part, getattr(other, part))
                self.assertIsNot(hub_kernel._packed_of(changed), kept)
            for part in ("qweight", "sf", "global_scale"):
                getattr(one, part).copy_(getattr(other, part))
            self.assertTrue(torch.equal(hub_kernel.gemm(again(one), x),
                                        hub_kernel.gemm(other, x)))
            with torch.inference_mode():
                loaded = hub_kernel.PackedWeight(*(part.clone() for part in (
                    one.qweight, one.sf, one.global_scale)), n, k)
                for source in (other, hub_kernel.pack(weights[0])):
                    for part in ("qweight", "sf", "global_scale"):
                        getattr(loaded, part).copy_(getattr(source, part))
                    self.assertTrue(torch.equal(hub_kernel.gemm(loaded, x),
                                                hub_kernel.gemm(source, x)))
            gone = weakref.ref(hub_kernel._packed_of(one))
            del one, changed, kept
            self.assertIsNone(gone())

    def test_a_llama_of_transformers_own_layers(self):
        hub_kernel.write(self.folder)
        torch.manual_seed(1)
        config = LlamaConfig(vocab_size=96, hidden_size=64, intermediate_size=96,
                             num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
        dense = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
        model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
        model.load_state_dict(dense.state_dict())
        # transformers 5.24 asks for kernels 0.18.2; this hands it what kernels 0.17.2 loaded.
        kernel = kernels.get_local_kernel(self.folder)
        for name, value in (("is_kernels_available", lambda: True),
                            ("lazy_load_kernel", {"nvfp4": kernel}.get)):
            patch = mock.patch.object(nvfp4, name, value)
            patch.start()
            self.addCleanup(patch.stop)
        self.addCleanup(nvfp4.load_nvfp4_kernel.cache_clear)
        self.assertIs(nvfp4.load_nvfp4_kernel().gemm, hub_kernel.gemm)
        nvfp4.replace_with_nvfp4_linear(model, ["lm_head"])
        operation, count = nvfp4.NVFP4Quantize(torch.device("cpu")), 0
        for name, layer in model.named_modules():
            if isinstance(layer, nvfp4.NVFP4Linear):
                weight = dense.get_submodule(name).weight
                for key, value in operation.convert({f"{name}.weight": weight.detach()}).items():
                    setattr(layer, key.rpartition(".")[2], torch.nn.Buffer(value))
                weight.data = nvfp4gemm.quantize(weight.detach()).dequantize(torch.bfloat16)
                count += 1
        self.assertEqual(count, 14)
        ids = torch.arange(24)[None]
        with torch.no_grad():
            found, expected = model(ids).logits.float(), dense(ids).logits.float()
        self.assertLess(float((found - expected).norm() / expected.norm()), 1 / 50)


if __name__ == "__main__":
    unittest.main()
