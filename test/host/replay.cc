// SPDX-License-Identifier: MIT
// The line that explain prints for any problem: the command line's parser makes of it a problem
// with the same text and the same plan.
#include <cstdlib>
#include <cstring>
#include <iterator>

#include "host/problem/enumeration.h"
#include "tools/harness/fields.h"
#include "tools/harness/plan_info.h"
#include "tools/nvfp4/described.h"
#include "tools/nvfp4/options.h"
#include "tools/testing/catch.h"

using support::Fields;
using support::Random;

namespace {

struct Device {
  int32_t capability, sms;
};
constexpr Device kDevices[] = {{80, 108}, {89, 128}, {90, 132}, {100, 148}, {103, 160}, {120, 170}};

int64_t draw_size(Random& random) {
  const uint32_t most[] = {9, 70, 300, 5000};
  return 1 + random.below(most[random.below(4)]);
}

int64_t round_up(int64_t value, int64_t to) { return (value + to - 1) / to * to; }

bool one_in(Random& random, uint32_t so_many) { return random.below(so_many) == 0; }

struct Drawn {
  nvfp4_gemm_desc desc = NVFP4_GEMM_DESC_INIT;
  std::string variant;
};

void draw_operands(Fields& g, Random& random) {
  constexpr uint32_t kOthers = std::size(support::kScaledFormats) - 1;  // than NVFP4
  const auto& other = support::kScaledFormats[1 + random.below(kOthers)];
  g.operand_format = one_in(random, 3) ? other.format : 0;
  const int64_t block = support::block_of(g.operand_format);
  g.k = one_in(random, 12) ? 0 : block * (1 + random.below(one_in(random, 3) ? 400 : 24));
  g.a_type = one_in(random, 3) ? int32_t(1 + random.below(2)) : NVFP4_TYPE_NONE;
  const int64_t a_step = g.a_type == NVFP4_TYPE_NONE ? 32 : 8;
  const auto gap = [&](int64_t step) { return one_in(random, 3) ? step * random.below(40) : 0; };
  g.a_ld = round_up(g.k, a_step) + gap(a_step), g.b_ld = round_up(g.k, 32) + gap(32);
  g.a_batch_stride = one_in(random, 4) ? 0 : g.m * g.a_ld + gap(a_step);
  g.b_batch_stride = one_in(random, 4) ? 0 : g.n * g.b_ld + gap(32);
  const int32_t layouts[] = {NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR};
  g.a_scale_layout = layouts[random.below(2)], g.b_scale_layout = layouts[random.below(2)];
}

// The strides of scales, and all addresses.
nvfp4_gemm_desc described(const Fields& f) {
  nvfp4_gemm_desc g = numbers_of(f);
  const auto scales = [&](int64_t rows, int64_t k, int32_t layout, int32_t format) {
    return round_up(int64_t(nvfp4_scale_bytes_for(rows, k, layout, format)), 16);
  };
  g.a_scales_batch_stride_bytes = scales(g.m, g.k, g.a_scale_layout, g.operand_format);
  g.b_scales_batch_stride_bytes = scales(g.n, g.k, g.b_scale_layout, g.operand_format);
  if (support::scale_block_of_d(f.d_type) != 0) {
    const int32_t format = support::format_of_d(f.d_type);
    g.d_scales_batch_stride_bytes = scales(g.m, g.n, g.d_scale_layout, format);
  }
  if (g.k == 0) g.a_ld = -1;  // not looked at
  uint64_t array = 0;
  set_addresses(f, g, [&] { return reinterpret_cast<void*>(++array << 58); });
  if (g.b2 != nullptr) g.b2 = g.b;  // near it, as the command line has it
  return g;
}

Drawn draw(Random& random, int32_t capability) {
  Drawn drawn;
  Fields f;
  f.m = draw_size(random), f.n = draw_size(random);
  f.l = one_in(random, 2) ? 1 : 1 + random.below(5);
  if (one_in(random, 2)) f.n = round_up(f.n, 32);
  draw_operands(f, random);
  const bool gated = one_in(random, 5), plain = !gated && one_in(random, 3);
  if (gated) f = merged(f, random_gated_fields(f.shape(), random));
  if (!gated && !plain) f = merged(f, random_fields(f.shape(), random));
  f.lay_out(f.shape());
  f.pdl = int32_t(random.below(3)), f.batch_invariant = one_in(random, 4);
  drawn.desc = described(f);
  if (one_in(random, 4)) {
    const std::vector<std::string> names = support::variant_names(capability);
    drawn.variant = names[random.below(uint32_t(names.size()))];
    if (one_in(random, 3)) drawn.variant += "/2";
  }
  return drawn;
}

std::string explained(const nvfp4_gemm_desc& g, const Device& device) {
  char text[8192];
  const auto status = nvfp4_gemm_explain(&g, device.capability, device.sms, text, sizeof text);
  return status == NVFP4_SUCCESS ? text : "";
}

// The problem of a line, in `options` what its descriptor points to.
nvfp4_gemm_desc parsed(const std::string& line, nvfp4_tool::Options& options) {
  CLI::App app("", "nvfp4");
  nvfp4_tool::define(app, options);
  app.parse(line, true);
  return nvfp4_tool::describe(options.run);
}

// The line in explain's text, which must have one.
std::string line_of(const std::string& text) {
  const char key[] = "\nreplay    ";
  const size_t at = text.find(key);
  if (at == std::string::npos) return "no line";
  const size_t first = at + sizeof key - 1;
  return text.substr(first, text.find('\n', first) - first);
}

// "" or what a problem's line does not bring back.
std::string complaint(const nvfp4_gemm_desc& g, const Device& device, const std::string& text) {
  const std::string line = line_of(text);
  nvfp4_tool::Options options;
  nvfp4_gemm_desc again;
  try {
    again = parsed(line, options);
  } catch (const std::exception& error) {
    return line + "\nis refused: " + error.what();
  }
  const std::string said = explained(again, device);
  if (said.empty()) return line + "\nis refused: " + nvfp4_last_error();
  if (said != text) return text + "becomes\n" + said;
  const nvfp4_plan_info had = support::plan_info(g, device.capability, device.sms),
                        has = support::plan_info(again, device.capability, device.sms);
  return std::memcmp(&had, &has, sizeof had) == 0 ? "" : line + "\nhas another plan";
}

}  // namespace

TEST_CASE("The line that explain prints is the problem again whatever its fields are") {
  const bool everything = std::getenv("NVFP4_LONG") != nullptr;
  const int count = everything ? 20000 : 500;
  Random random(35);
  int taken = 0;
  for (int i = 0; i < count; ++i) {
    const Device& device = kDevices[random.below(sizeof kDevices / sizeof kDevices[0])];
    Drawn drawn = draw(random, device.capability);
    if (!drawn.variant.empty()) drawn.desc.variant = drawn.variant.c_str();
    const std::string text = explained(drawn.desc, device);
    if (text.empty()) continue;
    ++taken;
    const std::string wrong = complaint(drawn.desc, device, text);
    INFO("problem " << i);
    REQUIRE(wrong == "");
  }
  CHECK(taken > count / 4);
}

TEST_CASE("The command line takes each value by the word that the line has for it") {
  using nvfp4::Enumeration;
  const struct {
    const char* option;
    Enumeration enumeration;
    int32_t nvfp4_gemm_desc::*field;
    nvfp4::EnumeratorSet but;
  } rows[] = {
      {"--d-type", Enumeration::type, &nvfp4_gemm_desc::d_type, nvfp4::only(NVFP4_TYPE_NONE)},
      {"--format", Enumeration::operand_format, &nvfp4_gemm_desc::operand_format, 0},
      {"--activation", Enumeration::activation, &nvfp4_gemm_desc::activation, 0}};
  for (const auto& row : rows) {
    const nvfp4::EnumeratorSet values = nvfp4::every(row.enumeration) & ~row.but;
    for (int32_t value = 0; value < 32; ++value) {
      if (!nvfp4::holds(values, value)) continue;
      const std::string word = nvfp4::enumerator_word(row.enumeration, value).text;
      nvfp4_tool::Options options;
      CAPTURE(row.option, word);
      const nvfp4_gemm_desc g =
          parsed("nvfp4 run --m 1 --n 32 --k 32 " + (row.option + (" " + word)), options);
      CHECK(g.*row.field == value);
    }
  }
  CHECK(nvfp4::enumerator_word(Enumeration::operand_format, 31).text == std::string("31"));
}
