// SPDX-License-Identifier: MIT
// Hardware limits that determine tile sizes, each stated once. Plain C++, no CUDA.
#pragma once

#include <cstdint>

namespace nvfp4 {

// Compute capabilities 9.0 and 10.x (CUDA programming guide, technical specifications).
constexpr uint32_t kMaxSharedBytes = 232448;     // of a CTA, opt-in: 228 KB of the SM less 1 KB
constexpr uint32_t kReservedSharedBytes = 1024;  // taken by every CTA besides what it requests
constexpr uint32_t kRegistersPerSm = 65536;      // allocated in multiples of 8 per thread
constexpr uint32_t kMaxClusterCtas = 8;          // without the non-portable attribute

// PTX ISA 9.7.13.15.4: one phase of an mbarrier counts at most this many bytes.
constexpr uint32_t kMaxTransactionBytes = (1u << 20) - 1;

// The 128-byte swizzle repeats after 8 rows of 128 bytes: operand tiles start on this boundary.
constexpr uint32_t kSwizzlePatternBytes = 1024;

// Compute capability 10.x (PTX ISA 9.7.16.1).
constexpr uint32_t kTmemColumns = 512;     // of 128 lanes x 32 bits
constexpr uint32_t kMmaK = 64;             // elements of K per tcgen05.mma, 4 scales per row
constexpr uint32_t kScaleTileColumns = 4;  // of tensor memory

}  // namespace nvfp4
