# SPDX-License-Identifier: MIT
"""What a user of the wheel writes: pytest runs this file where the wheel nvfp4emu and pytest are
installed and nothing else (check_wheel.sh, make check-bare)."""
import subprocess

import numpy
import pytest

import nvfp4emu

PTX = """.version 8.0
.target sm_90
.address_size 64
.visible .entry reversed_rows(.param .u64 p) .reqntid 128, 1, 1 {
  .reg .b64 %a; .reg .b32 %i, %s, %v, %row;
  .shared .align 4 .b8 row[512];
  ld.param.u64 %a, [p]; mov.u32 %i, %tid.x; mad.wide.u32 %a, %i, 4, %a;
  mov.u32 %row, row; mad.lo.u32 %s, %i, 4, %row;
  ld.global.u32 %v, [%a]; st.shared.u32 [%s], %v;
  bar.sync 0;
  sub.s32 %i, 127, %i; mad.lo.u32 %s, %i, 4, %row;
  ld.shared.u32 %v, [%s]; st.global.u32 [%a], %v; ret;
}
"""


@pytest.mark.parametrize("device", ["H200", "B200", "RTX5090"])
@pytest.mark.parametrize("order", ["soonest", "latest", "random"])
def test_a_right_kernel(emulator, device, order):
    x = numpy.arange(128, dtype=numpy.uint32)
    emulator.simulate(PTX, 1, x, device=device, order=order)
    assert (x == numpy.arange(128)[::-1]).all()


def test_a_race_is_found(emulator):
    with pytest.raises(nvfp4emu.KernelError) as caught:
        emulator.simulate(PTX.replace("bar.sync 0;", ""), 1, numpy.zeros(128, numpy.uint32))
    assert caught.value.run.errors[0].rule == "unordered"
    emulator.findings.clear()


PROGRAM = """
import ctypes
driver, same = ctypes.CDLL("libcuda.so"), ctypes.CDLL("libcuda.so.1")
name = ctypes.create_string_buffer(100)
assert driver.cuInit(0) == 0 and same.cuDeviceGetName(name, 100, 0) == 0
print(name.value.decode())
"""


def test_the_command_runs_a_program():
    done = subprocess.run(["nvfp4emu", "run", "--device", "A100", "python", "-c", PROGRAM],
                          capture_output=True, text=True, check=True)
    assert done.stdout == "NVIDIA A100 (emulated)\n"
    assert done.stderr == ""
    wrong = subprocess.run(["nvfp4emu", "run", "--seeds", "x", "true"], capture_output=True,
                           text=True)
    assert wrong.returncode == 2 and "--seeds takes a number" in wrong.stderr
