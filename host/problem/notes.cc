// SPDX-License-Identifier: MIT
#include "host/problem/notes.h"

#include <cinttypes>

#include "host/base/formats.h"
#include "host/base/log.h"
#include "host/problem/fields.h"

namespace nvfp4 {

namespace {

void note_factor(const char* name, float value, const float* of_groups, const char* product) {
  if (of_groups != nullptr || f32_bits(value) << 1 != 0) return;
  log_line(LogLevel::call, "note: %s = 0: the product with %s counts as 0", name, product);
}

}  // namespace

void note_empty(const nvfp4_gemm_desc& g) {
  log_line(LogLevel::call,
           "note: m = %" PRId64 ", n = %" PRId64 ", l = %" PRId64
           ": nothing is computed where one of them is 0, and D keeps its bytes",
           g.m, g.n, g.l);
}

void note_empty_matrix(const char* function, int64_t rows, int64_t k) {
  log_line(LogLevel::call,
           "note: %s with rows = %" PRId64 ", k = %" PRId64
           ": nothing is read or written where one of them is 0",
           function, rows, k);
}

void note_values(const nvfp4_gemm_desc& g, const GroupArrays* groups) {
  if (!logs(LogLevel::call)) return;
  if (groups != nullptr && g.l > 1 && g.b_batch_stride == 0) {
    log_line(LogLevel::call, "note: b_shared = 1: all %" PRId64 " groups use one B", g.l);
  }
  if (g.k == 0 || g.scalar_mode != NVFP4_SCALARS_HOST) return;
  note_factor("alpha", g.alpha, groups != nullptr ? groups->alpha : nullptr, "b");
  if (!is_gated(g)) return;
  note_factor("alpha2", g.alpha2, groups != nullptr ? groups->alpha2 : nullptr, "b2");
}

}  // namespace nvfp4
