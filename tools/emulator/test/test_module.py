# SPDX-License-Identifier: MIT
"""The Python module nvfp4emu on PTX, with numpy alone: results, findings, what is wrong with a
call, and the fixture of pytest where that is installed."""
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np

HERE = os.path.dirname(os.path.abspath(__file__))
MODULE = os.path.join(HERE, "../python")
os.environ["NVFP4EMU_LIBRARY"] = os.path.join(os.environ["NVFP4_BUILD"], "emulator")
sys.path.insert(0, MODULE)
import nvfp4emu  # noqa: E402
from nvfp4emu import _ptx  # noqa: E402

HEADER = ".version 8.0\n.target sm_90\n.address_size 64\n"
ADD = HEADER + """
.visible .entry add(  // .entry no(
  .param .u64 .ptr .global .align 4 p, .param .u32 n, .param .f32 plus)
{
  .reg .b64 %a; .reg .b32 %i, %b, %s, %n; .reg .f32 %v, %plus; .reg .pred %p;
  ld.param.u64 %a, [p]; ld.param.u32 %n, [n]; ld.param.f32 %plus, [plus];
  mov.u32 %i, %tid.x; mov.u32 %b, %ctaid.x; mov.u32 %s, %ntid.x; mad.lo.u32 %i, %b, %s, %i;
  setp.ge.u32 %p, %i, %n; @%p ret;
  mad.wide.u32 %a, %i, 4, %a;
  ld.global.f32 %v, [%a]; add.f32 %v, %v, %plus; st.global.f32 [%a], %v; ret;
}
"""
FORMAL = HEADER + """
.visible .entry formal(.param .u64 out) .reqntid 64, 1, 1 {
  .reg .b32 %id, %r; .reg .b64 %base, %my, %other;
  ld.param.u64 %base, [out]; mov.u32 %id, %tid.x; mad.wide.u32 %my, %id, 4, %base;
  st.global.u32 [%my], %id; xor.b32 %r, %id, 1; mad.wide.u32 %other, %r, 4, %base;
  ld.global.u32 %r, [%other]; st.global.u32 [%my+4096], %r; ret;
}
"""
STRUCT = HEADER + """
.visible .entry one(.param .align 8 .b8 s[16]) .reqntid 1, 1, 1 {
  .reg .b64 %a; .reg .b32 %v;
  ld.param.u64 %a, [s]; ld.param.u32 %v, [s+8]; st.global.u32 [%a], %v; ret;
}
.visible .entry two() .reqntid 1, 1, 1 { ret; }
"""
SHARED = HEADER + """
.extern .shared .align 16 .b8 buffer[];
.visible .entry rank(.param .u64 out) .reqntid 1, 1, 1 {
  .reg .b64 %a; .reg .b32 %r, %c, %v;
  ld.param.u64 %a, [out]; mov.u32 %r, %cluster_ctarank; mov.u32 %c, %ctaid.x;
  st.shared.u32 [buffer+99996], %r; ld.shared.u32 %v, [buffer+99996];
  mad.wide.u32 %a, %c, 4, %a; st.global.u32 [%a], %v; ret;
}
"""


def numbers(count=300):
    return np.arange(count, dtype=np.float32)


class Simulate(unittest.TestCase):
    def test_a_kernel_works_on_arrays_in_place(self):
        x = numbers()
        run = nvfp4emu.simulate(ADD, 3, x, 300, 2, block=128)
        self.assertTrue((x == numbers() + 2).all())
        self.assertEqual((run.status, run.findings, run.device), ("CUDA_SUCCESS", [], "H200"))
        self.assertEqual(run.counters["global_store_bytes"], 1200)
        nvfp4emu.simulate(ADD.encode() + b"\0", (3, 1), x, np.uint32(300), 0.5, block=(128,),
                          device="B200", order="latest", seed=3)
        self.assertTrue((x == numbers() + 2.5).all())

    def test_read_only_arrays_stay_and_empty_ones_are_null(self):
        x = numbers()
        x.flags.writeable = False
        nvfp4emu.simulate(ADD, 3, x, 300, 1, block=128)
        self.assertTrue((x == numbers()).all())
        nvfp4emu.simulate(ADD, 1, numbers(0), 0, 1, block=32)

    def test_an_error_is_an_exception_with_findings(self):
        x = numbers()
        with self.assertRaises(nvfp4emu.KernelError) as caught:
            nvfp4emu.simulate(ADD, 3, x, 301, 1, block=128)
        run = caught.exception.run
        self.assertEqual([(f.kind, f.rule) for f in run.findings], [("error", "illegal_address")])
        self.assertTrue(run.errors[0].lines[0].startswith("13:"))
        self.assertIn("outside every allocation", str(caught.exception))
        self.assertEqual(run.counters, {})
        self.assertTrue((x == numbers()).all())
        run = nvfp4emu.simulate(ADD, 3, x, 301, 1, block=128, check=False)
        self.assertEqual(run.status, "CUDA_ERROR_ILLEGAL_ADDRESS")
        nvfp4emu.simulate(ADD, 3, x, 300, 1, block=128)  # the device is whole again
        self.assertTrue((x == numbers() + 1).all())

    def test_formal_findings_are_no_exception_unless_they_stop(self):
        out = np.zeros(2048, np.uint32)
        run = nvfp4emu.simulate(FORMAL, 1, out)
        self.assertEqual({f.kind for f in run.findings}, {"formal"})
        self.assertEqual(run.formal, run.findings)
        stopped = nvfp4emu.simulate(FORMAL, 1, out, formal="stop", check=False)
        self.assertEqual(stopped.status, "CUDA_ERROR_LAUNCH_FAILED")
        with self.assertRaisesRegex(nvfp4emu.KernelError, "missing order"):
            nvfp4emu.simulate(FORMAL, 1, out, formal="stop")
        ignored = nvfp4emu.simulate(FORMAL, 1, out, formal="ignore")
        self.assertEqual(ignored.findings, [])
        self.assertTrue(nvfp4emu.simulate(FORMAL, 1, out).formal)  # the settings of one run

    def test_a_struct_is_a_tuple_and_one_of_several_kernels_is_named(self):
        out = np.zeros(1, np.uint32)
        nvfp4emu.simulate(STRUCT, 1, (out, np.uint32(7)), name="one")
        self.assertEqual(out[0], 7)
        nvfp4emu.simulate(STRUCT, 1, (out, b"\5\0\0\0", b"\0\0\0\0"), name="one")
        self.assertEqual(out[0], 5)

    def test_the_same_array_twice_is_one_memory(self):
        text = ADD.replace(".param .u32 n,", ".param .u64 q, .param .u32 n,").replace(
            "[p]", "[q]", 1)
        x = numbers()
        nvfp4emu.simulate(text, 3, x, x, 300, 1, block=128)
        self.assertTrue((x == numbers() + 1).all())
        with self.assertRaisesRegex(ValueError, "argument 1 shares memory"):
            nvfp4emu.simulate(text, 3, x, x[1:], 299, 1, block=128)

    def test_clusters_and_large_shared_memory(self):
        out = np.zeros(4, np.uint32)
        nvfp4emu.simulate(SHARED, 4, out, shared=100000, cluster=2)
        self.assertEqual(list(out), [0, 1, 0, 1])

    def test_what_is_wrong_with_a_call_is_said(self):
        x = numbers()
        refused = ADD.replace("add.f32", "odd.f32")
        for wanted, said, kernel, arguments, named in (
                (ValueError, "block= is missing", ADD, (3, x, 1, 1), {}),
                (ValueError, "grid is 0", ADD, (0, x, 1, 1), {}),
                (ValueError, "grid is 1.5", ADD, (1.5, x, 1, 1), {}),
                (ValueError, "block is", ADD, (1, x, 1, 1), {"block": (1, 2, 3, 4)}),
                (ValueError, "block is .* for", FORMAL, (1, x), {"block": 32}),
                (ValueError, "shared is -1", ADD, (1, x, 1, 1), {"block": 1, "shared": -1}),
                (ValueError, "cluster is", ADD, (1, x, 1, 1), {"block": 1, "cluster": 0}),
                (TypeError, "2 arguments .* 3 parameters", ADD, (3, x, 1), {"block": 1}),
                (TypeError, "argument 1 is a float", ADD, (3, x, 1.0, 1), {"block": 1}),
                (ValueError, "does not fit in 4 bytes", ADD, (3, x, 1 << 32, 1), {"block": 1}),
                (ValueError, "does not fit", ADD, (3, x, -(1 << 31) - 1, 1), {"block": 1}),
                (ValueError, "argument 1 has 8 bytes", ADD, (3, x, np.int64(1), 1), {"block": 1}),
                (ValueError, "C-contiguous", ADD, (3, x[::2], 1, 1), {"block": 1}),
                (TypeError, "Python objects", ADD, (3, x.astype(object), 1, 1), {"block": 1}),
                (TypeError, "argument 0 is of type list", ADD, (3, [1], 1, 1), {"block": 1}),
                (TypeError, r"argument 0\[1\] is of type int", STRUCT, (1, (x, 1)),
                 {"name": "one"}),
                (TypeError, "unknown argument 'size'", ADD, (3, x, 1, 1), {"block": 1, "size": 1}),
                (ValueError, "several kernels", STRUCT, (1, x), {}),
                (ValueError, "no kernel 'q'; it has one, two", STRUCT, (1, x), {"name": "q"}),
                (ValueError, "has no .entry", "text", (3, x), {"block": 1}),
                (TypeError, "the kernel is of type int", 3, (3, x), {}),
                (ValueError, "EMU_ORDER=odd", ADD, (1, x, 1, 1), {"block": 1, "order": "odd"}),
                (ValueError, "EMU_SEED=x", ADD, (1, x, 1, 1), {"block": 1, "seed": "x"}),
                (nvfp4emu.Error, "EMU_DEVICE=X is not one of", ADD, (1, x), {"device": "X"}),
                (nvfp4emu.Error, r"refused, CUDA_ERROR_INVALID_VALUE: grid \(1, 1, 1\)", ADD,
                 (1, x, 1, 1), {"block": 2000}),
                (nvfp4emu.Error, "1000000 bytes of dynamic", ADD, (1, x, 1, 1),
                 {"block": 1, "shared": 1000000}),
                (nvfp4emu.PtxError, "refuses the PTX: 13:.*odd.f32", refused, (1, x, 1, 1),
                 {"block": 1})):
            with self.subTest(said=said), self.assertRaisesRegex(wanted, said):
                nvfp4emu.simulate(kernel, *arguments, **named)
        nvfp4emu.simulate(ADD, 3, x, 300, 1, block=128)

    def test_nothing_stays_on_the_device(self):
        free = []
        for n in (300, 301, 300):
            nvfp4emu.simulate(ADD, 3, numbers(), n, 1, block=128, check=False)
            import ctypes
            a, b = ctypes.c_size_t(), ctypes.c_size_t()
            from nvfp4emu import _driver
            _driver.device("H200").call("cuMemGetInfo_v2", ctypes.byref(a), ctypes.byref(b))
            free.append(a.value)
        self.assertEqual(len(set(free)), 1)


class Ptx(unittest.TestCase):
    def test_parameters_are_read_as_written(self):
        text = HEADER + """.visible .entry k(.param .u64 a, .param .align 8 .b8 b[24],
            .param .u64 .ptr .shared .align 16 c, .param .f16 d, .param .b32 e[2])
            .maxntid 128 .reqntid 32, 2 .minnctapersm 1 { }
            .entry none { }"""
        first, second = _ptx.entries(text)
        self.assertEqual([(p.kind, p.size) for p in first.parameters],
                         [("u64", 8), ("b8", 24), ("u64", 8), ("f16", 2), ("b32", 8)])
        self.assertEqual((first.threads, second.parameters), ((32, 2, 1), ()))

    def test_a_text_names_its_device(self):
        for target, device in (("sm_90a", "H200"), ("sm_100f", "B200"), ("sm_103a", "B300"),
                               ("sm_120", "RTX5090"), ("sm_80", "A100"), ("sm_89", "RTX4090"),
                               ("sm_75", "T4"), ("odd", None)):
            self.assertEqual(_ptx.device(f".version 9.0\n.target {target}\n"), device)


TESTS = f'''
import pytest, numpy, nvfp4emu
ADD = {ADD!r}
def run(emulator, n, **named):
    x = numpy.zeros(300, numpy.float32)
    return emulator.simulate(ADD, 3, x, n, 1, block=128, **named)
def test_right(emulator):
    run(emulator, 300)
def test_wrong(emulator):
    run(nvfp4emu, 301, check=False)
def test_expected(emulator):
    with pytest.raises(nvfp4emu.KernelError):
        run(emulator, 301)
    assert emulator.errors.pop().rule == "illegal_address"
    emulator.findings.clear()
def test_after_it(emulator):
    assert not emulator.findings
def test_wrong_after_it(emulator):
    try:
        emulator.findings = []
    except AttributeError:
        pass
    run(nvfp4emu, 301, check=False)
def test_by_the_driver(emulator):
    import ctypes, os
    with open(os.environ["NVFP4EMU_REPORT"], "a") as reports:
        reports.write('{{"class":"error","lines":[],"text":"by another library"}}\\n')
'''


@unittest.skipUnless(importlib.util.find_spec("pytest"), "pytest is not installed")
class Fixture(unittest.TestCase):
    def test_the_fixture_fails_a_test_with_an_error_and_no_other(self):
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, "test_it.py"), "w") as file:
                file.write(TESTS)
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "nvfp4emu._pytest", folder],
                capture_output=True, text=True,
                env={**os.environ, "PYTHONPATH": MODULE,
                     "NVFP4EMU_REPORT": os.path.join(folder, "reports")})
        self.assertIn("3 failed, 3 passed", done.stdout)
        self.assertIn("outside every allocation", done.stdout)
        self.assertIn("error: by another library", done.stdout)


if __name__ == "__main__":
    unittest.main()
