// SPDX-License-Identifier: MIT
// Every pair of arrays of random calls shares a few bytes: refused by the names of both if one of
// them is written, and accepted otherwise. The sizes of the arrays are counted here anew.
#include <algorithm>
#include <functional>
#include <memory>

#include "tools/harness/problem.h"
#include "tools/testing/catch.h"

namespace {

using support::Random;
using Gemm = nvfp4_gemm_desc;
using Bytes = std::vector<uint8_t>;

struct Array {
  std::string name;
  int64_t bytes;
  bool written;
  int64_t alignment;
  std::function<void(uint8_t*)> put;
};

struct Call {
  std::vector<Array> arrays = {};
  std::function<nvfp4_status()> ask = nullptr;  // reads no array
  // Asked only where a refusal is expected.
  std::vector<std::function<nvfp4_status()>> others = {};

  template <typename Struct, typename Pointer>
  void add(const char* name, Struct* of, Pointer Struct::*field, int64_t bytes, bool written,
           int64_t alignment = 16) {
    arrays.push_back({name, bytes, written, alignment,
                      [=](uint8_t* at) { of->*field = reinterpret_cast<Pointer>(at); }});
  }
};

int64_t ceil_to(int64_t x, int64_t of) { return (x + of - 1) / of * of; }

int64_t scale_bytes(int64_t rows, int64_t scales, int32_t layout) {
  return layout == NVFP4_SCALE_LAYOUT_LINEAR ? rows * scales
                                             : ceil_to(rows, 128) * ceil_to(scales, 4);
}

// ---- the pairs ----------------------------------------------------------------------------------

// Memory in which each array has a slot to itself, in its middle.
class Slots {
 public:
  explicit Slots(const Call& call) : memory_((call.arrays.size() + 1) * kSlot) {
    for (const Array& array : call.arrays) REQUIRE(array.bytes < int64_t(kSlot / 2));
  }
  uint8_t* home(size_t i) {
    const auto first = reinterpret_cast<uintptr_t>(memory_.data());
    return reinterpret_cast<uint8_t*>((first + i * kSlot + kSlot / 2) / 256 * 256);
  }

 private:
  static constexpr size_t kSlot = 1 << 20;
  Bytes memory_;
};

struct Pairs {
  int64_t refused = 0, accepted = 0;
};

bool names_both(const std::string& text, const std::string& a, const std::string& b) {
  const auto reads = [&](const std::string& first, const std::string& second) {
    return text.rfind(first + " = [", 0) == 0 &&
           text.find(" overlaps " + second + " = [") != text.npos;
  };
  return reads(a, b) || reads(b, a);
}

// i lies at `at`, and j at its home.
void check_pair(const Call& call, const Array& i, uint8_t* at, const Array& j, uint8_t* home,
                Pairs* pairs) {
  i.put(at);
  const bool meet = at < home + j.bytes && home < at + i.bytes;
  const bool may_be_one =
      at == home && std::min(i.name, j.name) == "c" && std::max(i.name, j.name) == "d";
  CAPTURE(i.name, j.name, at - home, i.bytes, j.bytes);
  if (may_be_one) return;
  const nvfp4_status status = call.ask();
  INFO((status == NVFP4_SUCCESS ? "" : nvfp4_last_error()));
  if (!meet || !(i.written || j.written)) {
    ++pairs->accepted;
    if (status == NVFP4_STATUS_OVERLAP) CHECK(status == NVFP4_SUCCESS);
    return;
  }
  ++pairs->refused;
  if (status != NVFP4_STATUS_OVERLAP) CHECK(status == NVFP4_STATUS_OVERLAP);
  const bool named = names_both(nvfp4_last_error(), i.name, j.name);
  if (!named) CHECK(named);
  for (const auto& other : call.others) {
    if (other() != NVFP4_STATUS_OVERLAP) CHECK(other() == NVFP4_STATUS_OVERLAP);
  }
}

Pairs check_pairs(Call call, Random& random) {
  Slots slots(call);
  const std::vector<Array>& arrays = call.arrays;
  for (size_t i = 0; i < arrays.size(); ++i) arrays[i].put(slots.home(i));
  Pairs pairs;
  const nvfp4_status apart = call.ask();
  INFO((apart == NVFP4_SUCCESS ? "" : nvfp4_last_error()));
  CHECK(apart != NVFP4_STATUS_OVERLAP);
  for (size_t i = 0; i < arrays.size(); ++i) {
    for (size_t j = 0; j < arrays.size(); ++j) {
      if (i == j) continue;
      uint8_t* const home = slots.home(j);
      const int64_t few =
          1 + int64_t(random.below(uint64_t(std::min<int64_t>(arrays[j].bytes, 9))));
      const int64_t before = ceil_to(arrays[i].bytes - few, arrays[i].alignment);
      const int64_t into_end = (arrays[j].bytes - few) / arrays[i].alignment * arrays[i].alignment;
      const int64_t behind = ceil_to(arrays[j].bytes, arrays[i].alignment);
      for (const int64_t at : {-before, into_end, behind}) {
        check_pair(call, arrays[i], home + at, arrays[j], home, &pairs);
      }
    }
    arrays[i].put(slots.home(i));
  }
  return pairs;
}

// ---- products -----------------------------------------------------------------------------------

struct Product {
  Gemm g = NVFP4_GEMM_DESC_INIT;
  nvfp4_grouped_desc grouped = NVFP4_GROUPED_DESC_INIT;
  bool is_grouped = false, gated = false;
  int32_t capability = 90;

  // Bytes of `rows` lines of `length`, `ld` elements apart, and of further batches.
  int64_t extent(int64_t rows, int64_t ld, int64_t length, int64_t stride) const {
    return (g.l - 1) * stride + (rows - 1) * ld + length;
  }
};

constexpr int32_t kLayouts[] = {NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR};
constexpr int64_t kElementBytes[] = {0, 2, 2, 4};

void draw_operands(Random& random, Product* p) {
  Gemm& g = p->g;
  const auto one_of_two = [&] { return random.below(2) == 0; };
  g.m = 3 + int64_t(random.below(random.below(3) == 0 ? 297 : 40)), g.n = 64, g.k = 64;
  g.l = 1 + int64_t(random.below(3));
  g.a_ld = g.k + 32, g.b_ld = g.k, g.d_ld = g.n + 64;
  g.a_batch_stride = g.m * g.a_ld, g.b_batch_stride = g.n * g.b_ld + 32;
  g.a_scale_layout = kLayouts[random.below(2)], g.b_scale_layout = kLayouts[random.below(2)];
  g.a_scales_batch_stride_bytes = ceil_to(scale_bytes(g.m, g.k / 16, g.a_scale_layout), 16) + 16;
  g.b_scales_batch_stride_bytes = scale_bytes(g.n, g.k / 16, g.b_scale_layout);
  p->capability = one_of_two() ? 90 : 100;
  if (random.below(3) == 0) {
    g.a_type = NVFP4_TYPE_BF16, g.a_scale_layout = NVFP4_SCALE_LAYOUT_UNSET;
    p->capability = 90;
  }
  p->gated = one_of_two(), p->is_grouped = one_of_two();
  if (p->gated) g.alpha2 = 1, g.activation = NVFP4_ACTIVATION_SILU;
  if (p->gated && p->capability == 100) {
    g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
    g.b_scales_batch_stride_bytes = scale_bytes(g.n, g.k / 16, g.b_scale_layout);
  }
  if (p->is_grouped && p->capability == 90 && g.a_type == NVFP4_TYPE_NONE) {
    g.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  }
}

Product draw_product(Random& random) {
  Product p;
  Gemm& g = p.g;
  draw_operands(random, &p);
  g.d_type = p.is_grouped || random.below(2) == 0 ? NVFP4_TYPE_F16 + int32_t(random.below(3))
                                                  : NVFP4_TYPE_NVFP4 + int32_t(random.below(3));
  g.d_batch_stride = (g.m - 1) * g.d_ld + g.n + int64_t(random.below(2)) * 2;
  if (g.d_type >= NVFP4_TYPE_NVFP4) {
    g.d_scale_layout = kLayouts[random.below(2)];
    g.d_scales_batch_stride_bytes = 1024;
  }
  if (!p.gated && random.below(2) == 0) {
    g.c_type = NVFP4_TYPE_F16 + int32_t(random.below(3));
    g.beta = 1, g.c_ld = g.n + 3, g.c_batch_stride = 7;
  }
  if (p.is_grouped) {
    p.grouped.rows_kind = random.below(2) == 0 ? NVFP4_ROWS_ENDS : NVFP4_ROWS_COUNTS;
    if (p.grouped.rows_kind == NVFP4_ROWS_COUNTS) {
      p.grouped.capacity = 1 + int64_t(random.below(uint32_t(g.m / g.l)));
    }
  }
  if (random.below(3) == 0) g.scalar_mode = NVFP4_SCALARS_DEVICE;
  g.a_tensor_scale_rows = int32_t(random.below(2));
  if (random.below(2) == 0) g.bias_type = NVFP4_TYPE_F16 + int32_t(random.below(3));
  g.bias_axis = int32_t(random.below(2));
  if (p.is_grouped && g.bias_type != 0 && g.bias_axis == NVFP4_BIAS_AXIS_COLUMN) {
    p.grouped.bias_group_stride = int64_t(random.below(2)) * (g.n + int64_t(random.below(3)));
  }
  return p;
}

// Scales of A that the groups may have, by the header.
int64_t token_scale_bytes(const Product& p) {
  const Gemm& g = p.g;
  const int64_t scales = g.k / 16;
  if (!p.is_grouped) {
    return (g.l - 1) * g.a_scales_batch_stride_bytes + scale_bytes(g.m, scales, g.a_scale_layout);
  }
  if (g.a_scale_layout == NVFP4_SCALE_LAYOUT_LINEAR) return g.m * scales;
  const int64_t capacity = p.grouped.capacity, begun = std::min(g.m, g.l);
  const int64_t tiles =
      capacity > 0 ? g.l * (ceil_to(capacity, 128) / 128) : begun + (g.m - begun) / 128;
  return tiles * 128 * ceil_to(scales, 4);
}

void add_inputs(Product* p, Call* call) {
  Gemm& g = p->g;
  const int64_t batches = p->is_grouped ? 0 : 1;  // times the strides of A, C and D
  const bool halves = g.a_type != NVFP4_TYPE_NONE;
  const int64_t a = p->extent(g.m, g.a_ld, g.k, batches * g.a_batch_stride);
  call->add("a", &g, &Gemm::a, halves ? 2 * a : a / 2, false);
  if (!halves) call->add("a_scales", &g, &Gemm::a_scales, token_scale_bytes(*p), false);
  const int64_t b = p->extent(g.n, g.b_ld, g.k, g.b_batch_stride) / 2;
  const int64_t b_scales =
      (g.l - 1) * g.b_scales_batch_stride_bytes + scale_bytes(g.n, g.k / 16, g.b_scale_layout);
  call->add("b", &g, &Gemm::b, b, false);
  call->add("b_scales", &g, &Gemm::b_scales, b_scales, false);
  if (p->gated) {
    call->add("b2", &g, &Gemm::b2, b, false);
    call->add("b2_scales", &g, &Gemm::b2_scales, b_scales, false);
    call->add("b2_tensor_scale", &g, &Gemm::b2_tensor_scale, 4, false, 4);
  }
  const int64_t rows = g.a_tensor_scale_rows != 0 ? (p->is_grouped ? 1 : g.l) * g.m : 1;
  call->add("a_tensor_scale", &g, &Gemm::a_tensor_scale, rows * 4, false, 4);
  call->add("b_tensor_scale", &g, &Gemm::b_tensor_scale, 4, false, 4);
  if (g.scalar_mode == NVFP4_SCALARS_DEVICE) {
    call->add("alpha_device", &g, &Gemm::alpha_device, 4, false, 4);
    if (p->gated) call->add("alpha2_device", &g, &Gemm::alpha2_device, 4, false, 4);
    if (g.c_type != 0) call->add("beta_device", &g, &Gemm::beta_device, 4, false, 4);
  }
  if (g.d_type == NVFP4_TYPE_NVFP4) {
    call->add("d_tensor_scale", &g, &Gemm::d_tensor_scale, 4, false, 4);
  }
  if (g.bias_type != 0) {
    const int64_t size = kElementBytes[g.bias_type];
    const int64_t others = p->is_grouped ? (g.l - 1) * p->grouped.bias_group_stride : 0;
    const int64_t bytes = (others + (g.bias_axis == NVFP4_BIAS_AXIS_COLUMN ? g.n : g.m)) * size;
    call->add("bias", &g, &Gemm::bias, bytes, false, size);
    if (p->gated) call->add("bias2", &g, &Gemm::bias2, bytes, false, size);
  }
  if (g.c_type != 0) {
    const int64_t elements = p->extent(g.m, g.c_ld, g.n, batches * g.c_batch_stride);
    call->add("c", &g, &Gemm::c, elements * kElementBytes[g.c_type], false);
  }
}

void add_groups(Product* p, Call* call) {
  using Grouped = nvfp4_grouped_desc;
  Grouped& x = p->grouped;
  const int64_t bytes = p->g.l * 4;
  call->add("rows", &x, &Grouped::rows, bytes, false, 4);
  if (p->g.a_scale_layout == NVFP4_SCALE_LAYOUT_128X4) {
    call->add("scale_rows", &x, &Grouped::scale_rows, bytes, false, 4);
  }
  if (p->g.scalar_mode == NVFP4_SCALARS_DEVICE) return;
  call->add("group_alpha", &x, &Grouped::group_alpha, bytes, false, 4);
  if (p->gated) call->add("group_alpha2", &x, &Grouped::group_alpha2, bytes, false, 4);
}

void add_outputs(Product* p, Call* call) {
  Gemm& g = p->g;
  const int64_t batches = p->is_grouped ? 0 : 1;
  const int64_t d = p->extent(g.m, g.d_ld, g.n, batches * g.d_batch_stride);
  const bool codes = g.d_type >= NVFP4_TYPE_NVFP4;
  call->add("d", &g, &Gemm::d, codes ? d / 2 : d * kElementBytes[g.d_type], true);
  if (codes) {
    const int64_t scales = g.n / (g.d_type == NVFP4_TYPE_MXFP4 ? 32 : 16);
    call->add(
        "d_scales", &g, &Gemm::d_scales,
        (g.l - 1) * g.d_scales_batch_stride_bytes + scale_bytes(g.m, scales, g.d_scale_layout),
        true);
  }
  // With maxima a gated product of 9.0 needs less workspace than a question without them says.
  if (p->gated && !p->is_grouped && p->capability == 90) return;
  call->add("d_amax", &g, &Gemm::d_amax, 4, true, 4);
  call->add("d_row_amax", &g, &Gemm::d_row_amax, (p->is_grouped ? 1 : g.l) * g.m * 4, true, 4);
}

// False if no kernel takes such a product.
bool make_call(Product* p, Call* call) {
  p->grouped.gemm = &p->g;
  uint64_t workspace = 0;
  const nvfp4_status status =
      p->is_grouped ? nvfp4_grouped_workspace_bytes(&p->grouped, p->capability, &workspace)
                    : nvfp4_gemm_workspace_bytes(&p->g, p->capability, &workspace);
  if (status == NVFP4_STATUS_NOT_SUPPORTED) return false;
  INFO(nvfp4_last_error());
  REQUIRE(status == NVFP4_SUCCESS);
  add_inputs(p, call);
  if (p->is_grouped) add_groups(p, call);
  add_outputs(p, call);
  if (workspace > 0) {
    call->add("workspace", &p->g, &Gemm::workspace, int64_t(workspace), true);
    p->g.workspace_bytes = workspace;
  }
  call->ask = [p] {
    return p->is_grouped ? nvfp4_grouped_supported(&p->grouped, p->capability)
                         : nvfp4_gemm_supported(&p->g, p->capability);
  };
  return true;
}

}  // namespace

TEST_CASE("Products refuse what they write over any other array and name both", "[overlap]") {
  Random random(53);
  Pairs sum;
  int64_t kinds[2][2] = {};
  for (int i = 0; i < 60; ++i) {
    Product p = draw_product(random);
    Call call;
    CAPTURE(i, p.is_grouped, p.gated, p.capability);
    if (!make_call(&p, &call)) continue;
    for (const Array& array : call.arrays) array.put(nullptr);
    const Pairs pairs = check_pairs(call, random);
    sum.refused += pairs.refused, sum.accepted += pairs.accepted;
    ++kinds[p.is_grouped][p.gated];
  }
  CHECK(std::min({kinds[0][0], kinds[0][1], kinds[1][0], kinds[1][1]}) > 5);
  std::printf("overlap: %lld pairs refused, %lld accepted\n", (long long)sum.refused,
              (long long)sum.accepted);
}

TEST_CASE("Products refuse the same when they run and in the reference", "[overlap]") {
  Random random(54);
  for (int i = 0; i < 20; ++i) {
    Product p = draw_product(random);
    Call call;
    CAPTURE(i, p.is_grouped, p.gated);
    if (!make_call(&p, &call)) continue;
    // These have no workspace before they have a device, and the reference never has.
    if (call.arrays.back().name == "workspace") call.arrays.pop_back();
    std::vector<uint8_t> workspace(p.g.workspace_bytes + 16);
    p.g.workspace =
        reinterpret_cast<void*>((reinterpret_cast<uintptr_t>(workspace.data()) + 15) / 16 * 16);
    const auto run = [&] {
      return p.is_grouped ? nvfp4_grouped_run(&p.grouped, nullptr) : nvfp4_gemm_run(&p.g, nullptr);
    };
    const auto reference = [&] {
      return p.is_grouped ? nvfp4_grouped_reference(&p.grouped) : nvfp4_gemm_reference(&p.g);
    };
    call.others = {run, reference};
    CHECK(check_pairs(call, random).refused > 0);
  }
}

TEST_CASE("Scales of groups by counts end with the tiles of the last capacity", "[overlap]") {
  Random random(58);
  for (int found = 0; found < 3;) {
    Product p = draw_product(random);
    const bool tiles = p.g.a_scale_layout == NVFP4_SCALE_LAYOUT_128X4;
    const int64_t begun = p.g.l + (p.g.m - p.g.l) / 128;
    const bool fewer = p.g.l * (ceil_to(p.grouped.capacity, 128) / 128) < begun;
    if (!p.is_grouped || p.grouped.capacity == 0 || !tiles || !fewer) continue;
    Call call;
    REQUIRE(make_call(&p, &call));
    CHECK(check_pairs(call, random).refused > 0);
    ++found;
  }
}

// ---- quantizers ---------------------------------------------------------------------------------

namespace {

constexpr int64_t kRows = 5, kK = 64, kLd = 96;

}  // namespace

TEST_CASE("Quantizers refuse what they write over any other array and name both", "[overlap]") {
  using Quantize = nvfp4_quantize_desc;
  Random random(55);
  for (int32_t mode = NVFP4_TENSOR_SCALE_VALUE; mode <= NVFP4_TENSOR_SCALE_FROM_ROW_AMAX; ++mode) {
    CAPTURE(mode);
    Quantize q = NVFP4_QUANTIZE_DESC_INIT;
    q.rows = kRows, q.k = kK, q.x_ld = q.codes_ld = kLd, q.x_type = NVFP4_TYPE_F32;
    q.scale_layout = kLayouts[mode % 2], q.tensor_scale = 1, q.tensor_scale_mode = mode;
    Call call;
    // Its header lets not even two arrays that are read share bytes.
    call.add("x", &q, &Quantize::x, ((kRows - 1) * kLd + kK) * 4, true, 4);
    call.add("codes", &q, &Quantize::codes, ((kRows - 1) * kLd + kK) / 2, true, 1);
    call.add("scales", &q, &Quantize::scales, scale_bytes(kRows, kK / 16, q.scale_layout), true, 1);
    if (mode != NVFP4_TENSOR_SCALE_VALUE) {
      const int64_t count = mode >= NVFP4_TENSOR_SCALE_ROW_AMAX ? kRows : 1;
      call.add("tensor_scale_device", &q, &Quantize::tensor_scale_device, count * 4, true, 4);
    }
    call.ask = [&] { return nvfp4_quantize_reference(&q); };
    CHECK(check_pairs(call, random).refused > 0);
    uint64_t workspace = 0;
    REQUIRE(nvfp4_quantize_workspace_bytes(&q, &workspace) == NVFP4_SUCCESS);
    q.workspace_bytes = workspace;
    if (workspace > 0) {
      call.add("workspace", &q, &Quantize::workspace, int64_t(workspace), true, 4);
    }
    call.ask = [&] { return nvfp4_quantize(&q, nullptr); };
    CHECK(check_pairs(call, random).refused > 0);
  }
}

TEST_CASE("Fused quantizers refuse what they write over any other array and name both",
          "[overlap]") {
  using Fused = nvfp4_fused_quantize_desc;
  Random random(56);
  for (int i = 0; i < 6; ++i) {
    Fused q = NVFP4_FUSED_QUANTIZE_DESC_INIT;
    const bool norm = i % 2 == 1;
    constexpr int32_t kModes[] = {NVFP4_TENSOR_SCALE_VALUE, NVFP4_TENSOR_SCALE_DEVICE,
                                  NVFP4_TENSOR_SCALE_ROW_AMAX};
    q.tensor_scale_mode = kModes[i / 2], q.tensor_scale = 1;
    q.operation = norm ? NVFP4_FUSED_RMS_NORM : NVFP4_FUSED_SILU_MUL;
    q.epsilon = norm ? 1.0f : 0.0f;
    q.rows = kRows, q.k = kK, q.x_ld = q.y_ld = q.codes_ld = kLd, q.type = NVFP4_TYPE_BF16;
    q.scale_layout = kLayouts[random.below(2)];
    Call call;
    const int64_t matrix = ((kRows - 1) * kLd + kK) * 2;
    call.add("x", &q, &Fused::x, matrix, false, 2);
    call.add("y", &q, &Fused::y, matrix, norm, 2);
    if (norm) call.add("weight", &q, &Fused::weight, kK * 2, false, 2);
    call.add("codes", &q, &Fused::codes, matrix / 4, true, 1);
    call.add("scales", &q, &Fused::scales, scale_bytes(kRows, kK / 16, q.scale_layout), true, 1);
    if (q.tensor_scale_mode != NVFP4_TENSOR_SCALE_VALUE) {
      const bool rows = q.tensor_scale_mode == NVFP4_TENSOR_SCALE_ROW_AMAX;
      call.add("tensor_scale_device", &q, &Fused::tensor_scale_device, (rows ? kRows : 1) * 4, rows,
               4);
    }
    call.ask = [&] { return nvfp4_fused_quantize_host(&q); };
    call.others = {[&] { return nvfp4_fused_quantize(&q, nullptr); }};
    CHECK(check_pairs(call, random).refused > 0);
  }
}

TEST_CASE("Host functions refuse arrays that share bytes and name both", "[overlap]") {
  struct Arrays {
    float* x;
    void *codes, *scales, *src, *dst;
  } at{};
  Random random(57);
  for (const int32_t layout : kLayouts) {
    Call call;
    call.add("x", &at, &Arrays::x, ((kRows - 1) * kLd + kK) * 4, true, 4);
    call.add("codes", &at, &Arrays::codes, ((kRows - 1) * kLd + kK) / 2, true, 1);
    call.add("scales", &at, &Arrays::scales, scale_bytes(kRows, kK / 16, layout), true, 1);
    call.ask = [&] {
      return nvfp4_quantize_host(at.x, kLd, kRows, kK, 1, at.codes, kLd, at.scales, layout);
    };
    call.others = {[&] {
      return nvfp4_dequantize_host(at.codes, kLd, at.scales, layout, kRows, kK, 1, at.x, kLd);
    }};
    CHECK(check_pairs(call, random).refused > 0);
    const int32_t other = kLayouts[0] + kLayouts[1] - layout;
    Call convert;
    convert.add("src", &at, &Arrays::src, scale_bytes(kRows, kK / 16, layout), false, 1);
    convert.add("dst", &at, &Arrays::dst, scale_bytes(kRows, kK / 16, other), true, 1);
    convert.ask = [&] {
      return nvfp4_scale_convert_host(at.src, layout, at.dst, other, kRows, kK);
    };
    convert.others = {
        [&] { return nvfp4_scale_convert(at.src, layout, at.dst, other, kRows, kK, nullptr); }};
    CHECK(check_pairs(convert, random).refused > 0);
  }
}
