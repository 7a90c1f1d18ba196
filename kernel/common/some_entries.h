// SPDX-License-Identifier: MIT
// An entry of a family, from a row of its entries.def:
//
//   NVFP4_ENTRY(family, label, operation, bounds, Params, body)
//
// is a kernel nvfp4_gemm_FAMILY_LABEL, followed by the operation's suffix, with `bounds` on its
// registers or threads and `params`, of the type Params, as its argument.
//
// Builds only some entries, for mutants and for tests that launch one or two: each tile of a kernel
// takes a second or two to compile. With
//
//   -DNVFP4_ONLY -DNVFP4_ONLY_TILE_64x4 -DNVFP4_ONLY_ENTRY_128x64_plain
//
// NVFP4_IF_WANTED(tile, suffix, text) is the text for every entry of the tile 64x4 and for the one
// with the suffix _plain of 128x64, and nothing for any other. An entry without a suffix is
// -DNVFP4_ONLY_ENTRY_128x64. Without NVFP4_ONLY it is the text for every entry. `only` in
// kernel/kernel.mk writes the options.
#pragma once

#include "kernel/common/operations.h"

#define NVFP4_ENTRY(family, label, operation, ...) \
  NVFP4_ENTRY_BY(family, label, NVFP4_SUFFIX_##operation, __VA_ARGS__)
#define NVFP4_ENTRY_BY(family, label, suffix, ...) \
  NVFP4_ENTRY_NAMED(family, label, suffix, __VA_ARGS__)
#define NVFP4_ENTRY_NAMED(family, label, suffix, bounds, Params, ...)          \
  NVFP4_IF_WANTED(                                                             \
      label, suffix,                                                           \
      extern "C" __global__ void bounds nvfp4_gemm_##family##_##label##suffix( \
          const __grid_constant__ Params params) { __VA_ARGS__; })

#ifdef NVFP4_ONLY
// An option defines its macro as 1, and NVFP4_WANTED_1 expands to a comma. So TAKE is the second of
// the arguments wherever one of the two macros is defined, which is LEAVE otherwise.
#define NVFP4_IF_WANTED(tile, suffix, ...) \
  NVFP4_CHOOSE(NVFP4_ONLY_TILE_##tile, NVFP4_ONLY_ENTRY_##tile##suffix)(__VA_ARGS__)
#define NVFP4_CHOOSE(tile, entry) NVFP4_CHOOSE_BY(tile, entry)
#define NVFP4_CHOOSE_BY(tile, entry) \
  NVFP4_SECOND(NVFP4_WANTED_##tile, NVFP4_SECOND(NVFP4_WANTED_##entry, NVFP4_LEAVE, ), )
#define NVFP4_WANTED_1 0, NVFP4_TAKE
#define NVFP4_SECOND(...) NVFP4_SECOND_OF(__VA_ARGS__)
#define NVFP4_SECOND_OF(first, second, ...) second
#define NVFP4_TAKE(...) __VA_ARGS__
#define NVFP4_LEAVE(...)
#else
#define NVFP4_IF_WANTED(tile, suffix, ...) __VA_ARGS__
#endif
