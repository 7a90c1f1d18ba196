// SPDX-License-Identifier: MIT
// The 128 bytes that a driver makes of a tensor map, argument by argument. The layout is no
// contract, but public code counts on it and the emulator writes it: its own words are compared
// field by field with what is written down here from driver 580 on an H200.
// NVFP4_TENSOR_MAP_DUMP=file also writes every case as a row of numbers, for a table of what some
// other driver makes.
#include <array>
#include <cstdio>
#include <cstdlib>

#include "tools/emulator/test/h200/device.h"

namespace {

using Words = std::array<uint64_t, 16>;

struct Case {
  std::string name;
  uint32_t type = CU_TENSOR_MAP_DATA_TYPE_UINT8, rank = 5;
  uint64_t address = 0x123456789AB0;
  uint64_t dims[5] = {0x1020, 0x304, 0x51, 0x67, 0x7};
  uint64_t strides[4] = {0x1230, 0x456780, 0x89ABCD00, 0x1A2B3C4D50};
  uint32_t box[5] = {32, 3, 5, 2, 1}, steps[5] = {1, 2, 3, 4, 5};
  uint32_t interleave = 0, swizzle = 0, promotion = 0, fill = 0;
};

// A case for every argument and value; each differs from the first in that alone.
std::vector<Case> cases() {
  std::vector<Case> all(1);
  all[0].name = "first";
  const auto add = [&](const std::string& name, auto change) {
    Case c;
    c.name = name;
    change(c);
    all.push_back(c);
  };
  for (uint32_t v = 0; v < 16; ++v)
    add("type " + std::to_string(v), [=](Case& c) {
      c.type = v;
      c.box[0] = v >= CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B ? 128 : 16;
      if (v > CU_TENSOR_MAP_DATA_TYPE_16U4_ALIGN8B) c.dims[0] = 0x1080, c.address &= ~31ull;
    });
  for (uint32_t v = 1; v <= 5; ++v) add("rank " + std::to_string(v), [=](Case& c) { c.rank = v; });
  for (uint64_t v : {uint64_t(0), uint64_t(16), uint64_t(0x7F0000000000)})
    add("address " + std::to_string(v), [=](Case& c) { c.address = v; });
  for (uint32_t i = 0; i < 5; ++i) {
    const std::string at = "[" + std::to_string(i) + "]";
    for (uint64_t v : {uint64_t(1), uint64_t(0x89ABCDE0), uint64_t(1) << 32})
      add("dim" + at + " " + std::to_string(v), [=](Case& c) { c.dims[i] = v; });
    for (uint32_t v : {16u, 128u, 256u})
      add("box" + at + " " + std::to_string(v), [=](Case& c) { c.box[i] = v; });
    for (uint32_t v : {1u, 7u, 8u})
      add("step" + at + " " + std::to_string(v), [=](Case& c) { c.steps[i] = v; });
    for (uint64_t v : {uint64_t(32), (uint64_t(1) << 40) - 16})
      if (i < 4) add("stride" + at + " " + std::to_string(v), [=](Case& c) { c.strides[i] = v; });
  }
  for (uint32_t v = 0; v < 3; ++v)
    add("interleave " + std::to_string(v), [=](Case& c) {
      c.interleave = v;
      if (v != 2) return;
      c.swizzle = 1;
      c.address &= ~31ull;
      for (uint64_t& s : c.strides) s &= ~31ull;
    });
  for (uint32_t v = 0; v < 7; ++v)
    add("swizzle " + std::to_string(v), [=](Case& c) { c.swizzle = v; });
  for (uint32_t v = 0; v < 4; ++v)
    add("promotion " + std::to_string(v), [=](Case& c) { c.promotion = v; });
  add("fill 1", [](Case& c) { c.type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16, c.fill = 1; });
  for (uint32_t v = 0; v < 4; ++v)  // around the 128 KB of bit 21
    add("size " + std::to_string(v), [=](Case& c) {
      c.rank = 2;
      c.dims[0] = c.strides[0] = 1024;
      c.dims[1] = 64u << v;
    });
  return all;
}

CUresult encode(const Case& c, Words* words) {
  CUtensorMap map;
  std::memset(&map, 0, sizeof map);
  const CUresult result = H200_ENTRY(cuTensorMapEncodeTiled)(
      &map, CUtensorMapDataType(c.type), c.rank, reinterpret_cast<void*>(c.address),
      reinterpret_cast<const cuuint64_t*>(c.dims), reinterpret_cast<const cuuint64_t*>(c.strides),
      c.box, c.steps, CUtensorMapInterleave(c.interleave), CUtensorMapSwizzle(c.swizzle),
      CUtensorMapL2promotion(c.promotion), CUtensorMapFloatOOBfill(c.fill));
  std::memcpy(words->data(), &map, sizeof map);
  return result;
}

struct Field {
  const char* name;
  uint32_t word, first, count;
  uint64_t expected;
};

// What each argument becomes in the map.
std::vector<Field> fields(const Case& c) {
  constexpr uint32_t codes[] = {0, 1, 2, 3, 4, 5, 6, 7, 9, 10, 8, 7, 8};
  std::vector<Field> all = {{"address", 0, 0, 64, c.address},
                            {"rank", 1, 4, 3, c.rank - 1},
                            {"interleave", 1, 11, 2, c.interleave},
                            {"fill", 1, 15, 1, c.fill},
                            {"promotion", 1, 17, 2, c.promotion}};
  if (c.type < 13) {
    all.push_back({"type", 1, 7, 4, codes[c.type]});
    all.push_back({"tf32", 1, 16, 1, c.type >= 11});
  }
  if (c.swizzle < 4) all.push_back({"swizzle", 1, 13, 2, c.swizzle});
  struct Half {
    uint32_t word, first;
  };
  constexpr Half strides[] = {{1, 32}, {2, 0}, {2, 32}, {3, 0}};
  constexpr Half dims[] = {{4, 0}, {4, 32}, {5, 0}, {5, 32}, {6, 0}};
  constexpr Half boxes[] = {{6, 56}, {7, 0}, {7, 8}, {7, 16}, {7, 24}};
  for (uint32_t i = 0; i + 1 < c.rank; ++i) {
    const uint64_t units = c.strides[i] >> 4;
    all.push_back({"stride, low", strides[i].word, strides[i].first, 32, units & 0xFFFFFFFF});
    all.push_back({"stride, high", 3, 32 + 4 * i, 4, units >> 32});
  }
  for (uint32_t i = 0; i < c.rank; ++i) {
    all.push_back({"dim", dims[i].word, dims[i].first, 32, c.dims[i] - 1});
    all.push_back({"box", boxes[i].word, boxes[i].first, 8, c.box[i] - 1});
    if (i) all.push_back({"step", 6, 32 + 3 * i, 3, c.steps[i] - 1});
  }
  return all;
}

uint64_t bits(const Words& words, const Field& f) {
  const uint64_t value = words[f.word] >> f.first;
  return f.count == 64 ? value : value & ((1ull << f.count) - 1);
}

// What the fields do not explain.
Words rest(const Case& c, Words words) {
  for (const Field& f : fields(c))
    words[f.word] &= ~((f.count == 64 ? ~0ull : (1ull << f.count) - 1) << f.first);
  return words;
}

void print_row(FILE* file, const Case& c, CUresult result, const Words& words) {
  std::fprintf(file, "%s,%d,%u,%u,0x%llx", c.name.c_str(), int(result), c.type, c.rank,
               (unsigned long long)c.address);
  for (uint64_t v : c.dims) std::fprintf(file, ",0x%llx", (unsigned long long)v);
  for (uint64_t v : c.strides) std::fprintf(file, ",0x%llx", (unsigned long long)v);
  for (uint32_t v : c.box) std::fprintf(file, ",%u", v);
  for (uint32_t v : c.steps) std::fprintf(file, ",%u", v);
  std::fprintf(file, ",%u,%u,%u,%u", c.interleave, c.swizzle, c.promotion, c.fill);
  for (uint64_t w : words) std::fprintf(file, ",0x%016llx", (unsigned long long)w);
  std::fprintf(file, "\n");
}

}  // namespace

TEST_CASE("the driver puts every argument of a tensor map where it was seen before",
          "[kernel][tensormap]") {
  const h200::Device device;
  const char* path = std::getenv("NVFP4_TENSOR_MAP_DUMP");
  FILE* dump = path && *path ? std::fopen(path, "w") : nullptr;
  if (path && *path) REQUIRE(dump);
  if (dump)
    std::fprintf(dump,
                 "case,result,type,rank,address,dim0,dim1,dim2,dim3,dim4,stride1,stride2,stride3,"
                 "stride4,box0,box1,box2,box3,box4,step0,step1,step2,step3,step4,interleave,"
                 "swizzle,promotion,fill,w0,w1,w2,w3,w4,w5,w6,w7,w8,w9,w10,w11,w12,w13,w14,w15\n");
  size_t encoded = 0;
  for (const Case& c : cases()) {
    CAPTURE(c.name);
    Words words;
    const CUresult result = encode(c, &words);
    if (dump) print_row(dump, c, result, words);
    // What Blackwell alone has, and what the other arguments of the case forbid.
    if (result == CUDA_ERROR_INVALID_VALUE) continue;
    REQUIRE(result == CUDA_SUCCESS);
    ++encoded;
    for (const Field& f : fields(c)) {
      CAPTURE(f.name, f.word, f.first);
      CHECK(bits(words, f) == f.expected);
    }
    const Words left = rest(c, words);
    for (size_t w = 0; dump && w < left.size(); ++w)
      if (left[w])
        std::fprintf(dump, "# %s: word %zu has 0x%016llx besides its fields\n", c.name.c_str(), w,
                     (unsigned long long)left[w]);
  }
  if (dump) std::fclose(dump);
  CHECK(encoded >= 60);
}
