// SPDX-License-Identifier: MIT
// A GEMM problem on the host: a descriptor and what lies at its addresses, from seeds; and its
// result by the reference.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/harness/fields.h"
#include "tools/harness/parallel.h"

namespace support {

// What the elements and scales are drawn from. Codes are all 16 codes of E2M1 in every set.
enum class Data {
  gpumode,  // scales 0, 1, 2, 3, as the GPU MODE nvfp4_gemm task draws them; alpha 1
  exact,    // scales 1/2, 1, 2; alpha 1
  random,   // every finite scale, 0x00 to 0x7E; alpha so that D has variance 1
};
const char* to_string(Data data);

// Room between rows, batches and blocks of scales. The gaps are filled with poison.
struct Gaps {
  int64_t a_ld = 0, b_ld = 0, d_ld = 0;           // elements beyond close_ld, or D's row
  int64_t a_batch = 0, b_batch = 0, d_batch = 0;  // elements beyond the batch
  int64_t scales_batch_bytes = 0;                 // bytes beyond the scales of a batch
};

// A descriptor, and in place of its addresses what is there. Strides, type and format of A and B
// are those of the operands. What belongs to no element is 0xFF.
struct Problem : Fields {
  Operand a, b;
  Operand b2;  // of gated products: with_rows_reversed(b)
  std::vector<uint8_t> c, bias, bias2;
#define ARRAY(...)
#define FACTORS(address, array, count, value) std::vector<float> array;
#include "tools/harness/arrays.def"
  int64_t scales_gap_bytes = 0;
  int64_t d_scales_bytes = 0;  // of grouped products, where groups begin tiles; 0: as M and N say

  void set_c(int64_t batch, int64_t row, int64_t column, uint32_t code);
  void set_bias(int64_t i, uint32_t code);
  void set_bias2(int64_t i, uint32_t code);

  // D's memory before a run, and as the reference leaves it. Scales of D lie behind its elements,
  // and maxima, the one of all first, behind those. Some are there before.
  size_t d_scales_at() const;
  size_t d_amax_at() const;
  std::vector<uint8_t> d_before() const;
  std::vector<uint8_t> reference() const;
};

// D in fp16 by rows. Without data all codes are +0, all scales 0.
Problem make_problem(const Shape& shape, const Gaps& gaps = {});
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

// The problem with these fields as well (`merged`), laid out anew, and the arrays that they ask
// for.
Problem with_fields(Problem problem, const Fields& fields, uint64_t seed);

// The descriptor without pointers. NVFP4_SCALE_LAYOUT_UNSET: scales as each operand has them on the
// device.
nvfp4_gemm_desc make_desc(const Problem& problem, int32_t scale_layout);

// What lies at an address that is read, its scales as in make_desc. `poison` fills each byte of
// scales that belongs to no element.
struct Input {
  const GemmField* field;
  std::vector<uint8_t> bytes;
};
std::vector<Input> inputs(const Problem& problem, int32_t scale_layout, uint8_t poison);
// Gives a descriptor the addresses of what a product writes: in the memory of D.
void set_results(const Problem& problem, void* d, nvfp4_gemm_desc& g);

// "" or the first difference of two memories of D.
std::string first_difference(const Problem& problem, const std::vector<uint8_t>& got,
                             const std::vector<uint8_t>& want);
// Whether what belongs to no element of D is 0xFF; of a D with scales first_difference says it.
bool gaps_are_untouched(const Fields& fields, std::vector<uint8_t> d);

// D in fp16 by nvfp4_gemm_reference, [l][m][n] without gaps; columns are shared out to all cores.
std::vector<uint16_t> reference(const Problem& problem, const Progress& progress = {});

}  // namespace support
