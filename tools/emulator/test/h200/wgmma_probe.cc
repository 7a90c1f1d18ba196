// SPDX-License-Identifier: MIT
// wgmma against the published model of Hopper, bit by bit: the same PTX runs on an H100 or H200 and
// in the emulator of such a GPU. Where a GPU and the model differ, the model is wrong.
#include <cstdio>

#include "tools/emulator/test/h200/device.h"
#include "tools/emulator/test/models/wgmma.h"

namespace {

using h200::Buffer;
using h200::Module;
using support::Wgmma;
using T = support::NumberType;
using R = support::SumType;

struct Score {
  size_t elements = 0, equal = 0;
  std::string first;  // difference

  void add(const Wgmma& w, int kind, const std::vector<uint32_t>& got,
           const std::vector<uint32_t>& want) {
    for (size_t i = 0; i < want.size(); ++i) {
      elements += w.d == R::f16 ? 2 : 1;
      if (got[i] == want[i]) {
        equal += w.d == R::f16 ? 2 : 1;
      } else if (first.empty()) {
        char text[96];
        std::snprintf(text, sizeof text, ", data %d, word %zu: 0x%08x, model 0x%08x", kind, i,
                      got[i], want[i]);
        first = w.name() + text;
      }
    }
  }
};

// `rounds` sets of data of every kind through one module.
void probe(const Wgmma& w, int rounds, Score& score) {
  const Module module(support::program(w));
  std::mt19937_64 random(uint64_t(w.n) * 131 + uint64_t(w.a) * 7 + uint64_t(w.b_swizzle));
  for (int i = 0; i < rounds * support::kDataKinds; ++i) {
    const int kind = i % support::kDataKinds;
    const support::WgmmaData data = support::random_data(w, random, kind);
    const std::vector<uint32_t> want =
        support::accumulator_words(w, support::wgmma_expected(w, data));
    const Buffer image(support::shared_image(w, data)), a(support::a_words(data)),
        c(support::accumulator_words(w, data.c)), out(want.size() * 4);
    CUdeviceptr at[] = {out.address(), image.address(), a.address(), c.address()};
    void* arguments[] = {&at[0], &at[1], &at[2], &at[3]};
    module.launch("wgmma_probe", 1, support::kWgmmaThreads, 0, arguments);
    score.add(w, kind, out.download<uint32_t>(), want);
  }
}

#define CHECK_ALL_EQUAL(score, what)                                                        \
  do {                                                                                      \
    WARN(what << ": " << (score).equal << " of " << (score).elements << " elements equal"); \
    INFO((score).first);                                                                    \
    CHECK((score).equal == (score).elements);                                               \
  } while (0)

}  // namespace

TEST_CASE("wgmma reads operands where the manual says in every layout", "[wgmma]") {
  USE_HOPPER(device);
  const bool emulated = device.emulated();
  Score score;
  for (const int swizzle : {128, 64, 32, 0})
    for (const int n : {8, 40, emulated ? 24 : 256}) {
      Wgmma w;
      w.n = n;
      w.a_swizzle = w.b_swizzle = swizzle;
      probe(w, 1, score);
      w.a_in_registers = true;
      w.b_offset = swizzle > 32 ? swizzle - 32 : 0;
      probe(w, 1, score);
      w.a_in_registers = false;
      w.b_offset = 0;
      w.a_mn_major = w.b_mn_major = true;
      probe(w, 1, score);
    }
  CHECK_ALL_EQUAL(score, "layouts");
}

TEST_CASE("wgmma's sums have the published model's bits", "[wgmma]") {
  USE_HOPPER(device);
  const struct {
    T a, b;
    R d;
  } types[] = {{T::f16, T::f16, R::f32},   {T::f16, T::f16, R::f16},   {T::bf16, T::bf16, R::f32},
               {T::tf32, T::tf32, R::f32}, {T::e4m3, T::e4m3, R::f32}, {T::e5m2, T::e4m3, R::f32},
               {T::e4m3, T::e5m2, R::f16}, {T::s8, T::u8, R::s32},     {T::u8, T::s8, R::s32}};
  const bool emulated = device.emulated();
  for (const auto& t : types) {
    Score score;
    Wgmma w;
    w.a = t.a, w.b = t.b, w.d = t.d;
    w.n = emulated ? 48 : 256;
    w.a_in_registers = true;
    probe(w, emulated ? 1 : 8, score);
    w.accumulate = false;
    w.negate_a = t.d != R::s32;
    w.satfinite = t.d == R::s32;
    probe(w, emulated ? 1 : 4, score);
    CHECK_ALL_EQUAL(score, w.name());
  }
}
