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

void add_light(const nvfp4_gemm_desc& g, const Roofline& light, int32_t sm_count, Text* text) {
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
  for (uint32_t image = 0; image < kImageCount; ++image) {
    if (!plan.arch().takes(image)) continue;
    text->add("%s%s", before, image_label(image));
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

void add_reason(const CheckedGemm& checked, const Plan& plan, Text* text) {
  if (checked.forced != nullptr) {
    text->add("why       desc.variant names it\n");
    return;
  }
  const Planner& planner = planner_of(plan.arch().family);
  char reason[kReasonBytes];
  planner.write_rule(plan.arch(), reason);
  text->add(
      "why       %s%s:\n",
      checked.desc->batch_invariant != 0 ? "with additions along K in one order for all M, " : "",
      reason);
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    const Variant& v = variant_at(i);
    Choice choice;
    if (!is_candidate(*checked.desc, plan.arch(), v)) continue;
    if (planner.choose_split(*checked.desc, plan.arch(), v, &choice)) {
      planner.write_choice(choice, reason);
    } else {
      snprintf(reason, sizeof reason, "more than %" PRId64 " tiles", kMaxTiles);
    }
    text->add("          %s %s: %s\n", &v == plan.variant ? "*" : "-", v.name, reason);
  }
}

void add_plan(const CheckedGemm& checked, const Plan& plan, int32_t sm_count, Text* text) {
  const nvfp4_gemm_desc& g = *checked.desc;
  if (g.k == 0) {
    text->add("image     none\nvariant   fill\n");
    text->add("why       K is 0: D is filled with round(alpha * 0), no kernel runs\n");
    return;
  }
  add_images(plan, text);
  add_geometry(plan, sm_count, text);
  add_light(g, plan.arch().light, sm_count, text);
  add_reason(checked, plan, text);
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
  if (g.batch_invariant != 0) line.add(" --batch-invariant");
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

nvfp4_status check_explain(int32_t sm_count, const char* buffer) {
  if (sm_count < 1) {
    return fail(NVFP4_STATUS_INVALID_VALUE, "sm_count = %" PRId32 " is less than 1", sm_count);
  }
  return rule_not_null("buffer", buffer);
}

nvfp4_status explain_gemm(const CheckedGemm& checked, const Plan& plan, int32_t capability,
                          int32_t sm_count, char* buffer, size_t bytes) {
  const nvfp4_gemm_desc& g = *checked.desc;
  Text text(buffer, bytes);
  text.add("problem   M %" PRId64 ", N %" PRId64 ", K %" PRId64 ", L %" PRId64 ", D fp16\n", g.m,
           g.n, g.k, g.l);
  text.add("device    compute capability %s, %" PRId32 " SMs\n", capability_text(capability).text,
           sm_count);
  if (checked.empty) {
    text.add("why       M, N or L is 0: nothing is read, written or enqueued\n");
  } else {
    add_plan(checked, plan, sm_count, &text);
    if (g.k > 0) add_replay(g, &text);
  }
  if (text.needed() <= bytes) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE, "bytes = %zu is less than the %zu that the text needs",
              bytes, text.needed());
}

}  // namespace nvfp4
