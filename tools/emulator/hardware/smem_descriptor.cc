// SPDX-License-Identifier: MIT
// See smem_descriptor.h.
#include "tools/emulator/hardware/smem_descriptor.h"

#include "tools/emulator/base/fault.h"

namespace emu {
namespace {

constexpr uint32_t field(uint64_t bits, uint32_t low, uint32_t width) {
  return uint32_t(bits >> low & ((1ull << width) - 1));
}

// Errors in reserved bits, and in modes that operands with 32 bytes along K do not use.
std::string reserved_errors(uint64_t bits) {
  std::string errors;
  auto require = [&](const char* name, uint32_t is, uint32_t must) {
    if (is != must) errors += format("\n  %s is %u, must be %u", name, is, must);
  };
  require("bits 15:14 (reserved)", field(bits, 14, 2), 0);
  require("bits 31:30 (reserved)", field(bits, 30, 2), 0);
  require("bits 48:46 (constant; 0 is a Hopper descriptor)", field(bits, 46, 3), 1);
  require("bit 52 (absolute leading address; K = 96 on sm_103a only)", field(bits, 52, 1), 0);
  require("bits 60:53 (reserved)", field(bits, 53, 8), 0);
  if (const uint32_t base = field(bits, 49, 3))
    errors += format(
        "\n  bits 51:49 (base offset) are %u: tiles that do not start on the swizzle "
        "pattern are not emulated, nobody confirmed them on hardware",
        base);
  return errors;
}

std::string swizzle_errors(uint32_t code) {
  switch (code) {
    case 0:
    case 1:
    case 2:
    case 4:
    case 6: return "";
    default: return format("\n  bits 63:61 (swizzle) are %u, which no layout has", code);
  }
}

// Eight rows of `span` bytes are the swizzle pattern, which repeats at `stride`. The start address
// is a multiple of its size (1024 bytes for the 128-byte swizzle), plus an advance along K that is
// smaller than `span`.
std::string layout_errors(const SmemDescriptor& d, uint32_t rows, uint32_t chunks) {
  std::string errors;
  if (d.atom != Atom::b16)
    errors +=
        "\n  bits 63:61 (swizzle) are 1, 128-byte with 32-byte atoms, which is for transposed "
        "operands of 32-bit elements only";
  const uint32_t span = swizzle_span(d.swizzle), group = 8 * span;
  const bool none = d.swizzle == Swizzle::none;
  if (rows > 8 && (d.stride == 0 || d.stride % (none ? 128 : group)))
    errors += format(
        "\n  bits 45:32 (stride offset) are %u bytes: eight rows take %u, and a group "
        "of rows must start at a multiple of that",
        d.stride, group);
  if (none && chunks > 1 && (d.lead == 0 || d.lead % 128))
    errors += format(
        "\n  bits 29:16 (leading offset) are %u bytes: the next 16-byte column of K must "
        "start at a non-zero multiple of 128",
        d.lead);
  if (!none && (d.address & (group - 1) & ~(span - 1)))
    errors += format(
        "\n  address 0x%x must be at the start of the %u-byte swizzle pattern, because the base "
        "offset is 0",
        d.address, group);
  if (!none && (d.address & (span - 1)) + chunks * 16 > span)
    errors += format("\n  address 0x%x leaves %u bytes of the %u-byte swizzle row, %u are read",
                     d.address, span - (d.address & (span - 1)), span, chunks * 16);
  return errors;
}

// Both strides are multiples of the pattern's size. The start address is aligned to it, too, and
// without a swizzle to 16 bytes.
std::string transposed_errors(const SmemDescriptor& d, uint32_t groups, uint32_t depth) {
  std::string errors;
  const uint32_t span = swizzle_span(d.swizzle), lines = d.pattern_lines(), pattern = lines * span;
  const bool none = d.swizzle == Swizzle::none;
  const auto check = [&](const char* name, uint32_t bytes, bool used) {
    if (used && (bytes == 0 || bytes % pattern))
      errors += format(
          "\n  %s are %u bytes: an MN-major pattern takes %u, and strides must be "
          "non-zero multiples of that",
          name, bytes, pattern);
  };
  const bool more_rows = groups > span / 16, more_k = depth > lines;
  check("bits 29:16 (leading offset)", d.lead, none ? more_k : more_rows);
  check("bits 45:32 (stride offset)", d.stride, none ? more_rows : more_k);
  if (d.address % (none ? 16 : 8 * span))
    errors += format(
        "\n  address 0x%x must be at the start of the %u-byte swizzle pattern, because the base "
        "offset is 0",
        d.address, 8 * span);
  return errors;
}

struct Decoded {
  SmemDescriptor descriptor;
  std::string errors;
};

Decoded decode(uint64_t bits) {
  constexpr Swizzle modes[8] = {Swizzle::none, Swizzle::b128, Swizzle::b128, Swizzle::none,
                                Swizzle::b64,  Swizzle::none, Swizzle::b32,  Swizzle::none};
  const uint32_t code = field(bits, 61, 3);
  return {{field(bits, 0, 14) * 16, field(bits, 16, 14) * 16, field(bits, 32, 14) * 16, modes[code],
           code == 1 ? Atom::b32 : Atom::b16},
          reserved_errors(bits) + swizzle_errors(code)};
}

SmemDescriptor accept(uint64_t bits, const Decoded& d, const char* who) {
  if (d.errors.empty()) return d.descriptor;
  throw Fault(
      FaultKind::illegal_instruction,
      format("%s: shared-memory descriptor 0x%016llx:", who, (unsigned long long)bits) + d.errors);
}

}  // namespace

// The swizzle is applied to the final address, so an advance of 32 bytes along K just works.
// Canonical layouts of PTX ISA 9.7.16.3.3, in 16-byte units T. Swizzled over a span of w units:
// ((T,w,m),(8,k)) : ((1,T,lead),(wT,stride)); unswizzled ((T,1,m),(8,k)) : ((1,T,stride),(T,lead)).
// With 32-byte atoms a pattern has 4 lines in place of 8, so (4,k) replaces (8,k): table 55 and
// CUTLASS's Layout_MN_SW128_32B_Atom.
uint32_t SmemDescriptor::transposed_chunk(uint32_t group, uint32_t k) const {
  const uint32_t span = swizzle_span(swizzle), width = span / 16;
  if (swizzle == Swizzle::none) return address + group * stride + k % 8 * 16 + k / 8 * lead;
  const uint32_t lines = pattern_lines();
  return swizzled(
      address + group % width * 16 + group / width * lead + k % lines * span + k / lines * stride,
      swizzle, atom);
}

SmemDescriptor decode_smem_descriptor(uint64_t bits, uint32_t rows, uint32_t chunks,
                                      const char* who) {
  Decoded d = decode(bits);
  if (d.errors.empty()) d.errors = layout_errors(d.descriptor, rows, chunks);
  return accept(bits, d, who);
}

SmemDescriptor decode_transposed_descriptor(uint64_t bits, uint32_t groups, uint32_t depth,
                                            uint32_t element_bytes, const char* who) {
  Decoded d = decode(bits);
  if (d.errors.empty()) d.errors = transposed_errors(d.descriptor, groups, depth);
  // Table 54.
  if ((element_bytes == 4) != (d.descriptor.atom == Atom::b32))
    d.errors +=
        "\n  bits 63:61 (swizzle): transposed operands of 32-bit elements must have 1 (128-byte "
        "with 32-byte atoms), and no other operand may have it";
  return accept(bits, d, who);
}

}  // namespace emu
