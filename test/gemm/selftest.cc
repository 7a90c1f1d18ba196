// SPDX-License-Identifier: MIT
// nvfp4_selftest: passes on what ships, and names the variant whose kernel was damaged.
#include <dlfcn.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <fstream>

#include "test/gemm/emulator.h"
#include "test/gemm/entries.h"
#include "test/gemm/sizes.h"

namespace {

uint64_t bytes_of(const Gpu& gpu) {
  return nvfp4_selftest_bytes(int32_t(gpu.info.compute_capability()));
}

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  REQUIRE(in);
  std::string text(size_t(in.tellg()), '\0');
  in.seekg(0).read(text.data(), std::streamsize(text.size()));
  return text;
}

// In an entry of a family's PTX one operation becomes another: multiplications become additions, by
// alpha among them; or additions multiplications, of which a plain product of one CTA has none.
// With `last`, the kernels of the variants after that one do nothing: the first that is wrong is
// named.
struct Damage {
  std::string entry;
  const char* operation = "mul.rn.f32";
  const char* instead = "add.rn.f32";
  std::string last = "";
};

// "sm90_64x8x256" has the entries nvfp4_gemm_sm90_64x8 and _plain.
std::string entry_of(const std::string& variant) {
  return "nvfp4_gemm_" + variant.substr(0, variant.rfind('x'));
}

// Without the entries of variants after `last`, and those of which the self test runs none.
std::string up_to(const std::string& last, const std::string& ptx) {
  std::vector<std::string> kept;
  const int capability = support::devices(support::Driver::get()).at(0).compute_capability();
  for (const std::string& variant : support::variant_names(capability)) {
    kept.push_back(entry_of(variant));
    if (variant == last) break;
  }
  return gemm_test::with_entries(ptx, [&](std::string_view name) {
    if (!name.starts_with("nvfp4_gemm_")) return true;
    if (name.find("_grouped") != name.npos || name.find("_gated") != name.npos) return false;
    return std::any_of(kept.begin(), kept.end(), [&](const std::string& entry) {
      return name == entry || name.starts_with(entry + "_");
    });
  });
}

std::string damaged_ptx(std::string text, const Damage& damage) {
  if (!damage.last.empty()) text = up_to(damage.last, text);
  const std::vector<gemm_test::PtxBody> bodies = gemm_test::ptx_bodies(text);
  const auto body = std::find_if(bodies.begin(), bodies.end(),
                                 [&](const auto& each) { return each.name == damage.entry; });
  REQUIRE(body != bodies.end());
  const std::string operation = damage.operation;
  size_t damaged = 0;
  for (size_t found = text.find(operation, body->begin); found < body->end;
       found = text.find(operation, found + 1)) {
    text.replace(found, operation.size(), damage.instead);
    ++damaged;
  }
  REQUIRE(damaged > 0);
  return text;
}

// A fat binary of that text, not packed: the heads of `packed`, whose entry is the text before.
std::string fat_binary_of(std::string text, const std::string& packed) {
  constexpr size_t container = 16, entry = 80;
  std::string out = packed.substr(0, container + entry);
  const auto set = [&out](size_t at, auto value) { memcpy(&out[at], &value, sizeof value); };
  text.resize((text.size() + 8) / 8 * 8);
  set(8, uint64_t(entry + text.size()));
  set(container + 8, uint64_t(text.size()));
  set(container + 16, uint32_t(0));  // packed to
  set(container + 40, uint64_t(0x11));
  set(container + 56, uint64_t(0));  // unpacked to
  return out + text;
}

// A library of its own, from a file that is gone as soon as it is open. In place of the family's
// PTX stands what nvcc puts around a fat binary, a word and a pointer, here into this program.
class Damaged {
 public:
  Damaged(const std::string& family, const Damage& damage) {
    const std::string file = std::string(NVFP4_TEST_KERNEL_DIR "/gemm_") + family + ".ptx";
    const std::string packed = content(file + ".fatbin");
    image_ = fat_binary_of(damaged_ptx(content(file), damage), packed);
    Dl_info info{};
    REQUIRE(dladdr(reinterpret_cast<void*>(&nvfp4_version), &info) != 0);
    std::string library = content(info.dli_fname);
    const size_t at = library.find(packed);
    REQUIRE(at != library.npos);
    const struct {
      uint32_t magic = 0x466243B1, version = 1;
      const void* container;
      uint64_t unused = 0;
    } wrapper{0x466243B1, 1, image_.data()};
    memcpy(&library[at], &wrapper, sizeof wrapper);
    open(library);
  }
  ~Damaged() { dlclose(handle_); }
  Damaged(const Damaged&) = delete;
  Damaged& operator=(const Damaged&) = delete;

  nvfp4_status selftest(const support::DeviceBuffer& space) const {
    return find(&nvfp4_selftest, "nvfp4_selftest")(space.pointer(), space.bytes(), nullptr);
  }
  std::string last_error() const { return find(&nvfp4_last_error, "nvfp4_last_error")(); }

 private:
  void open(const std::string& library) {
    char name[] = "/tmp/nvfp4-selftest-XXXXXX";
    const int file = mkstemp(name);
    REQUIRE(file >= 0);
    std::ofstream(name, std::ios::binary) << library;
    close(file);
    handle_ = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    std::remove(name);
    REQUIRE(handle_);
  }
  template <class Function>
  Function* find(Function*, const char* name) const {
    return reinterpret_cast<Function*>(dlsym(handle_, name));
  }
  std::string image_;
  void* handle_ = nullptr;
};

void require_named(const support::DeviceBuffer& space, const std::string& variant,
                   const std::string& suffix, const std::string& product) {
  CAPTURE(variant, suffix);
  Damage damage{entry_of(variant) + suffix};
  if (!gemm_test::everything()) damage.last = variant;
  const Damaged damaged(variant.substr(0, variant.find('_')), damage);
  CHECK(damaged.selftest(space) == NVFP4_STATUS_WRONG_RESULT);
  const std::string error = damaged.last_error();
  INFO(error);
  CHECK(error.find("variant " + variant + " computes") == 0);
  CHECK(error.find("of the self test's " + product) != std::string::npos);
}

void require_named(const support::DeviceBuffer& space, const std::string& variant) {
  // A kernel that adds parts of K multiplies by alpha in place of the one that was damaged.
  const std::string_view family = gemm_test::tile_of(variant).family;
  const bool one_entry = family == "sm80" || family == "sm120";
  require_named(space, variant, one_entry ? "" : "_plain", one_entry ? "" : "plain product");
}

// An emulated H200 takes half a minute for one self test.
bool short_of_time(const Gpu& gpu) { return gpu.small() && !gemm_test::everything(); }

}  // namespace

TEST_CASE("the self test passes in its workspace alone whatever that holds", "[selftest]") {
  USE_GPU_FOR_HALVES(gpu);
  if (short_of_time(gpu)) SKIP_TEST("the variants before the one that is damaged below are right");
  const support::DeviceBuffer space(gpu.driver, std::vector<uint8_t>(bytes_of(gpu), 0xFF));
  // The second run finds the results of the first; the emulator makes do with one.
  const bool once = gpu.info.emulated() && gpu.reason_to_skip().empty() && !gemm_test::everything();
  for (int i = once; i < 2; ++i) {
    const nvfp4_status status = nvfp4_selftest(space.pointer(), space.bytes(), nullptr);
    INFO(nvfp4_last_error());
    REQUIRE(status == NVFP4_SUCCESS);
  }
  CHECK(space.guards_intact());
}

TEST_CASE("the self test takes less than 100 ms where everything is loaded", "[selftest]") {
  USE_GPU_FOR_HALVES(gpu);
  if (gpu.info.emulated()) SKIP_TEST("time in the emulator says nothing");
  const support::DeviceBuffer space(gpu.driver, size_t(bytes_of(gpu)));
  REQUIRE(nvfp4_prepare() == NVFP4_SUCCESS);
  const auto start = std::chrono::steady_clock::now();
  REQUIRE(nvfp4_selftest(space.pointer(), space.bytes(), nullptr) == NVFP4_SUCCESS);
  const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
  std::printf("self test: %.2f ms\n", spent.count());
  CHECK(spent.count() < 100);
}

TEST_CASE("the self test refuses what it cannot use", "[selftest]") {
  USE_GPU_FOR_HALVES(gpu);
  const support::DeviceBuffer space(gpu.driver, size_t(bytes_of(gpu)));
  CHECK(nvfp4_selftest(nullptr, space.bytes(), nullptr) == NVFP4_STATUS_NULL_POINTER);
  CHECK(nvfp4_selftest(static_cast<char*>(space.pointer()) + 64, space.bytes(), nullptr) ==
        NVFP4_STATUS_MISALIGNED);
  CHECK(nvfp4_selftest(space.pointer(), space.bytes() - 1, nullptr) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(nvfp4_selftest_bytes(75) == 0);
  CUstream stream = nullptr;
  CUgraph graph = nullptr;
  gpu.driver.check(gpu.driver.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
  gpu.driver.check(gpu.driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED),
                   "cuStreamBeginCapture");
  CHECK(nvfp4_selftest(space.pointer(), space.bytes(), stream) == NVFP4_STATUS_INVALID_VALUE);
  CHECK(std::string(nvfp4_last_error()).find("is being captured") != std::string::npos);
  gpu.driver.check(gpu.driver.cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
  gpu.driver.cuGraphDestroy(graph);
  gpu.driver.cuStreamDestroy(stream);
}

TEST_CASE("the self test names the variant whose kernel was damaged", "[selftest]") {
  USE_GPU_FOR_HALVES(gpu);
  USE_EMULATOR(gpu, emulator);  // which runs the PTX of the library
  const support::DeviceBuffer space(gpu.driver, size_t(bytes_of(gpu)));
  std::vector<std::string> variants = support::variant_names(gpu.info.compute_capability());
  if (gpu.info.major == 9) {
    std::erase_if(variants, [](const std::string& name) {
      return gemm_test::tile_of(name).family == "sm80";
    });
  }
  // The first that is wrong is named: so the variants before it passed. All do on a B200 in the
  // test above. An emulated H200 has those of 16-bit tokens before this one, ten tiles after it.
  if (short_of_time(gpu)) {
    require_named(space, "sm90_64x8x256", "_plain", "plain product");
  } else if (gpu.info.major != 10 || gemm_test::everything()) {
    require_named(space, variants.back());
  }
  CHECK(space.guards_intact());
  if (short_of_time(gpu)) return;
  if (gemm_test::everything()) {
    require_named(space, variants.front());
    require_named(space, variants[variants.size() / 2]);
  }
  if (gpu.info.major == 9) require_named(space, "sm90_64x8x256", "_plain", "plain product");
  if (gpu.info.major == 9) require_named(space, "sm90_64x8x256", "_fields", "fields product");
  if (gpu.info.major != 9 && gpu.info.major != 10) return;  // mma.sync has no such entry
  require_named(space, gpu.info.major == 9 ? "sm90_64x32x256" : "sm100_128x64x256", "_scaled",
                "scaled product");
}

TEST_CASE("the self test finds a damaged general epilogue", "[selftest]") {
  USE_GPU(gpu);
  USE_EMULATOR(gpu, emulator);
  if (short_of_time(gpu)) SKIP_TEST("the emulated B200 shows it; NVFP4_LONG does here, too");
  const support::DeviceBuffer space(gpu.driver, size_t(bytes_of(gpu)));
  const std::string variant = gpu.by_family("sm90_64x1x256", "sm100_128x64x256", "sm120_64x8x256");
  Damage damage{entry_of(variant), "add.rn.f32", "mul.rn.f32"};
  if (!gemm_test::everything()) damage.last = variant;
  const Damaged damaged(variant.substr(0, variant.find('_')), damage);
  CHECK(damaged.selftest(space) == NVFP4_STATUS_WRONG_RESULT);
  CHECK(damaged.last_error().find("of the self test's general product") != std::string::npos);
}

// Takes 100 s on an emulated H200: each time all variants compute.
TEST_CASE("the self test names each variant in turn when its kernel was damaged",
          "[.each][selftest]") {
  USE_GPU(gpu);
  USE_EMULATOR(gpu, emulator);
  const support::DeviceBuffer space(gpu.driver, size_t(bytes_of(gpu)));
  for (const char* variant : gemm_test::variants()) require_named(space, variant);
  if (gpu.info.major != 9) return;
  for (const char* tile : {"64x1", "64x2", "64x4", "64x8", "128x16", "f16_64x16", "bf16_64x16"})
    require_named(space, std::string("sm90_") + tile + "x256", "_plain", "plain product");
  for (const char* type : {"f16", "bf16"})
    for (const char* tile : {"64x16", "64x32", "64x128", "128x128"})
      require_named(space, std::string("sm90_") + type + "_" + tile + "x256");
}
