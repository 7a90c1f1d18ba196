// SPDX-License-Identifier: MIT
#include "host/run/selftest.h"

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstdlib>
#include <cstring>

#include "host/base/formats.h"
#include "host/base/size.h"
#include "host/plan/checked.h"
#include "host/plan/plan.h"
#include "host/reference/reference.h"
#include "host/reference/scale_layout.h"
#include "host/run/enqueue.h"
#include "host/run/launch.h"
#include "kernel/common/scale_tile.h"

namespace nvfp4 {

namespace {

// Five k-blocks, the last with one step of 64. Every group of consumer warps has a k-block, and
// split-K has partitions to assign. A variant multiplies as many tokens and weights as fill one of
// its tiles and begin another, which have remainders in M and N.
constexpr int64_t kM = 72, kN = 136, kK = 1088;
constexpr uint64_t kAlignment = 256;

// The products that each variant computes. kGeneral has a K that ends inside
// the last step and inside 16 bytes of codes, C, a bias, tensor scales and scalars on the device,
// an activation, and a D whose rows have any alignment. kFields is the same for a K of whole steps,
// and runs if a variant has an entry for it. kScaled runs if a variant has an entry for
// it: it has D in NVFP4 with linear scales, and a short K. kWrapping is a single tile with linear
// scales whose ring begins a second round; on 9.0 these scales have their own loop of loads.
enum Product : uint32_t { kPlain, kGeneral, kFields, kScaled, kWrapping, kProducts };
constexpr uint32_t kExpected = kWrapping;  // products before it have one expected D
constexpr int64_t kTailK = kK - 16, kGeneralLd = kN + 1;
constexpr int64_t kFactorColumns = 64;
constexpr int64_t kScaledN = 128, kScaledK = 256;  // one tile of scales down, so any K across

struct Shape {
  int64_t m, n, k, d_ld;
};

Shape shape_of(const Variant& v, Product product) {
  if (product == kWrapping) return {v.tile_tokens, v.tile_weights, wrapping_k(v), v.tile_weights};
  const int64_t m = std::min(kM, int64_t{1} + v.tile_tokens);
  const int64_t n = std::min(kN, int64_t{8} + v.tile_weights);
  if (product == kScaled) return {m, kScaledN, kScaledK, kScaledN};
  if (product == kFields) return {m, n, kK, kGeneralLd};
  return product == kGeneral ? Shape{m, n, kTailK, kGeneralLd} : Shape{m, n, kK, kN};
}

const char* words_of(Product product) {
  constexpr const char* kWords[kProducts] = {"plain", "general", "fields", "scaled", "wrapping"};
  return kWords[product];
}

constexpr uint64_t up(uint64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

constexpr uint64_t scale_tiles(int64_t rows) {
  return static_cast<uint64_t>(ceil_div(rows, int64_t{kScaleTileRows}) * (kK / kScaleTileK));
}

// Scalars and tensor scales as stored in the workspace.
struct Scalars {
  float alpha, beta, a_tensor_scale;
  float b_tensor_scales[ceil_div(kN, kFactorColumns)];
};
constexpr Scalars kScalars = {0.5f, -0.75f, 1.5f, {0.25f, 1.0f, 0.375f}};

// Layout of the workspace; host memory has the same layout up to `image`. Tokens are stored packed,
// in fp16 and in bf16. The operands of the wrapping product are as large as the largest variant's.
constexpr uint64_t kDBytes = up(kM * kGeneralLd * sizeof(uint16_t));
constexpr uint64_t kWrappingDBytes = up(kMostTileElements * sizeof(uint16_t));
constexpr uint64_t kVariantDBytes = kWrapping * kDBytes + kWrappingDBytes;
constexpr uint64_t kMost = kMostWrappingElements;

struct TokensAt {
  uint64_t codes, scales, f16, bf16, end;
  int64_t elements;
};
constexpr TokensAt tokens_at(uint64_t begin, int64_t elements, uint64_t scale_bytes) {
  TokensAt at{};
  at.elements = elements;
  at.codes = begin;
  at.scales = at.codes + up(elements / 2);
  at.f16 = at.scales + up(scale_bytes);
  at.bf16 = at.f16 + up(elements * sizeof(uint16_t));
  at.end = at.bf16 + up(elements * sizeof(uint16_t));
  return at;
}
constexpr TokensAt kTokens = tokens_at(0, kM* kK, scale_tiles(kM) * kScaleTileBytes);
constexpr TokensAt kWrappingTokens = tokens_at(kTokens.end, kMost, kMost / 16);
constexpr uint64_t kB = kWrappingTokens.end;
constexpr uint64_t kBScales = kB + up(kN * kK / 2);
constexpr uint64_t kWrappingB = kBScales + up(scale_tiles(kN) * kScaleTileBytes);
constexpr uint64_t kWrappingBScales = kWrappingB + up(kMost / 2);
constexpr uint64_t kC = kWrappingBScales + up(kMost / 16);
constexpr uint64_t kBias = kC + up(kM * kN * sizeof(uint16_t));
constexpr uint64_t kScalarsAt = kBias + up(kN * sizeof(float));
constexpr uint64_t kD = kScalarsAt + up(sizeof(Scalars));
constexpr uint64_t kImageBytes = kD + kVariantCount * kVariantDBytes;  // a workspace follows

uint64_t d_of(const Variant& variant, Product product) {
  return kD + index_of(variant) * kVariantDBytes + product * kDBytes;
}

const TokensAt& tokens_of(Product product) {
  return product == kWrapping ? kWrappingTokens : kTokens;
}

void describe_tokens(int32_t a_type, const TokensAt& tokens, uintptr_t base, nvfp4_gemm_desc* g) {
  g->a_type = a_type;
  const uint64_t at = a_type == NVFP4_TYPE_F16    ? tokens.f16
                      : a_type == NVFP4_TYPE_BF16 ? tokens.bf16
                                                  : tokens.codes;
  g->a = reinterpret_cast<void*>(base + at);
  if (a_type == NVFP4_TYPE_NONE) g->a_scales = reinterpret_cast<void*>(base + tokens.scales);
}

void describe_general(uintptr_t base, nvfp4_gemm_desc* g) {
  const auto scalar = [base](uint64_t offset) {
    return reinterpret_cast<const float*>(base + kScalarsAt + offset);
  };
  g->c = reinterpret_cast<void*>(base + kC);
  g->c_ld = kN;
  g->c_type = g->d_type = NVFP4_TYPE_BF16;
  g->bias = reinterpret_cast<void*>(base + kBias);
  g->bias_type = NVFP4_TYPE_F32;
  g->activation = NVFP4_ACTIVATION_SILU;
  g->scalar_mode = NVFP4_SCALARS_DEVICE;
  g->alpha_device = scalar(offsetof(Scalars, alpha));
  g->beta_device = scalar(offsetof(Scalars, beta));
  g->a_tensor_scale = scalar(offsetof(Scalars, a_tensor_scale));
  g->b_tensor_scale = scalar(offsetof(Scalars, b_tensor_scales));
  g->b_tensor_scale_columns = kFactorColumns;
}

// The codes, followed by the scales of kM rows.
constexpr int64_t kWordsOfCodes = kScaledN / 4, kWordsOfScales = kScaledN / 32;  // of a row
constexpr uint64_t kScalesOfD = kM * kWordsOfCodes * sizeof(uint16_t);
static_assert(kScalesOfD % 16 == 0 && kScalesOfD + kM * kWordsOfScales * 2 <= kDBytes);

void describe_scaled(nvfp4_gemm_desc* g) {
  g->d_type = NVFP4_TYPE_NVFP4;
  g->d_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  g->d_scales = static_cast<uint8_t*>(g->d) + kScalesOfD;
}

// `bytes` may be NULL if nothing is stored yet and only sizes are needed.
nvfp4_gemm_desc describe(const Shape& shape, Product product, int32_t a_type, uint8_t* bytes,
                         uint64_t d) {
  const uintptr_t base = reinterpret_cast<uintptr_t>(bytes);
  const bool wraps = product == kWrapping;
  nvfp4_gemm_desc g{};
  g.struct_size = sizeof g;
  g.m = shape.m, g.n = shape.n, g.k = shape.k, g.l = 1;
  describe_tokens(a_type, tokens_of(product), base, &g);
  g.b = reinterpret_cast<void*>(base + (wraps ? kWrappingB : kB));
  g.b_scales = reinterpret_cast<void*>(base + (wraps ? kWrappingBScales : kBScales));
  g.a_ld = g.b_ld = wraps ? shape.k : kK;
  g.a_scale_layout = g.b_scale_layout =
      wraps ? NVFP4_SCALE_LAYOUT_LINEAR : NVFP4_SCALE_LAYOUT_128X4;
  g.d = reinterpret_cast<void*>(base + d);
  g.d_ld = shape.d_ld;
  g.d_type = NVFP4_TYPE_F16;
  g.alpha = kScalars.alpha;
  if (product == kGeneral || product == kFields) describe_general(base, &g);
  if (product == kScaled) describe_scaled(&g);
  return g;
}

// ---- In host memory alone, after the image ----

// D that all variants for tokens of a type must compute, one D after the other, then the wrapping
// product of the variant that is compared.
uint64_t expected_at(int32_t a_type, Product product) {
  return kImageBytes + (static_cast<uint32_t>(a_type) * kExpected + product) * kDBytes;
}
static_assert(NVFP4_TYPE_NONE == 0 && NVFP4_TYPE_F16 == 1 && NVFP4_TYPE_BF16 == 2);
constexpr uint64_t kExpectedWrapping = kImageBytes + 3 * kExpected * kDBytes;
// The 16-bit tokens packed with scales of 1, which the reference multiplies much faster.
constexpr uint64_t kTokenCodes = kExpectedWrapping + kWrappingDBytes;
constexpr uint64_t kWrappingTokenCodes = kTokenCodes + up(kM * kK / 2);
constexpr uint64_t kOnes = kWrappingTokenCodes + up(kMost / 2);
constexpr uint64_t kOnesBytes = std::max(scale_tiles(kM) * kScaleTileBytes, kMost / 16);
constexpr uint64_t kHostBytes = kOnes + up(kOnesBytes);

class Random {
 public:
  uint32_t next() {
    state_ = state_ * 1664525 + 1013904223;  // full period of 2^32
    return state_ >> 16;
  }

 private:
  uint32_t state_ = 1;
};

// Random codes with scales of 1/2, 1 or 2.
void fill_codes(uint8_t* image, uint64_t from, uint64_t to, Random* random) {
  for (uint64_t i = from; i < to; ++i) image[i] = static_cast<uint8_t>(random->next());
}
void fill_scales(uint8_t* image, uint64_t from, uint64_t to, Random* random) {
  for (uint64_t i = from; i < to; ++i) {
    image[i] = static_cast<uint8_t>(0x30 + random->next() % 3 * 8);
  }
}

void put16(uint8_t* image, uint64_t at, uint64_t i, uint32_t value) {
  const uint16_t bits = static_cast<uint16_t>(value);
  memcpy(image + at + 2 * i, &bits, sizeof bits);
}

// Tokens packed and in 16 bits with the same values; the codes of the latter go to `codes16`.
void fill_tokens(uint8_t* image, const TokensAt& tokens, uint64_t codes16, Random* random) {
  constexpr uint16_t kF16[8] = {0, 0x3800, 0x3C00, 0x3E00, 0x4000, 0x4200, 0x4400, 0x4600};
  constexpr uint16_t kBf16[8] = {0, 0x3F00, 0x3F80, 0x3FC0, 0x4000, 0x4040, 0x4080, 0x40C0};
  fill_codes(image, tokens.codes, tokens.scales, random);
  fill_scales(image, tokens.scales, tokens.f16, random);
  memset(image + codes16, 0, static_cast<uint64_t>(tokens.elements / 2));
  for (uint64_t i = 0; i < static_cast<uint64_t>(tokens.elements); ++i) {
    const uint32_t code = random->next() & 15, sign = code << 12 & 0x8000;
    put16(image, tokens.f16, i, sign | kF16[code % 8]);
    put16(image, tokens.bf16, i, sign | kBf16[code % 8]);
    image[codes16 + i / 2] |= static_cast<uint8_t>(code << i % 2 * 4);
  }
}

// Sums of at most 7,281 products are then exact in every order (docs/numerics.md), so each variant
// must give the reference's bits. D is filled with 0xFF, which no product has.
void fill_image(uint8_t* image) {
  Random random;
  fill_tokens(image, kTokens, kTokenCodes, &random);
  fill_tokens(image, kWrappingTokens, kWrappingTokenCodes, &random);
  memset(image + kOnes, 0x38, kHostBytes - kOnes);
  fill_codes(image, kB, kBScales, &random);
  fill_scales(image, kBScales, kWrappingB, &random);
  fill_codes(image, kWrappingB, kWrappingBScales, &random);
  fill_scales(image, kWrappingBScales, kC, &random);
  for (uint64_t i = 0; i < kM * kN; ++i) put16(image, kC, i, 0x3F00 + random.next() % 0x300);
  for (uint64_t i = 0; i < kN; ++i) {
    const float bias = static_cast<float>(random.next() % 64) - 32;
    memcpy(image + kBias + 4 * i, &bias, sizeof bias);
  }
  memcpy(image + kScalarsAt, &kScalars, sizeof kScalars);
  memset(image + kD, 0xFF, kImageBytes - kD);
}

struct HostMemory {
  uint8_t* bytes;
  explicit HostMemory(size_t size) : bytes(static_cast<uint8_t*>(malloc(size))) {}
  ~HostMemory() { free(bytes); }
  HostMemory(const HostMemory&) = delete;
  HostMemory& operator=(const HostMemory&) = delete;
};

// 0: the planner chooses.
uint32_t split_of(Product product) { return product == kWrapping ? 1 : 0; }

nvfp4_status plan_for(const Variant& variant, Product product, uint32_t arch, Plan* plan) {
  nvfp4_gemm_desc g = describe(shape_of(variant, product), product, variant.a_type, nullptr, 0);
  g.variant = name_of({&variant, split_of(product), false});
  const CheckedGemm checked{&g, &variant, false, true, split_of(product)};
  return make_plan_on(checked, arch, plan);
}

nvfp4_status refuse_capture(const Site& site, CUstream stream) {
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  const CUresult result = site.driver->cuStreamIsCapturing(stream, &capture);
  if (result != CUDA_SUCCESS) return driver_failure(*site.driver, "cuStreamIsCapturing", result);
  if (capture == CU_STREAM_CAPTURE_STATUS_NONE) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_INVALID_VALUE,
              "stream = %p is being captured, and nvfp4_selftest waits for it",
              static_cast<void*>(stream));
}

// Calls f(variant, product) for all variants that serve the architecture, until one fails.
template <typename F>
nvfp4_status for_each_product(const Architecture& arch, const F& f) {
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    if (!serves(variant_at(i), arch)) continue;
    NVFP4_TRY(f(variant_at(i), kPlain));
    NVFP4_TRY(f(variant_at(i), kGeneral));
    if (variant_at(i).has(kOperation_fields)) NVFP4_TRY(f(variant_at(i), kFields));
    if (variant_at(i).has(kOperation_scaled)) NVFP4_TRY(f(variant_at(i), kScaled));
    NVFP4_TRY(f(variant_at(i), kWrapping));
  }
  return NVFP4_SUCCESS;
}

nvfp4_status enqueue_product(const Site& site, const Variant& variant, Product product,
                             uint8_t* base, uint64_t workspace_bytes, CUstream stream) {
  nvfp4_gemm_desc g =
      describe(shape_of(variant, product), product, variant.a_type, base, d_of(variant, product));
  g.variant = name_of({&variant, split_of(product), false});
  g.workspace = base + kImageBytes;
  g.workspace_bytes = workspace_bytes - kImageBytes;
  CheckedGemm checked;
  PreparedGemm prepared{};
  NVFP4_TRY(check_gemm(&g, Caller::run, &checked));
  NVFP4_TRY(prepare_gemm(site, checked, &prepared));
  return enqueue_gemm(site, prepared, prepared.desc, prepared.params, stream);
}

// Copies operands to the device, computes the products and copies results back. When it returns no
// host memory is in use.
nvfp4_status compute(const Site& site, const Architecture& arch, uint8_t* image, void* workspace,
                     uint64_t workspace_bytes, CUstream stream) {
  const Driver& driver = *site.driver;
  const CUdeviceptr base = reinterpret_cast<CUdeviceptr>(workspace);
  CUresult result = driver.cuMemcpyHtoDAsync(base, image, kImageBytes, stream);
  if (result != CUDA_SUCCESS) return driver_failure(driver, "cuMemcpyHtoDAsync", result);
  nvfp4_status status = for_each_product(arch, [&](const Variant& variant, Product product) {
    return enqueue_product(site, variant, product, static_cast<uint8_t*>(workspace),
                           workspace_bytes, stream);
  });
  if (status == NVFP4_SUCCESS) {
    result = driver.cuMemcpyDtoHAsync(image + kD, base + kD, kImageBytes - kD, stream);
    if (result != CUDA_SUCCESS) status = driver_failure(driver, "cuMemcpyDtoHAsync", result);
  }
  result = driver.cuStreamSynchronize(stream);
  if (status != NVFP4_SUCCESS || result == CUDA_SUCCESS) return status;
  return driver_failure(driver, "cuStreamSynchronize", result);
}

// Computes the reference's D in host memory. 16-bit tokens have the same values as the codes.
void compute_reference(const Shape& shape, Product product, int32_t a_type, uint8_t* memory,
                       uint64_t d) {
  nvfp4_gemm_desc g = describe(shape, product, NVFP4_TYPE_NONE, memory, d);
  if (a_type != NVFP4_TYPE_NONE) {
    g.a = memory + kTokenCodes;
    g.a_scales = memory + kOnes;
  }
  reference_gemm(g);
}

// Computes it for the token types that the architecture has variants for.
void compute_expected(const Architecture& arch, uint8_t* memory) {
  bool known[3] = {};
  memset(memory + kImageBytes, 0xFF, kTokenCodes - kImageBytes);
  for (uint32_t i = 0; i < kVariantCount; ++i) {
    const int32_t a_type = variant_at(i).a_type;
    if (!serves(variant_at(i), arch) || known[a_type]) continue;
    known[a_type] = true;
    compute_reference({kM, kN, kK, kN}, kPlain, a_type, memory, expected_at(a_type, kPlain));
    compute_reference({kM, kN, kTailK, kGeneralLd}, kGeneral, a_type, memory,
                      expected_at(a_type, kGeneral));
    compute_reference({kM, kN, kK, kGeneralLd}, kFields, a_type, memory,
                      expected_at(a_type, kFields));
    compute_reference({kM, kScaledN, kScaledK, kScaledN}, kScaled, a_type, memory,
                      expected_at(a_type, kScaled));
  }
}

// The first of `count` words that differ; `count` if none does. A row has `row` words, of which
// `known` are expected; the others are 0xFFFF.
struct Difference {
  int64_t at = 0;
  uint16_t got = 0, want = 0;

  Difference(const uint8_t* got_words, const uint8_t* expected, int64_t count, int64_t row = 1,
             int64_t known = 1) {
    for (; at < count; ++at) {
      want = 0xFFFF;
      memcpy(&got, got_words + 2 * at, sizeof got);
      if (at % row < known) memcpy(&want, expected + 2 * at, sizeof want);
      if (got != want) return;
    }
  }
};

// `got` has rows of D and the gaps between them, where nothing may be stored.
nvfp4_status compare_rows(const Variant& variant, Product product, int64_t first, int64_t rows,
                          const uint8_t* got_rows, const uint8_t* expected) {
  const Shape shape = shape_of(variant, product);
  const int64_t d_ld = shape.d_ld;
  const Difference found(got_rows, expected, rows * d_ld, d_ld, shape.n);
  if (found.at == rows * d_ld) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_WRONG_RESULT,
              "variant %s computes 0x%04X in row %" PRId64 ", column %" PRId64
              " of the self test's %s product, which is 0x%04X",
              variant.name, found.got, first + found.at / d_ld, found.at % d_ld, words_of(product),
              found.want);
}

// Compares the first and the last row only: a stage that was read too early spoils all rows, and
// the reference of all rows would take most of the self test's time.
nvfp4_status compare_wrapping(const Variant& variant, uint8_t* memory) {
  const Shape shape = shape_of(variant, kWrapping);
  const uint8_t* const d = memory + d_of(variant, kWrapping);
  const int64_t last = shape.m - 1;
  for (int64_t row = 0; row < shape.m; row += std::max<int64_t>(last, 1)) {
    nvfp4_gemm_desc g = describe({1, shape.n, shape.k, shape.n}, kWrapping, NVFP4_TYPE_NONE, memory,
                                 kExpectedWrapping);
    const bool packed = variant.a_type == NVFP4_TYPE_NONE;
    g.a = memory + (packed ? kWrappingTokens.codes : kWrappingTokenCodes) + row * shape.k / 2;
    g.a_scales = memory + (packed ? kWrappingTokens.scales + row * shape.k / 16 : kOnes);
    reference_gemm(g);
    NVFP4_TRY(compare_rows(variant, kWrapping, row, 1, d + 2 * row * shape.d_ld,
                           memory + kExpectedWrapping));
  }
  return NVFP4_SUCCESS;
}

nvfp4_status compare_words(const Variant& variant, const char* what, int64_t words_a_row,
                           int64_t rows, const uint8_t* got_rows, const uint8_t* expected) {
  const Difference found(got_rows, expected, rows * words_a_row);
  if (found.at == rows * words_a_row) return NVFP4_SUCCESS;
  return fail(NVFP4_STATUS_WRONG_RESULT,
              "variant %s computes 0x%04X as word %" PRId64 " of the %s of row %" PRId64
              " of the self test's scaled product, which is 0x%04X",
              variant.name, found.got, found.at % words_a_row, what, found.at / words_a_row,
              found.want);
}

nvfp4_status compare_scaled(const Variant& variant, const uint8_t* memory) {
  const int64_t m = shape_of(variant, kScaled).m;
  const uint8_t* const got = memory + d_of(variant, kScaled);
  const uint8_t* const want = memory + expected_at(variant.a_type, kScaled);
  NVFP4_TRY(compare_words(variant, "codes", kWordsOfCodes, m, got, want));
  return compare_words(variant, "scales", kWordsOfScales, m, got + kScalesOfD, want + kScalesOfD);
}

nvfp4_status compare(const Variant& variant, Product product, uint8_t* memory) {
  if (product == kWrapping) return compare_wrapping(variant, memory);
  if (product == kScaled) return compare_scaled(variant, memory);
  return compare_rows(variant, product, 0, shape_of(variant, product).m,
                      memory + d_of(variant, product),
                      memory + expected_at(variant.a_type, product));
}

}  // namespace

uint64_t selftest_bytes(int32_t capability) {
  uint64_t most = 0;
  bool served = false;
  for (uint32_t arch = 0; arch < kArchitectureCount; ++arch) {
    if (kArchitectures[arch].capability != capability) continue;
    for_each_product(kArchitectures[arch], [&](const Variant& variant, Product product) {
      Plan plan;
      if (plan_for(variant, product, arch, &plan) == NVFP4_SUCCESS) {
        served = true;
        if (plan.workspace_bytes > most) most = plan.workspace_bytes;
      }
      return NVFP4_SUCCESS;
    });
  }
  return served ? kImageBytes + most : 0;
}

nvfp4_status run_selftest(void* workspace, uint64_t workspace_bytes, void* stream) {
  Site site;
  uint32_t arch;
  NVFP4_TRY(find_site(&site));
  NVFP4_TRY(site_architecture(site, &arch));
  const uint64_t bytes = selftest_bytes(site.capability);
  if (workspace_bytes < bytes) {
    return fail(NVFP4_STATUS_INVALID_VALUE,
                "workspace_bytes = %" PRIu64 " is less than the %" PRIu64
                " that nvfp4_selftest_bytes() says",
                workspace_bytes, bytes);
  }
  const CUstream queue = static_cast<CUstream>(stream);
  NVFP4_TRY(check_stream(site, queue));
  NVFP4_TRY(refuse_capture(site, queue));
  const HostMemory memory(kHostBytes);
  if (memory.bytes == nullptr) {
    return fail(NVFP4_STATUS_OUT_OF_MEMORY, "no %" PRIu64 " bytes of host memory for the self test",
                kHostBytes);
  }
  fill_image(memory.bytes);
  compute_expected(kArchitectures[arch], memory.bytes);
  NVFP4_TRY(compute(site, kArchitectures[arch], memory.bytes, workspace, workspace_bytes, queue));
  return for_each_product(kArchitectures[arch], [&](const Variant& variant, Product product) {
    return compare(variant, product, memory.bytes);
  });
}

}  // namespace nvfp4
