// SPDX-License-Identifier: MIT
// Arguments of the device's quantizer: each rule by itself, in the header's order, before any
// driver is looked for.
#include <limits>

#include "nvfp4_gemm.h"
#include "tools/testing/catch.h"

namespace {

constexpr auto kNeverRead = uintptr_t{1} << 40;
void* address(uintptr_t offset) { return reinterpret_cast<void*>(kNeverRead + offset); }

nvfp4_quantize_desc valid() {
  nvfp4_quantize_desc q{};
  q.struct_size = sizeof q;
  q.rows = 130;
  q.k = 64;
  q.x = address(0);
  q.x_ld = 64;
  q.codes = address(0x100000);
  q.codes_ld = 64;
  q.scales = address(0x200000);
  q.tensor_scale = 1;
  q.x_type = NVFP4_TYPE_F16;
  q.scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  return q;
}

nvfp4_quantize_desc by_amax() {
  nvfp4_quantize_desc q = valid();
  q.tensor_scale_mode = NVFP4_TENSOR_SCALE_AMAX;
  q.tensor_scale_device = static_cast<float*>(address(0x300000));
  q.workspace = address(0x400000);
  q.workspace_bytes = 4096;
  return q;
}

void check(const nvfp4_quantize_desc& q, nvfp4_status status, const std::string& words) {
  CHECK(nvfp4_status_name(nvfp4_quantize(&q, nullptr)) == std::string(nvfp4_status_name(status)));
  INFO(nvfp4_last_error());
  CHECK(std::string(nvfp4_last_error()).find(words) != std::string::npos);
}

// With nothing wrong the driver is looked for, and there is none in this process.
void check_passes(const nvfp4_quantize_desc& q) {
  const nvfp4_status status = nvfp4_quantize(&q, nullptr);
  INFO(nvfp4_last_error());
  CHECK((status >= 40 && status < 60));
}

#define CHANGED(base, field, value) \
  [] {                              \
    nvfp4_quantize_desc q = base(); \
    q.field = value;                \
    return q;                       \
  }()

}  // namespace

TEST_CASE("numbers of the device's quantizer are checked before its addresses") {
  check(CHANGED(valid, struct_size, 8), NVFP4_STATUS_INVALID_STRUCT, "nvfp4_quantize_desc");
  check(CHANGED(valid, rows, -1), NVFP4_STATUS_INVALID_VALUE, "rows = -1");
  check(CHANGED(valid, rows, int64_t{1} << 31), NVFP4_STATUS_LIMIT, "rows");
  check(CHANGED(valid, k, 72), NVFP4_STATUS_INVALID_VALUE, "multiple of 16");
  check(CHANGED(valid, x_type, NVFP4_TYPE_NVFP4), NVFP4_STATUS_INVALID_ENUM, "NVFP4_TYPE_NVFP4");
  check(CHANGED(valid, x_type, 0), NVFP4_STATUS_INVALID_ENUM, "NVFP4_TYPE_BF16");
  check(CHANGED(valid, scale_layout, 0), NVFP4_STATUS_INVALID_ENUM, "scale_layout");
  check(CHANGED(valid, tensor_scale_mode, 6), NVFP4_STATUS_INVALID_ENUM, "tensor_scale_mode = 6");
  check(CHANGED(valid, format, 3), NVFP4_STATUS_INVALID_ENUM, "format = 3");
  check(CHANGED(valid, scale_rule, 4), NVFP4_STATUS_INVALID_ENUM, "scale_rule = 4");
  check(CHANGED(valid, pdl, NVFP4_PDL_ON_STATIC_WEIGHTS), NVFP4_STATUS_INVALID_ENUM, "pdl");
  check(CHANGED(valid, packing, NVFP4_PACKING_SM90_1), NVFP4_STATUS_INVALID_ENUM,
        "packing = NVFP4_PACKING_SM90_1 is not one of NVFP4_PACKING_NONE, "
        "NVFP4_PACKING_SM90_TOKENS_1");
  check(CHANGED(valid, packing, 4), NVFP4_STATUS_INVALID_ENUM, "packing = 4");
  check(CHANGED(valid, tensor_scale, 0), NVFP4_STATUS_INVALID_VALUE, "tensor_scale = 0");
  check(CHANGED(valid, tensor_scale, std::numeric_limits<float>::infinity()),
        NVFP4_STATUS_INVALID_VALUE, "tensor_scale");
  check_passes(valid());
  check_passes(CHANGED(valid, scale_rule, NVFP4_SCALE_RULE_4OVER6));
}

TEST_CASE("leading dimensions and addresses of the device's quantizer") {
  check(CHANGED(valid, x_ld, 63), NVFP4_STATUS_INVALID_VALUE, "x_ld = 63");
  check(CHANGED(valid, codes_ld, 65), NVFP4_STATUS_MISALIGNED, "codes_ld = 65");
  check(CHANGED(valid, x, nullptr), NVFP4_STATUS_NULL_POINTER, "x ");
  check(CHANGED(valid, x, address(1)), NVFP4_STATUS_MISALIGNED, "x ");
  check(CHANGED(valid, codes, nullptr), NVFP4_STATUS_NULL_POINTER, "codes");
  check(CHANGED(valid, scales, nullptr), NVFP4_STATUS_NULL_POINTER, "scales");
  check(CHANGED(valid, codes, address(130 * 64 * 2 - 1)), NVFP4_STATUS_OVERLAP, "codes");
  check(CHANGED(valid, scales, address(0x100000 + 130 * 32 - 1)), NVFP4_STATUS_OVERLAP, "scales");
  check_passes(CHANGED(valid, codes, address(130 * 64 * 2)));
  check_passes(CHANGED(valid, codes, address(0x100001)));
}

TEST_CASE("a tensor scale on the device and the workspace that finding it takes") {
  check_passes(by_amax());
  check(CHANGED(by_amax, tensor_scale_device, nullptr), NVFP4_STATUS_NULL_POINTER,
        "tensor_scale_device");
  check(CHANGED(by_amax, workspace, nullptr), NVFP4_STATUS_NULL_POINTER, "workspace");
  check(CHANGED(by_amax, workspace_bytes, 1), NVFP4_STATUS_INVALID_VALUE,
        "nvfp4_quantize_workspace_bytes");
  check(CHANGED(by_amax, workspace, address(0x200000)), NVFP4_STATUS_OVERLAP, "workspace");
  uint64_t bytes = 77;
  nvfp4_quantize_desc q = by_amax();
  REQUIRE(nvfp4_quantize_workspace_bytes(&q, &bytes) == NVFP4_SUCCESS);
  CHECK(bytes == 4 * 33);  // 4 rows a CTA
  q.rows = 1 << 20;
  q.x = nullptr;  // no address is looked at
  REQUIRE(nvfp4_quantize_workspace_bytes(&q, &bytes) == NVFP4_SUCCESS);
  CHECK(bytes == 4 * 1024);
  q.tensor_scale_mode = NVFP4_TENSOR_SCALE_DEVICE;
  REQUIRE(nvfp4_quantize_workspace_bytes(&q, &bytes) == NVFP4_SUCCESS);
  CHECK(bytes == 0);
  q = by_amax();
  CHECK(nvfp4_dequantize(&q, nullptr) == NVFP4_STATUS_INVALID_ENUM);
  bytes = 77;
  q.x_ld = q.k - 1;
  CHECK(nvfp4_quantize_workspace_bytes(&q, &bytes) == NVFP4_STATUS_INVALID_VALUE);
  q.x_ld = q.k, q.codes_ld = q.k - 2;
  CHECK(nvfp4_quantize_workspace_bytes(&q, &bytes) == NVFP4_STATUS_INVALID_VALUE);
  q.codes_ld = q.k + 1;
  CHECK(nvfp4_quantize_workspace_bytes(&q, &bytes) == NVFP4_STATUS_MISALIGNED);
  CHECK(bytes == 77);
}

TEST_CASE("A workspace of the self test that no address space has is beyond a limit") {
  for (const uint64_t bytes : {~uint64_t{0} - 255, ~uint64_t{0} - kNeverRead, uint64_t{1} << 63}) {
    CHECK(nvfp4_selftest(address(0), bytes, nullptr) == NVFP4_STATUS_LIMIT);
    CHECK(std::string(nvfp4_last_error()).find("workspace") != std::string::npos);
  }
  void* const high = reinterpret_cast<void*>(~uintptr_t{0} - 255);
  CHECK(nvfp4_selftest(high, 512, nullptr) == NVFP4_STATUS_LIMIT);
}

// 130 rows: 520 bytes of scales.
TEST_CASE("a scale for each row is looked at as far as it goes") {
  const auto by_rows = [] {
    nvfp4_quantize_desc q = valid();
    q.tensor_scale_mode = NVFP4_TENSOR_SCALE_ROW_AMAX;
    q.tensor_scale_device = static_cast<float*>(address(0x300000));
    return q;
  };
  check_passes(by_rows());
  nvfp4_quantize_desc q = by_rows();
  uint64_t bytes = 77;
  REQUIRE(nvfp4_quantize_workspace_bytes(&q, &bytes) == NVFP4_SUCCESS);
  CHECK(bytes == 0);
  CHECK(nvfp4_dequantize(&q, nullptr) == NVFP4_STATUS_INVALID_ENUM);
  for (const int32_t mode :
       {NVFP4_TENSOR_SCALE_ROW_AMAX, NVFP4_TENSOR_SCALE_ROWS, NVFP4_TENSOR_SCALE_FROM_ROW_AMAX}) {
    q = by_rows();
    q.tensor_scale_mode = mode;
    q.tensor_scale_device = static_cast<float*>(address(0x200000 - 4 * q.rows));
    check_passes(q);
    q.tensor_scale_device = static_cast<float*>(address(0x200000 - 4 * q.rows + 4));
    check(q, NVFP4_STATUS_OVERLAP, "tensor_scale_device");
    q.tensor_scale_device = nullptr;
    check(q, NVFP4_STATUS_NULL_POINTER, "tensor_scale_device");
  }
}

TEST_CASE("an empty matrix is quantized without a driver") {
  nvfp4_quantize_desc q = valid();
  q.rows = 0;
  q.x = nullptr;
  CHECK(nvfp4_quantize(&q, nullptr) == NVFP4_SUCCESS);
  CHECK(nvfp4_dequantize(&q, nullptr) == NVFP4_SUCCESS);
  CHECK(nvfp4_scale_convert(nullptr, NVFP4_SCALE_LAYOUT_LINEAR, nullptr, NVFP4_SCALE_LAYOUT_128X4,
                            0, 64, nullptr) == NVFP4_SUCCESS);
}
