// SPDX-License-Identifier: MIT
// See wgmma_descriptor.h. ptxas sees none of these bits.
#include "tools/emulator/hardware/wgmma_descriptor.h"

#include <string>

#include "tools/emulator/base/fault.h"

namespace emu {
namespace {

constexpr uint32_t field(uint64_t bits, uint32_t low, uint32_t width) {
  return uint32_t(bits >> low & ((1ull << width) - 1));
}

std::string reserved_errors(uint64_t bits) {
  std::string errors;
  const auto zero = [&](const char* name, uint32_t low, uint32_t width) {
    if (const uint32_t is = field(bits, low, width))
      errors += format("\n  %s is %u, must be 0", name, is);
  };
  zero("bits 15:14 (reserved)", 14, 2);
  zero("bits 31:30 (reserved)", 30, 2);
  zero("bits 48:46 (reserved; 1 is a Blackwell descriptor)", 46, 3);
  zero("bits 61:52 (reserved; the swizzle is in 63:62)", 52, 10);
  if (const uint32_t base = field(bits, 49, 3))
    errors += format(
        "\n  bits 51:49 (base offset) are %u: tiles that do not start on the swizzle pattern are "
        "not emulated",
        base);
  return errors;
}

// With two or more groups, the distance between them is a non-zero multiple of `unit`, so that each
// starts at the same place of the swizzle pattern.
std::string distance_error(const char* name, uint32_t distance, uint32_t unit, uint32_t groups,
                           const char* what) {
  if (groups < 2 || (distance && distance % unit == 0)) return "";
  return format("\n  %s are %u bytes: %s must start at non-zero multiples of %u", name, distance,
                what, unit);
}

constexpr const char* lead_name = "bits 29:16 (leading offset)";
constexpr const char* stride_name = "bits 45:32 (stride offset)";

std::string k_major_errors(const WgmmaDescriptor& d, uint32_t rows) {
  const uint32_t span = swizzle_span(d.swizzle), pattern = 8 * span;
  std::string errors = distance_error(stride_name, d.stride, pattern, rows / 8, "groups of 8 rows");
  if (d.swizzle == Swizzle::none)
    return errors + distance_error(lead_name, d.lead, 128, 2, "16-byte columns of K");
  if ((d.address & (span - 1)) + 32 > span)
    errors += format("\n  address 0x%x leaves %u bytes of the %u-byte swizzle row, 32 are read",
                     d.address, span - (d.address & (span - 1)), span);
  return errors;
}

std::string mn_major_errors(const WgmmaDescriptor& d, uint32_t rows) {
  const uint32_t span = swizzle_span(d.swizzle), pattern = 8 * span, across = rows * 2 / span;
  const bool none = d.swizzle == Swizzle::none;
  std::string errors;
  errors += distance_error(none ? lead_name : stride_name, none ? d.lead : d.stride, pattern, 2,
                           "groups of 8 k");
  errors += distance_error(none ? stride_name : lead_name, none ? d.stride : d.lead, pattern,
                           across, "groups of M or N");
  if (d.address & (pattern - 1))
    errors += format("\n  address 0x%x is not at the start of the %u-byte swizzle pattern",
                     d.address, pattern);
  return errors;
}

}  // namespace

// The swizzle is applied to the final address, so an advance of 32 bytes along K just works.
uint32_t WgmmaDescriptor::k_chunk(uint32_t row, uint32_t chunk) const {
  const uint32_t group = address + row / 8 * stride;
  if (swizzle == Swizzle::none) return group + row % 8 * 16 + chunk * lead;
  return swizzled(group + row % 8 * swizzle_span(swizzle) + chunk * 16, swizzle);
}

uint32_t WgmmaDescriptor::mn_chunk(uint32_t chunk, uint32_t k) const {
  if (swizzle == Swizzle::none) return address + chunk * stride + k / 8 * lead + k % 8 * 16;
  const uint32_t span = swizzle_span(swizzle), per = span / 16;
  return swizzled(address + chunk / per * lead + k / 8 * stride + k % 8 * span + chunk % per * 16,
                  swizzle);
}

WgmmaDescriptor decode_wgmma_descriptor(uint64_t bits, uint32_t rows, bool mn_major,
                                        const char* who) {
  constexpr Swizzle modes[4] = {Swizzle::none, Swizzle::b128, Swizzle::b64, Swizzle::b32};
  const WgmmaDescriptor d{field(bits, 0, 14) * 16, field(bits, 16, 14) * 16,
                          field(bits, 32, 14) * 16, modes[field(bits, 62, 2)], mn_major};
  std::string errors = reserved_errors(bits);
  if (errors.empty()) errors = mn_major ? mn_major_errors(d, rows) : k_major_errors(d, rows);
  if (!errors.empty())
    throw Fault(
        FaultKind::illegal_instruction,
        format("%s: shared-memory descriptor 0x%016llx:", who, (unsigned long long)bits) + errors);
  return d;
}

}  // namespace emu
