// SPDX-License-Identifier: MIT
// One matrix of a call of the packer, in a checkpoint's order and packed.
#pragma once

#include "host/base/operand_format.h"
#include "host/base/packing.h"
#include "host/base/size.h"
#include "host/reference/scale_layout.h"
#include "nvfp4_gemm.h"

namespace nvfp4 {

class MatrixOfCall {
 public:
  MatrixOfCall(const nvfp4_pack_desc& d, int64_t batch)
      : codes_(static_cast<uint8_t*>(d.codes) + batch * d.codes_batch_stride / 2),
        scales_(static_cast<uint8_t*>(d.scales) + batch * d.scales_batch_stride_bytes),
        packed_(static_cast<uint8_t*>(d.packed) + batch * d.packed_batch_stride_bytes),
        d_(d),
        format_(*find_operand_format(d.format)),
        packing_(*find_packing(d.packing)) {}

  bool has(int64_t row, int64_t k) const { return row < d_.rows && k < d_.k; }
  // The byte with the elements k and k + 1.
  uint8_t* codes(int64_t row, int64_t k) const { return codes_ + (row * d_.codes_ld + k) / 2; }
  uint8_t* scale(int64_t row, int64_t k) const {
    return scales_ + scale_offset(d_.scale_layout, row, k / format_.block, d_.k / format_.block);
  }
  int64_t row_blocks() const { return ceil_div(d_.rows, packing_.rows); }
  int64_t k_units() const { return ceil_div(d_.k, unit_k()); }
  // A unit, of the rows of the call.
  uint8_t* unit(int64_t row_block, int64_t k_unit) const {
    const int64_t first = d_.first_row / packing_.rows;
    return packed_ + ((first + row_block) * k_units() + k_unit) * packing_.unit_bytes(format_);
  }
  int64_t block() const { return format_.block; }
  bool has_ue4m3() const { return format_.scale == ScaleType::ue4m3; }
  int64_t unit_rows() const { return packing_.rows; }
  int64_t unit_k() const { return packing_.k(format_); }

 private:
  uint8_t *codes_, *scales_, *packed_;
  const nvfp4_pack_desc& d_;
  const OperandFormat& format_;
  const Packing& packing_;
};

// Converts the units of a block of rows, each packing in its own file.
void pack_sm90(const MatrixOfCall& m, int64_t row_block);
void unpack_sm90(const MatrixOfCall& m, int64_t row_block);
void pack_sm100(const MatrixOfCall& m, int64_t row_block);
void unpack_sm100(const MatrixOfCall& m, int64_t row_block);

}  // namespace nvfp4
