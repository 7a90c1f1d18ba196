// SPDX-License-Identifier: MIT
// The few functions and numbers of cublasLt.h that a GEMM takes (cuBLAS 12 and 13).
#include "tools/harness/cublaslt.h"

#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <stdexcept>

#include "nvfp4_gemm.h"

namespace support {
namespace {

enum DataType { kF32 = 0, kF16 = 2, kBF16 = 14, kE4M3 = 28, kE2M1 = 33 };

DataType data_type(GemmType type) {
  switch (type) {
    case GemmType::f16: return kF16;
    case GemmType::bf16: return kBF16;
    case GemmType::e4m3: return kE4M3;
    case GemmType::nvfp4: break;
  }
  return kE2M1;
}
enum DescAttribute {
  kTransA = 3,
  kTransB = 4,
  kScalePointerA = 17,
  kScalePointerB = 18,
  kScaleModeA = 31,
  kScaleModeB = 32
};
constexpr int kTransposed = 1, kComputeF32 = 68, kPreferenceWorkspace = 1, kVec16Ue4m3 = 1;

struct Algorithm {
  uint64_t data[8];
};
struct Heuristic {
  Algorithm algorithm;
  size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};

struct Functions {
  size_t (*GetVersion)();
  int (*Create)(void** handle);
  int (*Destroy)(void* handle);
  int (*MatmulDescCreate)(void** desc, int compute, int scale);
  int (*MatmulDescDestroy)(void* desc);
  int (*MatmulDescSetAttribute)(void* desc, int attribute, const void* value, size_t bytes);
  int (*MatrixLayoutCreate)(void** layout, int type, uint64_t rows, uint64_t columns, int64_t ld);
  int (*MatrixLayoutDestroy)(void* layout);
  int (*MatmulPreferenceCreate)(void** preference);
  int (*MatmulPreferenceDestroy)(void* preference);
  int (*MatmulPreferenceSetAttribute)(void* preference, int attribute, const void* value,
                                      size_t bytes);
  int (*MatmulAlgoGetHeuristic)(void* handle, void* desc, void* a, void* b, void* c, void* d,
                                void* preference, int most, Heuristic* results, int* found);
  int (*Matmul)(void* handle, void* desc, const void* alpha, const void* a, void* a_layout,
                const void* b, void* b_layout, const void* beta, const void* c, void* c_layout,
                void* d, void* d_layout, const Algorithm* algorithm, void* workspace,
                size_t workspace_bytes, CUstream stream);
};

void check(int status, const char* what) {
  if (status)
    throw std::runtime_error(std::string("cublasLt") + what + " answered status " +
                             std::to_string(status));
}

// A row-major operand is the column-major transposed one: D^T[n, m] = B[n, k] * A[m, k]^T.
class PlanOf : public CublasLt::Plan {
 public:
  PlanOf(const Functions& f, void* handle, const CublasLt::Gemm& g,
         const CublasLt::Addresses& sample, int most, CUdeviceptr workspace, uint64_t bytes)
      : f_(f), handle_(handle), type_(g.type), workspace_(workspace), workspace_bytes_(bytes) {
    const int type = data_type(g.type), d_type = type == kBF16 ? kBF16 : kF16;
    check(f_.MatmulDescCreate(&desc_, kComputeF32, kF32), "MatmulDescCreate");
    set(kTransA, kTransposed);
    check(f_.MatrixLayoutCreate(&b_, type, uint64_t(g.k), uint64_t(g.n), g.k),
          "MatrixLayoutCreate");
    check(f_.MatrixLayoutCreate(&a_, type, uint64_t(g.k), uint64_t(g.m), g.k),
          "MatrixLayoutCreate");
    check(f_.MatrixLayoutCreate(&d_, d_type, uint64_t(g.n), uint64_t(g.m), g.n),
          "MatrixLayoutCreate");
    if (g.type == GemmType::nvfp4) {
      set(kScaleModeA, kVec16Ue4m3);
      set(kScaleModeB, kVec16Ue4m3);
      set_scales(sample);
    }
    propose(most);
  }
  ~PlanOf() override {
    f_.MatrixLayoutDestroy(a_);
    f_.MatrixLayoutDestroy(b_);
    f_.MatrixLayoutDestroy(d_);
    f_.MatmulDescDestroy(desc_);
  }
  int candidates() const override { return int(algorithms_.size()); }
  void run(int candidate, const CublasLt::Addresses& at, CUstream stream) const override {
    const float one = 1, zero = 0;
    const auto pointer = [](CUdeviceptr p) { return reinterpret_cast<void*>(p); };
    if (type_ == GemmType::nvfp4) set_scales(at);
    check(f_.Matmul(handle_, desc_, &one, pointer(at.b), b_, pointer(at.a), a_, &zero,
                    pointer(at.d), d_, pointer(at.d), d_, &algorithms_[size_t(candidate)],
                    pointer(workspace_), workspace_bytes_, stream),
          "Matmul");
  }

 private:
  void set(int attribute, int32_t value) const {
    check(f_.MatmulDescSetAttribute(desc_, attribute, &value, sizeof value),
          "MatmulDescSetAttribute");
  }
  // Its A is our B.
  void set_scales(const CublasLt::Addresses& at) const {
    check(f_.MatmulDescSetAttribute(desc_, kScalePointerA, &at.b_scales, sizeof at.b_scales),
          "MatmulDescSetAttribute");
    check(f_.MatmulDescSetAttribute(desc_, kScalePointerB, &at.a_scales, sizeof at.a_scales),
          "MatmulDescSetAttribute");
  }
  void propose(int most) {
    void* preference = nullptr;
    check(f_.MatmulPreferenceCreate(&preference), "MatmulPreferenceCreate");
    check(f_.MatmulPreferenceSetAttribute(preference, kPreferenceWorkspace, &workspace_bytes_,
                                          sizeof workspace_bytes_),
          "MatmulPreferenceSetAttribute");
    std::vector<Heuristic> results(static_cast<size_t>(most));
    int found = 0;
    const int status = f_.MatmulAlgoGetHeuristic(handle_, desc_, b_, a_, d_, d_, preference, most,
                                                 results.data(), &found);
    f_.MatmulPreferenceDestroy(preference);
    for (int i = 0; status == 0 && i < found; ++i)
      if (results[size_t(i)].status == 0) algorithms_.push_back(results[size_t(i)].algorithm);
  }

  const Functions& f_;
  void* handle_;
  GemmType type_;
  CUdeviceptr workspace_;
  uint64_t workspace_bytes_;
  void *desc_ = nullptr, *a_ = nullptr, *b_ = nullptr, *d_ = nullptr;
  std::vector<Algorithm> algorithms_;
};

class Library : public CublasLt {
 public:
  Library(const Functions& functions, void* handle) : f_(functions), handle_(handle) {}
  ~Library() override { f_.Destroy(handle_); }
  uint64_t version() const override { return f_.GetVersion(); }
  std::unique_ptr<Plan> plan(const Gemm& gemm, const Addresses& sample, int most,
                             CUdeviceptr workspace, uint64_t bytes) const override {
    return std::make_unique<PlanOf>(f_, handle_, gemm, sample, most, workspace, bytes);
  }

 private:
  Functions f_;
  void* handle_;
};

}  // namespace

const char* to_string(GemmType type) {
  switch (type) {
    case GemmType::f16: return "fp16";
    case GemmType::bf16: return "bf16";
    case GemmType::e4m3: return "fp8";
    case GemmType::nvfp4: break;
  }
  return "nvfp4";
}

std::unique_ptr<CublasLt> CublasLt::open(std::string* why) {
  void* library = nullptr;
  for (const char* name : {"libcublasLt.so.13", "libcublasLt.so.12", "libcublasLt.so"})
    if (!library) library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library) {
    *why = "there is no libcublasLt.so";
    return nullptr;
  }
  Functions f{};
  bool complete = true;
  const auto find = [&](auto& function, const char* name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(
        dlsym(library, (std::string("cublasLt") + name).c_str()));
    complete &= function != nullptr;
  };
#define FIND(name) find(f.name, #name)
  FIND(GetVersion);
  FIND(Create);
  FIND(Destroy);
  FIND(MatmulDescCreate);
  FIND(MatmulDescDestroy);
  FIND(MatmulDescSetAttribute);
  FIND(MatrixLayoutCreate);
  FIND(MatrixLayoutDestroy);
  FIND(MatmulPreferenceCreate);
  FIND(MatmulPreferenceDestroy);
  FIND(MatmulPreferenceSetAttribute);
  FIND(MatmulAlgoGetHeuristic);
  FIND(Matmul);
#undef FIND
  void* handle = nullptr;
  if (!complete || f.Create(&handle) != 0) {
    *why = "libcublasLt.so does not start";
    return nullptr;
  }
  return std::make_unique<Library>(f, handle);
}

// ---- operands -----------------------------------------------------------------------------------

namespace {

constexpr size_t kBlock = size_t(8) << 20;

// Numbers of moderate size: fp16 and bf16 in +-[1, 2), any finite e4m3 or e2m1; scales are e4m3
// near 1.
std::vector<uint8_t> make_block(GemmType type) {
  std::mt19937_64 random(42);
  std::vector<uint8_t> bytes(kBlock);
  for (size_t i = 0; i < bytes.size(); i += 2) {
    const auto bits = uint32_t(random());
    if (type == GemmType::f16 || type == GemmType::bf16) {
      const uint32_t code =
          type == GemmType::f16 ? 0x3C00 | (bits & 0x83FF) : 0x3F80 | (bits & 0x807F);
      bytes[i] = uint8_t(code), bytes[i + 1] = uint8_t(code >> 8);
    } else {
      bytes[i] = uint8_t(bits & 0xB7), bytes[i + 1] = uint8_t(bits >> 8 & 0xB7);
    }
  }
  return bytes;
}

const std::vector<uint8_t>& block_of(GemmType type) {
  static std::map<GemmType, std::vector<uint8_t>> blocks;
  std::vector<uint8_t>& block = blocks[type];
  if (block.empty()) block = make_block(type);
  return block;
}

size_t scale_bytes(GemmType type, int64_t rows, int64_t k) {
  return type == GemmType::nvfp4 ? nvfp4_scale_bytes(rows, k, NVFP4_SCALE_LAYOUT_128X4) : 16;
}

}  // namespace

double element_bytes(GemmType type) {
  if (type == GemmType::f16 || type == GemmType::bf16) return 2;
  return type == GemmType::e4m3 ? 1 : 0.5;
}

Filler::Filler(const Driver& driver, GemmType type)
    : driver_(driver), block_(driver, block_of(type)) {}

void Filler::fill(const DeviceBuffer& to) const {
  for (size_t at = 0; at < to.bytes(); at += kBlock)
    driver_.check(driver_.cuMemcpyDtoD(to.address() + at, block_.address(),
                                       std::min(kBlock, to.bytes() - at)),
                  "cuMemcpyDtoD");
}

CublasOperands::CublasOperands(const Driver& driver, GemmType type, int64_t m, int64_t n, int64_t k)
    : a(driver, size_t(double(m * k) * element_bytes(type))),
      b(driver, size_t(double(n * k) * element_bytes(type))),
      d(driver, size_t(2 * m * n)),
      a_scales(driver, scale_bytes(type, m, k)),
      b_scales(driver, scale_bytes(type, n, k)) {
  const Filler values(driver, type), ones(driver, GemmType::e4m3);
  values.fill(a);
  values.fill(b);
  ones.fill(a_scales);
  ones.fill(b_scales);
}

CublasOperands::CublasOperands(const Driver& driver, const CublasOperands& other)
    : a(driver, other.a),
      b(driver, other.b),
      d(driver, other.d.bytes()),
      a_scales(driver, other.a_scales),
      b_scales(driver, other.b_scales) {}

}  // namespace support
