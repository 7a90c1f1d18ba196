// SPDX-License-Identifier: MIT
// What a descriptor says, for those who write kernels (nvfp4emu.h).
#pragma GCC visibility push(default)
#include "nvfp4emu.h"
#pragma GCC visibility pop

#include <algorithm>
#include <cstring>
#include <iterator>

#include "tools/emulator/base/fault.h"
#include "tools/emulator/hardware/instruction_descriptor.h"
#include "tools/emulator/hardware/smem_descriptor.h"

namespace {

// 0, or -1 and the sentence of the Fault that `read` throws.
template <class Read>
int refused(Read read, char* text, size_t bytes) {
  try {
    read();
    return 0;
  } catch (const emu::Fault& fault) {
    if (text && bytes) {
      const size_t n = std::min(fault.text.size(), bytes - 1);
      std::memcpy(text, fault.text.data(), n);
      text[n] = 0;
    }
    return -1;
  }
}

bool find_kind(const char* name, emu::MmaKind* kind) {
  constexpr const char* names[] = {"f16", "tf32", "f8f6f4", "i8", "mxf8f6f4", "mxf4", "mxf4nvf4"};
  for (size_t i = 0; name && i < std::size(names); ++i)
    if (!std::strcmp(name, names[i])) return *kind = emu::MmaKind(i), true;
  return false;
}

const char* name_of(emu::ElementType type) {
  constexpr const char* names[] = {"f16",  "bf16", "tf32", "e4m3", "e5m2",
                                   "e2m3", "e3m2", "e2m1", "u8",   "s8"};
  return names[size_t(type)];
}

const char* name_of(emu::AccumulatorType type) {
  constexpr const char* names[] = {"f16", "f32", "s32"};
  return names[size_t(type)];
}

}  // namespace

int nvfp4emu_read_smem_descriptor(uint64_t bits, uint32_t rows, uint32_t chunks,
                                  nvfp4emu_smem_descriptor* descriptor, char* text, size_t bytes) {
  if (!descriptor) return -1;
  return refused(
      [&] {
        const emu::SmemDescriptor d = emu::decode_smem_descriptor(bits, rows, chunks, "operand");
        const bool none = d.swizzle == emu::Swizzle::none;
        *descriptor = {d.address, d.lead, d.stride, none ? 0 : emu::swizzle_span(d.swizzle)};
      },
      text, bytes);
}

int nvfp4emu_read_instruction_descriptor(uint32_t bits, const char* kind, uint32_t block, int pair,
                                         nvfp4emu_instruction_descriptor* descriptor, char* text,
                                         size_t bytes) {
  emu::MmaKind which{};
  if (!descriptor || !find_kind(kind, &which)) return -1;
  return refused(
      [&] {
        const emu::MmaShape s = emu::decode_instruction_descriptor(bits, which, block, pair != 0);
        const char* scale = !emu::is_block_scaled(which)       ? ""
                            : s.scale == emu::ScaleType::ue4m3 ? "ue4m3"
                                                               : "ue8m0";
        *descriptor = {s.m,           s.n,           name_of(s.a), name_of(s.b),
                       name_of(s.d),  scale,         s.negate_a,   s.negate_b,
                       s.transpose_a, s.transpose_b, s.sfa_id,     s.sfb_id};
      },
      text, bytes);
}
