# SPDX-License-Identifier: MIT
"""Products like one that was computed before: nvfp4gemm._known as it is, on tensors of the
processor that are taken for a GPU's, with calls of the library that note what they get."""
import decimal
import inspect
import sys
import unittest
import warnings
from unittest import mock

import package  # noqa: F401

import numpy
try:
    import torch
except ImportError as error:
    raise unittest.SkipTest("this Python has no torch") from error
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.autograd import forward_ad
from torch.utils.flop_counter import FlopCounterMode

import nvfp4gemm
from nvfp4gemm import _arrays, _calls, _compiled, _device, _door, _eager, _known, _linear, abi
from nvfp4gemm import nn
import test_python_plans

M, N, K, GROUPS = 6, 64, 128, 2
# Steps of Python at most, of functions of Python and of C together: each is 0.05 to 0.2 us.
MOST_STEPS = {"linear": 29, "linear quantize_input": 39, "grouped_linear": 39, "nn.Linear": 46,
              "mm": 38}
MOST_GUARDS = {"linear": 110, "nn.Linear": 125}  # lines of the list that torch prints

# Another value of each argument than its first. A new one needs a line here.
OTHERS = {"activation": "relu", "out_dtype": torch.float32, "quantize_input": True,
          "batch_invariant": True, "launch": "early", "alpha": 2.0, "rows_hint": 8, "beta": 0.5}


class Library(test_python_plans.Library):
    """Notes the descriptors and addresses of each call that needs a GPU, too."""

    def __init__(self, real):
        super().__init__(real)
        self.quantized = []

    def nvfp4_gemm_plan_run(self, handle, addresses, _stream):
        to = abi.GemmAddressesFields.from_buffer_copy(bytes(addresses))
        self.runs.append((handle.value, {name: getattr(to, name) for name, _ in to._fields_}))
        return 0

    def nvfp4_dequantize(self, _desc, _stream):
        return 0

    def nvfp4_quantize(self, desc, _stream):
        self.quantized.append({name: getattr(desc, name) for name, _ in desc._fields_
                               if name != "reserved"})
        return 0


def normal(*shape, dtype=torch.bfloat16):
    return torch.randn(shape).to(dtype)


class OnAGpu(unittest.TestCase):
    def setUp(self):
        warnings.simplefilter("ignore")
        self.addCleanup(warnings.resetwarnings)
        self.library, empty = Library(abi.lib), torch.empty
        weights = [nvfp4gemm.quantize(normal(N, K)) for _ in range(2)]
        packed, self.packed_100 = map(weights[0].pack, ("sm90_1", "sm100_1"))
        self.packed = weights[0]
        mxfp4 = nvfp4gemm.quantize(normal(N, K), format="mxfp4")
        self.looks = 0

        def looking(call):
            def look(*arguments, **named):
                self.looks += 1
                return call(*arguments, **named)
            return look

        for target, name, value in (
                (abi, "lib", self.library), (abi, "run_plan", self.library.nvfp4_gemm_plan_run),
                (_device, "_plans", {}), (_device, "_current_device", lambda: -1),
                (_device, "_ready", {-1}), (_device, "_capability", lambda device: 90),
                (_device, "_stream_of", lambda index: 0), (_known, "_stream_of", lambda index: 0),
                (_device, "_empty", self.empty), (_known, "_empty", self.empty),
                (_device._thread, "ready", -1),
                (torch, "empty", lambda *size, device=None, **others: empty(
                    *size, device="cpu" if device == "cuda" else device, **others)),
                (_known, "_tables", type(_known._tables)()),
                (_calls, "_mm", looking(_eager.mm)), (_eager, "mm", looking(_eager.mm)),
                (_calls, "product", looking(_calls.product)),
                *((module, "on_gpu", lambda x: True) for module in (_arrays, _compiled, _door))):
            self.put(target, name, value)
        self.addCleanup(self.keep_handles, _device._plans)
        self.x, self.bias = normal(M, K), normal(N, dtype=torch.float32)
        self.ends = torch.tensor([2, M], dtype=torch.int32)
        scale = torch.full((), 0.5)
        self.w = self.packed.replace(tensor_scale=scale)
        by_number, by_tensor = (nvfp4gemm.checkpoints.Weight(
            w.codes, w.scales, N, K, scale).beside(input_scale=input_)
            for w, input_ in ((weights[0], 0.25), (weights[1], torch.full((), 0.25))))
        self.stack, one = nvfp4gemm.Stack(
            torch.cat([w.codes for w in weights]).reshape(GROUPS, N, -1),
            torch.cat([w.scales for w in weights]), GROUPS, N, K, normal(GROUPS).float().abs()), (
            nvfp4gemm.Stack(torch.cat([w.codes for w in weights]).reshape(GROUPS, N, -1),
                            torch.cat([w.scales for w in weights]), GROUPS, N, K))
        layer, linear, grouped = nn.Linear(self.w), nvfp4gemm.linear, nvfp4gemm.grouped_linear
        many, mxfp4 = normal(GROUPS, N), mxfp4.replace()
        number = self.packed.replace(tensor_scale=0.5)
        self.calls = {
            "linear": lambda x: linear(x, self.w),
            "with a bias": lambda x: linear(x, self.w, self.bias),
            "of another type": lambda x: linear(x, self.w, activation="relu",
                                                out_dtype=torch.float32),
            "of a number": lambda x: linear(x, number),
            "packed": lambda x: linear(x, packed),
            "linear quantize_input": lambda x: linear(x, self.w, quantize_input=True),
            "by a number": lambda x: linear(x, by_number, self.bias, quantize_input=True),
            "by a tensor": lambda x: linear(x, by_tensor, quantize_input=True),
            "MXFP4": lambda x: linear(x, mxfp4, quantize_input=True),
            "nn.Linear": layer,
            "grouped_linear": lambda x: grouped(x, self.ends, self.stack),
            "of one scale": lambda x: grouped(x, self.ends, one, many, rows_hint=3),
            "grouped, quantized": lambda x: grouped(x, self.ends, self.stack, alpha=1.0,
                                                    quantize_input=True)}

    def put(self, target, name, value):
        patched = mock.patch.object(target, name, value, create=True)
        patched.start()
        self.addCleanup(patched.stop)

    @staticmethod
    def keep_handles(plans):
        """From the library, which did not make them."""
        for plan in plans.values():
            plan.handle = None

    @staticmethod
    def empty(size, stride, dtype):
        return torch.zeros(64 + sum((n - 1) * step for n, step in zip(size, stride)) + 1,
                           dtype=dtype).as_strided(size, stride)

    def looks_of(self, call):
        before = self.looks
        try:
            return call(), self.looks - before
        finally:
            self.looks = before

    def test_the_same_call_gives_the_library_the_same(self):
        for name, call in self.calls.items():
            for shape in ((M, K), (1, K), (2, 3, K), (64, K)):
                if "group" in name + "of one scale" and shape == (1, K):
                    continue
                x = normal(*shape)
                with self.subTest(name, shape=shape):
                    first, looks = self.looks_of(lambda: call(x))
                    again, more = self.looks_of(lambda: call(x))
                    self.assertEqual((looks > 0 or name == "nn.Linear", more), (True, 0))
                    self.assertEqual((first.shape, first.dtype, first.stride()),
                                     (again.shape, again.dtype, again.stride()))
                    self.same_runs(x, again)

    def test_a_known_pair_has_the_type_of_autocast(self):
        a = nvfp4gemm.quantize(normal(M, K))
        kinds = [nvfp4gemm.mm(a, self.w).dtype for _ in range(3)]
        with torch.autocast("cpu", torch.bfloat16), torch.autocast("cuda", torch.bfloat16):
            kinds.append(nvfp4gemm.mm(a, self.w).dtype)
        self.assertEqual(kinds, 3 * [torch.float16] + [torch.bfloat16])

    def test_many_tokens_are_packed_on_hopper_for_one_product(self):
        w, other = (nvfp4gemm.quantize(normal(2048, 4096), format=format_)
                    for format_ in ("nvfp4", "mxfp4"))
        gated = lambda x, **named: nvfp4gemm.gated_linear(x, w.replace(), w, **named)
        plain = lambda x, w=w, **named: nvfp4gemm.linear(x, w.replace(), **named)
        for capability, rows, call, packing in (
                (90, 64, plain, 3), (90, 1, plain, 0), (90, 256, gated, 3), (100, 64, plain, 0),
                (120, 64, plain, 0), (90, 64, lambda x, **named: plain(x, other, **named), 0)):
            with self.subTest(capability=capability, rows=rows, packing=packing):
                self.put(_device, "_capability", lambda device, one=capability: one)
                self.put(_device, "_layouts", {})
                self.put(_known, "_tables", type(_known._tables)())
                call(normal(rows, 4096), quantize_input=True)
                quantizer, (_, run) = self.library.quantized[-1], self.library.runs[-1]
                self.assertEqual(quantizer["packing"], packing)
                self.assertEqual(quantizer["scales"] is None, packing != 0)
                self.assertEqual([run["a"], run["a_scales"]],
                                 [quantizer["codes"], quantizer["scales"]])
        self.put(_device, "_capability", lambda device: 90)
        self.put(_device, "_layouts", {})
        x = normal(64, 4096).requires_grad_()  # codes and scales where torch keeps what it sees
        plain(x, quantize_input=True)
        self.assertEqual(self.library.quantized[-1]["packing"], 0)
        with self.assertRaisesRegex(ValueError, "scale_layout is 'sm90_tokens_1'"):
            nvfp4gemm.quantize(x.detach(), scale_layout="sm90_tokens_1")

    def test_arguments_are_looked_at_before_tokens_are_packed_by_them(self):
        for invariant in (numpy.True_, True):
            nvfp4gemm.linear(self.x, self.w, quantize_input=True, batch_invariant=invariant)
        gated = lambda x, w, **named: nvfp4gemm.gated_linear(x, w, w, **named)
        large = nvfp4gemm.quantize(normal(2048, 4096))
        for module in (_arrays, _door):
            self.put(module, "on_gpu", torch.is_tensor)
        for call, name in ((nvfp4gemm.linear, "weight"), (gated, "gate")):
            with self.assertRaisesRegex(TypeError, f"^x is of NumPy, {name} of torch"):
                call(numpy.zeros((64, 4096), numpy.float16), large, quantize_input=True)
        for name, value, error in (
                ("batch_invariant", 2, TypeError), ("activation", [], ValueError),
                ("activation", "silly", ValueError), ("launch", {}, ValueError)):
            for call in (nvfp4gemm.linear, gated):
                with self.subTest(name, value=value), self.assertRaisesRegex(error, f"^{name} is"):
                    call(self.x, self.w, quantize_input=True, **{name: value})

    def same_runs(self, x, d):
        """The last two runs, and their quantizers, but for memory that each made for itself."""
        (plan, first), (other, again) = self.library.runs[-2:]
        self.assertEqual(plan, other)
        self.assertEqual(again["d"], d.data_ptr())
        fresh = {"d", "workspace"}
        if again["a"] != x.data_ptr():
            one, two = self.library.quantized[-2:]
            for quantizer, run in ((one, first), (two, again)):
                self.assertEqual([quantizer["x"], quantizer["codes"], quantizer["scales"],
                                  quantizer["tensor_scale_device"]],
                                 [x.data_ptr(), run["a"], run["a_scales"], run["a_tensor_scale"]])
            own = {"codes", "scales", "tensor_scale_device"}
            self.assertEqual({**one, **dict.fromkeys(own)}, {**two, **dict.fromkeys(own)})
            fresh |= {"a", "a_scales", "a_tensor_scale"}
            self.assertEqual((two["codes"] % 16, (two["scales"] or 0) % 16), (0, 0))
        self.assertEqual({**first, **dict.fromkeys(fresh)}, {**again, **dict.fromkeys(fresh)})

    def test_what_differs_is_looked_at(self):
        linear, x, w = nvfp4gemm.linear, self.x, self.w
        linear(x, w), linear(x, w, self.bias)
        self.assertEqual(self.looks_of(lambda: linear(x, w))[1], 0)
        odd = torch.zeros(M * K + 1).bfloat16()[1:].reshape(M, K)

        def inside(mode, call=lambda: linear(x, w)):
            with mode:
                return call()

        other = w.replace(codes=w.codes.clone())
        linear(x, other)
        other.codes.set_(other.codes.clone())
        for name, call in {
                "an address": lambda: linear(odd, w),
                "strides": lambda: linear(x.T.contiguous().T, w),
                "a negation": lambda: linear(torch._neg_view(x), w),
                "a type": lambda: linear(x.half(), w),
                "a class": lambda: linear(x, w, torch.nn.Parameter(self.bias, False)),
                "a gradient": lambda: linear(x.clone().requires_grad_(), w),
                "autocast": lambda: inside(torch.autocast("cpu", torch.bfloat16)),
                "a mode": lambda: inside(FlopCounterMode(display=False)),
                "inference": lambda: inside(torch.inference_mode()),
                "vmap": lambda: torch.vmap(lambda one: linear(one, w))(x[None]),
                "jvp": lambda: torch.func.jvp(lambda one: linear(one, w), (x,), (x,)),
                "vmap of others": lambda: torch.vmap(lambda one: one + linear(x, w))(x[:, :1]),
                "forward AD": lambda: inside(forward_ad.dual_level()),
                "trace": lambda: torch.jit.trace(lambda one: linear(one, w), (x,),
                                                 check_trace=False),
                "batch_invariant": lambda: linear(x, w, batch_invariant=True),
                "memory": lambda: linear(x, other)}.items():
            with self.subTest(name):
                self.assertGreater(self.looks_of(call)[1], 0)

    def test_what_is_wrong_is_refused_as_at_first(self):
        linear, x, w, ends = nvfp4gemm.linear, self.x, self.w, self.ends
        linear(x, w), linear(x, w, self.bias), nvfp4gemm.grouped_linear(x, ends, self.stack)

        def nested(one):  # torch ends the process where some of its functions see one
            return torch.nested.nested_tensor([one.flatten()])

        def short():
            one = normal(M, K)
            linear(one, w)
            one.untyped_storage().resize_(one.nbytes - 2)
            return linear(one, w)

        for call, kind, words in (
                (short, ValueError, "no memory of its own"),
                (lambda: linear(x.float(), w), TypeError, "x is of torch.float32"),
                (lambda: linear(x.to_sparse(), w), TypeError, "no dense tensor"),
                (lambda: linear([1], w), TypeError, "x is list"),
                (lambda: linear(nested(x), w), TypeError, "x is no dense tensor"),
                (lambda: linear(nested(x), w, quantize_input=True), TypeError,
                 "x is no dense tensor"),
                (lambda: linear(x, w, nested(self.bias)), TypeError, "bias is no dense tensor"),
                (lambda: nvfp4gemm.grouped_linear(x, nested(ends), self.stack), TypeError,
                 "ends is no dense tensor"),
                (lambda: linear(x, w, batch_invariant=0), TypeError, "batch_invariant is 0"),
                (lambda: linear(x, w, activation=["relu"]), ValueError, "activation is"),
                (lambda: linear(x, w, self.bias[:-1]), ValueError, "bias is"),
                (lambda: nvfp4gemm.grouped_linear(x, ends, self.stack, alpha=decimal.Decimal(1)),
                 TypeError, "alpha is Decimal"),
                (lambda: nvfp4gemm.grouped_linear(x, ends, self.stack, rows_hint=0.0),
                 TypeError, "rows_hint is float"),
                (lambda: nvfp4gemm.grouped_linear(x, ends, self.stack, quantize_input=0),
                 TypeError, "quantize_input is 0"),
                (lambda: nvfp4gemm.grouped_linear(x, ends.long(), self.packed), TypeError,
                 "weights is Packed")):
            with self.subTest(words), self.assertRaisesRegex(kind, words):
                call()

    def test_every_argument_makes_it_another_call(self):
        for call, weight, operands in (
                (nvfp4gemm.linear, self.w, []),
                (nvfp4gemm.grouped_linear, self.stack, [self.ends])):
            first = (self.x, *operands, weight)
            call(*first)
            names = list(inspect.signature(call).parameters)[len(first):]
            self.assertLessEqual(set(names), {"bias", "out", *OTHERS})
            for name in names:
                if name in OTHERS:
                    with self.subTest(call.__name__, name=name):
                        self.assertGreater(
                            self.looks_of(lambda: call(*first, **{name: OTHERS[name]}))[1], 0)

    def test_pairs_give_the_library_the_same(self):
        mm, quantize = nvfp4gemm.mm, nvfp4gemm.quantize
        mxfp4 = quantize(normal(N, K), format="mxfp4")
        tensor, number = torch.full((), 0.5), self.packed
        for name, of_a, b, named in (
                ("tensor scales", lambda: quantize(self.x, tensor), self.w, {}),
                ("numbers", lambda: quantize(self.x, 0.25), number, {"out_dtype": torch.float32}),
                ("a scale of each row", lambda: quantize(self.x, "rows"), self.w,
                 {"activation": "relu", "batch_invariant": True}),
                ("linear scales", lambda: quantize(self.x, tensor, scale_layout="linear"), self.w,
                 {"alpha": 2.0, "launch": "early"}),
                ("MXFP4", lambda: quantize(self.x, format="mxfp4"), mxfp4, {}),
                ("packed", lambda: quantize(self.x, tensor), self.packed_100, {})):
            with self.subTest(name):
                self.put(_device, "_capability", lambda device: 100 if b.packing else 90)
                a, fresh = of_a(), of_a()
                first, looks = self.looks_of(lambda: mm(a, b, **named))
                for one in (a, fresh):
                    again, more = self.looks_of(lambda: mm(one, b, **named))
                    self.assertEqual((looks, more), (1, 0))
                    self.assertEqual((first.shape, first.dtype, first.stride()),
                                     (again.shape, again.dtype, again.stride()))
                    (plan, run), (other, same) = self.library.runs[-2:]
                    self.assertEqual((plan, same["a"], same["d"]),
                                     (other, one.codes.data_ptr(), again.data_ptr()))
                    moved = {"d": 0, "workspace": 0, **({} if one is a else dict.fromkeys(
                        ("a", "a_scales", "a_tensor_scale"), 0))}
                    self.assertEqual({**run, **moved}, {**same, **moved})

    def test_pairs_that_differ_are_looked_at(self):
        mm, w = nvfp4gemm.mm, self.w
        a = nvfp4gemm.quantize(self.x, torch.full((), 0.5))

        def inside(mode):
            with mode:
                return mm(a, w)

        def moved(part, matrix, call):
            getattr(matrix, part).set_(getattr(matrix, part).clone())
            return call()

        tokens, weight = a.replace(codes=a.codes.clone()), w.replace(scales=w.scales.clone())
        scaled = a.replace(tensor_scale=a.tensor_scale.clone())
        known = [lambda: mm(a, w), lambda: mm(tokens, w), lambda: mm(a, weight),
                 lambda: mm(scaled, w)]
        for call in known:
            call()
            self.assertEqual(self.looks_of(call)[1], 0)
        calls = {
            "a number of rows": lambda: mm(nvfp4gemm.quantize(self.x[1:], 0.5), w),
            "a kind of scale": lambda: mm(nvfp4gemm.quantize(self.x, 0.5), w),
            "autocast": lambda: inside(torch.autocast("cpu", torch.bfloat16)),
            "a mode": lambda: inside(FlopCounterMode(display=False)),
            "inference": lambda: inside(torch.inference_mode()),
            "vmap of others": lambda: torch.vmap(lambda one: one + mm(a, w))(self.x[None, :, :N]),
            "forward AD": lambda: inside(forward_ad.dual_level()),
            "trace": lambda: torch.jit.trace(lambda one: one + mm(a, w), (self.x[:, :N],),
                                             check_trace=False),
            "alpha": lambda: mm(a, w, alpha=torch.ones(())),
            "amax": lambda: mm(a, w, amax=torch.zeros(1)),
            "row_amax": lambda: mm(a, w, row_amax=torch.zeros(M)),
            "a bias": lambda: mm(a, w, bias=self.bias),
            "c": lambda: mm(a, w, c=torch.zeros(M, N)),
            "out": lambda: mm(a, w, out=torch.zeros(M, N)),
            "codes": lambda: moved("codes", tokens, known[1]),
            "scales": lambda: moved("scales", weight, known[2]),
            "a tensor scale": lambda: moved("tensor_scale", scaled, known[3]),
            **{name: lambda name=name: mm(a, w, **{name: OTHERS[name]})
               for name in list(inspect.signature(mm).parameters)[2:] if name in OTHERS}}
        self.assertLessEqual(set(inspect.signature(mm).parameters),
                             {"a", "b", "bias", "c", "out", "amax", "row_amax", *OTHERS})
        for name, call in calls.items():
            with self.subTest(name):
                self.assertGreater(self.looks_of(call)[1], 0)
        for named, kind, words in (({"batch_invariant": 0}, TypeError, "batch_invariant is 0"),
                                   ({"activation": ["relu"]}, ValueError, "activation is"),
                                   ({"beta": decimal.Decimal(1)}, TypeError, "beta is Decimal")):
            with self.subTest(words), self.assertRaisesRegex(kind, words):
                mm(a, w, **named)
        with mock.patch.object(abi, "run_plan", lambda *_: abi.OVERLAP):
            with self.assertRaises(abi.Error):
                mm(a, w)

    def test_weights_that_lie_alike_share_what_is_known(self):
        nvfp4gemm.linear(self.x, self.w)
        other = self.w.replace(codes=self.w.codes.clone())
        nvfp4gemm.linear(self.x, other)
        (table,) = _known._tables.values()
        self.assertEqual([len(found) for found in table.values()], [1])
        self.assertEqual(self.looks_of(lambda: nvfp4gemm.linear(self.x, other))[1], 0)
        self.assertEqual(self.library.runs[-1][1]["b"], other.codes.data_ptr())

    def test_each_mode_of_torch_has_its_own(self):
        with torch.inference_mode():
            nvfp4gemm.linear(self.x, self.w)
            self.assertEqual(self.looks_of(lambda: nvfp4gemm.linear(self.x, self.w))[1], 0)
        nvfp4gemm.linear(self.x, self.w)
        for mode in (torch.inference_mode(), torch.enable_grad()):
            with mode:
                self.assertEqual(self.looks_of(lambda: nvfp4gemm.linear(self.x, self.w))[1], 0)

    def test_fake_tensors_are_seen(self):
        """By a mode that has no key of its own."""
        nvfp4gemm.linear(self.x, self.w)
        runs = len(self.library.runs)
        with FakeTensorMode(allow_non_fake_inputs=True):
            self.assertIsInstance(nvfp4gemm.linear(self.x, self.w), FakeTensor)
        self.assertEqual(len(self.library.runs), runs)

    def test_a_gradient_counts_where_gradients_are_on(self):
        x = self.x.clone().requires_grad_()
        with torch.no_grad():
            nvfp4gemm.linear(x, self.w)
            self.assertEqual(self.looks_of(lambda: nvfp4gemm.linear(x, self.w))[1], 0)
        self.assertTrue(nvfp4gemm.linear(x, self.w).requires_grad)

    def test_all_are_forgotten_where_they_are_too_many(self):
        with mock.patch.object(_known, "_MOST", 3):
            for m in range(1, 7):
                nvfp4gemm.linear(normal(m, K), self.w)
                self.assertLessEqual(sum(map(len, _known._tables.values())), 3)

    def test_an_error_of_the_library_is_raised(self):
        nvfp4gemm.linear(self.x, self.w)
        with mock.patch.object(abi, "run_plan", lambda *_: abi.OVERLAP):
            with self.assertRaises(abi.Error):
                nvfp4gemm.linear(self.x, self.w)

    def test_steps_of_a_call(self):
        a = nvfp4gemm.quantize(self.x, torch.full((), 0.5))
        for name, most in MOST_STEPS.items():
            call, x, events = self.calls.get(name, lambda x: nvfp4gemm.mm(a, self.w)), self.x, []
            call(x)
            self.put(abi, "run_plan", lambda *_: 0)
            self.library.nvfp4_quantize, empty = lambda *_: 0, torch.empty_strided
            self.put(_known, "_empty", lambda size, stride, dtype: empty(size, stride, dtype=dtype))
            sys.setprofile(lambda frame, event, argument: events.append(event))
            try:
                call(x)
            finally:
                sys.setprofile(None)
            steps = sum(event in ("call", "c_call") for event in events) - 1
            print(f"{name}: {steps} steps")
            with self.subTest(name):
                self.assertLessEqual(steps, most)

    def test_the_operator_of_compiled_code(self):
        operator, w = torch.ops.nvfp4gemm.linear.default, self.w
        arguments = (self.x, w.codes, w.scales, w.tensor_scale, None, w._kind, None)
        first, looks = self.looks_of(lambda: operator(*arguments))
        again, more = self.looks_of(lambda: operator(*arguments))
        self.assertEqual((looks, more), (1, 0))
        self.assertEqual((first.shape, first.dtype), (again.shape, again.dtype))
        self.same_runs(self.x, again)
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
            operator(*arguments)
        self.assertIn("nvfp4gemm::linear", [one.key for one in profile.key_averages()])
        with FlopCounterMode(display=False) as counter:
            operator(*arguments)
        self.assertEqual(counter.get_total_flops(), 2 * M * N * K)
        number = w.replace(tensor_scale=1.0)  # the same codes and scales
        for one in (number, w, number, w):
            operator(self.x, one.codes, one.scales, one._scale_tensor, None, one._kind, None)
            self.assertEqual(self.library.runs[-1][1]["b_tensor_scale"],
                             None if one is number else w.tensor_scale.data_ptr())
        with self.assertRaisesRegex(ValueError, "scales are"):  # at the same address
            operator(*arguments[:2], w.scales[:-16], *arguments[3:])
        other = w.scales.clone()
        self.assertEqual(self.looks_of(lambda: operator(
            *arguments[:2], other, *arguments[3:]))[1], 1)
        self.assertEqual(self.library.runs[-1][1]["b_scales"], other.data_ptr())


class Compiled(unittest.TestCase):
    """As torch.compile traces them, on the processor."""

    def setUp(self):
        self.w = nvfp4gemm.quantize(normal(N, K))
        self.w = self.w.replace(tensor_scale=torch.tensor(self.w.tensor_scale))
        self.x, self.bias = normal(M, K), normal(N)

    def traced(self, call, *arguments):
        """(the operators of the graph with their arguments, the result of what was compiled)"""
        graphs = []

        def backend(graph, _inputs):
            graphs.append(graph)
            return graph.forward

        torch._dynamo.reset()
        with torch.no_grad():
            d = torch.compile(call, fullgraph=True, backend=backend)(*arguments)
        (graph,) = graphs
        return [node for node in graph.graph.nodes if node.op == "call_function"], d

    def test_a_product_is_one_operator_of_few_arguments(self):
        layer, w = nn.Linear(self.w, self.bias, activation="relu"), self.w
        number, mxfp4 = w.replace(tensor_scale=0.25), nvfp4gemm.quantize(w.dequantize(),
                                                                         format="mxfp4")
        other = nn.Linear(mxfp4)
        for call in (lambda x: nvfp4gemm.linear(x, w), lambda x: layer(x), lambda x: other(x),
                     lambda x: nvfp4gemm.linear(x, number, self.bias),
                     lambda x: nvfp4gemm.linear(x, mxfp4), lambda x: nvfp4gemm.linear(
                         x.reshape(2, 3, K), w.with_scales("linear"), activation="silu")):
            nodes, d = self.traced(call, self.x)
            ours = [node for node in nodes if "nvfp4gemm" in str(node.target)]
            self.assertTrue(torch.equal(d, call(self.x)))
            self.assertEqual([str(node.target) for node in ours if "linear" in str(node.target)],
                             ["nvfp4gemm.linear.default"])
            self.assertEqual((len(ours[-1].args), ours[-1].kwargs), (7, {}))

    def test_others_are_the_operators_they_were(self):
        w, x = self.w, self.x
        for call in (lambda x: nvfp4gemm.linear(x, w, out_dtype=torch.float32),
                     lambda x: nvfp4gemm.linear(x, w, batch_invariant=True),
                     lambda x: nvfp4gemm.mm(x, w)):
            (node,), d = self.traced(call, x)
            self.assertEqual(str(node.target), "nvfp4gemm.mm_without_gradient")
            self.assertTrue(torch.equal(d, call(x)))

    def test_the_operator_follows_autocast_and_vmap_and_is_counted(self):
        operator, w, x = torch.ops.nvfp4gemm.linear, self.w, self.x
        others = w.codes, w.scales, w.tensor_scale, None, w._kind, None
        d = operator(x, *others)
        self.assertTrue(torch.equal(d, nvfp4gemm.linear(x, w)))
        with torch.autocast("cpu", torch.bfloat16):
            self.assertTrue(torch.equal(operator(x.float(), *others), d))
        batch = torch.stack([x, x.flip(0)], 1)
        both = torch.vmap(lambda one: operator(one, *others), in_dims=1)(batch)
        self.assertTrue(torch.equal(both[0], d))
        codes = torch.stack([w.codes, w.codes])
        both = torch.vmap(lambda one: operator(x, one, *others[1:]))(codes)
        self.assertTrue(torch.equal(both[1], d))
        with FlopCounterMode(display=False) as counter:
            operator(x, *others)
        self.assertEqual(counter.get_total_flops(), 2 * M * N * K)

    def test_errors_are_those_of_a_call_at_once(self):
        w = self.w
        for call, words in ((lambda x: nvfp4gemm.linear(x[:, :64], w), "has k = 64"),
                            (lambda x: nvfp4gemm.linear(x, w, activation="tanh"), "there are"),
                            (lambda x: nvfp4gemm.linear(x.float(), w), "torch.float32")):
            found = []
            for one in (call, torch.compile(call, backend="eager")):
                with torch.no_grad(), self.assertRaisesRegex(Exception, words) as caught:
                    one(self.x)
                found.append(str(caught.exception).splitlines()[0])
            with self.subTest(words):
                self.assertIn(found[0], found[1])

    def test_guards_are_few(self):
        w, layer = self.w, nn.Linear(self.w)

        def linear(x):
            return nvfp4gemm.linear(x, w)

        for name, call in (("linear", linear), ("nn.Linear", layer)):
            torch._dynamo.reset()
            with torch.no_grad():
                torch.compile(call, backend="eager")(self.x)
            code = linear.__code__ if name == "linear" else nn.Linear.forward.__code__
            (entry,) = torch._dynamo.eval_frame._debug_get_cache_entry_list(code)
            lines = str(entry.guard_manager).count("+- ")
            print(f"{name}: {lines} guards")
            with self.subTest(name):
                self.assertTrue(20 < lines <= MOST_GUARDS[name], lines)


if __name__ == "__main__":
    unittest.main()
