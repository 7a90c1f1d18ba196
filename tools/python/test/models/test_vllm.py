# SPDX-License-Identifier: MIT
"""nvfp4gemm.integrations.vllm on layers as vLLM's linear methods leave them, beside float64. With
vLLM itself where this Python has it, else with vllm_stand_in.py:

    PYTHONPATH=tools/python/test:test/oracle python tools/python/test/models/test_vllm.py
"""
import contextlib
import importlib
import importlib.util
import inspect
import os
import sys
import tomllib
import unittest
from unittest import mock

import package
import small
import torch
import vllm_stand_in

WITH_VLLM = importlib.util.find_spec("vllm") is not None
if not WITH_VLLM:
    vllm_stand_in.install()
import nvfp4gemm.integrations.vllm as integration
from vllm.model_executor.kernels import linear as vllm_linear
from vllm.model_executor.layers.quantization.utils.quant_utils import kMxfp4Dynamic
from vllm.platforms.interface import DeviceCapability

CONFIG = vllm_stand_in.named(vllm_stand_in.MXFP4 + ":MxFp4LinearLayerConfig")
MXFP4 = integration.Nvfp4gemmMxFp4LinearKernel
MXFP4_A16 = integration.Nvfp4gemmMxFp4W4A16LinearKernel
NVFP4 = integration.Nvfp4gemmNvFp4LinearKernel
NVFP4_A16 = integration.Nvfp4gemmNvFp4W4A16LinearKernel


if not WITH_VLLM:
    vllm_stand_in.remove()


def setUpModule():
    torch.set_num_threads(1)
    if not WITH_VLLM:
        vllm_stand_in.install()
    unittest.addModuleCleanup(vllm_stand_in.remove)


class Gpu:
    """vLLM's platform on a GPU of that compute capability."""

    _enum = integration.PlatformEnum.CUDA

    def __init__(self, capability):
        self.capability = DeviceCapability(*divmod(capability, 10))

    def is_cuda(self):
        return True

    def get_device_capability(self, device_id=0):
        return self.capability

    def has_device_capability(self, capability, device_id=0):
        return self.capability.to_int() >= capability

    def is_device_capability_family(self, capability, device_id=0):
        return self.capability.to_int() // 10 == capability // 10


@contextlib.contextmanager
def on(capability):
    with mock.patch.object(integration, "current_platform", Gpu(capability)), \
            mock.patch.object(vllm_linear, "current_platform", Gpu(capability), create=True):
        yield


@contextlib.contextmanager
def registered(choice=None):
    """vLLM's lists and its function, with ours, and afterwards as they were."""
    lists = [vllm_linear._POSSIBLE_NVFP4_KERNELS, vllm_linear._POSSIBLE_MXFP4_KERNELS]
    before = [{key: list(kernels) for key, kernels in one.items()} for one in lists]
    function = vllm_linear.init_nvfp4_linear_kernel
    environment = {} if choice is None else {integration.VARIABLE: choice}
    try:
        with mock.patch.dict(os.environ, environment):
            integration.register()
            integration.register()  # as vLLM does in some processes
        yield
    finally:
        for one, was in zip(lists, before):
            one.clear()
            one.update(was)
        vllm_linear.init_nvfp4_linear_kernel = function


def nvfp4_layer(n, k, inputs=True):
    torch.manual_seed(n)
    made = small.Nvfp4(torch.randn(n, k), .002)
    parameters = {"weight": made.codes, "weight_scale": made.scales,
                  "weight_global_scale": made.tensor_scale}
    if inputs:
        scale = torch.tensor(.002)
        parameters.update(input_global_scale=scale, input_global_scale_inv=1 / scale,
                          alpha=scale * made.tensor_scale)
    return vllm_stand_in.packed_layer(**parameters), made.values


def mxfp4_layer(n, k):
    torch.manual_seed(n)
    made = small.Mxfp4(torch.randn(1, n, k))
    return vllm_stand_in.packed_layer(weight=made.blocks[0].reshape(n, k // 2),
                                      weight_scale=made.scales[0]), made.values[0]


def loaded(kernel, layer, key=None, capability=90):
    """The kernel, as vLLM makes it, after it has seen the layer."""
    with on(capability):
        made = kernel(integration.NvFp4LinearLayerConfig() if issubclass(kernel, NVFP4_A16) else
                      CONFIG(key))
    made.process_weights_after_loading(layer)
    return made


class Interface(unittest.TestCase):
    def test_names_and_arguments(self):
        """Those of vLLM 0.33.0, in vLLM itself or in what stands for it."""
        for module, signatures in vllm_stand_in.SIGNATURES.items():
            importlib.import_module(module)
            for name, expected in signatures.items():
                with self.subTest(f"{module}:{name}"):
                    signature = inspect.signature(vllm_stand_in.named(f"{module}:{name}"))
                    plain = [parameter.replace(annotation=inspect.Parameter.empty)
                             for parameter in signature.parameters.values()]
                    self.assertEqual(str(inspect.Signature(plain)), f"({expected})")
        for module, names in vllm_stand_in.ATTRIBUTES.items():
            for name in names:
                with self.subTest(f"{module}:{name}"):
                    self.assertTrue(hasattr(importlib.import_module(module), name))

    def test_ours_have_them(self):
        for kernels in integration.KERNELS.values():
            for kernel in kernels:
                base = (integration.NvFp4LinearKernel if issubclass(kernel, NVFP4_A16) else
                        integration.MxFp4LinearKernel)
                for name in vllm_stand_in.METHODS:
                    ours, theirs = (list(inspect.signature(getattr(one, name)).parameters)
                                    for one in (kernel, base))
                    self.assertEqual(ours, theirs, (kernel, name))

    def test_the_entry_point(self):
        with open(os.path.join(package.HERE, "../pyproject.toml"), "rb") as file:
            points = tomllib.load(file)["project"]["entry-points"]["vllm.general_plugins"]
        for target in points.values():
            module, _, name = target.partition(":")
            self.assertIs(getattr(importlib.import_module(module), name), integration.register)


class Choice(unittest.TestCase):
    def chosen(self, capability, key=None, **which):
        with on(capability):
            kernel = (vllm_linear.init_nvfp4_linear_kernel(**which) if which else
                      vllm_linear.init_mxfp4_linear_kernel(key))
        return type(kernel)

    def test_first(self):
        quantized = {80: NVFP4_A16, 89: NVFP4_A16, 90: NVFP4, 100: NVFP4, 103: NVFP4,
                     120: NVFP4, 121: NVFP4}
        with registered("first"):
            for capability, expected in quantized.items():
                with self.subTest(capability):
                    self.assertIs(self.chosen(capability, use_a16=False), expected)
                    self.assertIs(self.chosen(capability, use_a16=True), NVFP4_A16)
                    self.assertIs(self.chosen(capability), MXFP4_A16)
                    self.assertIs(self.chosen(capability, kMxfp4Dynamic),
                                  MXFP4 if capability in (90, 100, 103) else MXFP4_A16)

    def test_a_name_that_is_disabled(self):
        names = [NVFP4.__name__, MXFP4.__name__]
        with registered("first"), mock.patch.object(
                integration.envs, "VLLM_DISABLED_KERNELS", names, create=True):
            self.assertIs(self.chosen(90, use_a16=False), NVFP4_A16)
            self.assertIs(self.chosen(90, kMxfp4Dynamic), MXFP4_A16)
        def init_nvfp4_linear_kernel(use_a16=False):
            return use_a16

        with mock.patch.object(vllm_linear, "init_nvfp4_linear_kernel", init_nvfp4_linear_kernel):
            for variable, value in (("VLLM_DISABLED_KERNELS", [NVFP4_A16.__name__]),
                                    ("VLLM_BATCH_INVARIANT", True)):
                with self.subTest(variable), registered("first"), mock.patch.object(
                        integration.envs, variable, value, create=True):
                    self.assertIs(self.chosen(90, use_a16=True), bool)  # as theirs said
            with mock.patch.object(vllm_linear, "_get_linear_backend",
                                   lambda *, quantization: "marlin"), registered("first"):
                self.assertIs(self.chosen(90, use_a16=True), bool)

    def test_not_before_vllm_unless_asked(self):
        lists = vllm_linear._POSSIBLE_NVFP4_KERNELS, vllm_linear._POSSIBLE_MXFP4_KERNELS
        cuda = integration.PlatformEnum.CUDA
        before = [list(one[cuda]) for one in lists]
        function = vllm_linear.init_nvfp4_linear_kernel
        with registered():
            self.assertEqual([one[cuda] for one in lists],
                             [was + list(ours) for was, ours in
                              zip(before, integration.KERNELS.values())])
            self.assertIs(vllm_linear.init_nvfp4_linear_kernel, function)

    def test_a_word_that_is_none(self):
        with self.assertRaisesRegex(ValueError, "NVFP4GEMM_VLLM is 'yes'; expected 'first'"):
            with registered("yes"):
                pass

    def test_gpus_that_docs_name(self):
        named = {4: {90, 100, 103}, 16: {80, 86, 89, 90, 100, 103, 107, 110, 120, 121}}
        for kernels in integration.KERNELS.values():
            for kernel, bits in zip(kernels, (4, 16)):
                natively = {120, 121} if kernel is NVFP4 else set()  # by FP4 tensor cores
                self.assertEqual({one for one in range(70, 130) if kernel.is_supported(one)[0]},
                                 named[bits] | natively)

    def test_where_there_is_no_kernel(self):
        for kernels in integration.KERNELS.values():
            for kernel in kernels:
                self.assertFalse(kernel.is_supported(75)[0])
                self.assertFalse(kernel.is_supported()[0])  # on this machine, which has no GPU
        self.assertIn("compute capability 8.9", NVFP4.is_supported(89)[1])
        self.assertFalse(MXFP4.can_implement(CONFIG())[0])

    def test_modules_that_have_the_function_already(self):
        module = type(sys)("vllm.layer_of_a_test")
        module.init_nvfp4_linear_kernel = vllm_linear.init_nvfp4_linear_kernel
        with mock.patch.dict(sys.modules, {module.__name__: module}), registered("first"):
            with on(80):
                self.assertIs(type(module.init_nvfp4_linear_kernel(use_a16=True)), NVFP4_A16)


class Products(unittest.TestCase):
    def setUp(self):
        patch = mock.patch.object(integration, "logger")
        self.logger = patch.start()
        self.addCleanup(patch.stop)

    def near(self, y, x, values, bias, bound):
        exact = x.double() @ values.T + (0 if bias is None else bias.double())
        self.assertLess(float((y.double() - exact).norm() / exact.norm()), bound)

    def test_weights_alone_in_4_bits(self):
        for make, kernel in ((nvfp4_layer, NVFP4_A16), (mxfp4_layer, MXFP4_A16)):
            for n, k in ((128, 128), (72, 96), (40, 160), (136, 48 if make is nvfp4_layer else 32)):
                layer, values = make(n, k)
                x, bias = torch.randn(2, 3, k).bfloat16(), torch.randn(n).bfloat16()
                made = loaded(kernel, layer)
                y = made.apply_weights(layer, x, bias)
                self.assertEqual((y.shape, y.dtype), ((2, 3, n), torch.bfloat16))
                self.near(y, x, values, bias, .004)
                self.near(made.apply_weights(layer, x.half()), x.half(), values, None, .001)

    def test_tokens_in_4_bits(self):
        for make, kernel, key in ((nvfp4_layer, NVFP4, None), (mxfp4_layer, MXFP4, kMxfp4Dynamic)):
            layer, values = make(72, 96)
            x = torch.randn(5, 96).bfloat16()
            made = loaded(kernel, layer, key)
            y = made.apply_weights(layer, x)
            tokens = small.Nvfp4(x, .002) if key is None else None
            exact = x.double() if tokens is None else tokens.values
            self.near(y, exact, values, None, .2 if tokens is None else .004)

    def test_tokens_that_stay_in_16_bits_are_told(self):
        for kernel, make, key, told in (
                (NVFP4_A16, nvfp4_layer, None, True), (MXFP4_A16, mxfp4_layer, kMxfp4Dynamic, True),
                (MXFP4_A16, mxfp4_layer, None, False), (NVFP4, nvfp4_layer, None, False)):
            self.logger.reset_mock()
            loaded(kernel, make(72, 96)[0], key)
            self.assertEqual(self.logger.warning_once.called, told, kernel)

    def test_compiled(self):
        layer, _ = nvfp4_layer(72, 96)
        kernel, bias = loaded(NVFP4_A16, layer), torch.randn(72).bfloat16()
        call = torch.compile(lambda x: kernel.apply_weights(layer, x, bias), fullgraph=True,
                             backend="aot_eager", dynamic=True)
        for rows in (3, 5):
            x = torch.randn(rows, 96).bfloat16()
            self.assertTrue(torch.equal(call(x), kernel.apply_weights(layer, x, bias)))

    def test_what_vllm_writes_later(self):
        """A layer is loaded again in place, or moved to other memory."""
        for k in (96, 48):
            layer, values = nvfp4_layer(72, k)
            kernel, x = loaded(NVFP4_A16, layer), torch.randn(3, k).bfloat16()
            self.near(kernel.apply_weights(layer, x), x, values, None, .004)
            for move in (False, True):
                other, _ = nvfp4_layer(72, k)
                torch.manual_seed(9 + move)
                made = small.Nvfp4(torch.randn(72, k), .004)
                other.weight.data, other.weight_scale.data = made.codes, made.scales
                other.weight_global_scale.data = made.tensor_scale
                loaded(NVFP4_A16, other)
                for name in ("weight", "weight_scale", "weight_global_scale"):
                    parameter, source = getattr(layer, name), getattr(other, name).data
                    if move:
                        parameter.data = source.clone()
                    else:
                        parameter.data.copy_(source)
                self.near(kernel.apply_weights(layer, x), x, made.values, None, .004)

    def test_batch_invariant(self):
        layer, _ = nvfp4_layer(72, 96)
        with mock.patch.object(integration.envs, "VLLM_BATCH_INVARIANT", True, create=True):
            kernel = loaded(NVFP4_A16, layer)
        x = torch.randn(5, 96).bfloat16()
        linear = integration._calls.linear
        with mock.patch.object(integration._calls, "linear", wraps=linear) as call:
            kernel.apply_weights(layer, x)
        self.assertIs(call.call_args.kwargs["batch_invariant"], True)


class Refused(unittest.TestCase):
    def refused(self, kernel, make, words, **parts):
        layer, _ = make(72, 96)
        for name, change in parts.items():
            parameter = getattr(layer, name)
            setattr(layer, name, torch.nn.Parameter(change(parameter.data), requires_grad=False))
        with self.assertRaisesRegex(ValueError, r"^model\.layers\.0\.mlp\.up_proj: " + words):
            loaded(kernel, layer)

    def test_parts_of_a_layer(self):
        two, nan = (lambda t: t.reshape(1).repeat(2)), (lambda t: t * float("nan"))
        swizzled = lambda t: t.reshape(-1)
        for kernel, make in ((NVFP4_A16, nvfp4_layer), (MXFP4_A16, mxfp4_layer)):
            self.refused(kernel, make, r"weight is torch\.int8 \(72, 48\); expected torch\.uint8",
                         weight=lambda t: t.view(torch.int8))
            self.refused(kernel, make, "weight_scale is .*; expected .* \\[n, k / ",
                         weight_scale=swizzled)
            self.refused(kernel, make, "weight_scale is torch.bfloat16",
                         weight_scale=lambda t: torch.ones(t.shape).bfloat16())
        for scale, kernel in (("weight_global_scale", NVFP4_A16), ("input_global_scale", NVFP4)):
            self.refused(kernel, nvfp4_layer, scale + r" is \(2,\); expected one value",
                         **{scale: two})
            self.refused(kernel, nvfp4_layer, scale + " is nan, expected a finite", **{scale: nan})
        negative = lambda t: torch.full(t.shape, 0x81, dtype=torch.uint8).view(t.dtype)
        self.refused(NVFP4_A16, nvfp4_layer, "the scale of row 0, block 0 is 0x81, negative",
                     weight_scale=negative)

    def test_tokens(self):
        layer, _ = nvfp4_layer(72, 96)
        kernel = loaded(NVFP4_A16, layer)
        with self.assertRaisesRegex(TypeError, "^x is of torch.float32"):
            kernel.apply_weights(layer, torch.randn(3, 96))
        with self.assertRaisesRegex(ValueError, "^x has k = 80, weight has k = 96"):
            kernel.apply_weights(layer, torch.randn(3, 80).bfloat16())
        with self.assertRaisesRegex(ValueError, "^bias is "):
            kernel.apply_weights(layer, torch.randn(3, 96).bfloat16(), torch.randn(71))


if WITH_VLLM:
    class Schemes(unittest.TestCase):
        """vLLM's own linear methods make, load and call the layer."""

        def test_compressed_tensors(self):
            from vllm.model_executor.layers.quantization.compressed_tensors import schemes
            from vllm.model_executor import parameter
            for use_a16 in (True, False):
                with registered("first"), on(90), mock.patch.object(
                        parameter, "get_tensor_model_parallel_rank", lambda: 0), mock.patch.object(
                        parameter, "get_tensor_model_parallel_world_size", lambda: 1):
                    scheme = schemes.CompressedTensorsW4A4Fp4(use_a16=use_a16)
                    self.assertIs(type(scheme.kernel), NVFP4_A16 if use_a16 else NVFP4)
                    layer = torch.nn.Module()
                    scheme.create_weights(layer, [72], 96, torch.bfloat16, lambda *_: None)
                made = small.Nvfp4(torch.randn(72, 96), .002)
                layer.weight_packed.data.copy_(made.codes)
                layer.weight_scale.data.copy_(made.scales)
                layer.weight_global_scale.data.fill_(1 / made.tensor_scale)
                if not use_a16:
                    layer.input_global_scale.data.fill_(500.)
                scheme.process_weights_after_loading(layer)
                x = torch.randn(5, 96).bfloat16()
                exact = x.double() if use_a16 else small.Nvfp4(x, .002).values
                exact = exact @ made.values.T
                y = scheme.apply_weights(layer, x)
                self.assertLess(float((y.double() - exact).norm() / exact.norm()), .004)


if __name__ == "__main__":
    unittest.main()
