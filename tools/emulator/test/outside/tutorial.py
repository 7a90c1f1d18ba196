# SPDX-License-Identifier: MIT
"""tutorial.py FILE [CALL]: runs a program that wants torch on a GPU, a tutorial of Triton as it is,
by Triton's own launcher, with torch on the CPU. With CALLs the program is imported instead, as
pytest does, and these are evaluated with its names: tests that it defines.

PyTorch needs the CUDA runtime, which the emulator does not have. So every tensor has its elements
in managed memory, whose addresses are the host's and the device's: torch computes there, and
kernels do. What asks for a device is told "cuda". Benchmarks are left out, as there is no time
here, and of the configurations of an autotuner the first is taken."""
import ctypes
import os
import runpy
import sys
import types

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map

import triton
import triton.testing

cuda = ctypes.CDLL("libcuda.so.1")
DEVICE = torch.device("cuda", 0)
owned = set()  # addresses of storages in managed memory


def call(entry, *arguments):
    status = getattr(cuda, entry)(*arguments)
    if status:
        raise SystemExit(f"{entry} answers {status}")


def start():
    context = ctypes.c_void_p()
    call("cuInit", 0)
    call("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
    call("cuCtxSetCurrent", context)


def attribute(number):
    value = ctypes.c_int()
    call("cuDeviceGetAttribute", ctypes.byref(value), number, 0)
    return value.value


def managed_storage(size):
    address = ctypes.c_uint64()
    call("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(size), 1)
    owned.add(address.value)
    memory = (ctypes.c_uint8 * size).from_address(address.value)
    return torch.frombuffer(memory, dtype=torch.uint8).untyped_storage()


def move(tensor):
    """Gives a new tensor's elements another place; the tensor stays the same object."""
    storage = tensor.untyped_storage()
    if not storage.nbytes() or storage.data_ptr() in owned:
        return
    other = managed_storage(storage.nbytes())
    other.copy_(storage)
    tensor.set_(other, tensor.storage_offset(), tensor.shape, tensor.stride())


class InManagedMemory(TorchDispatchMode):
    def __torch_dispatch__(self, func, kinds, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        for each in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(each, torch.Tensor):
                move(each)
        return result


def on_the_host(value):
    if isinstance(value, torch.device) and value.type == "cuda":
        return torch.device("cpu")
    if isinstance(value, str) and value.split(":")[0] == "cuda":
        return "cpu"
    return value


class LooksLikeCuda(TorchFunctionMode):
    def __torch_function__(self, func, kinds, args=(), kwargs=None):
        # Equal, not the same: each look makes another object.
        if func == torch.Tensor.device.__get__:
            return DEVICE
        if func == torch.Tensor.is_cuda.__get__:
            return True
        if func is torch.device:
            return func(*args, **(kwargs or {}))
        return func(*tree_map(on_the_host, args), **tree_map(on_the_host, kwargs or {}))


def pretend():
    """torch.cuda, as far as Triton and programs ask it before they launch anything."""
    capability = attribute(75), attribute(76)
    stream = types.SimpleNamespace(cuda_stream=0, device=DEVICE)
    properties = types.SimpleNamespace(multi_processor_count=attribute(16), major=capability[0],
                                       minor=capability[1])
    for name, answer in {"is_available": True, "current_device": 0, "device_count": 1,
                         "get_device_capability": capability, "current_stream": stream,
                         "get_device_properties": properties, "synchronize": None,
                         "set_device": None}.items():
        setattr(torch.cuda, name, lambda *_, answer=answer, **__: answer)
    torch._C._cuda_getCurrentRawStream = lambda device: 0


def leave_out_time():
    def bench(work, *_, quantiles=None, **__):
        work()
        return [1.0] * len(quantiles) if quantiles else 1.0
    nothing = types.SimpleNamespace(run=lambda *_, **__: None)
    triton.testing.do_bench = bench
    triton.testing.perf_report = lambda *_: lambda _: nothing
    tune = triton.autotune
    triton.autotune = lambda configs, **named: tune(configs=configs[:1], **named)


def main():
    file, *calls = sys.argv[1:]
    sys.argv = [file]
    sys.path.insert(0, os.path.dirname(os.path.abspath(file)))
    start()
    pretend()
    leave_out_time()
    with LooksLikeCuda(), InManagedMemory():
        names = runpy.run_path(file, run_name="tutorial" if calls else "__main__")
        for each in calls:
            print(eval(each, names))


main()
