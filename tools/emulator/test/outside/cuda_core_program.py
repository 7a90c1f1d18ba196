# SPDX-License-Identifier: MIT
"""A first program of NVIDIA's cuda.core: C++ compiled to PTX by NVRTC, memory of the device's pool,
a launch on a stream."""
import numpy as np
from cuda.bindings import driver
from cuda.core import Device, LaunchConfig, Program, ProgramOptions, launch

CODE = """extern "C" __global__ void scale(float* x, float by, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= by;
}"""


def check(done):
    assert done[0] == driver.CUresult.CUDA_SUCCESS, done[0]


device = Device()
device.set_current()
stream = device.create_stream()
program = Program(CODE, code_type="c++",
                  options=ProgramOptions(std="c++17", arch=f"sm_{device.arch}"))
kernel = program.compile("ptx").get_kernel("scale")
x = np.arange(1000, dtype=np.float32)
memory = device.allocate(x.nbytes, stream=stream)
check(driver.cuMemcpyHtoD(memory.handle, x.ctypes.data, x.nbytes))
launch(stream, LaunchConfig(grid=8, block=128), kernel, memory, np.float32(3), np.int32(x.size))
stream.sync()
check(driver.cuMemcpyDtoH(x.ctypes.data, memory.handle, x.nbytes))
assert (x == 3 * np.arange(1000)).all()
memory.close(stream)
