// SPDX-License-Identifier: MIT
// The architectures with kernels, one row of arch.def each. All code of the library that depends on
// the architecture of a GPU reads these rows.
#pragma once

#include <cstddef>
#include <cstdint>

#include "host/base/status.h"

namespace nvfp4 {

enum ImageIndex : uint32_t {
#define IMAGE(family, name, file, label) kImage_##name,
#include "host/plan/images.def"
#undef IMAGE
  kImageCount
};

// A family of kernels with functions of its own (family.h), one row of families.def each.
struct Family;
#define FAMILY(name) extern const Family kFamily_##name;
#include "host/plan/families.def"
#undef FAMILY

// The family of each image's kernels.
constexpr const Family* kImageFamilies[] = {
#define IMAGE(family, name, file, label) &kFamily_##family,
#include "host/plan/images.def"
#undef IMAGE
};

// Peak rates of a GPU.
struct Roofline {
  double bytes_per_second;
  const char* memory;
  double fp4_operations, fp16_operations;  // per SM and clock
  double clock;
  const char* clock_text;
};

// The evidence for the kernels of a family on an architecture (arch.def).
enum class ArchProof : uint32_t { of_mechanism, assembled };

struct Architecture {
  int32_t capability;
  const Family *family, *also;
  ArchProof proof;
  int64_t sm_count;       // a constant, so that a plan is the same on every GPU
  uint32_t shared_bytes;  // largest shared memory of a CTA
  Roofline light;
  uint32_t images;  // a bit for each image

  constexpr bool takes(uint32_t image) const { return (images >> image & 1) != 0; }
  constexpr bool takes(uint32_t image, const Family* of) const {
    return takes(image) && kImageFamilies[image] == of;
  }
};

template <typename... Image>
constexpr uint32_t image_bits(Image... image) {
  return ((1u << image) | ...);
}

constexpr Architecture kArchitectures[] = {
#define ARCH(capability, family, also, proof, sms, kb, bytes, memory, fp4, fp16, clock, text, ...) \
  {capability,                                                                                     \
   &kFamily_##family,                                                                              \
   &kFamily_##also,                                                                                \
   ArchProof::proof,                                                                               \
   sms,                                                                                            \
   kb * 1024,                                                                                      \
   {bytes, memory, fp4, fp16, clock, text},                                                        \
   image_bits(__VA_ARGS__)},
#include "host/plan/arch.def"
#undef ARCH
};
constexpr size_t kArchitectureCount = sizeof kArchitectures / sizeof kArchitectures[0];

// "10.3" for 103. A number below 0, which no GPU has, is printed as it is.
struct CapabilityText {
  char text[16];
};
CapabilityText capability_text(int32_t capability);

// Index of a compute capability in kArchitectures; refuses one that has no kernel.
nvfp4_status find_architecture(int32_t capability, uint32_t* index);

// Index of the next row with the capability of this one, which is for older drivers;
// kArchitectureCount if there is none.
constexpr uint32_t row_for_older_driver(uint32_t index) {
  const int32_t capability = kArchitectures[index].capability;
  while (++index < kArchitectureCount && kArchitectures[index].capability != capability) {
  }
  return index;
}

// Whether the row is the first of its capability.
constexpr bool is_first_row(uint32_t index) {
  for (uint32_t i = 0; i < index; ++i) {
    if (kArchitectures[i].capability == kArchitectures[index].capability) return false;
  }
  return true;
}

}  // namespace nvfp4
