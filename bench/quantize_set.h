// SPDX-License-Identifier: MIT
// One call that quantizes, with buffers of its own, and what the host makes of the same.
#pragma once

#include <string>
#include <vector>

#include "bench/yardsticks.h"
#include "nvfp4_gemm.h"

namespace bench {

inline size_t element_bytes(int32_t type) { return type == NVFP4_TYPE_F32 ? 4 : 2; }

class QuantizeSet {
 public:
  enum Operation { quantize, dequantize, silu_mul, rms_norm, add_rms_norm };
  struct Kind {
    Operation operation;
    int32_t tensor_scale_mode;
  };
  static constexpr Kind kOperations[] = {
      {quantize, NVFP4_TENSOR_SCALE_VALUE},      {quantize, NVFP4_TENSOR_SCALE_DEVICE},
      {quantize, NVFP4_TENSOR_SCALE_AMAX},       {dequantize, NVFP4_TENSOR_SCALE_DEVICE},
      {silu_mul, NVFP4_TENSOR_SCALE_DEVICE},     {rms_norm, NVFP4_TENSOR_SCALE_DEVICE},
      {add_rms_norm, NVFP4_TENSOR_SCALE_DEVICE}, {quantize, NVFP4_TENSOR_SCALE_ROW_AMAX},
      {silu_mul, NVFP4_TENSOR_SCALE_ROW_AMAX},   {rms_norm, NVFP4_TENSOR_SCALE_ROW_AMAX},
  };
  struct Problem {
    Operation operation;
    int32_t tensor_scale_mode, type;
    int64_t rows, k;
  };

  QuantizeSet(const support::Driver& driver, const Problem& problem);
  void fill(const Filler& filler);
  void set_tensor_scale(float t);
  void set_pdl(int32_t pdl) { desc_.pdl = fused_.pdl = pdl; }
  void run(CUstream stream);
  // Throws unless these rows are what the host makes of the input; a residual is taken as it is
  // now.
  void require_host_bits(const std::vector<int64_t>& rows) const;

  support::DeviceBuffer x;

 private:
  std::vector<float> tensor_scales() const;  // one, or one for each row
  bool is_fused() const { return problem_.operation >= silu_mul; }
  void require_fused_host_bits(const std::vector<int64_t>& rows) const;
  const Problem problem_;
  support::DeviceBuffer y_, weight_, codes_, scales_, scale_, workspace_;
  nvfp4_quantize_desc desc_{};
  nvfp4_fused_quantize_desc fused_{};
};

// "quantize,amax,f16,128,7168", and the bytes that must move once.
std::string name(const QuantizeSet::Problem& problem);
double moved_bytes(const QuantizeSet::Problem& problem);

}  // namespace bench
