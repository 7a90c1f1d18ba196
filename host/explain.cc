// SPDX-License-Identifier: MIT
#include "host/explain.h"

#include <algorithm>
#include <cinttypes>
#include <cstdarg>
#include <cstdio>

#include "host/formats.h"
#include "host/image.h"
#include "host/rule.h"
#include "host/text.h"

namespace nvfp4 {

namespace {

// Appends to a buffer of the caller's and counts what did not fit.
class Text {
 public:
  Text(char* buffer, size_t bytes) : buffer_(buffer), bytes_(bytes) {}

  __attribute__((format(printf, 2, 3))) void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    char* at = length_ < bytes_ ? buffer_ + length_ : nullptr;
    const int length = write_text(at, at != nullptr ? bytes_ - length_ : 0, format, arguments);
    va_end(arguments);
    if (length > 0) length_ += static_cast<size_t>(length);
  }

  size_t needed() const { return length_ + 1; }

 private:
  char* buffer_;
  size_t bytes_;
  size_t length_ = 0;
};

// ---- the speed of light -------------------------------------------------------------------------

// What a GPU could do at most. B200: memory at 7.68 TB/s, FP4 units at 32,768 operations per SM and
// clock of 1.5 GHz, the constants by which the GPU MODE nvfp4_gemm task computes its own. H200:
// 4.8 TB/s and fp16 units at 4,096 operations at 1.98 GHz, from its data sheet. A limit and not a
// forecast.
struct Light {
  double bytes_per_second, clock, operations_per_clock;
  const char *memory, *unit, *clock_text;
};
constexpr Light kLight100{7.68e12, 1.5e9, 32768, "7.68 TB/s", "FP4", "1.5 GHz"};
constexpr Light kLight90{4.8e12, 1.98e9, 4096, "4.8 TB/s", "fp16", "1.98 GHz"};

struct Traffic {
  double a, b, d;  // bytes, each read or written once; scales with their operand, without padding
  double all() const { return a + b + d; }
};

// Sizes go up to 2^31 each: products of four of them do not fit 64 bits, and fractions of a byte do
// not matter here.
Traffic traffic(const nvfp4_gemm_desc& g) {
  constexpr double kBytesPerElement = 0.5 + 1.0 / kScaleBlock;
  const double m = static_cast<double>(g.m), n = static_cast<double>(g.n);
  const double k = static_cast<double>(g.k), l = static_cast<double>(g.l);
  const double a_batches = g.a_batch_stride == 0 ? 1 : l;  // the same matrix for every batch
  const double b_batches = g.b_batch_stride == 0 ? 1 : l;
  return {a_batches * m * k * kBytesPerElement, b_batches * n * k * kBytesPerElement,
          l * 2 * m * n};
}

void add_light(const nvfp4_gemm_desc& g, int32_t capability, int32_t sm_count, Text* text) {
  const Light& light = capability == 90 ? kLight90 : kLight100;
  const Traffic t = traffic(g);
  const double operations = 2 * static_cast<double>(g.m) * static_cast<double>(g.n) *
                            static_cast<double>(g.k) * static_cast<double>(g.l);
  const double memory = t.all() / light.bytes_per_second * 1e6;
  const double math = operations / (light.operations_per_clock * sm_count * light.clock) * 1e6;
  text->add("bytes     %.0f (A %.0f, B %.0f, D %.0f; scales included, each once)\n", t.all(), t.a,
            t.b, t.d);
  text->add("light     %.3f us: memory %.3f at %s, %s units %.3f at %s\n", std::max(memory, math),
            memory, light.memory, light.unit, math, light.clock_text);
}

// ---- the plan -----------------------------------------------------------------------------------

void add_images(const Plan& plan, Text* text) {
  const char* before = "image     ";
  for (uint32_t i = 0; const char* label = image_label(plan.capability_index, i); ++i) {
    text->add("%s%s", before, label);
    before = ", else ";
  }
  text->add("\n");
}

void add_geometry(const Plan& plan, int32_t sm_count, Text* text) {
  const Variant& v = *plan.variant;
  text->add("variant   %s\n", v.name);
  text->add("tile      %" PRIu32 " weights x %" PRIu32 " tokens, K by %" PRIu32 "\n",
            v.tile_weights, v.tile_tokens, v.tile_k);
  text->add("stages    %" PRIu32 " of %" PRIu32 " bytes; %" PRIu32 " bytes of shared memory",
            v.stages, v.stage_bytes, v.shared_bytes);
  if (v.tmem_columns > 0) text->add(", %" PRIu32 " columns of tensor memory", v.tmem_columns);
  text->add("\n");
  const uint32_t ctas = count_ctas(plan, sm_count);
  text->add("grid      %" PRIu32 " CTAs of %" PRIu32 " threads", ctas, v.threads);
  if (ctas < plan.grid) text->add(", %" PRIu32 " tiles", plan.grid);
  text->add("\n");
  text->add("waves     %.2f of %" PRId32 " SMs, %s each\n",
            static_cast<double>(plan.grid) / sm_count / v.ctas_per_sm, sm_count,
            v.ctas_per_sm == 1 ? "one CTA" : "two CTAs");
  text->add("split     %" PRIu32 "\n", plan.split);
  text->add("workspace %" PRIu64 " bytes\n", plan.workspace_bytes);
}

void add_reason_sm90(const nvfp4_gemm_desc& g, const Plan& plan, Text* text) {
  text->add("why       fewest clocks of the longest running SM, as plan_sm90.cc counts them:\n");
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    const Variant& v = variant_at(i);
    ChoiceSm90 choice;
    if (!serves(v, plan.capability_index) || !choose_split_sm90(g, i, &choice)) continue;
    text->add("          %s %s: split %" PRIu32 ", %" PRId64 " clocks\n",
              i == plan.variant_index ? "*" : "-", v.name, choice.split, choice.clocks);
  }
}

void add_reason(const nvfp4_gemm_desc& g, const Plan& plan, Text* text) {
  if (g.variant != nullptr) {
    text->add("why       desc.variant names it\n");
    return;
  }
  if (kCapabilities[plan.capability_index] == 90) return add_reason_sm90(g, plan, text);
  text->add("why       fewest rows fetched by an SM, ceil(tiles / %" PRId64
            ") * (weights + tokens):\n",
            kWave);
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    const Variant& v = variant_at(i);
    if (!serves(v, plan.capability_index)) continue;
    int64_t matrix, tiles;
    if (count_tiles(g, v, &matrix, &tiles)) {
      text->add("          %s %s: %" PRId64 " tiles, %" PRId64 " rows\n",
                i == plan.variant_index ? "*" : "-", v.name, tiles, rows_fetched(v, tiles));
    } else {
      text->add("          - %s: more than %" PRId64 " tiles\n", v.name, kMaxTiles);
    }
  }
}

void add_plan(const nvfp4_gemm_desc& g, const Plan& plan, int32_t sm_count, Text* text) {
  if (g.k == 0) {
    text->add("image     none\nvariant   fill\n");
    text->add("why       K is 0: D is filled with round(alpha * 0), no kernel runs\n");
    return;
  }
  add_images(plan, text);
  add_geometry(plan, sm_count, text);
  add_light(g, kCapabilities[plan.capability_index], sm_count, text);
  add_reason(g, plan, text);
}

}  // namespace

void write_replay(const nvfp4_gemm_desc& g, char* text, size_t bytes) {
  Text line(text, bytes);
  line.add("nvfp4 run --m %" PRId64 " --n %" PRId64 " --k %" PRId64, g.m, g.n, g.k);
  if (g.l != 1) line.add(" --l %" PRId64, g.l);
  if (g.alpha != 1.0f) line.add(" --alpha %.9g", f64_from_f32(g.alpha));
  if (g.a_ld != g.k) line.add(" --a-ld %" PRId64, g.a_ld);
  if (g.b_ld != g.k) line.add(" --b-ld %" PRId64, g.b_ld);
  if (g.d_ld != g.n) line.add(" --d-ld %" PRId64, g.d_ld);
  if (g.l > 1) {
    line.add(" --a-batch-stride %" PRId64 " --b-batch-stride %" PRId64 " --d-batch-stride %" PRId64,
             g.a_batch_stride, g.b_batch_stride, g.d_batch_stride);
  }
  if (g.pdl != NVFP4_PDL_OFF) line.add(" --pdl %" PRId32, g.pdl);
  if (g.variant != nullptr) line.add(" --variant %s", g.variant);
}

namespace {

void add_replay(const nvfp4_gemm_desc& g, Text* text) {
  char replay[kReplayBytes];
  write_replay(g, replay, sizeof replay);
  text->add("replay    %s\n", replay);
}

}  // namespace

nvfp4_status explain_gemm(const nvfp4_gemm_desc& g, bool empty, int32_t capability,
                          int32_t sm_count, char* buffer, size_t bytes) {
  if (sm_count < 1) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "sm_count = %" PRId32 " is less than 1", sm_count);
  }
  NVFP4_TRY(rule_not_null("buffer", buffer));
  Text text(buffer, bytes);
  text.add("problem   M %" PRId64 ", N %" PRId64 ", K %" PRId64 ", L %" PRId64 ", D fp16\n", g.m,
           g.n, g.k, g.l);
  text.add("device    compute capability %s, %" PRId32 " SMs\n", capability_text(capability).text,
           sm_count);
  if (empty) {
    text.add("why       M, N or L is 0: nothing is read, written or enqueued\n");
  } else {
    Plan plan;
    NVFP4_TRY(make_plan(g, capability, &plan));
    add_plan(g, plan, sm_count, &text);
    if (g.k > 0) add_replay(g, &text);
  }
  if (text.needed() <= bytes) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE, "bytes = %zu is less than the %zu that the text needs",
              bytes, text.needed());
}

}  // namespace nvfp4
