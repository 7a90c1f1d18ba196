// SPDX-License-Identifier: MIT
// What the program has set for itself changes no answer: the treatment of subnormal numbers, the
// decimal point of its locale.
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#if defined(__SSE__)
#include <xmmintrin.h>
#endif

#include "nvfp4_gemm.h"
#include "test/host/child.h"
#include "tools/testing/catch.h"

using host_test::contains;

namespace {

// Subnormal operands count as zero and subnormal results become zero, while it lives.
class FlushSubnormals {
 public:
#if defined(__SSE__)
  FlushSubnormals() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | 0x8040); }  // FTZ, DAZ
  ~FlushSubnormals() { _mm_setcsr(saved_); }

 private:
  unsigned saved_;
#elif defined(__aarch64__)
  FlushSubnormals() {
    asm volatile("mrs %0, fpcr" : "=r"(saved_));
    asm volatile("msr fpcr, %0" ::"r"(saved_ | 1u << 24));  // FZ
  }
  ~FlushSubnormals() { asm volatile("msr fpcr, %0" ::"r"(saved_)); }

 private:
  uint64_t saved_;
#endif
};

// A locale whose decimal point is a comma, for numbers, while it lives.
class CommaLocale {
 public:
  CommaLocale() {
    const std::string folder = host_test::built("test/host/locale");
    std::system(("mkdir -p " + folder).c_str());
    std::ofstream(folder + "/comma.src") << "comment_char %\nescape_char /\nLC_NUMERIC\n"
                                            "decimal_point \"<U002C>\"\nthousands_sep \"\"\n"
                                            "grouping -1\nEND LC_NUMERIC\n";
    // Its status is not asked for: it warns of the categories that are not there.
    std::system(("localedef -c --no-archive -f ANSI_X3.4-1968 -i " + folder + "/comma.src ./" +
                 folder + "/comma >" + folder + "/log 2>&1")
                    .c_str());
    setenv("LOCPATH", folder.c_str(), 1);
    there = setlocale(LC_NUMERIC, "comma") != nullptr;
  }
  ~CommaLocale() {
    setlocale(LC_NUMERIC, "C");
    unsetenv("LOCPATH");
  }
  bool there;
};

nvfp4_gemm_desc problem() {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  const auto address = [](uint64_t i) { return reinterpret_cast<void*>(i << 44); };
  g.m = 128, g.n = 7168, g.k = 2048, g.l = 1;
  g.a = address(1), g.a_ld = g.k, g.a_scales = address(3);
  g.b = address(2), g.b_ld = g.k, g.b_scales = address(4);
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d = address(5), g.d_ld = g.n, g.d_type = NVFP4_TYPE_F16;
  g.alpha = 1.0f;
  return g;
}

std::string explained(const nvfp4_gemm_desc& g) {
  char text[2048];
  REQUIRE(nvfp4_gemm_explain(&g, 100, 148, text, sizeof text) == NVFP4_SUCCESS);
  return text;
}

// One block of 16 ones, and what the quantizer says of it.
nvfp4_status quantize(float tensor_scale, uint8_t* scale) {
  const std::vector<float> x(16, 1.0f);
  uint8_t codes[8];
  return nvfp4_quantize_host(x.data(), 16, 1, 16, tensor_scale, codes, 16, scale,
                             NVFP4_SCALE_LAYOUT_LINEAR);
}

}  // namespace

TEST_CASE("A caller that flushes subnormal numbers gets the same answers") {
  const float tiny = 1e-40f;
  nvfp4_gemm_desc with_beta = problem(), with_alpha = problem();
  with_beta.beta = tiny, with_alpha.alpha = tiny;
  const std::string line = explained(with_alpha);
  REQUIRE(contains(line, " --alpha 9.9999461e-41"));

  const auto answers = [&] {
    uint8_t scale = 0;
    std::string text = nvfp4_status_name(quantize(tiny, &scale));
    text += " " + std::to_string(scale);
    for (const float refused : {0.0f, -0.0f, -tiny, INFINITY, NAN}) {
      text += std::string("\n") + nvfp4_status_name(quantize(refused, &scale));
      text += std::string(": ") + nvfp4_last_error();
    }
    text += std::string("\n") + nvfp4_status_name(nvfp4_gemm_supported(&with_beta, 100));
    return text + ": " + nvfp4_last_error() + "\n" + explained(with_alpha);
  };
  const std::string usual = answers();
  CHECK(contains(usual, "NVFP4_SUCCESS 126\n"));
  CHECK(contains(usual, "tensor_scale = -9.99995e-41 is not finite and above 0"));
  CHECK(contains(usual, "NVFP4_STATUS_INVALID_VALUE: beta = 9.99995e-41 must be 0"));
  std::string flushed;
  {
    const FlushSubnormals here;
    flushed = answers();
  }
  CHECK(flushed == usual);
}

TEST_CASE("A decimal comma of the program's locale is in no sentence or log line or replay line") {
  nvfp4_gemm_desc g = problem(), refused = problem();
  g.alpha = 0.1f, refused.beta = 1.5f;
  const std::string usual = explained(g);
  REQUIRE(contains(usual, " --alpha 0.100000001"));

  const CommaLocale comma;
  if (!comma.there) SKIP_TEST("localedef made no locale with a decimal comma");
  char number[16];
  snprintf(number, sizeof number, "%.1f", 0.5);
  REQUIRE(std::string(number) == "0,5");
  CHECK(explained(g) == usual);
  std::string line;
  const auto keep = [](void* user, int32_t, const char* text) {
    *static_cast<std::string*>(user) = text;
  };
  REQUIRE(nvfp4_set_log_callback(keep, &line, 1) == NVFP4_SUCCESS);
  CHECK(nvfp4_gemm_supported(&refused, 100) == NVFP4_STATUS_INVALID_VALUE);
  REQUIRE(nvfp4_set_log_callback(nullptr, nullptr, 0) == NVFP4_SUCCESS);
  CHECK(contains(nvfp4_last_error(), "beta = 1.5 must be 0"));
  CHECK(contains(line, "beta = 1.5 must be 0"));
  snprintf(number, sizeof number, "%.1f", 0.5);
  CHECK(std::string(number) == "0,5");  // the caller's locale is as it was
}
