// SPDX-License-Identifier: MIT
// GEMM problems on the host: seeded data sets, the descriptor over them, and their reference
// result.
//
// Scales are kept linear, one byte per row and block; only the copy for the device is
// interleaved, by nvfp4_scale_convert_host, where the operand has that layout. So the reference
// never sees the tiles that a kernel reads.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "nvfp4_gemm.h"
#include "tools/harness/parallel.h"

namespace support {

// Formats of quantized elements as the header's prose has them.
enum class ScaleType { ue4m3, ue8m0 };
struct ScaledFormat {
  int32_t format, d_type;  // of an operand, of a D
  int64_t block;           // elements per scale
  ScaleType scale;
};
constexpr ScaledFormat kScaledFormats[] = {
    {NVFP4_OPERAND_FORMAT_NVFP4, NVFP4_TYPE_NVFP4, 16, ScaleType::ue4m3},
    {NVFP4_OPERAND_FORMAT_MXFP4, NVFP4_TYPE_MXFP4, 32, ScaleType::ue8m0},
    {NVFP4_OPERAND_FORMAT_E2M1_UE8M0, NVFP4_TYPE_E2M1_UE8M0, 16, ScaleType::ue8m0}};
std::vector<int32_t> ue8m0_formats();
const ScaledFormat& row_of(int32_t format);  // throws where there is no such format
inline int64_t block_of(int32_t format) { return row_of(format).block; }
int32_t format_of_d(int32_t d_type);       // throws where such a D has no scales
int64_t scale_block_of_d(int32_t d_type);  // 0 where it has none

constexpr int32_t kActivations = 6;  // from NVFP4_ACTIVATION_NONE on

struct Shape {
  int64_t m, n, k, l = 1;
};
std::string to_string(const Shape& shape);

// What the elements and scales are drawn from. Codes are all 16 codes of E2M1 in every set.
enum class Data {
  gpumode,  // scales 0, 1, 2, 3, as the GPU MODE nvfp4_gemm task draws them; alpha 1
  exact,    // scales 1/2, 1, 2; alpha 1
  random,   // every finite scale, 0x00 to 0x7E; alpha so that D has variance 1
};
const char* to_string(Data data);

// SplitMix64 (Steele, Lea, Flood 2014): the same numbers with every standard library.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t next();
  uint32_t below(uint32_t limit) { return uint32_t((next() >> 32) * limit >> 32); }

 private:
  uint64_t state_;
};

// One of A and B. `codes` has every byte from the first to the last element, gaps included.
struct Operand {
  int64_t rows = 0, k = 0, l = 1;
  int64_t ld = 0, batch_stride = 0;  // elements
  int32_t format = NVFP4_OPERAND_FORMAT_NVFP4;
  std::vector<uint8_t> codes;
  std::vector<uint8_t> scales;  // linear, [l][rows][k / block()], batches 16-byte aligned

  int32_t layout = NVFP4_SCALE_LAYOUT_128X4;  // of the scales on the device

  // An A that is not quantized has neither codes nor scales: its type, and as `codes` its elements.
  int32_t type = NVFP4_TYPE_NONE;
  std::vector<uint16_t> halves;

  bool quantized() const { return type == NVFP4_TYPE_NONE; }
  double half(int64_t batch, int64_t row, int64_t at) const;
  void set_half(int64_t batch, int64_t row, int64_t at, uint16_t bits);

  uint8_t code(int64_t batch, int64_t row, int64_t at) const;
  void set_code(int64_t batch, int64_t row, int64_t at, uint8_t code);
  uint8_t scale(int64_t batch, int64_t row, int64_t block) const;
  void set_scale(int64_t batch, int64_t row, int64_t block, uint8_t byte);

  int64_t block() const { return block_of(format); }
  bool ue8m0() const { return row_of(format).scale == ScaleType::ue8m0; }
  double scale_value(uint8_t byte) const;
  int64_t scales_stride() const { return (rows * (k / block()) + 15) / 16 * 16; }

  // The scales in 128x4 tiles, each byte that belongs to no element holding `poison`.
  std::vector<uint8_t> interleaved_scales(uint8_t poison) const;

  // The scales as `layout` says, `gap` bytes of poison between batches, and from one to the next.
  std::vector<uint8_t> device_scales(uint8_t poison, int64_t gap) const;
  int64_t device_scales_stride(int64_t gap, int32_t as_layout) const;
};

// From one row of codes to the next where no gap is asked for: rows begin at multiples of 16 bytes.
int64_t close_ld(int64_t k);

// Room between rows, batches and blocks of scales. The gaps are filled with poison.
struct Gaps {
  int64_t a_ld = 0, b_ld = 0, d_ld = 0;           // elements beyond close_ld, or D's row
  int64_t a_batch = 0, b_batch = 0, d_batch = 0;  // elements beyond the batch
  int64_t scales_batch_bytes = 0;                 // bytes beyond the scales of a batch
};

struct Problem {
  Shape shape{};
  Operand a, b;
  int64_t d_ld = 0, d_batch_stride = 0;
  int64_t scales_gap_bytes = 0;
  float alpha = 1.0f;
  const char* variant = nullptr;  // forces one
  int32_t pdl = NVFP4_PDL_OFF;
  bool batch_invariant = false;

  int64_t d_elements() const;  // from the first to the last element of D, gaps included
};

Problem make_problem(const Shape& shape, const Gaps& gaps = {});  // all codes +0, all scales 0
Problem make_problem(const Shape& shape, Data data, uint64_t seed, const Gaps& gaps = {});

// The same with an A of NVFP4_TYPE_F16 or _BF16: multiples of 1/2 up to 4 in the exact sets; else
// any sign and fraction, and exponents from -12 to 3. NVFP4_TYPE_NONE: with its own, quantized.
Problem make_a16_problem(const Shape& shape, int32_t a_type, Data data, uint64_t seed,
                         const Gaps& gaps = {});
// A problem made from that data and seed, with such an A in place of its own.
Problem with_a16(Problem problem, int32_t a_type, Data data, uint64_t seed);

// The problem with all operands in that format, and scales of its own: 1/2, 1, 2 in the exact sets,
// else powers of two from 2^-9 to 2^8. Before with_a16.
Problem with_format(Problem problem, int32_t format, Data data, uint64_t seed);

// Every element of D is the sum at which wgmma, on compute capability 9.0, loses nearly all that it
// can: a large product first, its negative last, and between them in each step of 16 thirteen
// products just below the last bit that is kept, and three just below twice of it, whose sum is cut
// once more. K = 256.
Problem worst_for_wgmma(const Shape& shape);

// True if every partial sum of every element fits 24 bits in units of the smallest product, in any
// order: then every correct kernel gives the same bits (testing by equality).
bool sums_are_exact(const Problem& problem);

// The descriptor without pointers: sizes, strides, layouts, types, alpha. NVFP4_SCALE_LAYOUT_UNSET:
// scales as each operand has them on the device.
nvfp4_gemm_desc make_desc(const Problem& problem, int32_t scale_layout);

// D by nvfp4_gemm_reference, [l][m][n] without gaps; columns are shared out to all cores.
std::vector<uint16_t> reference(const Problem& problem, const Progress& progress = {});

}  // namespace support
