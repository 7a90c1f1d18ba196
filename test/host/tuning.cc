// SPDX-License-Identifier: MIT
// Tables of measured variants: what is taken, what is refused with its line, and what they answer.
#include <string>
#include <thread>
#include <vector>

#include "nvfp4_gemm.h"
#include "tools/testing/catch.h"

namespace {

constexpr int32_t kCapability = 90, kSms = 132;
const char* const kDevice = "NVIDIA H200";

std::string head(const std::string& bits = "same") {
  return std::string("nvfp4 tuning 1\nlibrary=") + nvfp4_build_info() + "\ndevice=" + kDevice +
         "\ncompute_capability=90\nsms=132\nbits=" + bits +
         "\nn,k,l,first_m,last_m,a_type,variant\n";
}

// A table for as long as it is looked at.
class Tuning {
 public:
  explicit Tuning(const std::string& text, const char* device = kDevice, int32_t sms = kSms,
                  int32_t capability = kCapability)
      : status(nvfp4_tuning_create(text.data(), text.size(), device, capability, sms, &tuning)),
        sentence(status == NVFP4_SUCCESS ? "" : nvfp4_last_error()) {}
  ~Tuning() { nvfp4_tuning_destroy(tuning); }

  // "" for NULL.
  std::string of(const nvfp4_gemm_desc& g) const {
    const char* variant = "left alone";
    REQUIRE(nvfp4_tuning_variant(tuning, &g, &variant) == NVFP4_SUCCESS);
    return variant == nullptr ? "" : variant;
  }

  nvfp4_tuning* tuning = reinterpret_cast<nvfp4_tuning*>(1);
  nvfp4_status status;
  std::string sentence;
};

nvfp4_gemm_desc problem(int64_t m, int64_t n, int64_t k) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = m, g.n = n, g.k = k, g.l = 1;
  g.a_ld = g.b_ld = k, g.d_ld = n;
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d_type = NVFP4_TYPE_F16;
  g.alpha = 1;
  return g;
}

// The table is refused, with all of the sentence that matters.
void refused(const std::string& text, const std::string& part) {
  const Tuning tuning(text);
  CAPTURE(text, part, tuning.sentence);
  CHECK(tuning.status == NVFP4_STATUS_INVALID_VALUE);
  CHECK(tuning.tuning == nullptr);
  CHECK(tuning.sentence.find(part) != std::string::npos);
}

}  // namespace

TEST_CASE("A tuning answers the row that covers a problem, and NULL for any other") {
  const Tuning tuning(head() +
                      "# measured\n\n"
                      "4096,7168,1,33,64,nvfp4,sm90_64x64x256\n"
                      "4096,7168,1,65,128,nvfp4,sm90_64x128x256/2\n"
                      "512,1024,1,1,1,nvfp4,sm90_64x1x256\n"
                      "4096,7168,1,64,64,f16,sm90_f16_64x32x256");
  REQUIRE(tuning.sentence == "");
  REQUIRE(tuning.status == NVFP4_SUCCESS);
  CHECK(tuning.of(problem(32, 4096, 7168)) == "");
  CHECK(tuning.of(problem(33, 4096, 7168)) == "sm90_64x64x256");
  CHECK(tuning.of(problem(64, 4096, 7168)) == "sm90_64x64x256");
  CHECK(tuning.of(problem(65, 4096, 7168)) == "sm90_64x128x256/2");
  CHECK(tuning.of(problem(128, 4096, 7168)) == "sm90_64x128x256/2");
  CHECK(tuning.of(problem(129, 4096, 7168)) == "");
  CHECK(tuning.of(problem(1, 512, 1024)) == "sm90_64x1x256");
  CHECK(tuning.of(problem(1, 512, 1056)) == "");
  CHECK(tuning.of(problem(1, 1024, 512)) == "");
  nvfp4_gemm_desc g = problem(64, 4096, 7168);
  g.a_type = NVFP4_TYPE_F16;
  CHECK(tuning.of(g) == "sm90_f16_64x32x256");
  g.a_type = NVFP4_TYPE_BF16;
  CHECK(tuning.of(g) == "");
}

TEST_CASE("What a tuning answers is a plan that explain shows, and outlives the tuning") {
  nvfp4_gemm_desc g = problem(128, 4096, 7168);
  {
    const Tuning tuning(head("any") + "4096,7168,1,128,128,nvfp4,sm90_128x128x256/4\n");
    REQUIRE(nvfp4_tuning_variant(tuning.tuning, &g, &g.variant) == NVFP4_SUCCESS);
  }
  char text[4096];
  REQUIRE(nvfp4_gemm_explain(&g, kCapability, kSms, text, sizeof text) == NVFP4_SUCCESS);
  CHECK(std::string(text).find("variant   sm90_128x128x256\n") != std::string::npos);
  CHECK(std::string(text).find("split     4\n") != std::string::npos);
}

TEST_CASE("A tuning changes no problem that is batch-invariant, empty or of other batches") {
  const Tuning tuning(head() + "4096,7168,2,64,64,nvfp4,sm90_64x64x256\n");
  nvfp4_gemm_desc g = problem(64, 4096, 7168);
  CHECK(tuning.of(g) == "");
  g.l = 2;
  g.a_batch_stride = g.m * g.k, g.b_batch_stride = g.n * g.k, g.d_batch_stride = g.m * g.n;
  g.a_scales_batch_stride_bytes = 128 * g.k / 16;
  g.b_scales_batch_stride_bytes = g.n * g.k / 16;
  CHECK(tuning.of(g) == "sm90_64x64x256");
  g.batch_invariant = 1;
  CHECK(tuning.of(g) == "");
  g.batch_invariant = 0, g.m = 0;
  CHECK(tuning.of(g) == "");
}

TEST_CASE("A tuning of another library, device or format is refused in a sentence") {
  const std::string row = "4096,7168,1,64,64,nvfp4,sm90_64x64x256\n", good = head() + row;
  REQUIRE(Tuning(good).status == NVFP4_SUCCESS);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return text.replace(text.find(from), from.size(), to);
  };
  refused("", "line 1, \"\", should be \"nvfp4 tuning 1\"");
  refused(with("tuning 1", "tuning 2"), "line 1, \"nvfp4 tuning 2\", should be");
  refused(with("library=", "library=x"), "tune anew");
  refused(with("device=NVIDIA H200", "device=NVIDIA H100"), "device_name is \"NVIDIA H200\"");
  refused(with("capability=90", "capability=100"), "compute_capability=100");
  refused(with("sms=132", "sms=114"), "sm_count is 132");
  refused(with("sms=132", "sms=many"), "is no number");
  refused(with("bits=same", "bits=some"), "neither same nor any");
  refused(with("bits=same\n", ""), "line 6");
  refused(with("first_m,last_m,a_type", "first_m,a_type"), "line 7");
  refused(with("sms=132", "sms=132\r"), "line 5");
  CHECK(Tuning(good, nullptr).status == NVFP4_SUCCESS);  // any name
  CHECK(Tuning(good, kDevice, kSms, 80).status == NVFP4_STATUS_UNSUPPORTED_ARCH);
}

TEST_CASE("A row of a tuning that cannot be meant is refused with its line") {
  const auto row = [](const std::string& text, const std::string& part) {
    refused(head() + "512,512,1,1,1,nvfp4,sm90_64x1x256\n" + text, part);
    refused(head() + "512,512,1,1,1,nvfp4,sm90_64x1x256\n" + text, "line 9");
  };
  row("4096,7168,1,64,64,nvfp4,sm90_64x65x256", "names no variant");
  row("4096,7168,1,64,64,nvfp4,sm90_64x64x256/5", "or parts that it does not take");
  row("4096,512,1,64,64,nvfp4,sm90_64x64x256/4", "more parts than K has stages");
  row("4096,7168,1,64,64,nvfp4,sm100_128x64x256", "another capability");
  row("4096,7168,1,64,64,f16,sm90_64x64x256", "another a_type");
  row("4096,7168,1,64,64,fp16,sm90_64x64x256", "nvfp4, f16 or bf16");
  row("4096,7168,1,64,63,nvfp4,sm90_64x64x256", "first_m <= last_m");
  row("4096,7170,1,64,64,nvfp4,sm90_64x64x256", "multiple of 16");
  row("4096,7168,0,64,64,nvfp4,sm90_64x64x256", "sizes above 0");
  row("4096,7168,1,-1,64,nvfp4,sm90_64x64x256", "five numbers");
  row("2147483648,7168,1,1,64,nvfp4,sm90_64x64x256", "five numbers");
  row("4096,7168,1,64,64,nvfp4,sm90_64x64x256,1", "more than 7 fields");
  row("4096,7168,1,64", "five numbers");
  row("4096,7168,1,64,64,nvfp4,", "names no variant");
  row("4096,7168,1,64,64,nvfp4," + std::string(500, 'x'), "names no variant");
}

TEST_CASE("Two rows of a tuning that cover one problem are refused, neighbours are not") {
  const std::string first = head() + "4096,7168,1,1,64,nvfp4,sm90_64x64x256\n";
  refused(first + "4096,7168,1,64,99,nvfp4,sm90_64x64x256\n", "two rows cover M = 64, N = 4096");
  refused(first + "4096,7168,1,1,64,nvfp4,sm90_64x64x256\n", "two rows cover M = 1");
  CHECK(Tuning(first + "4096,7168,1,65,99,nvfp4,sm90_64x64x256\n").status == NVFP4_SUCCESS);
  CHECK(Tuning(first + "4096,7168,2,64,99,nvfp4,sm90_64x64x256\n").status == NVFP4_SUCCESS);
}

TEST_CASE("A tuning refuses what the problem itself breaks, and leaves NULL") {
  const Tuning tuning(head() + "4096,7168,1,64,64,nvfp4,sm90_64x64x256\n");
  nvfp4_gemm_desc g = problem(64, 4096, 7168);
  const char* variant = "left alone";
  g.d_type = 77;
  CHECK(nvfp4_tuning_variant(tuning.tuning, &g, &variant) == NVFP4_STATUS_INVALID_ENUM);
  CHECK(variant == nullptr);
  CHECK(nvfp4_tuning_variant(nullptr, &g, &variant) == NVFP4_STATUS_NULL_POINTER);
  CHECK(nvfp4_tuning_variant(tuning.tuning, nullptr, &variant) == NVFP4_STATUS_NULL_POINTER);
  CHECK(nvfp4_tuning_variant(tuning.tuning, &g, nullptr) == NVFP4_STATUS_NULL_POINTER);
  nvfp4_tuning* made = nullptr;
  CHECK(nvfp4_tuning_create(nullptr, 0, nullptr, 90, 132, &made) == NVFP4_STATUS_NULL_POINTER);
  CHECK(nvfp4_tuning_create("", 0, nullptr, 90, 132, nullptr) == NVFP4_STATUS_NULL_POINTER);
  const std::string lines(70000, '\n');
  CHECK(Tuning(lines).status == NVFP4_STATUS_LIMIT);
  nvfp4_tuning_destroy(nullptr);
}

TEST_CASE("A row whose variant a problem does not take is an error, and no silent other plan") {
  // On 10.x the maps of a pair of CTAs describe scales less than 2^40 bytes apart.
  std::string text = head() + "256,512,2,256,256,nvfp4,sm100_256x256x256\n";
  text.replace(text.find("=90"), 3, "=100").replace(text.find("=132"), 4, "=148");
  const Tuning tuning(text, kDevice, 148, 100);
  REQUIRE(tuning.sentence == "");
  nvfp4_gemm_desc g = problem(256, 256, 512);
  g.l = 2;
  g.a_batch_stride = g.b_batch_stride = 256 * 512, g.d_batch_stride = 256 * 256;
  g.a_scales_batch_stride_bytes = 256 * 512 / 16;
  g.b_scales_batch_stride_bytes = 256 * 512 / 16;
  CHECK(tuning.of(g) == "sm100_256x256x256");
  g.b_scales_batch_stride_bytes = int64_t{1} << 40;
  const char* variant = "left alone";
  CHECK(nvfp4_tuning_variant(tuning.tuning, &g, &variant) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(std::string(nvfp4_last_error()).find("less than 2^40 bytes apart") != std::string::npos);
  CHECK(variant == nullptr);
}

TEST_CASE("Any number of threads ask one tuning") {
  const Tuning tuning(head() + "4096,7168,1,1,64,nvfp4,sm90_64x64x256\n");
  int wrong[4] = {};
  std::vector<std::thread> threads;
  for (int& mine : wrong) {
    threads.emplace_back([&] {
      for (int64_t m = 1; m <= 200; ++m) {
        const nvfp4_gemm_desc g = problem(m, 4096, 7168);
        const char* variant = nullptr;
        mine += nvfp4_tuning_variant(tuning.tuning, &g, &variant) != NVFP4_SUCCESS;
        mine += (variant != nullptr) != (m <= 64);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : wrong) CHECK(count == 0);
}

TEST_CASE("A tuning whose text was cut or damaged anywhere is taken whole or refused") {
  const std::string good = head() +
                           "4096,7168,1,33,64,nvfp4,sm90_64x64x256/2\n"
                           "# why\n4096,7168,1,65,65,nvfp4,sm90_64x128x256\n";
  int taken = 0, damaged = 0;
  const auto give = [&](const std::string& text) {
    // Of its own size, so that a read beyond the end is one that the sanitizers see.
    const std::vector<char> copy(text.begin(), text.end());
    nvfp4_tuning* tuning = nullptr;
    const char* const at = copy.empty() ? "" : copy.data();
    const nvfp4_status status =
        nvfp4_tuning_create(at, copy.size(), kDevice, kCapability, kSms, &tuning);
    const bool good_answer = status == NVFP4_SUCCESS
                                 ? tuning != nullptr
                                 : status == NVFP4_STATUS_INVALID_VALUE && tuning == nullptr;
    damaged += !good_answer, taken += status == NVFP4_SUCCESS;
    nvfp4_tuning_destroy(tuning);
  };
  for (size_t i = 0; i < good.size(); ++i) {
    give(good.substr(0, i));
    for (const char with : {'\0', '\n', ',', '9', '-', '/', '\xff'}) {
      std::string text = good;
      text[i] = with;
      give(text);
    }
  }
  CHECK(damaged == 0);
  CHECK(taken > 20);  // in a comment, in the last newline, in numbers
}
