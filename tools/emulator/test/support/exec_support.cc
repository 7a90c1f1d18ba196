// SPDX-License-Identifier: MIT
// Runs PTX text on the machine, without a driver.
#include "tools/emulator/test/support/exec_support.h"
#include "tools/emulator/driver/watch.h"

#include <cstring>

#include "tools/emulator/op/load.h"

namespace exec_test {

using namespace emu;

std::string kernel(const std::string& body, const std::string& declarations) {
  return ".version 9.0\n.target sm_100a\n.address_size 64\n" + declarations +
         "\n.visible .entry k(.param .u64 k_out)\n{\n.reg .pred %p<8>;\n.reg .b16 %h<8>;\n"
         ".reg .b32 %r<16>;\n.reg .b64 %rd<16>;\n.reg .b64 %out;\n"
         "ld.param.u64 %out, [k_out];\n" +
         body + "\nret;\n}\n";
}

namespace {

Launch launch_of(const ptx::Module& module, GlobalMemory& memory, const Shape& shape,
                 uint64_t buffer) {
  Launch launch;
  launch.module = &module;
  launch.function = module.entry("k");
  launch.grid = shape.grid;
  launch.block = shape.block;
  launch.cluster = shape.cluster;
  launch.dynamic_shared_bytes = shape.dynamic_shared_bytes;
  launch.memory = &memory;
  launch.sm_count = shape.sm_count;
  launch.cooperative = shape.cooperative;
  launch.params.resize(8);
  memcpy(launch.params.data(), &buffer, 8);
  return launch;
}

}  // namespace

std::vector<uint32_t> run(const std::string& body, const Shape& shape, std::vector<uint32_t> buffer,
                          const std::string& declarations) {
  std::string text = kernel(body, declarations);
  text.replace(text.find("sm_100a"), strlen("sm_100a"), shape.target);
  auto module = ops::load(text, std::stoi(shape.target + strlen("sm_")));
  GlobalMemory memory(1ull << 30);
  uint64_t bytes = buffer.size() * 4, address = memory.allocate(bytes, "the buffer");
  memcpy(memory.at(address, bytes, 1, "test"), buffer.data(), bytes);
  for (ptx::Variable& v : module->variables) v.address = memory.allocate(v.bytes, v.name);
  for (const ptx::Variable& v : module->variables)
    module->initialise(v, memory.at(v.address, v.bytes, 1, "test"));
  run_watched(launch_of(*module, memory, shape, address));
  memory.require_values(address, bytes, "a copy to the host");
  memcpy(buffer.data(), memory.at(address, bytes, 1, "test"), bytes);
  return buffer;
}

Counters counters(const std::string& body, const Shape& shape, const std::string& declarations,
                  uint32_t words) {
  auto module = ops::load(kernel(body, declarations), 100);
  GlobalMemory memory(1ull << 30);
  const uint64_t address = memory.allocate(4 * words, "the buffer");
  memset(memory.at(address, 4 * words, 1, "test"), 0, 4 * words);
  return run_watched(launch_of(*module, memory, shape, address));
}

std::string fault(const std::string& body, const Shape& shape, FaultKind* kind,
                  const std::string& declarations) {
  try {
    run(body, shape, std::vector<uint32_t>(64), declarations);
  } catch (const Fault& f) {
    if (kind) *kind = f.kind;
    return f.text;
  }
  FAIL("the kernel ended without a fault");
  return "";
}

uint64_t eval(const std::string& instruction, std::initializer_list<uint64_t> values,
              const Widths& w) {
  std::string body;
  std::vector<uint32_t> buffer(16);
  const char* names = "abce";
  const uint32_t widths[] = {w.a, w.b, w.c, w.e};
  body += format(".reg .b%u d;\n", w.d);
  size_t i = 0;
  for (uint64_t v : values) {
    body += format(".reg .b%u %c;\nld.global.b%u %c, [%%out+%zu];\n", widths[i], names[i],
                   widths[i], names[i], 8 + 8 * i);
    memcpy(&buffer[2 + 2 * i], &v, 8);
    ++i;
  }
  body += instruction + format("\nst.global.b%u [%%out], d;", w.d);
  buffer = run(body, {}, buffer);
  return buffer[0] | uint64_t(buffer[1]) << 32;
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace exec_test
