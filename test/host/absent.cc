// SPDX-License-Identifier: MIT
// What the header declares and this version does not have: each field, enumerator and function is
// refused by its name, whatever asks for it, before a driver is looked for.
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "nvfp4_gemm.h"
#include "tools/testing/catch.h"

namespace {

using Quantize = nvfp4_quantize_desc;
using Fused = nvfp4_fused_quantize_desc;

// A matrix and a fused matrix. Each would be computed if the row's field were not set.
Quantize matrix() {
  Quantize q{};
  q.struct_size = sizeof q;
  q.k = 32, q.tensor_scale = 1;
  q.x_type = NVFP4_TYPE_F32, q.scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  return q;
}

Fused fused() {
  Fused q{};
  q.struct_size = sizeof q;
  q.k = 32, q.tensor_scale = 1, q.operation = NVFP4_FUSED_SILU_MUL;
  q.type = NVFP4_TYPE_F32, q.scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  return q;
}

template <typename T>
struct Row {
  const char* sentence;  // begins with this
  std::function<void(T&)> set;
};

#define FIELD(field, value, text)                       \
  {                                                     \
#field " = " text, [](auto& x) { x.field = value; } \
  }
#define NAME(field, enumerator) FIELD(field, enumerator, #enumerator " is not there in version")

const std::vector<Row<Fused>> kFused = {
    NAME(format, NVFP4_OPERAND_FORMAT_MXFP4),
    NAME(format, NVFP4_OPERAND_FORMAT_E2M1_UE8M0),
};

#undef NAME
#undef FIELD

void refused(nvfp4_status status, const std::string& sentence) {
  INFO(nvfp4_last_error());
  CHECK(std::string(nvfp4_status_name(status)) == "NVFP4_STATUS_NOT_SUPPORTED");
  CHECK(std::string(nvfp4_last_error()).rfind(sentence, 0) == 0);
}

}  // namespace

TEST_CASE(
    "What a quantizer may be asked for and this version does not have is refused by its name") {
  const Quantize valid = matrix();
  REQUIRE(nvfp4_quantize(&valid, nullptr) == NVFP4_SUCCESS);
  const Fused good = fused();
  REQUIRE(nvfp4_fused_quantize(&good, nullptr) == NVFP4_SUCCESS);
  for (const auto& row : kFused) {
    CAPTURE(row.sentence);
    Fused q = fused();
    row.set(q);
    refused(nvfp4_fused_quantize(&q, nullptr), row.sentence);
    refused(nvfp4_fused_quantize_host(&q), row.sentence);
  }
}
