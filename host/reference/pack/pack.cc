// SPDX-License-Identifier: MIT
#include "host/reference/pack/pack.h"

#include "host/reference/pack/matrix_of_call.h"

namespace nvfp4 {

namespace {

using Convert = void (*)(const MatrixOfCall& m, int64_t row_block);

void convert(const nvfp4_pack_desc& d, Convert sm90, Convert sm100) {
  const Convert of_packing = d.packing == NVFP4_PACKING_SM90_1 ? sm90 : sm100;
  for (int64_t batch = 0; batch < d.l; ++batch) {
    const MatrixOfCall m(d, batch);
    for (int64_t i = 0; i < m.row_blocks(); ++i) of_packing(m, i);
  }
}

}  // namespace

void pack_weights(const nvfp4_pack_desc& desc) { convert(desc, pack_sm90, pack_sm100); }

void unpack_weights(const nvfp4_pack_desc& desc) {
  convert(desc, unpack_sm90, unpack_sm100);
  const int64_t scales = desc.k / find_operand_format(desc.format)->block;
  for (int64_t batch = 0; batch < desc.l; ++batch) {
    clear_scale_padding(static_cast<uint8_t*>(desc.scales) + batch * desc.scales_batch_stride_bytes,
                        desc.scale_layout, desc.rows, scales);
  }
}

}  // namespace nvfp4
