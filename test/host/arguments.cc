// SPDX-License-Identifier: MIT
// Every rule that the header states for nvfp4_gemm_desc, just inside and just outside. Addresses
// are numbers: nothing here may read or write them.
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <cstring>
#include <functional>
#include <limits>
#include <set>
#include <vector>

#include "nvfp4_gemm.h"
#include "tools/testing/catch.h"

namespace {

using Desc = nvfp4_gemm_desc;
constexpr int64_t kMax31 = INT32_MAX;
constexpr uint64_t kFirstDescBytes = 344;  // of the shortest nvfp4_gemm_desc that there ever was
constexpr int64_t kMax41 = (int64_t{1} << 41) - 32;  // the largest multiple of 32 below 2^41

void* address(uint64_t value) { return reinterpret_cast<void*>(value); }

// Every array in its own 2^44 bytes: room for every stride below.
Desc good() {
  Desc g = NVFP4_GEMM_DESC_INIT;
  g.m = 200, g.n = 300, g.k = 256, g.l = 3;
  g.a = address(0x100000000000), g.a_ld = 288, g.a_batch_stride = 60000 / 32 * 32;
  g.b = address(0x200000000000), g.b_ld = 256, g.b_batch_stride = 90016;
  g.a_scales = address(0x300000000000), g.a_scales_batch_stride_bytes = 4096;
  g.b_scales = address(0x400000000000), g.b_scales_batch_stride_bytes = 6160;
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d = address(0x500000000000), g.d_ld = 301, g.d_batch_stride = 199 * 301 + 300;
  g.d_type = NVFP4_TYPE_F16;
  g.alpha = 1.0f;
  return g;
}

struct Rule {
  const char* name;
  std::function<void(Desc&)> change;
  nvfp4_status status;
  const char* sentence;  // has to contain this
};

constexpr nvfp4_status kAccepted = NVFP4_SUCCESS, kInvalid = NVFP4_STATUS_INVALID_VALUE,
                       kNoSuch = NVFP4_STATUS_INVALID_ENUM, kMisaligned = NVFP4_STATUS_MISALIGNED,
                       kNull = NVFP4_STATUS_NULL_POINTER, kLimit = NVFP4_STATUS_LIMIT,
                       kOverlap = NVFP4_STATUS_OVERLAP;

#define WITH(...) [](Desc& g) { __VA_ARGS__; }

const Rule kRules[] = {
    // m, n, k, l
    {"m below 0", WITH(g.m = -1), kInvalid, "m = -1 is negative"},
    {"m above 2^31-1", WITH(g.m = kMax31 + 1), kLimit, "m = 2147483648"},
    {"n below 0", WITH(g.n = INT64_MIN), kInvalid, "n = -92233"},
    {"n above 2^31-1", WITH(g.n = INT64_MAX), kLimit, "n = 92233"},
    {"k below 0", WITH(g.k = -64), kInvalid, "k = -64 is negative"},
    {"k above 2^31-1", WITH(g.k = kMax31 + 1), kLimit, "k = 2147483648"},
    {"l below 0", WITH(g.l = -1), kInvalid, "l = -1 is negative"},
    {"l above 2^31-1", WITH(g.l = kMax31 + 1), kLimit, "l = 2147483648"},
    {"k of no NVFP4 matrix", WITH(g.k = 200), kInvalid,
     "k = 200 is not a multiple of 16; nearest 192 or 208"},
    {"k = 240", WITH(g.k = 240), kAccepted, ""},
    {"k = 192", WITH(g.k = 192), kAccepted, ""},

    // enumerations
    // clang-format off
    {"a_scale_layout unset", WITH(g.a_scale_layout = 0), kNoSuch, "a_scale_layout = NVFP4_SCALE_LAYOUT_UNSET is not one of NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR"},
    {"a_scale_layout 3", WITH(g.a_scale_layout = 3), kNoSuch, "a_scale_layout = 3 is not one of NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR"},
    {"a_scale_layout linear", WITH(g.a_scale_layout = 2, g.workspace = address(0x7000000000), g.workspace_bytes = 1 << 30), kAccepted, ""},
    {"b_scale_layout -1", WITH(g.b_scale_layout = -1), kNoSuch, "b_scale_layout = -1 is not one of NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR"},
    {"b_scale_layout linear", WITH(g.b_scale_layout = 2, g.workspace = address(0x7000000000), g.workspace_bytes = 1 << 30), kAccepted, ""},
    {"d_scale_layout 3", WITH(g.d_scale_layout = 3), kNoSuch, "d_scale_layout = 3 is not one of NVFP4_SCALE_LAYOUT_UNSET, NVFP4_SCALE_LAYOUT_128X4, NVFP4_SCALE_LAYOUT_LINEAR"},
    {"c_type -1", WITH(g.c_type = -1), kNoSuch, "c_type = -1 is not one of NVFP4_TYPE_NONE, NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32"},
    {"c_type F32", WITH(g.c_type = NVFP4_TYPE_F32), kAccepted, ""},
    {"c_type NVFP4", WITH(g.c_type = NVFP4_TYPE_NVFP4), kNoSuch, "c_type = NVFP4_TYPE_NVFP4 is not one of NVFP4_TYPE_NONE, NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32"},
    {"d_type none", WITH(g.d_type = 0), kNoSuch, "d_type = NVFP4_TYPE_NONE is not one of NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32, NVFP4_TYPE_NVFP4"},
    {"d_type 7", WITH(g.d_type = 7), kNoSuch, "d_type = 7 is not one of NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32, NVFP4_TYPE_NVFP4, NVFP4_TYPE_MXFP4, NVFP4_TYPE_E2M1_UE8M0"},
    {"d_type 32", WITH(g.d_type = 32), kNoSuch, "d_type = 32 is not one of"},
    {"d_type BF16", WITH(g.d_type = 2), kAccepted, ""},
    {"d_type F32", WITH(g.d_type = 3), kAccepted, ""},
    {"bias_type NVFP4", WITH(g.bias_type = 4), kNoSuch, "bias_type = NVFP4_TYPE_NVFP4 is not one of NVFP4_TYPE_NONE, NVFP4_TYPE_F16, NVFP4_TYPE_BF16, NVFP4_TYPE_F32"},
    {"bias_type F32", WITH(g.bias_type = 3), kNull, "bias is NULL"},
    {"scalar_mode 2", WITH(g.scalar_mode = 2), kNoSuch, "scalar_mode = 2 is not one of NVFP4_SCALARS_HOST, NVFP4_SCALARS_DEVICE"},
    {"scalar_mode DEVICE", WITH(g.scalar_mode = 1), kNull, "alpha_device is NULL"},
    {"activation 6", WITH(g.activation = 6), kNoSuch, "activation = 6 is not one of NVFP4_ACTIVATION_NONE, NVFP4_ACTIVATION_RELU, NVFP4_ACTIVATION_GELU_TANH, NVFP4_ACTIVATION_SILU, NVFP4_ACTIVATION_GELU_ERF, NVFP4_ACTIVATION_RELU_SQUARED"},
    {"activation RELU", WITH(g.activation = 1), kAccepted, ""},
    {"activation GELU_TANH", WITH(g.activation = 2), kAccepted, ""},
    {"activation SILU", WITH(g.activation = 3), kAccepted, ""},
    {"activation GELU_ERF", WITH(g.activation = 4), kAccepted, ""},
    {"activation RELU_SQUARED", WITH(g.activation = 5), kAccepted, ""},
    {"pdl 3", WITH(g.pdl = 3), kNoSuch, "pdl = 3 is not one of NVFP4_PDL_OFF, NVFP4_PDL_ON, NVFP4_PDL_ON_STATIC_WEIGHTS"},
    {"pdl -1", WITH(g.pdl = -1), kNoSuch, "pdl = -1"},
    {"pdl ON", WITH(g.pdl = 1), kAccepted, ""},
    {"pdl ON_STATIC_WEIGHTS", WITH(g.pdl = 2), kAccepted, ""},
    {"operand_format 3", WITH(g.operand_format = 3), kNoSuch, "operand_format = 3 is not one of NVFP4_OPERAND_FORMAT_NVFP4, NVFP4_OPERAND_FORMAT_MXFP4, NVFP4_OPERAND_FORMAT_E2M1_UE8M0"},
    {"d_scale_rule 3", WITH(g.d_scale_rule = 3), kNoSuch, "d_scale_rule = NVFP4_SCALE_RULE_4OVER6 is not one of NVFP4_SCALE_RULE_DEFAULT, NVFP4_SCALE_RULE_ROUND_UP, NVFP4_SCALE_RULE_FLOOR"},
    {"a_type F32", WITH(g.a_type = 3), kNoSuch, "a_type = NVFP4_TYPE_F32 is not one of NVFP4_TYPE_NONE, NVFP4_TYPE_F16, NVFP4_TYPE_BF16"},
    {"a_type F16 with scales", WITH(g.a_type = 1), kInvalid, "must be NULL where a_type = NVFP4_TYPE_F16"},
    {"a_type F16", WITH(g.a_type = 1, g.a_scales = nullptr), kAccepted, ""},
    {"a_type BF16, no layout of scales", WITH(g.a_type = 2, g.a_scales = nullptr, g.a_scale_layout = 0), kAccepted, ""},
    {"a_type BF16, a_ld", WITH(g.a_type = 2, g.a_scales = nullptr, g.a_ld += 4), kMisaligned, "is not a multiple of 8"},
    {"a_type BF16, a", WITH(g.a_type = 2, g.a_scales = nullptr, g.a = static_cast<const char*>(g.a) + 8), kMisaligned, "a = 0x"},
    {"cd_order 2", WITH(g.cd_order = 2), kNoSuch, "cd_order = 2 is not one of NVFP4_CD_ORDER_ROW_MAJOR, NVFP4_CD_ORDER_COLUMN_MAJOR"},
    {"cd_order column-major", WITH(g.cd_order = 1, g.d_batch_stride = 299 * 301 + 200), kAccepted, ""},
    {"bias_axis -1", WITH(g.bias_axis = -1), kNoSuch, "bias_axis = -1 is not one of NVFP4_BIAS_AXIS_COLUMN, NVFP4_BIAS_AXIS_ROW"},
    {"bias_axis row", WITH(g.bias_axis = 1), kAccepted, ""},

    // switches, words that must be 0
    {"batch_invariant 2", WITH(g.batch_invariant = 2), kInvalid, "batch_invariant = 2 is neither 0 nor 1"},
    {"batch_invariant -1", WITH(g.batch_invariant = -1), kInvalid, "batch_invariant = -1 is neither 0 nor 1"},
    {"reserved2[0]", WITH(g.reserved2[0] = 1), kInvalid, "reserved2[0] = 1 must be 0"},
    {"reserved2[3]", WITH(g.reserved2[3] = -1), kInvalid, "reserved2[3] = -1 must be 0"},
    {"a_tensor_scale_rows 2", WITH(g.a_tensor_scale_rows = 2), kInvalid, "a_tensor_scale_rows = 2 is neither 0 nor 1"},
    {"a_tensor_scale_rows without factors", WITH(g.a_tensor_scale_rows = 1), kNull, "a_tensor_scale is NULL"},
    {"b_tensor_scale_columns below 0", WITH(g.b_tensor_scale_columns = -64), kInvalid, "b_tensor_scale_columns = -64 is negative"},
    {"b_tensor_scale_columns 32", WITH(g.b_tensor_scale_columns = 32), kInvalid, "b_tensor_scale_columns = 32 is not a multiple of 64; nearest 0 or 64"},
    {"b_tensor_scale_columns 128", WITH(g.b_tensor_scale_columns = 128), kNull, "b_tensor_scale is NULL"},

    {"a_tensor_scale", WITH(g.a_tensor_scale = &g.alpha), kAccepted, ""},
    {"b_tensor_scale", WITH(g.b_tensor_scale = &g.alpha), kAccepted, ""},
    {"bias", WITH(g.bias = address(16)), kInvalid, "bias = 0x10 must be NULL where bias_type = NVFP4_TYPE_NONE"},
    {"alpha_device", WITH(g.alpha_device = &g.alpha), kInvalid, "must be NULL where scalar_mode = NVFP4_SCALARS_HOST"},
    {"beta_device", WITH(g.beta_device = &g.alpha), kInvalid, "beta_device = 0x"},
    {"beta 1", WITH(g.beta = 1), kInvalid, "beta = 1 must be 0 where c_type = NVFP4_TYPE_NONE"},
    {"beta NaN", WITH(g.beta = NAN), kInvalid, "beta = nan must be 0"},
    {"beta subnormal", WITH(g.beta = 1e-45f), kInvalid, "must be 0 where c_type"},
    {"beta -0", WITH(g.beta = -0.0f), kAccepted, ""},
    {"alpha NaN", WITH(g.alpha = NAN), kAccepted, ""},
    {"alpha 0", WITH(g.alpha = 0), kAccepted, ""},
    {"c with beta = 0", WITH(g.c = address(16)), kInvalid, "c = 0x10 must be NULL where c_type = NVFP4_TYPE_NONE"},
    {"c_ld of no C", WITH(g.c_ld = -7), kAccepted, ""},
    {"c is d with another c_ld, and beta 0 by value", WITH(g.c_type = 1, g.c = g.d, g.c_ld = -7), kAccepted, ""},
    {"c is d with another c_ld, and beta 1", WITH(g.c_type = 1, g.c = g.d, g.c_ld = -7, g.beta = 1), kInvalid, "c_ld = -7 is less than n"},
    {"c is d with another type, and beta 1", WITH(g.c_type = 2, g.c = g.d, g.c_ld = g.d_ld, g.beta = 1), kOverlap, "d = ["},
    // clang-format on
    {"c_batch_stride of no C", WITH(g.c_batch_stride = 8), kAccepted, ""},

    // variant
    {"variant unknown", WITH(g.variant = "x"), kInvalid,
     "variant = \"x\" is not one of: sm100_128x64x256 sm100_128x128x256 "
     "sm100_256x128x256 sm100_256x256x256 "
     "sm80_f16_64x8w4x128 sm80_f16_64x8w8x128 sm80_f16_64x16w4x128 sm80_f16_64x16w8x128 "
     "sm80_bf16_64x8w4x128 sm80_bf16_64x8w8x128 sm80_bf16_64x16w4x128 sm80_bf16_64x16w8x128 "
     "sm120_64x8x256 sm120_64x32x256 sm120_128x128x128 "
     "sm90_f16_64x16x256 sm90_f16_64x32x256 sm90_f16_64x64x256 sm90_f16_128x64x256 "
     "sm90_f16_64x128x256 sm90_f16_128x128x256 sm90_f16_128x192x256 "
     "sm90_bf16_64x16x256 sm90_bf16_64x32x256 sm90_bf16_64x64x256 sm90_bf16_128x64x256 "
     "sm90_bf16_64x128x256 sm90_bf16_128x128x256 sm90_bf16_128x192x256 "
     "sm90_64x1x256 sm90_64x2x256 sm90_64x4x256 sm90_64x8x256 sm90_64x16x256 sm90_128x16x256 "
     "sm90_64x32x256 sm90_128x32x256 sm90_64x64x256 sm90_128x64x256 sm90_64x128x256 "
     "sm90_128x128x256 sm90_128x192x256 sm90_128x256x256"},
    {"variant empty", WITH(g.variant = ""), kInvalid, "variant = \"\" is not one of: "},
    {"variant cut short", WITH(g.variant = "sm100_128x64"), kInvalid,
     "variant = \"sm100_128x64\" is not one of: "},
    {"variant unknown, nothing to do", WITH(g.variant = "x", g.m = 0), kInvalid, "variant = \"x\""},
    {"variant 64", WITH(g.variant = "sm100_128x64x256"), kAccepted, ""},
    {"variant 128", WITH(g.variant = "sm100_128x128x256"), kAccepted, ""},
    {"variant of one part", WITH(g.variant = "sm100_128x64x256/1"), kAccepted, ""},
    {"variant of three parts", WITH(g.variant = "sm100_128x64x256/3"), kInvalid,
     "variant = \"sm100_128x64x256/3\": the numbers of K partitions of sm100_128x64x256 are /1 /2 "
     "/4"},
    {"variant of no parts", WITH(g.variant = "sm90_64x16x256/"), kInvalid,
     "the numbers of K partitions of sm90_64x16x256 are /1 /2 /3 /4 /8"},
    {"variant of parts and more", WITH(g.variant = "sm90_f16_64x16x256/2 "), kInvalid,
     "the numbers of K partitions of sm90_f16_64x16x256 are /1 /2 /4"},
    {"variant of even shares of another tile", WITH(g.variant = "sm90_64x16x256/even"), kInvalid,
     "the numbers of K partitions of sm90_64x16x256 are /1 /2 /3 /4 /8"},
    {"variant of parts beside even shares", WITH(g.variant = "sm90_128x128x256/5"), kInvalid,
     "the numbers of K partitions of sm90_128x128x256 are /1 /2 /3 /4 /8 /even"},
    {"variant pair", WITH(g.variant = "sm100_256x256x256"), kAccepted, ""},

    // tiles: 2^20 * 2^11 is one too many
    {"2^31 tiles",
     WITH(g.m = 256 << 20, g.n = 128, g.l = 2048, g.a_batch_stride = g.b_batch_stride = 0,
          g.a_scales_batch_stride_bytes = g.b_scales_batch_stride_bytes = 0, g.d_batch_stride = g.n,
          g.d_ld = 2048 * 128),
     kLimit, "ceil(m/256) * ceil(n/128) * l = 1048576 * 2048 tiles; at most 2147483647"},
    {"2^31 - 2^20 tiles",
     WITH(g.m = 256 << 20, g.n = 256, g.l = 1023, g.a_batch_stride = g.b_batch_stride = 0,
          g.a_scales_batch_stride_bytes = g.b_scales_batch_stride_bytes = 0, g.d_batch_stride = g.n,
          g.d_ld = 1023 * 256),
     kAccepted, ""},
    {"2^31 - 2^20 tiles, but of a narrower variant",
     WITH(g.m = 256 << 20, g.n = 256, g.l = 1023, g.a_batch_stride = g.b_batch_stride = 0,
          g.a_scales_batch_stride_bytes = g.b_scales_batch_stride_bytes = 0, g.d_batch_stride = g.n,
          g.d_ld = 1023 * 256, g.variant = "sm100_128x64x256"),
     kLimit, "ceil(m/64) * ceil(n/128) * l = 8388608 * 1023 tiles"},

    // addresses
    {"a NULL", WITH(g.a = nullptr), kNull, "a is NULL"},
    {"a_scales NULL", WITH(g.a_scales = nullptr), kNull, "a_scales is NULL"},
    {"b NULL", WITH(g.b = nullptr), kNull, "b is NULL"},
    {"b_scales NULL", WITH(g.b_scales = nullptr), kNull, "b_scales is NULL"},
    {"d NULL", WITH(g.d = nullptr), kNull, "d is NULL"},
    {"a misaligned", WITH(g.a = address(0x100000000008)), kMisaligned,
     "a = 0x100000000008 is not 16-byte aligned"},
    {"a_scales misaligned", WITH(g.a_scales = address(0x300000000001)), kMisaligned,
     "a_scales = 0x300000000001"},
    {"b misaligned", WITH(g.b = address(0x20000000000f)), kMisaligned, "b = 0x20000000000f"},
    {"b_scales misaligned", WITH(g.b_scales = address(0x400000000004)), kMisaligned,
     "b_scales = 0x400000000004"},
    {"d misaligned", WITH(g.d = address(0x500000000002)), kMisaligned, "d = 0x500000000002"},
    {"d 16 further", WITH(g.d = address(0x500000000010)), kAccepted, ""},
    {"workspace misaligned", WITH(g.workspace = address(8)), kMisaligned, "workspace = 0x8"},
    {"workspace", WITH(g.workspace = address(16), g.workspace_bytes = 1), kAccepted, ""},

    // a_ld, b_ld, d_ld
    {"a_ld below k", WITH(g.a_ld = 224), kInvalid, "a_ld = 224 is less than k = 256"},
    {"a_ld = k", WITH(g.a_ld = 256), kAccepted, ""},
    {"a_ld not 32", WITH(g.a_ld = 272), kMisaligned,
     "a_ld = 272 is not a multiple of 32; nearest 256 or 288"},
    {"a_ld 2^41", WITH(g.a_ld = kMax41 + 32), kLimit, "a_ld = 2199023255552"},
    {"a_ld below 2^41", WITH(g.m = 8, g.a_ld = kMax41, g.a_batch_stride = 0), kAccepted, ""},
    {"b_ld below k", WITH(g.b_ld = -32), kInvalid, "b_ld = -32"},
    {"b_ld not 32", WITH(g.b_ld = 257), kMisaligned, "b_ld = 257"},
    {"b_ld 2^41", WITH(g.b_ld = kMax41 + 32), kLimit, "b_ld = 2199023255552"},
    {"d_ld below n", WITH(g.d_ld = 299), kInvalid, "d_ld = 299 is less than n = 300"},
    {"d_ld = n", WITH(g.d_ld = 300), kAccepted, ""},

    // strides
    {"a_batch_stride below 0", WITH(g.a_batch_stride = -32), kInvalid, "a_batch_stride = -32"},
    {"a_batch_stride 0", WITH(g.a_batch_stride = 0), kAccepted, ""},
    {"a_batch_stride 16", WITH(g.a_batch_stride = 16), kMisaligned, "a_batch_stride = 16"},
    {"a_batch_stride 32", WITH(g.a_batch_stride = 32), kAccepted, ""},
    {"a_batch_stride below 2^41", WITH(g.a_batch_stride = kMax41), kAccepted, ""},
    {"a_batch_stride 2^41", WITH(g.a_batch_stride = kMax41 + 32), kLimit,
     "a_batch_stride = 2199023255552"},
    {"b_batch_stride 48", WITH(g.b_batch_stride = 48), kMisaligned, "b_batch_stride = 48"},
    {"b_batch_stride 2^41", WITH(g.b_batch_stride = kMax41 + 32), kLimit,
     "b_batch_stride = 2199023255552"},
    {"a_scales stride 0", WITH(g.a_scales_batch_stride_bytes = 0), kAccepted, ""},
    {"a_scales stride too small", WITH(g.a_scales_batch_stride_bytes = 4080), kInvalid,
     "a_scales_batch_stride_bytes = 4080 is less than nvfp4_scale_bytes_for() = 4096"},
    {"a_scales stride below 0", WITH(g.a_scales_batch_stride_bytes = -16), kInvalid,
     "a_scales_batch_stride_bytes = -16"},
    {"b_scales stride 8", WITH(g.b_scales_batch_stride_bytes = 6152), kMisaligned,
     "b_scales_batch_stride_bytes = 6152"},
    {"b_scales stride exact", WITH(g.b_scales_batch_stride_bytes = 6144), kAccepted, ""},
    {"b_scales stride too small", WITH(g.b_scales_batch_stride_bytes = 6128), kInvalid,
     "b_scales_batch_stride_bytes = 6128"},
    {"d batches touch", WITH(g.d_batch_stride -= 1), kInvalid,
     "d_batch_stride = 60198 lets batches of D touch"},
    {"d_batch_stride 0", WITH(g.d_batch_stride = 0), kInvalid, "d_batch_stride = 0"},
    {"d_batch_stride below 0", WITH(g.d_batch_stride = -90000), kInvalid,
     "d_batch_stride = -90000"},
    {"d rows interleave", WITH(g.d_batch_stride = 300, g.d_ld = 900), kAccepted, ""},
    {"d rows interleave, rows touch", WITH(g.d_batch_stride = 300, g.d_ld = 899), kInvalid,
     "d_batch_stride = 300"},
    {"d rows interleave, batches touch", WITH(g.d_batch_stride = 299, g.d_ld = 5000), kInvalid,
     "d_batch_stride = 299"},
    {"one batch: strides are not looked at",
     WITH(g.l = 1, g.a_batch_stride = -1, g.b_batch_stride = INT64_MAX, g.d_batch_stride = -5,
          g.a_scales_batch_stride_bytes = 3, g.b_scales_batch_stride_bytes = INT64_MIN),
     kAccepted, ""},

    // overlap. D is 2 * 60199 + 60199 elements = 361,194 bytes; A spans 200 rows and 3 batches.
    {"D ends where A begins",
     WITH(g.l = 1, g.d_ld = 304, g.d = address(0x100000000000 - 2 * (199 * 304 + 300) - 8)),
     kAccepted, ""},
    {"D ends in A",
     WITH(g.l = 1, g.d_ld = 304, g.d = address(0x100000000000 - 2 * (199 * 304 + 300) + 8)),
     kOverlap, "overlaps a = [0x100000000000, "},
    {"D begins in the last byte of A",
     WITH(g.l = 1, g.m = 1, g.a_ld = 256, g.d = address(0x100000000070)), kOverlap,
     "overlaps a = [0x100000000000, 0x100000000080)"},
    {"D begins where A ends", WITH(g.l = 1, g.m = 1, g.a_ld = 256, g.d = address(0x100000000080)),
     kAccepted, ""},
    {"D in A's last batch", WITH(g.d = address(0x100000000000 + 59968 / 2 * 2 + 64)), kOverlap,
     "overlaps a = "},
    {"D is B", WITH(g.d = const_cast<void*>(g.b)), kOverlap, "overlaps b = "},
    {"D in the padding of A's scales", WITH(g.d = address(0x300000000000 + 2 * 4096 + 4080)),
     kOverlap, "overlaps a_scales = [0x300000000000, 0x300000003000)"},
    {"D after A's scales", WITH(g.d = address(0x300000003000)), kAccepted, ""},
    {"D is B's scales", WITH(g.d = const_cast<void*>(g.b_scales)), kOverlap,
     "overlaps b_scales = "},
    {"A is B", WITH(g.b = g.a, g.b_scales = g.a_scales), kAccepted, ""},

    // the end of the address space
    {"d past the end", WITH(g.d = address(~uint64_t{15})), kLimit, "the last byte of d"},
    {"a past the end", WITH(g.a = address(~uint64_t{15})), kLimit, "the last byte of a"},
    {"b_scales past the end", WITH(g.b_scales = address(~uint64_t{15})), kLimit,
     "the last byte of b_scales"},
    {"d_ld overflows", WITH(g.l = 1, g.d_ld = INT64_MAX), kLimit, "the last byte of d"},
    {"d_batch_stride overflows", WITH(g.d_batch_stride = INT64_MAX), kLimit, "the last byte of d"},
    {"scale stride overflows", WITH(g.a_scales_batch_stride_bytes = INT64_MAX - 15), kLimit,
     "the last byte of a_scales"},

    // nothing to do
    {"m = 0", WITH(g.m = 0), kAccepted, ""},
    {"n = 0 without pointers", WITH(g.n = 0, g.a = g.b = g.a_scales = g.b_scales = g.d = nullptr),
     kAccepted, ""},
    {"l = 0 with a wild address", WITH(g.l = 0, g.d = address(3), g.a_ld = -4), kAccepted, ""},
    {"m = 0 and a bad enumeration", WITH(g.m = 0, g.pdl = 9), kNoSuch, "pdl = 9"},
    {"k = 0 looks at no input",
     WITH(g.k = 0, g.a = address(8), g.b = g.a_scales = g.b_scales = nullptr, g.a_ld = g.b_ld = -1,
          g.a_batch_stride = 7),
     kAccepted, ""},
    {"k = 0 still needs d", WITH(g.k = 0, g.d = nullptr), kNull, "d is NULL"},
    {"k = 0 still needs d_ld", WITH(g.k = 0, g.d_ld = 1), kInvalid, "d_ld = 1"},
};
#undef WITH

}  // namespace

TEST_CASE(
    "Every rule of the descriptor holds just inside and refuses just outside with a sentence") {
  size_t refused = 0;
  for (const Rule& rule : kRules) {
    Desc g = good();
    rule.change(g);
    INFO(rule.name);
    // Tokens that are not quantized have kernels on 9.0 alone.
    const nvfp4_status status = nvfp4_gemm_supported(&g, g.a_type == NVFP4_TYPE_NONE ? 100 : 90);
    INFO((status == NVFP4_SUCCESS ? "accepted" : nvfp4_last_error()));
    CHECK(std::string(nvfp4_status_name(status)) == nvfp4_status_name(rule.status));
    if (rule.status == NVFP4_SUCCESS) continue;
    ++refused;
    CHECK(std::string(nvfp4_last_error()).find(rule.sentence) != std::string::npos);
    // A run refuses the same way, before it looks for a driver.
    CHECK(nvfp4_gemm_run(&g, nullptr) == rule.status);
  }
  std::printf("arguments: %zu rules, %zu of them refusals\n", std::size(kRules), refused);
}

// By its own tiles, which depend on the device: a run refuses it once it knows that.
TEST_CASE("A product is refused where no kernel has CTAs enough though its widest tiles are few") {
  Desc g = good();
  g.m = 256 << 20, g.n = 128;
  g.a_batch_stride = g.b_batch_stride = 0;
  g.a_scales_batch_stride_bytes = g.b_scales_batch_stride_bytes = 0;
  const auto answer = [&](int64_t batches) {
    g.l = batches, g.d_batch_stride = g.n, g.d_ld = batches * g.n;
    return nvfp4_gemm_supported(&g, 100);
  };
  CHECK(answer(1023) == NVFP4_SUCCESS);
  CHECK(answer(2047) == kLimit);  // a pair of CTAs for each of 2^20 * 2047 tiles, or two tiles
  CHECK(std::string(nvfp4_last_error()) ==
        "with a_type = NVFP4_TYPE_NONE the product needs more than 2147483647 CTAs");
}

TEST_CASE("The unchanged descriptor of these tests is accepted") {
  const Desc g = good();
  CHECK(nvfp4_gemm_supported(&g, 100) == NVFP4_SUCCESS);
}

TEST_CASE("A NULL descriptor is refused by every function that takes one") {
  CHECK(nvfp4_gemm_run(nullptr, nullptr) == NVFP4_STATUS_NULL_POINTER);
  CHECK(nvfp4_gemm_supported(nullptr, 100) == NVFP4_STATUS_NULL_POINTER);
  CHECK(nvfp4_gemm_reference(nullptr) == NVFP4_STATUS_NULL_POINTER);
  CHECK(std::string(nvfp4_last_error()) == "desc is NULL and is required here");
}

TEST_CASE("struct_size: smaller is refused and larger is accepted with zeros up to 4096 bytes") {
  alignas(16) unsigned char bytes[8192] = {};
  const Desc g = good();
  memcpy(bytes, &g, sizeof g);
  Desc& large = *reinterpret_cast<Desc*>(bytes);
  const auto answer = [&](uint64_t size) {
    large.struct_size = size;
    return nvfp4_gemm_supported(&large, 100);
  };
  CHECK(answer(sizeof(Desc)) == NVFP4_SUCCESS);
  CHECK(answer(0) == NVFP4_STATUS_INVALID_STRUCT);
  CHECK(answer(kFirstDescBytes) == NVFP4_SUCCESS);
  CHECK(answer(kFirstDescBytes - 1) == NVFP4_STATUS_INVALID_STRUCT);
  CHECK(std::string(nvfp4_last_error()).find("an older one at least 344") != std::string::npos);
  CHECK(answer(sizeof(Desc) + 1) == NVFP4_SUCCESS);
  CHECK(answer(4096) == NVFP4_SUCCESS);
  CHECK(answer(4097) == NVFP4_STATUS_INVALID_STRUCT);
  CHECK(answer(UINT64_MAX) ==
        NVFP4_STATUS_INVALID_STRUCT);  // garbage: no tail of that size is read
  bytes[1000] = 1;
  CHECK(answer(1000) == NVFP4_SUCCESS);
  CHECK(answer(1001) == NVFP4_STATUS_INVALID_STRUCT);
  CHECK(std::string(nvfp4_last_error()).find("byte 1000 of the struct") != std::string::npos);
}

TEST_CASE("Of a struct that ends where d_amax begins nothing beyond is read") {
  static_assert(offsetof(Desc, d_amax) == kFirstDescBytes && offsetof(Desc, a_packing) == 340);
  Desc g = good();
  memset(reinterpret_cast<unsigned char*>(&g) + kFirstDescBytes, 0xAB, sizeof g - kFirstDescBytes);
  CHECK(nvfp4_gemm_supported(&g, 100) == NVFP4_STATUS_INVALID_VALUE);
  g.struct_size = kFirstDescBytes;
  CHECK(nvfp4_gemm_supported(&g, 100) == NVFP4_SUCCESS);
  g.m = 0;
  nvfp4_gemm_plan* plan = nullptr;
  REQUIRE(nvfp4_gemm_plan_create(&g, &plan) == NVFP4_SUCCESS);
  nvfp4_gemm_addresses x;
  memset(&x, 0xAB, sizeof x);
  memset(&x, 0, offsetof(nvfp4_gemm_addresses, d_amax));
  x.struct_size = sizeof x;
  CHECK(nvfp4_gemm_plan_run(plan, &x, nullptr) == NVFP4_STATUS_INVALID_VALUE);
  x.struct_size = offsetof(nvfp4_gemm_addresses, d_amax);
  CHECK(nvfp4_gemm_plan_run(plan, &x, nullptr) == NVFP4_SUCCESS);
  nvfp4_gemm_plan_destroy(plan);
}

TEST_CASE("Addresses of what is not there or not a plan's are refused by name when it is run") {
  Desc g = good();
  g.m = 0;  // a plan of nothing needs no driver
  nvfp4_gemm_plan* plan = nullptr;
  REQUIRE(nvfp4_gemm_plan_create(&g, &plan) == NVFP4_SUCCESS);
  using Addresses = nvfp4_gemm_addresses;
  float one = 1;
  const int32_t rows = 1;
#define SET(field, value)                           \
  {                                                 \
#field, [&](Addresses & x) { x.field = value; } \
  }
  const std::vector<std::pair<const char*, std::function<void(Addresses&)>>> fields = {
      SET(d_amax, &one),      SET(d_row_amax, &one),   SET(scale_rows, &rows),
      SET(group_alpha, &one), SET(group_alpha2, &one), SET(group_d_tensor_scale, &one),
  };
#undef SET
  for (const auto& [name, set] : fields) {
    CAPTURE(name);
    Addresses x{};
    x.struct_size = sizeof x;
    CHECK(nvfp4_gemm_plan_run(plan, &x, nullptr) == NVFP4_SUCCESS);
    set(x);
    CHECK(nvfp4_gemm_plan_run(plan, &x, nullptr) == NVFP4_STATUS_INVALID_VALUE);
    CHECK(std::string(nvfp4_last_error()).rfind(std::string(name) + " = 0x", 0) == 0);
  }
  nvfp4_gemm_plan_destroy(plan);
}

TEST_CASE("A plan of a gated product takes other addresses of b2 and no other plan does") {
  float one = 1;
  for (const bool gated : {true, false}) {
    Desc g = good();
    g.m = 0;  // a plan of nothing needs no driver
    if (gated) g.alpha2 = 1, g.b2 = &one;
    nvfp4_gemm_plan* plan = nullptr;
    REQUIRE(nvfp4_gemm_plan_create(&g, &plan) == NVFP4_SUCCESS);
    const nvfp4_status want = gated ? NVFP4_SUCCESS : NVFP4_STATUS_INVALID_VALUE;
    const auto run = [&](const auto& set) {
      nvfp4_gemm_addresses x{};
      x.struct_size = sizeof x;
      set(x);
      return nvfp4_gemm_plan_run(plan, &x, nullptr);
    };
    CHECK(run([&](nvfp4_gemm_addresses& x) { x.b2 = &one; }) == want);
    CHECK(run([&](nvfp4_gemm_addresses& x) { x.b2_scales = &one; }) == want);
    CHECK(run([&](nvfp4_gemm_addresses& x) { x.b2_tensor_scale = &one; }) == want);
    CHECK(run([&](nvfp4_gemm_addresses& x) { x.bias2 = &one; }) == want);
    CHECK(run([&](nvfp4_gemm_addresses& x) { x.alpha2_device = &one; }) == want);
    nvfp4_gemm_plan_destroy(plan);
  }
}

TEST_CASE("A plan of groups takes other row ends and an empty one too and no other plan does") {
  Desc g = good();
  g.m = 0;  // a plan of nothing needs no driver
  g.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  const int32_t rows = 0;
  nvfp4_gemm_addresses x{};
  x.struct_size = sizeof x;
  x.rows = &rows;
  nvfp4_gemm_plan* plan = nullptr;
  REQUIRE(nvfp4_gemm_plan_create(&g, &plan) == NVFP4_SUCCESS);
  CHECK(nvfp4_gemm_plan_run(plan, &x, nullptr) == NVFP4_STATUS_INVALID_VALUE);
  nvfp4_gemm_plan_destroy(plan);
  nvfp4_grouped_desc grouped{};
  grouped.struct_size = sizeof grouped;
  grouped.gemm = &g, grouped.rows_kind = NVFP4_ROWS_ENDS;
  REQUIRE(nvfp4_grouped_plan_create(&grouped, &plan) == NVFP4_SUCCESS);
  CHECK(nvfp4_gemm_plan_run(plan, &x, nullptr) == NVFP4_SUCCESS);
  const float one = 1;
  x.group_alpha2 = &one;
  CHECK(nvfp4_gemm_plan_run(plan, &x, nullptr) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(std::string(nvfp4_last_error()).find("of no gated product") != std::string::npos);
  nvfp4_gemm_plan_destroy(plan);
  g.alpha2 = 1, g.b2 = &one;
  REQUIRE(nvfp4_grouped_plan_create(&grouped, &plan) == NVFP4_SUCCESS);
  CHECK(nvfp4_gemm_plan_run(plan, &x, nullptr) == NVFP4_SUCCESS);
  nvfp4_gemm_plan_destroy(plan);
}

TEST_CASE("supported() serves NVFP4 tokens on 9.0 and 10.x and 16-bit ones from 8.0 on") {
  Desc g = good();
  g.m = 8;  // tokens that need no workspace on 9.0
  Desc halves = g;
  halves.a_type = NVFP4_TYPE_BF16, halves.a_scales = nullptr;
  Desc empty = good();
  empty.m = 0;
  for (int32_t capability = -1; capability <= 130; ++capability) {
    CAPTURE(capability);
    const bool served = std::set<int32_t>{90, 100, 103, 120, 121}.count(capability) > 0;
    const bool by_mma = std::set<int32_t>{80, 86, 89, 107, 110}.count(capability) > 0;
    CHECK(nvfp4_gemm_supported(&g, capability) == (served   ? NVFP4_SUCCESS
                                                   : by_mma ? NVFP4_STATUS_NOT_SUPPORTED
                                                            : NVFP4_STATUS_UNSUPPORTED_ARCH));
    CHECK(nvfp4_gemm_supported(&halves, capability) ==
          (served || by_mma ? NVFP4_SUCCESS : NVFP4_STATUS_UNSUPPORTED_ARCH));
    // An empty problem needs no kernel: that is also what a run answers.
    CHECK(nvfp4_gemm_supported(&empty, capability) == NVFP4_SUCCESS);
  }
  CHECK(nvfp4_gemm_supported(&g, 87) == NVFP4_STATUS_UNSUPPORTED_ARCH);
  CHECK(std::string(nvfp4_last_error()) ==
        "compute capability 8.7 has no kernel here; served are: 10.0 10.3 9.0 8.0 8.6 8.9 10.7 "
        "11.0 12.0 12.1");
}

TEST_CASE("A bad argument is reported before an unsupported compute capability") {
  Desc g = good();
  g.k = 8;
  CHECK(nvfp4_gemm_supported(&g, 75) == NVFP4_STATUS_INVALID_VALUE);
}

TEST_CASE(
    "The reference takes what a run takes and linear scales and smaller K and odd addresses") {
  // Sizes of 0 batches check all rules up to the empty ones without touching memory.
  Desc g = good();
  g.m = 0;
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  g.k = 16;
  CHECK(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
  g.k = 24;
  CHECK(nvfp4_gemm_reference(&g) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(std::string(nvfp4_last_error()) == "k = 24 is not a multiple of 16; nearest 16 or 32");
  g.k = 1 << 20;
  CHECK(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
  g.k = (1 << 20) + 16;
  CHECK(nvfp4_gemm_reference(&g) == NVFP4_STATUS_LIMIT);
  g.k = 64;
  g.d_type = NVFP4_TYPE_NVFP4;
  CHECK(nvfp4_gemm_reference(&g) == NVFP4_SUCCESS);
  CHECK(nvfp4_gemm_supported(&g, 100) == NVFP4_SUCCESS);
}
