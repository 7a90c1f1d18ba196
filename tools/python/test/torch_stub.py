# SPDX-License-Identifier: MIT
"""As much of torch as the package's calls ask of it, over NumPy: tensors of the CPU, and of a
device whose memory the driver manages, at the host's own addresses. The emulator gives such memory
and checks what its kernels do with it, so nvfp4gemm._device runs as on a GPU.

Only what a caller can do wrong is as torch has it: strides, storage, devices, pending signs,
layouts, gradients, subclasses. Names of torch's dtypes are kept, since the package reads them."""
import contextlib
import ctypes
import types
import weakref

import numpy as np

_TYPES = {f"torch.{name}": np.dtype(name) for name in (
    "float16", "float32", "float64", "uint8", "int8", "bool", "complex64", "int32", "int64")}
_BY_NUMPY = {dtype: name for name, dtype in _TYPES.items()}
__version__ = "2.11.0"  # the package refuses an older one
strided, sparse_coo, contiguous_format = "torch.strided", "torch.sparse_coo", "contiguous"
float16, float32, float64, uint8 = "torch.float16", "torch.float32", "torch.float64", "torch.uint8"
int32, int64 = "torch.int32", "torch.int64"
bfloat16 = "torch.bfloat16"  # a name: NumPy has no such elements here
_grad = [True]
_driver = []


def _cuda(name, *arguments):
    """A call of the driver; the first one makes the context current."""
    if not _driver:
        _driver.append(ctypes.CDLL("libcuda.so.1"))
        context = ctypes.c_void_p()
        _cuda("cuInit", 0)
        _cuda("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        _cuda("cuCtxSetCurrent", context)
    result = getattr(_driver[0], name)(*arguments)
    if result:
        raise RuntimeError(f"{name} answered {result}")


def managed(count):
    """uint8 of the device, exactly so many; the emulator knows where they end."""
    address = ctypes.c_uint64()
    _cuda("cuMemAllocManaged", ctypes.byref(address), ctypes.c_size_t(max(count, 1)), 1)
    memory = (ctypes.c_char * count).from_address(address.value)
    weakref.finalize(memory, _cuda, "cuMemFree_v2", address)
    return np.frombuffer(memory, np.uint8)


class Device(str):
    """"cpu", "cuda:0", "meta": what compares and prints like torch.device."""
    type = property(lambda self: self.partition(":")[0])


class Storage:
    def __init__(self, memory, device):
        self.memory, self.device, self.size = memory, device, memory.nbytes

    def nbytes(self):
        return self.size

    def resize_(self, size):
        self.size = size


class Tensor:
    @staticmethod
    def __torch_dispatch__(*_):
        """A class that has its own has no elements in memory."""

    requires_grad = is_nested = False
    layout = strided
    negative = inference = False
    version = 0

    def __init__(self, array, storage):
        self.array, self.storage = array, storage

    shape = property(lambda self: self.array.shape)
    ndim = property(lambda self: self.array.ndim)
    dtype = property(lambda self: _BY_NUMPY[self.array.dtype])
    device = property(lambda self: self.storage.device)
    is_cuda = property(lambda self: self.device.type == "cuda")
    nbytes = property(lambda self: self.array.nbytes)
    itemsize = property(lambda self: self.array.itemsize)
    T = property(lambda self: self._view(self.array.T))

    def _view(self, array):
        """Of the same storage where NumPy made a view, else on memory of its own."""
        inside = self.storage.memory.ctypes.data <= array.ctypes.data < (
            self.storage.memory.ctypes.data + self.storage.memory.nbytes)
        made = Tensor(array, self.storage) if inside or not array.size else _new(array, self.device)
        made.negative = self.negative and inside
        return made

    def stride(self, axis=None):
        steps = tuple(s // self.array.itemsize for s in self.array.strides)
        return steps if axis is None else steps[axis]

    def storage_offset(self):
        return (self.array.ctypes.data - self.storage.memory.ctypes.data) // self.array.itemsize

    def data_ptr(self):
        if self.layout != strided:
            raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")
        return self.array.ctypes.data if self.storage.size else 0

    def get_device(self):
        return 0 if self.is_cuda else -1

    def numel(self):
        return self.array.size

    def element_size(self):
        return self.array.itemsize

    def untyped_storage(self):
        return self.storage

    def is_neg(self):
        return self.negative

    def is_inference(self):
        return self.inference

    def is_contiguous(self):
        return self.array.flags.c_contiguous

    def detach(self):
        return self._view(self.array)

    def cpu(self):
        return self

    def numpy(self):
        return self.array

    def resolve_neg(self):
        return _new(-self.array, self.device) if self.negative else self

    def clone(self, memory_format=None):
        return _new(self.array, self.device)

    def contiguous(self):
        return self if self.is_contiguous() else self.clone()

    def reshape(self, *shape):
        return self._view(self.array.reshape(*shape))

    def swapaxes(self, a, b):
        return self._view(self.array.swapaxes(a, b))

    def view(self, dtype):
        return self._view(self.array.view(_TYPES[dtype]))

    def to(self, dtype):
        return _new(self.array.astype(_TYPES[dtype]), self.device)

    def clamp(self, least, most):
        return _new(self.array.clip(least, most), self.device)

    def repeat_interleave(self, times):
        return _new(self.array.repeat(times), self.device)

    def new_zeros(self, shape):
        return _new(np.zeros(shape, self.array.dtype), self.device)

    def fill_(self, value):
        self.array[...] = value

    def tolist(self):
        return self.array.tolist()

    def item(self):
        return self.array.item()

    def abs(self):
        return self._view(abs(self.array))

    def isfinite(self):
        return self._view(np.isfinite(self.array))

    def max(self):
        return self.array.max()

    def any(self):
        return self.array.any()

    def __getitem__(self, key):
        return self._view(self.array[key.array if isinstance(key, Tensor) else key])

    def __setitem__(self, key, value):
        self.array[key] = value.array

    def __float__(self):
        return float(self.array)

    def __or__(self, other):
        return self._view(self.array | other.array)

    def _with(self, name, other):
        return self._view(getattr(self.array, name)(other.array if isinstance(other, Tensor) else
                                                    other))


for _name in ("__and__", "__lshift__", "__rshift__", "__gt__", "__ne__", "__mul__"):
    setattr(Tensor, _name, lambda self, other, name=_name: self._with(name, other))


def _new(array, device):
    """Elements one after the other, on memory of their own."""
    room = managed if device.type == "cuda" else lambda count: np.zeros(count, np.uint8)
    memory = room(array.nbytes)
    copy = memory.view(array.dtype).reshape(array.shape)
    copy[...] = array
    return Tensor(copy, Storage(memory, device))


def from_numpy(array):
    """On the array's own memory."""
    reach = sum((n - 1) * step for n, step in zip(array.shape, array.strides)) + array.itemsize
    room = (ctypes.c_char * (reach if array.size else 0)).from_address(array.ctypes.data)
    room.keep = array
    tensor = Tensor(array, Storage(np.frombuffer(room, np.uint8), Device("cpu")))
    return tensor


def to_device(view, memory):
    """memory, uint8, on the device, and there what view is of it here."""
    room = managed(memory.nbytes)
    room[:] = memory
    copy = np.ndarray(view.shape, view.dtype, buffer=room, strides=view.strides,
                      offset=view.ctypes.data - memory.ctypes.data)
    return Tensor(copy, Storage(room, Device("cuda:0"))), room


def empty(shape, dtype, device="cpu"):
    shape = shape if isinstance(shape, tuple) else (shape,)
    device = Device("cuda:0" if str(device) == "cuda" else device)
    return _new(np.empty(shape, _TYPES[dtype]), device)


def zeros(shape, dtype, device="cpu"):
    return _new(np.zeros(shape, _TYPES[dtype]), Device(device))


def full(shape, value, dtype, device="cpu"):
    return _new(np.full(shape, value, _TYPES[dtype]), Device(device))


def is_grad_enabled():
    return _grad[0]


def is_autocast_enabled(_=None):
    return False


def _increment_version(tensor):
    tensor.version += 1


def _capability(_):
    major, minor = ctypes.c_int(), ctypes.c_int()
    _cuda("cuDeviceGetAttribute", ctypes.byref(major), 75, 0)
    _cuda("cuDeviceGetAttribute", ctypes.byref(minor), 76, 0)
    return major.value, minor.value


compiler = types.SimpleNamespace(is_compiling=lambda: False, is_dynamo_compiling=lambda: False)
autograd = types.SimpleNamespace(graph=types.SimpleNamespace(increment_version=_increment_version),
                                 forward_ad=types.SimpleNamespace(_current_level=-1))
_C = types.SimpleNamespace(
    _cuda_getDevice=lambda: 0, _cuda_getCurrentRawStream=lambda _: None,
    _len_torch_dispatch_stack=lambda: 0, _is_tracing=lambda: False,
    _are_functorch_transforms_active=lambda: False)
cuda = types.SimpleNamespace(mem_get_info=lambda _: None, get_device_capability=_capability,
                             device=lambda _: contextlib.nullcontext())
