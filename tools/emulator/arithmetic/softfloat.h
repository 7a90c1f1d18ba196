// SPDX-License-Identifier: MIT
// Floating-point arithmetic and conversion in integers, bit-equal on every host.
//
// A number of any format is taken apart into sign, integer significand and power of two; the exact
// result of an operation is built (with one sticky bit below), then rounded once into the format
// asked for. Formats: IEEE 754 binary64/32/16, bfloat16, and the OCP 8-, 6- and 4-bit ones.
#pragma once

#include <cstdint>

namespace emu::soft {

__extension__ typedef unsigned __int128 uint128;

enum class Round : uint8_t { nearest, zero, down, up };  // .rn (ties to even) .rz .rm .rp

struct Format {
  uint8_t exponent_bits, mantissa_bits;
  bool has_infinity;  // the all-ones exponent is infinity and NaN
  bool has_nan;       // without infinity: only the all-ones code is a NaN
  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr uint64_t sign_bit() const { return 1ull << (exponent_bits + mantissa_bits); }
  constexpr uint64_t infinity() const { return ((1ull << exponent_bits) - 1) << mantissa_bits; }
  constexpr uint64_t largest() const {  // the largest finite magnitude's code
    return has_infinity ? infinity() - 1 : has_nan ? sign_bit() - 2 : sign_bit() - 1;
  }
  constexpr uint64_t nan() const { return sign_bit() - 1; }  // the canonical NaN of PTX: all ones
};

constexpr Format f64{11, 52, true, true}, f32{8, 23, true, true}, f16{5, 10, true, true},
    bf16{8, 7, true, true};
constexpr Format e5m2{5, 2, true, true}, e4m3{4, 3, false, true};
constexpr Format e3m2{3, 2, false, false}, e2m3{2, 3, false, false}, e2m1{2, 1, false, false};

struct Rules {
  Round round = Round::nearest;
  bool ftz = false;        // subnormal inputs and results become zero of their sign
  bool sat = false;        // the result is clamped to [+0, 1], NaN becomes +0
  bool relu = false;       // a negative result becomes +0
  bool satfinite = false;  // what overflows or is infinite becomes the largest finite number
};

// (-1)^negative * significand * 2^exponent
struct Number {
  enum class Kind : uint8_t { zero, finite, infinite, nan };
  Kind kind = Kind::zero;
  bool negative = false;
  int exponent = 0;
  uint128 significand = 0;
};

Number decode(uint64_t code, const Format& from, bool ftz = false);
uint64_t encode(const Number& n, const Format& to, const Rules& rules = {});

uint64_t add(uint64_t a, uint64_t b, const Format& f, const Rules& rules = {});
uint64_t mul(uint64_t a, uint64_t b, const Format& f, const Rules& rules = {});
uint64_t fma(uint64_t a, uint64_t b, uint64_t c, const Format& f, const Rules& rules = {});
uint64_t div(uint64_t a, uint64_t b, const Format& f, const Rules& rules = {});

// Converts between formats. Here Rules::ftz also flushes a subnormal source.
uint64_t convert(uint64_t code, const Format& from, const Format& to, const Rules& rules = {});
// To a whole number in the same format (cvt.rni and so on).
uint64_t to_integral(uint64_t code, const Format& f, const Rules& rules);

Number from_integer(int64_t value);
Number from_unsigned(uint64_t value);
// Rounded and clamped to an integer of `bits` bits; NaN gives 0, or the top bit alone if it is 64
// bits wide (PTX ISA, cvt). The result is the two's complement, cut to `bits`.
uint64_t to_integer(const Number& n, uint32_t bits, bool is_signed, Round round);

// UE8M0: a power of two, 0xFF is NaN. The sign is dropped, as cvt to it does.
uint64_t encode_ue8m0(uint64_t code, const Format& from, Round round, bool satfinite);
Number decode_ue8m0(uint64_t code);

enum class Order : uint8_t { less, equal, greater, unordered };
Order compare(uint64_t a, uint64_t b, const Format& f, bool ftz = false);

// min and max of PTX: a NaN loses against a number unless `propagate` (.NaN); -0 is below +0.
uint64_t minimum(uint64_t a, uint64_t b, const Format& f, bool ftz, bool propagate);
uint64_t maximum(uint64_t a, uint64_t b, const Format& f, bool ftz, bool propagate);
uint64_t flush(uint64_t code, const Format& f);  // a subnormal becomes zero of its sign

}  // namespace emu::soft
