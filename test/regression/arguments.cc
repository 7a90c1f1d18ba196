// SPDX-License-Identifier: MIT
// Arguments that others took, misread or refused without a word.
#include "test/regression/regression.h"

using namespace regression;
using host_test::contains;

namespace {

struct Pointer {
  const char* name;
  const void* nvfp4_gemm_desc::*field;
};
const Pointer kInputs[] = {{"a", &nvfp4_gemm_desc::a},
                           {"b", &nvfp4_gemm_desc::b},
                           {"a_scales", &nvfp4_gemm_desc::a_scales},
                           {"b_scales", &nvfp4_gemm_desc::b_scales}};

// The descriptor of a small problem on the device, and that nothing was written.
struct Refusals {
  gemm_test::Gpu gpu;
  support::DeviceGemm gemm{gpu.driver, make_problem({65, 129, 64}, Data::exact, 340)};
  void require(nvfp4_status status, const std::vector<std::string>& parts) {
    REQUIRE(gemm.enqueue() == status);
    const std::string sentence = nvfp4_last_error();
    INFO(sentence);
    for (const std::string& part : parts) CHECK(contains(sentence, part));
  }
  ~Refusals() { CHECK(gemm.d() == std::vector<uint16_t>(65 * 129, 0xFFFF)); }
};

const void* plus(const void* address, int bytes) {
  return static_cast<const uint8_t*>(address) + bytes;
}

}  // namespace

// A rule of 16 bytes for the scale pointer broke sliced tensors, and nothing said which pointer.
TEST_CASE("pytorch #159957: a scale pointer that is not 16-byte aligned", "[regression]") {
  Refusals refusals;
  const int offset = GENERATE(1, 2, 4, 8);
  for (const Pointer& pointer : {kInputs[2], kInputs[3]}) {
    nvfp4_gemm_desc& desc = refusals.gemm.desc;
    const void* const was = desc.*pointer.field;
    desc.*pointer.field = plus(was, offset);
    refusals.require(NVFP4_STATUS_MISALIGNED, {std::string(pointer.name) + " = 0x", "16-byte"});
    desc.*pointer.field = was;
  }
}

// Data that was not 16-byte aligned went to the hardware all the same.
TEST_CASE("cutlass #2491: data that is not 16-byte aligned", "[regression]") {
  Refusals refusals;
  nvfp4_gemm_desc& desc = refusals.gemm.desc;
  const int offset = GENERATE(1, 2, 4, 8);
  for (const Pointer& pointer : {kInputs[0], kInputs[1]}) {
    const void* const was = desc.*pointer.field;
    desc.*pointer.field = plus(was, offset);
    refusals.require(NVFP4_STATUS_MISALIGNED, {std::string(pointer.name) + " = 0x", "16-byte"});
    desc.*pointer.field = was;
  }
  void* const d = desc.d;
  desc.d = static_cast<uint8_t*>(d) + offset;
  refusals.require(NVFP4_STATUS_MISALIGNED, {"d = 0x", "16-byte"});
  desc.d = d;
  desc.a_ld += offset;
  refusals.require(NVFP4_STATUS_MISALIGNED, {"a_ld = "});
}

// A scale pointer of NULL gave status 7.
TEST_CASE("CUDALibrarySamples #274: a pointer that is NULL is not named", "[regression]") {
  Refusals refusals;
  for (const Pointer& pointer : kInputs) {
    const void* const was = refusals.gemm.desc.*pointer.field;
    refusals.gemm.desc.*pointer.field = nullptr;
    refusals.require(NVFP4_STATUS_NULL_POINTER, {std::string(pointer.name) + " is NULL"});
    refusals.gemm.desc.*pointer.field = was;
  }
}

// An unsupported shape was refused without the rule.
TEST_CASE("TransformerEngine #2261: which sizes would be supported", "[regression]") {
  Refusals refusals;
  refusals.gemm.desc.k = 200;
  refusals.require(NVFP4_STATUS_INVALID_VALUE, {"k = 200", "multiple of", "nearest 192 or 2"});
  refusals.gemm.desc.k = 64, refusals.gemm.desc.a_ld = 32;
  refusals.require(NVFP4_STATUS_INVALID_VALUE, {"a_ld = 32", "64"});
}

// "Failed to initialize GEMM", and no reason.
TEST_CASE("vllm #28110: a refusal without a reason", "[regression]") {
  Refusals refusals;
  nvfp4_gemm_desc& desc = refusals.gemm.desc;
  struct Change {
    const char* field;
    int32_t nvfp4_gemm_desc::*member;
  };
  for (const Change& change :
       {Change{"d_type", &nvfp4_gemm_desc::d_type},
        Change{"scalar_mode", &nvfp4_gemm_desc::scalar_mode},
        Change{"activation", &nvfp4_gemm_desc::activation}, Change{"pdl", &nvfp4_gemm_desc::pdl},
        Change{"a_scale_layout", &nvfp4_gemm_desc::a_scale_layout}}) {
    const int32_t was = desc.*change.member;
    desc.*change.member = 99;
    refusals.require(NVFP4_STATUS_INVALID_ENUM, {std::string(change.field) + " = 99"});
    desc.*change.member = was;
  }
  desc.m = -1;
  refusals.require(NVFP4_STATUS_INVALID_VALUE, {"m = -1"});
}

// alpha came as a CPU pointer from PyTorch and as a GPU pointer from JAX; a guess crashed both
// ways.
TEST_CASE("TransformerEngine #3325: whether alpha's pointer is the CPU's or the GPU's",
          "[regression]") {
  USE_GPU(gpu);
  const Problem problem = make_problem({65, 129, 64}, Data::exact, 341);
  support::DeviceGemm gemm(gpu.driver, problem);
  // In host mode no pointer is followed: refused or not looked at.
  gemm.desc.alpha_device = reinterpret_cast<const float*>(0x10);
  const nvfp4_status status = gemm.enqueue();
  if (status == NVFP4_SUCCESS) {
    CHECK(support::compare_bits(problem.shape(), gemm.d(), support::reference(problem)).passed());
  } else {
    CHECK(contains(nvfp4_last_error(), "alpha_device"));
    CHECK(gemm.d() == std::vector<uint16_t>(65 * 129, 0xFFFF));
  }
  // And there is no third mode that would guess.
  gemm.desc.alpha_device = nullptr, gemm.desc.scalar_mode = 2;
  CHECK(gemm.enqueue() == NVFP4_STATUS_INVALID_ENUM);
}

// C with a leading dimension of 0, one row for all, gave wrong results.
TEST_CASE("cuBLASLt 5845724: a C that is broadcast with ldc = 0", "[regression]") {
  Refusals refusals;
  refusals.gemm.desc.c = refusals.gemm.desc.a, refusals.gemm.desc.c_type = NVFP4_TYPE_F16;
  refusals.gemm.desc.beta = 1, refusals.gemm.desc.c_ld = 0;
  const nvfp4_status status = refusals.gemm.enqueue();
  CHECK((status == NVFP4_STATUS_NOT_SUPPORTED || status == NVFP4_STATUS_INVALID_VALUE));
  CHECK((contains(nvfp4_last_error(), "c_ld") || contains(nvfp4_last_error(), "c_type")));
}
