// SPDX-License-Identifier: MIT
// A family of kernels is one file that fills struct Family, and an architecture is one row: here is
// a family that no GPU has, planned by the code that plans for the others.
#include "host/plan/family.h"

#include "tools/testing/catch.h"

namespace {

using nvfp4::Architecture;
using nvfp4::Choice;
using nvfp4::Family;
using nvfp4::Variant;

// Tiles are dear: the fewest are the cheapest.
bool fewest_tiles(const nvfp4_gemm_desc& desc, const Architecture&, const Variant& v,
                  Choice* choice) {
  int64_t matrix, tiles;
  if (!nvfp4::count_tiles(desc, v, &matrix, &tiles)) return false;
  *choice = {&v, 1, 1, false, tiles, 0, tiles, tiles};
  return true;
}

constexpr Family make_dummy() {
  Family f;
  f.choose_split = fewest_tiles;
  return f;
}
constexpr Family kDummy = make_dummy();
constexpr Architecture kRow{77, &kDummy, &kDummy, nvfp4::ArchProof::of_mechanism, 10, 0, {}, 0};

constexpr Variant tile(const char* name, const Family* family, uint32_t weights, uint32_t tokens) {
  Variant v{};
  v.name = name;
  v.family = family;
  v.tile_weights = weights, v.tile_tokens = tokens, v.tile_k = 256, v.tile_ctas = 1;
  v.entries[nvfp4::kOperation_any].name = name;  // it takes products of one group, not gated
  return v;
}
const Variant kTiles[] = {tile("dummy_64x8", &kDummy, 64, 8), tile("dummy_64x64", &kDummy, 64, 64),
                          tile("sm90_128x128", &nvfp4::kFamily_sm90, 128, 128)};

const char* chosen(int64_t m, int64_t n) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = m, g.n = n, g.k = 256, g.l = 1;
  const Choice choice = nvfp4::cheapest(g, kRow, kTiles, 3);
  return choice.variant == nullptr ? "" : choice.variant->name;
}

}  // namespace

TEST_CASE("A family that this file alone knows is planned by its own functions") {
  CHECK(std::string(chosen(64, 64)) == "dummy_64x64");
  CHECK(std::string(chosen(8, 64)) == "dummy_64x8");  // the narrow one comes first
  CHECK(std::string(chosen(INT32_MAX, INT32_MAX)) == "");
}
