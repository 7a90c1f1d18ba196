// SPDX-License-Identifier: MIT
// What a stage's loads leave in shared memory, byte by byte, against the formula of the manual:
// boxes inside, across and beyond every edge of the tensor, with and without swizzle. The same PTX
// and the same expectations run on a Hopper GPU and in the emulator; where they differ, the
// emulator is wrong.
#include <random>

#include "tools/emulator/test/h200/device.h"

namespace {

using h200::Buffer;
using h200::Module;

constexpr int64_t kRows = 64, kTileBytes = kRows * 128, kScaleBytes = 1536, kStep = 32;

// A [batches][rows][row_bytes] tensor of random bytes whose rows and batches lie apart.
struct Tensor {
  int64_t row_bytes, rows, batches, row_pitch, batch_pitch;
  std::vector<uint8_t> content;

  uint8_t at(int64_t byte, int64_t row, int64_t batch) const {
    const bool inside =
        byte >= 0 && byte < row_bytes && row >= 0 && row < rows && batch >= 0 && batch < batches;
    return inside ? content[size_t(batch * batch_pitch + row * row_pitch + byte)] : 0;
  }
};

Tensor make_tensor(int64_t row_bytes, int64_t rows, int64_t batches) {
  const int64_t row_pitch = (row_bytes + 15) / 16 * 16 + 32;
  Tensor t{row_bytes, rows, batches, row_pitch, row_pitch * rows + 48, {}};
  std::mt19937_64 random(uint64_t(row_bytes * 1000 + rows));
  t.content.resize(size_t(t.batch_pitch * batches));
  for (uint8_t& byte : t.content) byte = uint8_t(random());
  return t;
}

// Boxes of kTileBytes: rows of 128 bytes, or of as many elements of 8 bytes as a box may have.
struct Box {
  CUtensorMapDataType type;
  int64_t element_bytes, row_bytes, rows;
  bool swizzled;
};
constexpr Box kBytes{CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, 128, kRows, false},
    kSwizzledBytes{CU_TENSOR_MAP_DATA_TYPE_UINT8, 1, 128, kRows, true},
    kWords{CU_TENSOR_MAP_DATA_TYPE_UINT64, 8, 256 * 8, kTileBytes / (256 * 8), false};

CUtensorMap encode(const Tensor& t, CUdeviceptr address, const Box& b) {
  const cuuint64_t dims[] = {cuuint64_t(t.row_bytes / b.element_bytes), cuuint64_t(t.rows),
                             cuuint64_t(t.batches)};
  const cuuint64_t strides[] = {cuuint64_t(t.row_pitch), cuuint64_t(t.batch_pitch)};
  const cuuint32_t box[] = {cuuint32_t(b.row_bytes / b.element_bytes), cuuint32_t(b.rows), 1};
  const cuuint32_t steps[] = {1, 1, 1};
  const CUtensorMapSwizzle swizzle =
      b.swizzled ? CU_TENSOR_MAP_SWIZZLE_128B : CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMap map;
  H200_CALL(cuTensorMapEncodeTiled, &map, b.type, 3, reinterpret_cast<void*>(address), dims,
            strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle,
            CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  return map;
}

// Where byte `c` of box row `r` lies from a 1024-byte aligned start: the 128-byte swizzle exchanges
// 16-byte chunks by the row's number in its group of 8 (PTX ISA, tensor swizzling modes).
int64_t place(int64_t r, int64_t c, const Box& box) {
  const int64_t chunk = box.swizzled ? (c / 16) ^ (r % 8) : c / 16;
  return r * box.row_bytes + chunk * 16 + c % 16;
}

std::vector<uint8_t> expected(const Tensor& t, const std::vector<uint8_t>& scales, const int at[3],
                              const Box& box) {
  std::vector<uint8_t> out;
  for (int64_t round = 0; round < 2; ++round) {
    std::vector<uint8_t> tile(kTileBytes);
    const int64_t first = (at[0] + round * kStep) * box.element_bytes;
    for (int64_t r = 0; r < box.rows; ++r)
      for (int64_t c = 0; c < box.row_bytes; ++c)
        tile[size_t(place(r, c, box))] = t.at(first + c, at[1] + r, at[2]);
    out.insert(out.end(), tile.begin(), tile.end());
    out.insert(out.end(), scales.begin(), scales.end());
  }
  return out;
}

void probe(const Tensor& t, int c0, int c1, int c2, const Box& box,
           const char* file = "emulator/test/load_probe.ptx") {
  CAPTURE(t.row_bytes, t.rows, t.batches, c0, c1, c2, box.type, box.swizzled);
  const h200::Device device;
  const Module module = Module::from_build(file);
  const Buffer tensor(t.content);
  std::vector<uint8_t> scales(kScaleBytes);
  std::mt19937_64 random(5);
  for (uint8_t& byte : scales) byte = uint8_t(random());
  const Buffer scales_on_device(scales), out(size_t(2 * (kTileBytes + kScaleBytes)));

  CUtensorMap map = encode(t, tensor.address(), box);
  CUdeviceptr scales_at = scales_on_device.address(), out_at = out.address();
  int step = int(kStep);
  void* arguments[] = {&map, &scales_at, &c0, &c1, &c2, &step, &out_at};
  module.launch("load_probe", 1, 32, uint32_t(1024 + kTileBytes + kScaleBytes), arguments);

  const int at[3] = {c0, c1, c2};
  const std::vector<uint8_t> got = out.download<uint8_t>(), want = expected(t, scales, at, box);
  REQUIRE(got.size() == want.size());
  size_t wrong = 0;
  while (wrong < want.size() && got[wrong] == want[wrong]) ++wrong;
  CAPTURE(wrong);
  CHECK(wrong == want.size());
  CHECK(out.guards_intact());
}

}  // namespace

TEST_CASE("a box lies in shared memory as the swizzle says", "[tma]") {
  const Tensor t = make_tensor(512, 200, 2);
  for (const Box& box : {kSwizzledBytes, kBytes}) {
    probe(t, 0, 0, 0, box);
    probe(t, 128, 64, 1, box);
    probe(t, 16, 7, 1, box);
  }
}

TEST_CASE("a box that sticks out is filled with zero and its bytes still count", "[tma]") {
  // 216 bytes: the row ends inside a 16-byte chunk, where the fill is exact to the byte.
  const Tensor t = make_tensor(216, 100, 2);
  for (const Box& box : {kSwizzledBytes, kBytes}) {
    probe(t, 128, 0, 0, box);     // columns
    probe(t, 0, 64, 1, box);      // rows
    probe(t, 128, 90, 1, box);    // both
    probe(t, -64, -10, 0, box);   // before the start
    probe(t, 0, 0, 2, box);       // no such batch
    probe(t, 1024, 500, 7, box);  // nothing of it exists
  }
}

TEST_CASE("a box of 256 elements of 8 bytes lies row after row", "[tma]") {
  const Tensor t = make_tensor(4000, 10, 2);
  probe(t, 0, 0, 0, kWords);
  probe(t, 64, 3, 1, kWords);
  probe(t, 448, 8, 0, kWords);  // sticks out of both
  probe(t, 0, 10, 1, kWords);   // nothing of it exists
}

TEST_CASE("nvcc -G with its called wrappers and -lineinfo give the same bytes", "[tma]") {
  const Tensor t = make_tensor(512, 200, 2);
  probe(t, 16, 7, 1, kSwizzledBytes, "emulator/test/load_probe.debug.ptx");
  probe(t, 16, 7, 1, kSwizzledBytes, "emulator/test/load_probe.lineinfo.ptx");
}

TEST_CASE("a module that the driver refuses is refused with what its compiler says", "[module]") {
  const h200::Device device;
  const std::string text =
      ".version 8.0\n.target sm_90\n.address_size 64\n.entry k() { frobnicate; ret; }\n";
  try {
    const Module module(text);
    FAIL("accepted");
  } catch (const h200::DriverError& e) {
    CAPTURE(e.what());
    CHECK(e.result == CUDA_ERROR_INVALID_PTX);
    CHECK(std::string(e.what()).find("frobnicate") != std::string::npos);
  }
}
