// SPDX-License-Identifier: MIT
// Tensor memory: allocation, cells, and what tcgen05.ld and st reach.
#include <set>

#include "tools/emulator/hardware/tensor_access.h"
#include "tools/emulator/hardware/tensor_memory.h"
#include "tools/emulator/test/support/unit_support.h"

using namespace emu;
using unit::golden;
using unit::number;

TEST_CASE("the first allocation is at address 0 and the next after it") {
  TensorMemory t;
  CHECK(t.allocate(256).value() == 0);
  CHECK(t.allocate(128).value() == 256);
  CHECK(t.allocate(128).value() == 384);
  t.deallocate(256, 128);
  CHECK(t.allocate(64).value() == 256);
}

TEST_CASE("an allocation has 32 or 64 or 128 or 256 or 512 columns") {
  for (uint32_t n : {0u, 1u, 16u, 31u, 33u, 48u, 96u, 384u, 513u, 1024u}) {
    TensorMemory t;
    CAPTURE(n);
    CHECK_FAULT(tensor_memory, "32, 64, 128, 256 or 512", t.allocate(n));
  }
  for (uint32_t n : {32u, 64u, 128u, 256u, 512u}) {
    TensorMemory t;
    CHECK(t.allocate(n).has_value());
  }
}

TEST_CASE("an allocation waits while the columns are taken and gets them after dealloc") {
  TensorMemory t;
  CHECK(t.allocate(512).has_value());
  CHECK_FALSE(t.allocate(32).has_value());
  t.deallocate(0, 512);
  CHECK(t.allocate(32).value() == 0);
}

TEST_CASE("allocation sizes must not increase and nothing is allocated after relinquish") {
  TensorMemory t;
  t.allocate(64);
  CHECK_FAULT(tensor_memory, "must not increase", t.allocate(128));
  t.relinquish();
  CHECK_FAULT(tensor_memory, "relinquish", t.allocate(32));
  t.deallocate(0, 64);  // giving back stays legal
}

TEST_CASE("dealloc takes exactly what alloc gave and what is left at the end is a leak") {
  TensorMemory t;
  t.check_exit();
  t.allocate(64);
  CHECK_FAULT(tensor_memory, "no tcgen05.alloc returned", t.deallocate(0, 32));
  CHECK_FAULT(tensor_memory, "no tcgen05.alloc returned", t.deallocate(32, 64));
  CHECK_FAULT(tensor_memory, "without tcgen05.dealloc", t.check_exit());
  t.deallocate(0, 64);
  t.check_exit();
  CHECK_FAULT(tensor_memory, "no tcgen05.alloc returned", t.deallocate(0, 64));
}

TEST_CASE("a cell has no value until it is written and loses it with its column") {
  TensorMemory t;
  CHECK_FAULT(tensor_memory, "not allocated", t.read(0, 0, "test"));
  t.allocate(32);
  CHECK_FAULT(uninitialised, "lane 3 column 7", t.read(3, 7, "test"));
  t.write(3, 7, 42, "test");
  CHECK(t.read(3, 7, "test") == 42);
  CHECK_FAULT(uninitialised, "lane 4 column 7", t.read(4, 7, "test"));
  CHECK_FAULT(tensor_memory, "column 32", t.write(0, 32, 1, "test"));
  CHECK_FAULT(tensor_memory, "column 32", t.write_row(0, 30, 3, "test"));
  t.deallocate(0, 32);
  t.allocate(32);
  CHECK_FAULT(uninitialised, "lane 3 column 7", t.read(3, 7, "test"));
}

TEST_CASE("the last column is 511 and lanes count modulo 128") {
  TensorMemory t;
  t.allocate(512);
  t.write(127, 511, 5, "test");
  CHECK_FAULT(tensor_memory, "column 512", t.read_row(127, 511, 2, "test"));
  CHECK(TensorMemory::lane_of(0x00A00000) == 32);  // lane 160, as two-CTA kernels pass it
  CHECK(TensorMemory::lane_of(0xC0600010) == 96);  // bits 31:30 are a scale id
  CHECK(TensorMemory::column_of(0xC0600010) == 16);
}

TEST_CASE("tcgen05.ld's registers are the cells that CUTLASS expects") {
  for (const auto& row : golden("tcgen05_ld_map")) {
    const std::string name = row[0].substr(0, row[0].find('.'));
    const AccessShape shape = name == "32x32b"    ? AccessShape::s32x32b
                              : name == "16x64b"  ? AccessShape::s16x64b
                              : name == "16x128b" ? AccessShape::s16x128b
                                                  : AccessShape::s16x256b;
    const Cell c = emu::access_cell(shape, uint32_t(number(row[1])), uint32_t(number(row[2])), 0);
    CAPTURE(row[0], row[1], row[2]);
    CHECK(c.lane == number(row[3]));
    CHECK(c.column == number(row[4]));
  }
}

TEST_CASE("every shape of tcgen05.ld reads each cell of its block once") {
  const AccessShape shape =
      GENERATE(AccessShape::s32x32b, AccessShape::s16x64b, AccessShape::s16x128b,
               AccessShape::s16x256b, AccessShape::s16x32bx2);
  const uint32_t registers = 4 * emu::registers_per_repeat(shape), split = 100;
  std::set<std::pair<uint32_t, uint32_t>> cells;
  for (uint32_t t = 0; t < 32; ++t)
    for (uint32_t r = 0; r < registers; ++r) {
      const Cell c = emu::access_cell(shape, t, r, split);
      CHECK(c.lane < (shape == AccessShape::s32x32b ? 32u : 16u));
      cells.insert({c.lane, c.column});
    }
  CHECK(cells.size() == 32 * registers);
  CHECK(cells.count({15, shape == AccessShape::s16x32bx2 ? split + 3 : 3}) == 1);
}

TEST_CASE("a warp reaches the quarter of the lanes that its number gives") {
  using emu::access_lane;
  CHECK(access_lane(AccessShape::s32x32b, 32 << 16 | 7, 5, "ld") == 32);
  CHECK(access_lane(AccessShape::s32x32b, 160 << 16, 1, "ld") == 32);
  CHECK(access_lane(AccessShape::s16x256b, 112 << 16, 3, "ld") == 112);
  CHECK(access_lane(AccessShape::s32x32b, 7, 5, "ld") == 32);
  CHECK(access_lane(AccessShape::s16x256b, 144 << 16, 3, "ld") == 112);
  CHECK(emu::names_no_quarter(128 << 16 | 7, 1));
  CHECK_FALSE(emu::names_no_quarter(32 << 16, 1));
  CHECK_FALSE(emu::names_no_quarter(0, 4));
  CHECK_FAULT(illegal_instruction, "warp 1 of the CTA reaches lanes 32 to 63",
              access_lane(AccessShape::s32x32b, 64 << 16, 1, "ld"));
  CHECK_FAULT(illegal_instruction, "warp 4", access_lane(AccessShape::s32x32b, 32 << 16, 4, "ld"));
  CHECK_FAULT(illegal_instruction, "lane 48", access_lane(AccessShape::s32x32b, 48 << 16, 1, "ld"));
  CHECK_FAULT(illegal_instruction, "lane 40", access_lane(AccessShape::s16x64b, 40 << 16, 1, "ld"));
}
