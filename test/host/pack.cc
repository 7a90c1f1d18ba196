// SPDX-License-Identifier: MIT
// Packed weights without a device: sizes, rules, the packer beside docs/packing.md, and the
// reference, which reads packed weights by code of its own.
#include <cstring>
#include <functional>

#include "nvfp4_gemm.h"
#include "tools/harness/formats.h"
#include "tools/harness/problem.h"
#include "tools/harness/random_gemm.h"
#include "tools/testing/catch.h"

namespace {

using support::Operand;
using support::Random;

bool says(const char* words) { return std::strstr(nvfp4_last_error(), words) != nullptr; }

constexpr int32_t kPacking = NVFP4_PACKING_SM90_1;
constexpr int32_t kFormats[] = {NVFP4_OPERAND_FORMAT_NVFP4, NVFP4_OPERAND_FORMAT_MXFP4,
                                NVFP4_OPERAND_FORMAT_E2M1_UE8M0};

// ---- One matrix --------------------------------------------------------------------------------

struct Weights {
  int64_t n, k, l, ld, codes_stride, scales_stride, packed_stride;
  int32_t format, layout;
  std::vector<uint8_t> codes, scales, packed;

  Weights(int64_t rows, int64_t columns, int32_t format_, int32_t layout_, int64_t matrices = 1)
      : n(rows),
        k(columns),
        l(matrices),
        ld((k + 31) / 32 * 32 + 32),
        format(format_),
        layout(layout_) {
    codes_stride = n * ld + 64;
    scales_stride = int64_t(nvfp4_scale_bytes_for(n, k, layout, format) + 31) / 16 * 16;
    packed_stride = int64_t(nvfp4_packed_bytes(n, k, kPacking, format)) + unit();
    codes.assign(size_t(l * codes_stride / 2), 0xEE);
    scales.assign(size_t(l * scales_stride), 0);
    packed.assign(size_t(l * packed_stride), 0xCC);
  }
  int64_t unit() const { return format == NVFP4_OPERAND_FORMAT_MXFP4 ? 2176 : 2304; }

  nvfp4_pack_desc desc() {
    nvfp4_pack_desc d = NVFP4_PACK_DESC_INIT;
    d.n = n, d.k = k, d.l = l;
    d.codes = codes.data(), d.codes_ld = ld, d.codes_batch_stride = codes_stride;
    d.scales = scales.data(), d.scales_batch_stride_bytes = scales_stride;
    d.packed = packed.data(), d.packed_batch_stride_bytes = packed_stride;
    d.packing = kPacking, d.format = format, d.scale_layout = layout;
    return d;
  }
};

// Any codes, and any scales, of which padding is 0, as unpacking writes it.
Weights random_weights(int64_t n, int64_t k, int32_t format, int32_t layout, uint64_t seed,
                       int64_t l = 1) {
  Weights w(n, k, format, layout, l);
  Random random(seed);
  const bool ue4m3 = format == NVFP4_OPERAND_FORMAT_NVFP4;
  const int64_t blocks = k / support::block_of(format);
  for (int64_t batch = 0; batch < l; ++batch) {
    for (int64_t row = 0; row < n; ++row) {
      uint8_t* const codes = &w.codes[size_t((batch * w.codes_stride + row * w.ld) / 2)];
      for (int64_t i = 0; i < k / 2; ++i) codes[i] = uint8_t(random.below(256));
    }
    std::vector<uint8_t> linear(size_t(n * blocks));
    for (uint8_t& byte : linear) byte = uint8_t(random.below(ue4m3 ? 128 : 256));
    REQUIRE(nvfp4_scale_convert_host(linear.data(), NVFP4_SCALE_LAYOUT_LINEAR,
                                     w.scales.data() + batch * w.scales_stride, layout, n,
                                     blocks * 16) == NVFP4_SUCCESS);
  }
  return w;
}

void pack(Weights& w) {
  const nvfp4_pack_desc d = w.desc();
  INFO(nvfp4_last_error());
  REQUIRE(nvfp4_pack_weights_host(&d) == NVFP4_SUCCESS);
}

}  // namespace

TEST_CASE("packed weights take whole units of 64 rows and 64 of K", "[pack]") {
  const auto bytes = [](int64_t n, int64_t k, int32_t format) {
    return nvfp4_packed_bytes(n, k, kPacking, format);
  };
  CHECK(bytes(2880, 2880, NVFP4_OPERAND_FORMAT_NVFP4) == 2880 * 2880 / 2 + 2880 * 2880 / 16);
  CHECK(bytes(5760, 2880, NVFP4_OPERAND_FORMAT_MXFP4) == 5760 * 2880 / 2 + 5760 * 2880 / 32);
  CHECK(bytes(1, 16, NVFP4_OPERAND_FORMAT_E2M1_UE8M0) == 2304);
  CHECK(bytes(65, 96, NVFP4_OPERAND_FORMAT_MXFP4) == 4 * 2176);
  CHECK(bytes(0, 64, NVFP4_OPERAND_FORMAT_NVFP4) == 0);
  CHECK(bytes(64, 0, NVFP4_OPERAND_FORMAT_NVFP4) == 0);
  CHECK(bytes(-1, 64, NVFP4_OPERAND_FORMAT_NVFP4) == 0);
  CHECK(bytes(64, 40, NVFP4_OPERAND_FORMAT_NVFP4) == 0);
  CHECK(bytes(64, 48, NVFP4_OPERAND_FORMAT_MXFP4) == 0);
  CHECK(bytes(64, 64, 3) == 0);
  CHECK(bytes(INT64_MAX, 1 << 20, NVFP4_OPERAND_FORMAT_NVFP4) == 0);
  CHECK(nvfp4_packed_bytes(64, 64, NVFP4_PACKING_NONE, NVFP4_OPERAND_FORMAT_NVFP4) == 0);
  CHECK(nvfp4_packed_bytes(64, 64, 4, NVFP4_OPERAND_FORMAT_NVFP4) == 0);
}

TEST_CASE("packed weights of 10.x take whole tiles of scales with their codes", "[pack]") {
  const auto bytes = [](int64_t n, int64_t k, int32_t format) {
    return nvfp4_packed_bytes(n, k, NVFP4_PACKING_SM100_1, format);
  };
  CHECK(bytes(4096, 7168, NVFP4_OPERAND_FORMAT_NVFP4) == 4096 * 7168 / 2 + 4096 * 7168 / 16);
  CHECK(bytes(2880, 2880, NVFP4_OPERAND_FORMAT_NVFP4) == 23 * 45 * 4608);
  CHECK(bytes(1, 16, NVFP4_OPERAND_FORMAT_E2M1_UE8M0) == 4608);
  CHECK(bytes(129, 160, NVFP4_OPERAND_FORMAT_MXFP4) == 2 * 2 * 8704);
}

// What docs/packing.md says of a word of codes: its operations in bf16 and fp16.
TEST_CASE("a packed word decodes by the operations of docs/packing.md", "[pack]") {
  const int64_t row = GENERATE(0, 5, 31);  // g, of slab 0 or 1
  Weights w = random_weights(64, 64, NVFP4_OPERAND_FORMAT_NVFP4, NVFP4_SCALE_LAYOUT_LINEAR, 7);
  const auto code = [&](int64_t r, int64_t k) {
    return uint32_t(w.codes[size_t((r * w.ld + k) / 2)] >> k % 2 * 4 & 15);
  };
  Random random(11);
  for (int turn = 0; turn < 200; ++turn) {
    for (uint8_t& byte : w.codes) byte = uint8_t(random.below(256));
    pack(w);
    for (uint32_t c = 0; c < 4; ++c) {
      for (uint32_t step = 0; step < 4; ++step) {
        const int64_t g = row % 8, slab = row / 16;
        uint32_t x;
        std::memcpy(&x, &w.packed[size_t(512 * slab + 16 * (4 * g + c) + 4 * step)], 4);
        const uint32_t v = (x & 0x90009000) | (x << 3 & 0x6FFF6FFF);
        const uint32_t bf16[] = {(x & 0x20072007) * 68 & 0x81C081C0, x << 3 & 0x81C081C0,
                                 x & 0x81C081C0, (x >> 3 & 0x01C001C0) | (x << 1 & 0x80008000)};
        const uint32_t f16[] = {(x & 0x20072007) * 516 & 0x8E008E00, v << 3 & 0x8E008E00,
                                v & 0x8E008E00, (x & 0x0E000E00) | (x << 1 & 0x80008000)};
        for (uint32_t j = 0; j < 4; ++j) {
          for (uint32_t e = 0; e < 2; ++e) {
            const uint32_t of =
                code(16 * slab + g + 8 * (j % 2), 16 * step + 8 * (j / 2) + 2 * c + e);
            CAPTURE(c, step, j, e, of);
            REQUIRE((bf16[j] >> 16 * e & 0xFFFF) == ((of & 7) << 6 | (of >> 3) << 15));
            REQUIRE((f16[j] >> 16 * e & 0xFFFF) == ((of & 7) << 9 | (of >> 3) << 15));
          }
        }
      }
    }
  }
}

TEST_CASE("a packed scale is bits 14 to 7 of 128 times the scale in fp16", "[pack]") {
  Weights w(16, 128, NVFP4_OPERAND_FORMAT_NVFP4, NVFP4_SCALE_LAYOUT_LINEAR);
  for (size_t i = 0; i < 128; ++i) w.scales[i] = uint8_t(i);  // row after row, eight of each
  pack(w);
  for (int64_t scale = 0; scale < 128; ++scale) {
    const int64_t row = scale / 8, block = scale % 8, g = row % 8;
    const int64_t at =
        block / 4 * w.unit() + 2048 + 8 * g + block % 4 / 2 * 4 + row / 8 * 2 + block % 2;
    const auto half = uint16_t(w.packed[size_t(at)] << 7);
    CAPTURE(scale);
    if (scale == 127) {
      CHECK(std::isnan(support::f16_value(half)));
      CHECK(w.packed[size_t(at)] == 0xFF);
    } else {
      CHECK(support::f16_value(half) == 128 * support::e4m3_value(uint8_t(scale)));
    }
  }
}

TEST_CASE("unpacking returns the bytes that were packed", "[pack]") {
  const int32_t format = kFormats[GENERATE(0, 1, 2)];
  const int32_t layout =
      GENERATE(int32_t{NVFP4_SCALE_LAYOUT_128X4}, int32_t{NVFP4_SCALE_LAYOUT_LINEAR});
  const int64_t n = GENERATE(1, 8, 17, 63, 64, 65, 130);
  for (int64_t k = 32; k <= 160; k += 16) {
    if (k % support::block_of(format) != 0) continue;
    CAPTURE(format, layout, n, k);
    Weights w = random_weights(n, k, format, layout, uint64_t(n * k), 3);
    pack(w);
    Weights back(n, k, format, layout, 3);
    back.packed = w.packed;
    const nvfp4_pack_desc d = back.desc();
    REQUIRE(nvfp4_unpack_weights_host(&d) == NVFP4_SUCCESS);
    REQUIRE(back.codes == w.codes);  // 0xEE between the rows
    REQUIRE(back.scales == w.scales);
    for (int64_t batch = 0; batch < 3; ++batch) {
      const auto gap = w.packed.begin() + long((batch + 1) * w.packed_stride - w.unit());
      REQUIRE(std::count(gap, gap + long(w.unit()), 0xCC) == w.unit());
    }
  }
}

TEST_CASE("bit 7 of a UE4M3 scale is dropped when weights are packed", "[pack]") {
  Weights w = random_weights(64, 64, NVFP4_OPERAND_FORMAT_NVFP4, NVFP4_SCALE_LAYOUT_LINEAR, 1);
  pack(w);
  const std::vector<uint8_t> packed = w.packed;
  for (uint8_t& byte : w.scales) byte |= 0x80;
  pack(w);
  CHECK(w.packed == packed);
}

TEST_CASE("elements beyond n and k are zeros in packed weights", "[pack]") {
  const int32_t format = kFormats[GENERATE(0, 1, 2)];
  Weights small = random_weights(70, 96, format, NVFP4_SCALE_LAYOUT_LINEAR, 2);
  Weights large(128, 128, format, NVFP4_SCALE_LAYOUT_LINEAR);
  const int64_t block = support::block_of(format);
  std::fill(large.codes.begin(), large.codes.end(), uint8_t(0));
  for (int64_t row = 0; row < 70; ++row) {
    std::copy_n(&small.codes[size_t(row * small.ld / 2)], 48,
                &large.codes[size_t(row * large.ld / 2)]);
    std::copy_n(&small.scales[size_t(row * 96 / block)], 96 / block,
                &large.scales[size_t(row * 128 / block)]);
  }
  pack(small), pack(large);
  CHECK(small.packed == large.packed);
}

TEST_CASE("rows are packed and unpacked by slices", "[pack]") {
  const int32_t format = kFormats[GENERATE(0, 1)];
  const int32_t layout =
      GENERATE(int32_t{NVFP4_SCALE_LAYOUT_128X4}, int32_t{NVFP4_SCALE_LAYOUT_LINEAR});
  Weights w = random_weights(200, 96, format, NVFP4_SCALE_LAYOUT_LINEAR, 3);
  pack(w);
  std::vector<uint8_t> again(w.packed.size(), 0xCC);
  const int64_t row_scales = w.k / support::block_of(format);
  for (const auto& [first, rows] : {std::pair{0, 64}, {64, 128}, {192, 0}}) {
    const int64_t count = rows == 0 ? 8 : rows;
    Weights slice(count, w.k, format, layout);
    nvfp4_pack_desc d = slice.desc();
    d.n = w.n, d.packed = w.packed.data(), d.first_row = first, d.rows = rows;
    REQUIRE(nvfp4_unpack_weights_host(&d) == NVFP4_SUCCESS);
    std::vector<uint8_t> linear(size_t(count * row_scales));
    REQUIRE(nvfp4_scale_convert_host(slice.scales.data(), layout, linear.data(),
                                     NVFP4_SCALE_LAYOUT_LINEAR, count,
                                     row_scales * 16) == NVFP4_SUCCESS);
    CHECK(std::equal(linear.begin(), linear.end(), w.scales.begin() + first * row_scales));
    for (int64_t row = 0; row < count; ++row) {
      CHECK(std::equal(&slice.codes[size_t(row * slice.ld / 2)],
                       &slice.codes[size_t(row * slice.ld / 2)] + w.k / 2,
                       &w.codes[size_t((first + row) * w.ld / 2)]));
    }
    d.packed = again.data();
    REQUIRE(nvfp4_pack_weights_host(&d) == NVFP4_SUCCESS);
  }
  CHECK(again == w.packed);
}

// ---- Rules -------------------------------------------------------------------------------------

namespace {

void* address(uint64_t value) { return reinterpret_cast<void*>(value); }

nvfp4_pack_desc good() {
  nvfp4_pack_desc d = NVFP4_PACK_DESC_INIT;
  d.n = 200, d.k = 96, d.l = 3;
  d.codes = address(0x100000000000), d.codes_ld = 96, d.codes_batch_stride = 199 * 96 + 96;
  d.scales = address(0x200000000000), d.scales_batch_stride_bytes = 2 * 2 * 512;
  d.packed = address(0x300000000000), d.packed_batch_stride_bytes = 4 * 2 * 2304;
  d.packing = kPacking, d.scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  return d;
}

struct Rule {
  const char* name;
  std::function<void(nvfp4_pack_desc&)> change;
  nvfp4_status status;
  const char* sentence;
};
#define WITH(...) [](nvfp4_pack_desc& d) { __VA_ARGS__; }
constexpr nvfp4_status kInvalid = NVFP4_STATUS_INVALID_VALUE, kLimit = NVFP4_STATUS_LIMIT,
                       kNoSuch = NVFP4_STATUS_INVALID_ENUM, kMisaligned = NVFP4_STATUS_MISALIGNED,
                       kNull = NVFP4_STATUS_NULL_POINTER, kOverlap = NVFP4_STATUS_OVERLAP,
                       kStruct = NVFP4_STATUS_INVALID_STRUCT;

// clang-format off
const Rule kRules[] = {
    {"struct_size", WITH(d.struct_size = 8), kStruct, "struct_size = 8; sizeof(nvfp4_pack_desc) is"},
    {"n below 0", WITH(d.n = -1), kInvalid, "n = -1 is negative"},
    {"n above 2^31-1", WITH(d.n = int64_t{1} << 31), kLimit, "n = 2147483648"},
    {"k", WITH(d.k = 40), kInvalid, "k = 40 is not a multiple of 16"},
    {"k of MXFP4", WITH(d.k = 48, d.format = 1), kInvalid, "k = 48 is not a multiple of 32"},
    {"l", WITH(d.l = -3), kInvalid, "l = -3 is negative"},
    {"packing none", WITH(d.packing = 0), kNoSuch, "packing = NVFP4_PACKING_NONE is not one of NVFP4_PACKING_SM90_1"},
    {"packing of tokens", WITH(d.packing = 3), kNoSuch, "packing = NVFP4_PACKING_SM90_TOKENS_1 is not one of NVFP4_PACKING_SM90_1"},
    {"packing 4", WITH(d.packing = 4), kNoSuch, "packing = 4 is not one of NVFP4_PACKING_SM90_1"},
    {"format 3", WITH(d.format = 3), kNoSuch, "format = 3 is not one of"},
    {"scale_layout unset", WITH(d.scale_layout = 0), kNoSuch, "scale_layout = NVFP4_SCALE_LAYOUT_UNSET"},
    {"reserved", WITH(d.reserved[0] = 1), kInvalid, "reserved[0] = 1 must be 0"},
    {"first_row below 0", WITH(d.first_row = -64), kInvalid, "first_row = -64 is negative"},
    {"first_row", WITH(d.first_row = 32), kInvalid, "first_row = 32 is not a multiple of 64"},
    {"first_row beyond n", WITH(d.first_row = 256), kInvalid, "first_row + rows = 256 + 0 is more than n = 200"},
    {"rows", WITH(d.rows = 100), kInvalid, "rows = 100 is not a multiple of 64, and does not end at n"},
    {"rows beyond n", WITH(d.first_row = 128, d.rows = 128), kInvalid, "first_row + rows = 128 + 128 is more than n = 200"},
    {"codes_ld below k", WITH(d.codes_ld = 64), kInvalid, "codes_ld = 64 is less than k = 96"},
    {"codes_ld", WITH(d.codes_ld = 104), kMisaligned, "codes_ld = 104 is not a multiple of 32"},
    {"codes_ld far", WITH(d.codes_ld = int64_t{1} << 41), kLimit, "codes_ld = "},
    {"codes_batch_stride", WITH(d.codes_batch_stride -= 32), kInvalid, "codes_batch_stride = 19168 is less than (rows-1) * codes_ld + k = 19200"},
    {"codes_batch_stride odd", WITH(d.codes_batch_stride += 16), kMisaligned, "codes_batch_stride = 19216 is not a multiple of 32"},
    {"scales_batch_stride_bytes", WITH(d.scales_batch_stride_bytes -= 16), kInvalid, "scales_batch_stride_bytes = 2032 is less than nvfp4_scale_bytes_for() = 2048"},
    {"packed_batch_stride_bytes", WITH(d.packed_batch_stride_bytes -= 2304), kInvalid, "packed_batch_stride_bytes = 16128 is less than nvfp4_packed_bytes() = 18432"},
    {"packed_batch_stride_bytes of no units", WITH(d.packed_batch_stride_bytes += 2176), kMisaligned, "packed_batch_stride_bytes = 20608 is not a multiple of 2304"},
    {"codes NULL", WITH(d.codes = nullptr), kNull, "codes is NULL"},
    {"scales NULL", WITH(d.scales = nullptr), kNull, "scales is NULL"},
    {"packed NULL", WITH(d.packed = nullptr), kNull, "packed is NULL"},
    {"codes over packed", WITH(d.codes = static_cast<char*>(d.packed) + 3 * 18432 - 16), kOverlap, "packed = ["},
    {"scales over packed", WITH(d.scales = static_cast<char*>(d.packed) - 3 * 2048 + 16), kOverlap, "packed = ["},
    {"beyond the address space", WITH(d.packed = address(UINT64_MAX - 15)), kLimit, "the last byte of packed is beyond"},
};
// clang-format on

using Call = nvfp4_status (*)(const nvfp4_pack_desc*);
nvfp4_status on_device(const nvfp4_pack_desc* d) { return nvfp4_pack_weights(d, nullptr); }
nvfp4_status off_device(const nvfp4_pack_desc* d) { return nvfp4_unpack_weights(d, nullptr); }
constexpr Call kCalls[] = {nvfp4_pack_weights_host, nvfp4_unpack_weights_host, on_device,
                           off_device};

}  // namespace

TEST_CASE("each rule of nvfp4_pack_desc is checked before anything else", "[pack]") {
  for (const Call call : kCalls) {
    CHECK(call(nullptr) == kNull);
    for (const Rule& rule : kRules) {
      nvfp4_pack_desc d = good();
      rule.change(d);
      const nvfp4_status status = call(&d);
      CAPTURE(rule.name, nvfp4_last_error());
      CHECK(status == rule.status);
      CHECK(says(rule.sentence));
    }
  }
}

TEST_CASE("addresses of packed weights are aligned on the device alone", "[pack]") {
  for (void* nvfp4_pack_desc::*field :
       {&nvfp4_pack_desc::codes, &nvfp4_pack_desc::scales, &nvfp4_pack_desc::packed}) {
    nvfp4_pack_desc d = good();
    d.*field = static_cast<char*>(d.*field) + 8;
    CHECK(nvfp4_pack_weights(&d, nullptr) == kMisaligned);
    CHECK(nvfp4_unpack_weights(&d, nullptr) == kMisaligned);
  }
  Weights w = random_weights(64, 64, NVFP4_OPERAND_FORMAT_NVFP4, NVFP4_SCALE_LAYOUT_LINEAR, 5);
  pack(w);
  std::vector<uint8_t> odd(w.packed.size() + 1);
  nvfp4_pack_desc d = w.desc();
  d.packed = odd.data() + 1;
  REQUIRE(nvfp4_pack_weights_host(&d) == NVFP4_SUCCESS);
  CHECK(std::equal(odd.begin() + 1, odd.begin() + 1 + 2304, w.packed.begin()));
}

TEST_CASE("packing nothing succeeds and reads nothing", "[pack]") {
  for (const Call call : kCalls) {
    for (int64_t nvfp4_pack_desc::*size :
         {&nvfp4_pack_desc::n, &nvfp4_pack_desc::k, &nvfp4_pack_desc::l}) {
      nvfp4_pack_desc d = good();
      d.*size = 0;
      d.codes = nullptr;
      CHECK(call(&d) == NVFP4_SUCCESS);
    }
    nvfp4_pack_desc d = good();
    d.n = 192, d.first_row = 192;
    CHECK(call(&d) == NVFP4_SUCCESS);
  }
}

// ---- Products ----------------------------------------------------------------------------------

namespace {

nvfp4_gemm_desc product() {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = 200, g.n = 300, g.k = 256, g.l = 3;
  g.a = address(0x100000000000), g.a_ld = 256, g.a_batch_stride = 200 * 256;
  g.a_scales = address(0x200000000000), g.a_scales_batch_stride_bytes = 4096;
  g.a_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.b = address(0x300000000000), g.b_packing = kPacking, g.b_batch_stride = 5 * 4 * 4096;
  g.d = address(0x500000000000), g.d_ld = 304, g.d_batch_stride = 200 * 304;
  g.d_type = NVFP4_TYPE_F16;
  return g;
}

struct ProductRule {
  const char* name;
  std::function<void(nvfp4_gemm_desc&)> change;
  nvfp4_status status;
  const char* sentence;
};
#define PRODUCT(...) [](nvfp4_gemm_desc& g) { __VA_ARGS__; }

// clang-format off
const ProductRule kProductRules[] = {
    {"no kernel", PRODUCT((void)g), NVFP4_STATUS_NOT_SUPPORTED, "b_packing = NVFP4_PACKING_SM90_1: no kernel for compute capability"},
    {"one matrix for all", PRODUCT(g.b_batch_stride = 0), NVFP4_STATUS_NOT_SUPPORTED, "b_packing = "},
    {"a layout of scales", PRODUCT(g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR), NVFP4_STATUS_NOT_SUPPORTED, "b_packing = "},
    {"a stride of scales", PRODUCT(g.b_scales_batch_stride_bytes = 3), NVFP4_STATUS_NOT_SUPPORTED, "b_packing = "},
    {"b_packing of tokens", PRODUCT(g.b_packing = 3), kNoSuch, "b_packing = NVFP4_PACKING_SM90_TOKENS_1 is not one of NVFP4_PACKING_NONE, NVFP4_PACKING_SM90_1"},
    {"b_packing 4", PRODUCT(g.b_packing = 4), kNoSuch, "b_packing = 4 is not one of NVFP4_PACKING_NONE, NVFP4_PACKING_SM90_1"},
    {"b_packing -1", PRODUCT(g.b_packing = -1), kNoSuch, "b_packing = -1 is not one of"},
    {"b_ld", PRODUCT(g.b_ld = 256), kInvalid, "b_ld = 256 must be 0 where b_packing = NVFP4_PACKING_SM90_1"},
    {"b_scales", PRODUCT(g.b_scales = address(0x600000000000)), kInvalid, "b_scales = 0x600000000000 must be NULL where b_packing = NVFP4_PACKING_SM90_1"},
    {"b_batch_stride", PRODUCT(g.b_batch_stride = 5 * 4 * 4096 + 2048), kMisaligned, "b_batch_stride = 83968 is not a multiple of 4096, the elements of a unit"},
    {"b", PRODUCT(g.b = address(0x300000000008)), kMisaligned, "b = 0x300000000008"},
    {"b NULL", PRODUCT(g.b = nullptr), kNull, "b is NULL"},
    {"d over the last byte of b", PRODUCT(g.d = address(0x300000000000 + 3 * 20 * 2304 - 16)), kOverlap, "d = ["},
    {"no b_packing", PRODUCT(g.b_packing = 0), kNoSuch, "b_scale_layout = NVFP4_SCALE_LAYOUT_UNSET"},
    {"b2_scales", PRODUCT(g.b2 = address(0x700000000000), g.alpha2 = 1, g.b2_scales = address(0x710000000000)), kInvalid, "b2_scales = 0x710000000000 must be NULL where b_packing"},
    {"b2", PRODUCT(g.b2 = address(0x700000000000), g.alpha2 = 1), NVFP4_STATUS_NOT_SUPPORTED, "b_packing = "},
};
// clang-format on

}  // namespace

TEST_CASE("products with packed weights have rules of their own and no kernel", "[pack]") {
  for (const int32_t capability : {80, 90, 100, 103, 120}) {
    for (const ProductRule& rule : kProductRules) {
      nvfp4_gemm_desc g = product();
      rule.change(g);
      if (capability == 80 || capability == 120) g.a_type = NVFP4_TYPE_BF16, g.a_scales = nullptr;
      const nvfp4_status status = nvfp4_gemm_supported(&g, capability);
      CAPTURE(capability, rule.name, nvfp4_last_error());
      CHECK(status == rule.status);
      CHECK(says(rule.sentence));
    }
    nvfp4_gemm_desc g = product();
    if (capability == 80 || capability == 120) g.a_type = NVFP4_TYPE_BF16, g.a_scales = nullptr;
    g.k = 0;
    CHECK(nvfp4_gemm_supported(&g, capability) == NVFP4_SUCCESS);  // nothing is read
  }
}

TEST_CASE("grouped products with packed weights are refused by the same words", "[pack]") {
  nvfp4_gemm_desc g = product();
  nvfp4_grouped_desc grouped = NVFP4_GROUPED_DESC_INIT;
  grouped.gemm = &g, grouped.rows_kind = NVFP4_ROWS_ENDS;
  grouped.rows = static_cast<const int32_t*>(address(0x800000000000));
  for (const int32_t capability : {90, 100}) {
    CHECK(nvfp4_grouped_supported(&grouped, capability) == NVFP4_STATUS_NOT_SUPPORTED);
    CHECK(says("b_packing = NVFP4_PACKING_SM90_1: no kernel"));
  }
  g.b_batch_stride = 0;
  CHECK(nvfp4_grouped_supported(&grouped, 90) == kInvalid);
  CHECK(says("b_batch_stride = 0 with l = 3 groups"));
}

TEST_CASE("the reference reads packed weights to the bits of the same weights", "[pack]") {
  const int32_t format = kFormats[GENERATE(0, 1, 2)];
  const int32_t a_type =
      GENERATE(int32_t{NVFP4_TYPE_NONE}, int32_t{NVFP4_TYPE_F16}, int32_t{NVFP4_TYPE_BF16});
  const support::Shape shape =
      GENERATE(support::Shape{3, 70, 96, 1}, support::Shape{2, 129, 320, 2});
  const bool gated = GENERATE(false, true);
  support::Problem p = support::make_problem(shape, support::Data::random, 21);
  p = with_format(std::move(p), format, support::Data::random, 22);
  p = with_a16(std::move(p), a_type, support::Data::random, 23);
  support::Fields fields;
  fields.d_type = NVFP4_TYPE_F32;
  if (gated) fields.b2 = support::kGiven, fields.alpha2 = 1;
  p = with_fields(std::move(p), fields, 24);
  const std::vector<uint8_t> plain = p.reference();
  p.b_packing = kPacking;
  REQUIRE(p.reference() == plain);
}
