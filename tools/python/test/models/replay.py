# SPDX-License-Identifier: MIT
"""replay.py FILE: the Calls that a pickle file has, on the device of the CUDA driver that the
loader finds, here an emulated one: prints a line of JSON for each. Needs no torch.

  {"status": 0, "launches": 1, "workspace": 0, "error": 0.002}

`error` is the largest difference from what the reference made, in units of the largest element;
infinite where a row of no group was written. For a D with scales it is the share of elements that
differ.

replay.py FILE graph: then also the first two calls, the second on what the first made, captured in
one graph that is replayed with other routings: {"graph": [[error, error] of each]}."""
import ctypes
import json
import pickle
import sys

import package  # noqa: F401
import numpy as np

from calls import grouped_desc
from nvfp4gemm import abi

ALIGNED = 256


class Driver:
    """The entry points of the CUDA driver API that are used here."""

    def __init__(self):
        self.cuda = ctypes.CDLL("libcuda.so.1")
        context = ctypes.c_void_p()
        self.must("cuInit", 0)
        self.must("cuDevicePrimaryCtxRetain", ctypes.byref(context), 0)
        self.must("cuCtxSetCurrent", context)
        parts = ctypes.c_int(), ctypes.c_int()
        for part, attribute in zip(parts, (75, 76)):  # ..._COMPUTE_CAPABILITY_MAJOR and _MINOR
            self.must("cuDeviceGetAttribute", ctypes.byref(part), attribute, 0)
        self.capability = 10 * parts[0].value + parts[1].value

    def must(self, name, *arguments):
        answer = getattr(self.cuda, name)(*arguments)
        if answer:
            raise RuntimeError(f"{name} answers {answer}")

    def memory(self, size):
        address = ctypes.c_uint64()
        self.must("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(max(size, 1)))
        return address.value

    def write(self, address, data):
        self.must("cuMemcpyHtoD_v2", ctypes.c_uint64(address), data, ctypes.c_size_t(len(data)))

    def read(self, address, size):
        data = ctypes.create_string_buffer(size)
        self.must("cuMemcpyDtoH_v2", data, ctypes.c_uint64(address), ctypes.c_size_t(size))
        return data.raw

    def wait(self):
        self.must("cuCtxSynchronize")

    def launches(self, call):
        """(The status of `call`, how many kernels it launched.)"""
        self.cuda.nvfp4emu_reset_calls()
        status = call()
        size = self.cuda.nvfp4emu_calls(None, 0)
        text = ctypes.create_string_buffer(size)
        self.cuda.nvfp4emu_calls(text, ctypes.c_size_t(size))
        return status, sum(name.startswith("cuLaunch") for name in text.value.decode().split())


class Grouped:
    """A Call on the device, with memory of its own."""

    def __init__(self, driver, call, tokens=None):
        """`tokens`: addresses of a, and of a_scales."""
        self.driver, self.call = driver, call
        self.at = {name: driver.memory(len(data)) for name, data in call.arrays.items()}
        self.at.update(tokens or {})
        self.desc = call.desc()
        self.grouped = grouped_desc(self.desc, call, self.at)
        self.write(**call.arrays)

    def give_workspace(self):
        """Its bytes; 0 for a product that the device does not compute, which run() then says."""
        size = abi.c_uint64()
        refused = abi.lib.nvfp4_grouped_workspace_bytes(self.grouped, self.driver.capability, size)
        if not refused and size.value:
            self.desc.workspace, self.desc.workspace_bytes = (
                self.driver.memory(size.value), size.value)
        return size.value

    def write(self, **arrays):
        """These, and ones into all bits of the results."""
        blank = self.call.results(lambda _, size: b"\xff" * size)
        for name, data in {**arrays, **blank}.items():
            self.driver.write(self.at[name], data)

    def run(self, stream=None):
        return abi.lib.nvfp4_grouped_run(self.grouped, stream)

    def results(self):
        return self.call.results(lambda name, size: self.driver.read(self.at[name], size))

    def error(self, expected, rows):
        found = self.results()
        for data in found.values():
            if set(data[len(data) // self.desc.m * rows:]) - {0xff}:
                return float("inf")
        if "d_scales" in expected:
            differ = [one != other for one, other in zip(
                codes_of(found, self.desc), codes_of(expected, self.desc))]
            return float(np.logical_or(*differ)[:rows].mean()) if rows else 0.0
        found, wanted = (values_of(one["d"], self.desc)[:rows] for one in (found, expected))
        return float(np.abs(found - wanted).max(initial=0) / np.abs(wanted).max(initial=1e-30))


def codes_of(results, desc):
    """The codes of D and the scale of each, both [m, n]."""
    data, scales = (np.frombuffer(results[name], np.uint8).reshape(desc.m, -1)
                    for name in ("d", "d_scales"))
    codes = np.stack((data & 15, data >> 4), -1).reshape(desc.m, desc.d_ld)[:, :desc.n]
    return codes, np.repeat(scales, desc.n // scales.shape[1], 1)


def values_of(data, desc):
    """[m, n] of d's bytes, in float64."""
    if desc.d_type == abi.BF16:
        values = (np.frombuffer(data, np.uint16).astype(np.uint32) << 16).view(np.float32)
    else:
        values = np.frombuffer(data, {abi.F16: np.float16, abi.F32: np.float32}[desc.d_type])
    return values.reshape(desc.m, desc.d_ld)[:, :desc.n].astype(np.float64)


def count(rows):
    """How many rows belong to groups."""
    return int(np.frombuffer(rows, np.int32)[-1])


def reference(call, **arrays):
    """The results of the call with these arrays in place of its own, by the library's reference."""
    desc, kept, at = call.desc(), [], {}
    for name, data in {**call.arrays, **arrays}.items():
        kept.append(ctypes.create_string_buffer(len(data) + ALIGNED))
        at[name] = -(-abi.addressof(kept[-1]) // ALIGNED) * ALIGNED
        ctypes.memmove(at[name], data, len(data))
    abi.check(abi.lib.nvfp4_grouped_reference(grouped_desc(desc, call, at)))
    return call.results(lambda name, size: ctypes.string_at(at[name], size))


def replay(driver, call):
    product = Grouped(driver, call)
    workspace = product.give_workspace()
    status, launches = driver.launches(product.run)
    driver.wait()
    if status:
        return {"status": status, "launches": launches}
    return {"status": status, "launches": launches, "workspace": workspace,
            "error": product.error(call.expected, count(call.arrays["rows"]))}


def routings(call):
    """Ends of other routings of as many rows: all in the last group, none, half of them in the
    first."""
    groups, rows = len(call.arrays["rows"]) // 4, count(call.arrays["rows"])
    for ends in ([0] * (groups - 1) + [rows], [0] * groups, [rows // 2] * groups):
        yield np.array(ends, np.int32).tobytes()


def graph(driver, first, second):
    """The errors of two products, the second on what the first made, captured once and replayed."""
    one = Grouped(driver, first)
    tokens_of = {name: f"a{name[1:]}" for name in first.results(lambda *_: None)}
    two = Grouped(driver, second, {tokens: one.at[d] for d, tokens in tokens_of.items()})
    stream, recorded, ready = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
    for product in (one, two):
        product.give_workspace()
    abi.check(abi.lib.nvfp4_prepare())
    driver.must("cuStreamCreate", ctypes.byref(stream), 1)  # CU_STREAM_NON_BLOCKING
    driver.must("cuStreamBeginCapture_v2", stream, 0)       # CU_STREAM_CAPTURE_MODE_GLOBAL
    abi.check(one.run(stream))
    abi.check(two.run(stream))
    driver.must("cuStreamEndCapture", stream, ctypes.byref(recorded))
    driver.must("cuGraphInstantiateWithFlags", ctypes.byref(ready), recorded,
                ctypes.c_ulonglong(0))
    errors = []
    for rows in (first.arrays["rows"], *routings(first)):
        for product in (one, two):
            product.write(rows=rows)
        driver.must("cuGraphLaunch", ready, stream)
        driver.must("cuStreamSynchronize", stream)
        between = {tokens_of[name]: data for name, data in one.results().items()}
        errors.append([one.error(reference(first, rows=rows), count(rows)),
                       two.error(reference(second, rows=rows, **between), count(rows))])
    return {"graph": errors}


def main():
    with open(sys.argv[1], "rb") as file:
        made = pickle.load(file)
    driver = Driver()
    for call in made:
        print(json.dumps(replay(driver, call)), flush=True)
    if len(sys.argv) > 2:
        print(json.dumps(graph(driver, *made[:2])))


if __name__ == "__main__":
    main()
