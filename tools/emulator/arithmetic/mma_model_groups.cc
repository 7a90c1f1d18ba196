// SPDX-License-Identifier: MIT
// See mma_model_groups.h. A number is units * 2^power; `raw` is its encoded exponent, of subnormals
// that of the smallest normal number.
#include "tools/emulator/arithmetic/mma_model_groups.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace emu {
namespace {

__extension__ typedef __int128 Wide;

struct Number {
  Wide units;
  int power, raw;
};

struct Product : Number {
  int scales;  // raw exponent of the two scales together
};

Number element(uint8_t code) {
  const int field = code >> 1 & 3, low = code & 1;
  const int raw = std::max(field, 1) - 1;
  const int units = field ? 2 + low : low;
  return {code & 8 ? -units : units, raw - 1, raw};
}

std::optional<Number> scale(uint8_t code, ScaleType type) {
  if (type == ScaleType::ue8m0) {
    if (code == 0xFF) return std::nullopt;
    return Number{1, code - 127, code - 127};
  }
  const int field = code >> 3 & 15, low = code & 7;
  if (field == 15 && low == 7) return std::nullopt;
  const int raw = std::max(field, 1) - 7;
  return Number{field ? 8 + low : low, raw - 3, raw};
}

Number accumulator(uint32_t bits) {
  const int field = int(bits >> 23 & 255), raw = std::max(field, 1) - 127;
  const Wide units = Wide(bits & 0x7FFFFF) + (field ? 0x800000 : 0);
  return {bits >> 31 ? -units : units, raw - 23, raw};
}

// x in units of 2^quantum, toward zero as C++ divides.
Wide cut(const Number& x, int quantum) {
  if (x.units == 0) return 0;
  const int up = x.power - quantum;
  if (up >= 0) return x.units << up;
  return up < -100 ? 0 : x.units / (Wide(1) << -up);
}

// Products of one block share the power of the scales. The powers of their elements differ, and
// those of two elements add up to at least -2.
Number sum(const std::vector<Product>& all, size_t first, size_t count) {
  Number s{0, all[first].power, 0};
  for (size_t i = first; i < first + count; ++i) s.power = std::min(s.power, all[i].power);
  for (size_t i = first; i < first + count; ++i)
    s.units += all[i].units << (all[i].power - s.power);
  return s;
}

// Toward zero to fp32; what vanishes is +0.
uint32_t to_float(Wide units, int power) {
  const uint32_t sign = units < 0 ? 0x80000000 : 0;
  Wide size = units < 0 ? -units : units;
  if (size == 0) return 0;
  while (size >= 1 << 24 || power < -149) size >>= 1, ++power;
  while (size < 1 << 23 && power > -149) size <<= 1, --power;
  if (size == 0) return 0;
  if (size < 1 << 23) return sign | uint32_t(size);
  const int field = power + 150;
  return field > 254 ? sign | 0x7F800000
                     : sign | uint32_t(field) << 23 | (uint32_t(size) & 0x7FFFFF);
}

// What the third rule adds for one group.
struct Part {
  Wide units;
  bool smaller_scale;
};

struct Sums {
  std::vector<Product> products;
  Number c;
  int largest, scale;  // P, S: largest exponents over products that are not zero
  size_t group;

  std::optional<int> exponent_of_block(size_t first) const {
    std::optional<int> most;
    for (size_t k = first / 16 * 16; k < first / 16 * 16 + 16; ++k)
      if (products[k].units != 0) most = std::max(most.value_or(products[k].raw), products[k].raw);
    return most;
  }

  uint32_t second_rule() const {
    const int quantum = c.raw - 35;
    Wide total = cut(c, quantum);
    for (size_t k = 0; k < products.size(); k += 16) total += cut(sum(products, k, 16), quantum);
    return to_float(total, quantum);
  }

  uint32_t third_rule() const {
    const int quantum = std::max(largest - 39, scale - 35);
    std::vector<Part> parts;
    Wide total = cut(c, quantum);
    const Wide c_units = total;
    for (size_t k = 0; k < products.size(); k += group) {
      int own = quantum;
      const std::optional<int> exponent = exponent_of_block(k);
      if (group == 16 && c.units != 0 && exponent && c.raw >= *exponent)
        own = std::max(own, c.raw - 35);
      const Wide units = cut(sum(products, k, group), own) << (own - quantum);
      parts.push_back({units, exponent && products[k].scales < scale});
      total += units;
    }
    const uint32_t bits = to_float(total, quantum), size = bits & 0x7FFFFFFF;
    if (group != 16 || size == 0 || size >= 0x800000) return bits;
    const Wide least = quantum < -174 ? Wide(1) << std::min(-174 - quantum, 100) : 1;
    total = c_units;
    for (const Part& p : parts)
      if (!p.smaller_scale || (p.units < 0 ? -p.units : p.units) >= least) total += p.units;
    return to_float(total, quantum);
  }
};

}  // namespace

uint32_t mma_model_groups(const uint8_t a[32], const uint8_t b[32], const uint8_t sfa[4],
                          const uint8_t sfb[4], ScaleType type, uint32_t c) {
  constexpr uint32_t canonical_nan = 0x7FFFFFFF;
  Sums s{{}, accumulator(c), 0, 0, type == ScaleType::ue4m3 ? size_t(4) : size_t(16)};
  bool any = false;
  for (int k = 0; k < 64; ++k) {
    const Number x = element(uint8_t(a[k / 2] >> k % 2 * 4 & 15)),
                 y = element(uint8_t(b[k / 2] >> k % 2 * 4 & 15));
    const auto sx = scale(sfa[k / 16], type), sy = scale(sfb[k / 16], type);
    if (!sx || !sy) return canonical_nan;
    const int scales = sx->raw + sy->raw;
    const Number product{x.units * y.units * sx->units * sy->units,
                         x.power + y.power + sx->power + sy->power, x.raw + y.raw + scales};
    s.products.push_back({product, scales});
    if (product.units == 0) continue;
    s.largest = any ? std::max(s.largest, product.raw) : product.raw;
    s.scale = any ? std::max(s.scale, scales) : scales;
    any = true;
  }
  if ((c & 0x7F800000) == 0x7F800000) return c & 0x7FFFFF ? canonical_nan : c;
  if (!any) return c << 1 == 0 ? 0 : c;
  return s.c.units != 0 && s.c.raw >= s.largest ? s.second_rule() : s.third_rule();
}

}  // namespace emu
