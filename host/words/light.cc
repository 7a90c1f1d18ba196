// SPDX-License-Identifier: MIT
#include "host/words/light.h"

#include "host/base/operand_format.h"
#include "host/base/size.h"
#include "host/problem/epilogue.h"
#include "host/problem/fields.h"

namespace nvfp4 {

namespace {

double bytes_of_d(int32_t type) {
  const OperandFormat* const format = format_of_d(type);
  if (format == nullptr) return static_cast<double>(bytes_of_type(type));
  return 0.5 + 1.0 / static_cast<double>(format->block);
}

}  // namespace

// Sizes go up to 2^31 each, so products of four of them do not fit 64 bits. Fractions of a byte do
// not matter here.
Traffic traffic(const nvfp4_gemm_desc& g) {
  const double block = static_cast<double>(find_operand_format(g.operand_format)->block);
  const double quantized = 0.5 + 1 / block;  // bytes per element
  const double m = static_cast<double>(g.m), n = static_cast<double>(g.n);
  const double k = static_cast<double>(g.k), l = static_cast<double>(g.l);
  const double a_batches = g.a_batch_stride == 0 ? 1 : l;  // 0: one matrix serves every batch
  const double b_batches = g.b_batch_stride == 0 ? 1 : l;
  const double c_batches = g.c_batch_stride == 0 ? 1 : l;
  const bool halves = g.a_type != NVFP4_TYPE_NONE || has_packed_tokens(g);
  const double a_bytes = halves ? 2 : quantized;
  const double matrices = is_gated(g) ? 2 : 1;
  return {a_batches * m * k * a_bytes, matrices * b_batches * n * k * quantized,
          may_read_c(g) ? c_batches * m * n * static_cast<double>(bytes_of_type(g.c_type)) : 0,
          l * m * n * bytes_of_d(g.d_type)};
}

bool is_by_fp4(const nvfp4_gemm_desc& g, const Roofline& roof) {
  return g.a_type == NVFP4_TYPE_NONE && roof.fp4_operations > 0;
}

Light light_of(const nvfp4_gemm_desc& g, const Roofline& roof, int32_t sm_count) {
  const double operations = (is_gated(g) ? 4 : 2) * static_cast<double>(g.m) *
                            static_cast<double>(g.n) * static_cast<double>(g.k) *
                            static_cast<double>(g.l);
  const double per_clock = is_by_fp4(g, roof) ? roof.fp4_operations : roof.fp16_operations;
  return {traffic(g).all() / roof.bytes_per_second * 1e9,
          operations / (per_clock * sm_count * roof.clock) * 1e9};
}

}  // namespace nvfp4
