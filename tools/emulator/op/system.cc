// SPDX-License-Identifier: MIT
// The functions that CUDA C++ declares and the driver brings along: vprintf, __assertfail, malloc,
// free.
#include <cstring>

#include "tools/emulator/base/tell.h"
#include "tools/emulator/machine/lane_memory.h"
#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/op.h"
#include "tools/emulator/op/printed.h"

namespace emu::ops {

namespace {

constexpr uint64_t longest_text = 1 << 16;  // of a string without an end

// One lane calls the function.
struct Caller {
  Warp& w;
  const Instr& in;
  uint32_t lane;

  uint64_t argument(size_t i) const {
    const ptx::CallSite::Argument& a = in.call->arguments[i];
    uint64_t value = 0;
    w.local.read(lane, w.address(a.at, lane), &value, a.bytes, a.align);
    return value;
  }
  void result(uint64_t value) const {
    if (in.call->results.empty()) return;
    const ptx::CallSite::Argument& r = in.call->results[0];
    w.local.write(lane, w.address(r.at, lane), &value, r.bytes, r.align);
  }
  uint64_t read(uint64_t address, uint32_t bytes) const {
    return locate(w, lane, Space::generic, address, bytes, in.opcode)
        .open(in, bytes, Use::read)
        .read(0, bytes, in.opcode);
  }
  std::string text(uint64_t address) const {
    std::string all;
    while (const char c = char(read(address + all.size(), 1))) {
      all += c;
      if (all.size() == longest_text)
        throw Fault(FaultKind::illegal_address,
                    format("%s of a text that has no end in 65536 bytes", in.opcode));
    }
    return all;
  }
};

// The arguments lie behind each other, each at a multiple of its size.
Step print_text(Warp& w, const Instr& in, uint32_t active) {
  for_lanes(active, [&](uint32_t i) {
    const Caller caller{w, in, i};
    uint64_t next = caller.argument(1);
    const auto value = [&](uint32_t bytes) {
      next = (next + bytes - 1) / bytes * bytes;
      next += bytes;
      return caller.read(next - bytes, bytes);
    };
    const auto text = [&](uint64_t address) { return caller.text(address); };
    const Printed printed = print_as(caller.text(caller.argument(0)), value, text);
    print(printed.text);
    caller.result(uint64_t(printed.arguments));
  });
  return Step::next;
}

uint32_t axis_of(const Dim3& block, uint32_t thread, int axis) {
  if (axis == 0) return thread % block.x;
  return axis == 1 ? thread / block.x % block.y : thread / block.x / block.y;
}

// CUDA's line for each thread, and the end of the grid.
Step fail(Warp& w, const Instr& in, uint32_t active) {
  const Dim3 id = w.cta.id, block = w.cta.cluster.launch.block;
  for_lanes(active, [&](uint32_t i) {
    const Caller caller{w, in, i};
    const uint32_t t = w.thread(i);
    tell(caller.text(caller.argument(1)) + format(":%u: ", uint32_t(caller.argument(2))) +
         caller.text(caller.argument(3)) +
         format(": block: [%u,%u,%u], thread: [%u,%u,%u] Assertion `", id.x, id.y, id.z,
                axis_of(block, t, 0), axis_of(block, t, 1), axis_of(block, t, 2)) +
         caller.text(caller.argument(0)) + "` failed.");
  });
  throw Fault(FaultKind::failed_assert, "an assertion failed");
}

Step take(Warp& w, const Instr& in, uint32_t active) {
  const DeviceMemory& memory = w.cta.cluster.launch.memory;
  for_lanes(active, [&](uint32_t i) {
    const Caller caller{w, in, i};
    caller.result(memory.allocate(caller.argument(0)));
  });
  return Step::next;
}

Step give_back(Warp& w, const Instr& in, uint32_t active) {
  const DeviceMemory& memory = w.cta.cluster.launch.memory;
  for_lanes(active, [&](uint32_t i) {
    const uint64_t address = Caller{w, in, i}.argument(0);
    if (!address || memory.free(address)) return;
    Fault fault(FaultKind::illegal_address,
                "free of what no malloc of a kernel returned, or free a second time: " +
                    memory.describe(address));
    fault.lane = i;
    throw fault;
  });
  return Step::next;
}

}  // namespace

// The parser admits these alone (ptx/body_call.cc).
Exec bind_system(const Instr& in, std::string&) {
  const std::string_view name = in.opcode;
  if (name == "vprintf") return print_text;
  if (name == "malloc") return take;
  return name == "free" ? give_back : fail;
}

}  // namespace emu::ops
