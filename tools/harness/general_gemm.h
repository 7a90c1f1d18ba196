// SPDX-License-Identifier: MIT
// A problem with any epilogue, on the host and on the device: types, C, bias, factors, activation,
// order. D is compared as memory, gaps included.
#pragma once

#include <string>
#include <vector>

#include "tools/harness/device_gemm.h"

namespace support {

struct EpilogueFields {
  int32_t d_type = NVFP4_TYPE_F16, c_type = NVFP4_TYPE_NONE, bias_type = NVFP4_TYPE_NONE;
  int32_t scalar_mode = NVFP4_SCALARS_HOST, activation = NVFP4_ACTIVATION_NONE;
  int32_t cd_order = NVFP4_CD_ORDER_ROW_MAJOR, bias_axis = NVFP4_BIAS_AXIS_COLUMN;
  bool a_tensor_scale = false, a_tensor_scale_rows = false, b_tensor_scale = false;
  int64_t b_tensor_scale_columns = 0;
  float alpha = 1, beta = 0;
  int64_t c_ld_gap = 0, d_ld_gap = 0;        // elements beyond a line of C, of D
  int64_t c_batch_gap = 0, d_batch_gap = 0;  // beyond a batch
  bool c_is_d = false;                       // C lies where D will, and is overwritten
  // Of D with scales alone.
  int32_t d_scale_layout = NVFP4_SCALE_LAYOUT_128X4, d_scale_rule = NVFP4_SCALE_RULE_DEFAULT;
  bool d_tensor_scale = false;
  bool d_amax = false, d_row_amax = false;
  // What gated products alone have.
  bool gated = false, b2_tensor_scale = false;
  float alpha2 = 1, gate_limit = 0, gate_alpha = 0, gate_beta = 0;
};
std::string to_string(const EpilogueFields& fields);
bool is_general(const EpilogueFields& fields);  // more than alpha by value to fp16 by rows

// Any fields, for a problem of that shape.
EpilogueFields random_fields(const Shape& shape, Random& random);
// The same of a gated product.
EpilogueFields random_gated_fields(const Shape& shape, Random& random);
// Those of D in 16 bits by rows, and of it what a column has alone: factors, and a bias of columns.
EpilogueFields random_column_fields(Random& random);

int64_t bytes_of_type(int32_t type);
// The same with what D of that shape can have: where it cannot have scales it is fp16.
EpilogueFields possible(EpilogueFields fields, const Shape& shape);

// Each matrix with its rows in the opposite order: what b2 of a gated product is of b.
Operand with_rows_reversed(const Operand& from);

// Operands, and an epilogue's arrays with it. What belongs to no element is 0xFF.
struct GeneralProblem {
  Problem operands;
  EpilogueFields fields;
  std::vector<uint8_t> c, bias, bias2;
  std::vector<float> a_scales, b_scales, b2_scales;
  Operand b2;  // of gated products: with_rows_reversed(b)
  float d_scale = 0.0371f;

  GeneralProblem(const Problem& operands, const EpilogueFields& fields, uint64_t seed);

  // Without addresses.
  nvfp4_gemm_desc desc(int32_t scale_layout) const;
  // Where an element of C or D is, in elements, by the descriptor's prose.
  int64_t index(int64_t batch, int64_t row, int64_t column, int64_t ld, int64_t stride) const;

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

class DeviceGeneral : public OnDevice {
 public:
  DeviceGeneral(const Driver& driver, const GeneralProblem& problem);
  DeviceGeneral(const DeviceGeneral&) = delete;

  std::vector<uint8_t> d() const { return bytes_of_d(); }  // its memory; waits for the device
};

// D's memory after one whole run: throws std::runtime_error with the library's sentence, or with
// the damage, if either is not as it should be.
std::vector<uint8_t> run_on_device(const Driver& driver, const GeneralProblem& problem);

// Runs it and compares with the reference: "" or the first difference or damage. Throws the
// library's sentence where it refuses.
std::string difference_on_device(const Driver& driver, const GeneralProblem& problem);
// The same of two memories of D.
std::string first_difference(const GeneralProblem& problem, const std::vector<uint8_t>& got,
                             const std::vector<uint8_t>& want);

}  // namespace support
