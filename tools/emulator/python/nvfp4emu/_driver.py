# SPDX-License-Identifier: MIT
"""An emulated device in this process: a copy of the emulator's library of its own, since a library
has one device for its lifetime. Nothing of it is seen by other users of libcuda.so.1."""
import ctypes
import os
import shutil
from ctypes import byref, c_char_p, c_int, c_size_t, c_uint, c_uint64, c_void_p

from ._errors import Error, PtxError
from ._findings import Finding

DRIVER_VERSION = "13050"  # the newest, which takes the PTX of all compilers
ERROR_LOG, ERROR_LOG_BYTES = 5, 6  # of CUjit_option
MOST_DYNAMIC_SHARED = 8  # of CUfunction_attribute
COOPERATIVE, CLUSTER = 2, 4  # of CUlaunchAttributeID
Reader = ctypes.CFUNCTYPE(None, c_char_p)


class Attribute(ctypes.Structure):  # CUlaunchAttribute
    _fields_ = [("id", c_int), ("pad", c_int), ("value", c_uint * 16)]


class Config(ctypes.Structure):  # CUlaunchConfig
    _fields_ = [("grid", c_uint * 3), ("block", c_uint * 3), ("shared", c_uint),
                ("stream", c_void_p), ("attributes", c_void_p), ("count", c_uint)]


def folder():
    """Where the emulator's library is."""
    inside = os.path.join(os.path.dirname(os.path.abspath(__file__)), "emulator")
    named = os.environ.get("NVFP4EMU_LIBRARY", inside)
    if not os.path.exists(os.path.join(named, "libcuda.so.1")):
        raise Error(f"{named} has no libcuda.so.1; NVFP4EMU_LIBRARY names the folder that has it")
    return named


def tool_path():
    """The stand-in for ptxas: beside the library, or in the source tree."""
    here = os.path.dirname(os.path.abspath(__file__))
    for tools in (folder(), os.path.join(here, "..", "..")):
        tool = os.path.join(tools, "run", "ptxas")
        if os.path.exists(tool):
            return os.path.abspath(tool)
    raise Error(f"{folder()} has no run/ptxas, which Triton's kernels need")


def load_copy():
    """In memory, since a folder for temporary files may forbid execution. The loader takes a path
    that it has seen for the same library, so the copy stays open: no other gets its number."""
    copy = os.memfd_create("nvfp4emu")
    with open(os.path.join(folder(), "libcuda.so.1"), "rb") as library, \
            os.fdopen(copy, "wb", closefd=False) as into:
        shutil.copyfileobj(library, into)
    return ctypes.CDLL(f"/proc/self/fd/{copy}", mode=os.RTLD_NOW | os.RTLD_LOCAL)


class Device:
    """cuda: the library. Status 0 of a call is the rule; what answers another one raises Error."""

    def __init__(self, name):
        self.name = name
        self.reports = []
        self.cuda = load_copy()
        self.reader = Reader(lambda text: self.reports.append(
            Finding.read(text.decode(errors="replace"))))
        self.cuda.nvfp4emu_report_to(self.reader)
        self.context = c_void_p()
        self.start()
        major, minor = c_int(), c_int()
        self.call("cuDeviceComputeCapability", byref(major), byref(minor), 0)
        self.capability = (major.value, minor.value)

    def start(self):
        """The settings are read from the environment, by the first call."""
        kept = {key: os.environ.get(key) for key in ("EMU_DEVICE", "EMU_DRIVER_VERSION")}
        os.environ["EMU_DEVICE"] = self.name
        os.environ.setdefault("EMU_DRIVER_VERSION", DRIVER_VERSION)
        try:
            self.call("cuInit", 0)
        finally:
            for key, value in kept.items():
                os.environ.pop(key)
                if value is not None:
                    os.environ[key] = value
        self.renew()

    def renew(self):
        """A context without the errors of the last one."""
        self.call("cuDevicePrimaryCtxReset_v2", 0)
        self.call("cuDevicePrimaryCtxRetain", byref(self.context), 0)

    def error_name(self, status):
        name = c_char_p()
        self.cuda.cuGetErrorName(status, byref(name))
        return name.value.decode() if name.value else f"status {status}"

    def status(self, entry, *arguments):
        return getattr(self.cuda, entry)(*arguments)

    def call(self, entry, *arguments):
        if status := self.status(entry, *arguments):
            notes = "".join(f"; {each.text}" for each in self.reports if each.kind == "note")
            self.reports.clear()
            raise Error(f"{entry} answers {self.error_name(status)}{notes}")

    def load(self, text):
        """The module of a PTX text."""
        module, log = c_void_p(), ctypes.create_string_buffer(1 << 14)
        options = (c_int * 2)(ERROR_LOG, ERROR_LOG_BYTES)
        values = (c_void_p * 2)(ctypes.addressof(log), len(log))
        status = self.status("cuModuleLoadDataEx", byref(module), text.encode() + b"\0", 2, options,
                             values)
        if status:
            said = log.value.decode(errors="replace") or self.error_name(status)
            raise PtxError(f"an emulated {self.name} refuses the PTX: {said}")
        return module

    def set(self, name, value):
        if self.cuda.nvfp4emu_set(name.encode(), str(value).encode()):
            raise ValueError(f"{name}={value} is no setting of the emulator")

    def allocate(self, size):
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(size))
        return address.value

    def launch(self, module, name, shape, pointers):
        """The status of the launch and of waiting for it."""
        function = c_void_p()
        self.call("cuModuleGetFunction", byref(function), module, name.encode())
        if shape.shared > 48 << 10:
            if status := self.status("cuFuncSetAttribute", function, MOST_DYNAMIC_SHARED,
                                     shape.shared):
                return status
        attributes = (Attribute * 2)()
        count = 0
        if shape.cluster:
            attributes[count].id = CLUSTER
            attributes[count].value[:3] = shape.cluster
            count += 1
        if shape.cooperative:
            attributes[count].id = COOPERATIVE
            attributes[count].value[0] = 1
            count += 1
        config = Config((c_uint * 3)(*shape.grid), (c_uint * 3)(*shape.block), shape.shared, None,
                        ctypes.addressof(attributes), count)
        status = self.status("cuLaunchKernelEx", byref(config), function, pointers, None)
        return status or self.status("cuCtxSynchronize")

    def counters(self):
        """What the last launch did, by name."""
        name, meaning, value, found = c_char_p(), c_char_p(), c_uint64(), {}
        while not self.cuda.nvfp4emu_counter_name(len(found), byref(name), byref(meaning)):
            self.cuda.nvfp4emu_counters(name.value, byref(value))
            found[name.value.decode()] = value.value
        return found


devices = {}


def device(name):
    if name not in devices:
        devices[name] = Device(name)
    found = devices[name]
    found.call("cuCtxSetCurrent", found.context)
    return found
