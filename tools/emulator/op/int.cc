// SPDX-License-Identifier: MIT
// Integer arithmetic (PTX ISA 9.7.1).
#include <algorithm>
#include <limits>

#include "tools/emulator/op/binders.h"
#include "tools/emulator/op/carry.h"
#include "tools/emulator/op/op.h"

namespace emu::ops {

namespace {

// Signed overflow wraps, so sums and products are taken unsigned.
template <class T>
T wrap_add(T a, T b) {
  return T(unsigned_t<T>(a) + unsigned_t<T>(b));
}
template <class T>
T wrap_sub(T a, T b) {
  return T(unsigned_t<T>(a) - unsigned_t<T>(b));
}
template <class T>
T mul_lo(T a, T b) {
  return T(uint64_t(a) * uint64_t(b));
}
template <class T>
T mul_hi(T a, T b) {
  return T(wide_t<T>(wide_t<T>(a) * wide_t<T>(b)) >> width<T>);
}

uint32_t add_halves(uint32_t a, uint32_t b) {
  return (a & 0xFFFF0000) + (b & 0xFFFF0000) + uint16_t(a + b);
}

int32_t saturated(int64_t v) {
  return int32_t(std::clamp<int64_t>(v, std::numeric_limits<int32_t>::min(),
                                     std::numeric_limits<int32_t>::max()));
}

// Division by zero is no fault: quotient and remainder of up to 32 bits are all ones, the remainder
// of 64 bits is the dividend (measured: H200).
template <class T>
T divide(T a, T b) {
  if (b == 0) return T(~T(0));
  if (std::is_signed_v<T> && b == T(-1)) return wrap_sub<T>(0, a);
  return T(a / b);
}
template <class T>
T remainder(T a, T b) {
  if (b == 0) return T(~T(0));
  if (std::is_signed_v<T> && b == T(-1)) return 0;
  return T(a % b);
}

}  // namespace

Exec bind_add(const Instr& in, std::string& why) {
  if (in.has(Mod::cc)) return checked(add_cc(in), why);
  if (is_pair(in.type())) return map2<uint32_t, uint32_t, uint32_t, add_halves>;
  if (is_float(in.type())) return checked(float_add(in), why);
  if (in.has(Mod::sat))
    return map2<int32_t, int32_t, int32_t,
                [](int32_t a, int32_t b) { return saturated(int64_t(a) + b); }>;
  return checked(by_integer(in.type(),
                            []<class T>() -> Exec {
                              return map2<T, T, T, [](T a, T b) { return wrap_add<T>(a, b); }>;
                            }),
                 why);
}

Exec bind_sub(const Instr& in, std::string& why) {
  if (in.has(Mod::cc)) return checked(sub_cc(in), why);
  if (is_float(in.type())) return checked(float_sub(in), why);
  if (in.has(Mod::sat))
    return map2<int32_t, int32_t, int32_t,
                [](int32_t a, int32_t b) { return saturated(int64_t(a) - b); }>;
  return checked(by_integer(in.type(),
                            []<class T>() -> Exec {
                              return map2<T, T, T, [](T a, T b) { return wrap_sub<T>(a, b); }>;
                            }),
                 why);
}

Exec bind_mul(const Instr& in, std::string& why) {
  if (is_float(in.type())) return checked(float_mul(in), why);
  if (in.has(Mod::wide))
    return checked(
        by_integer(
            in.type(),
            []<class T>() -> Exec {
              if constexpr (sizeof(T) > 4)
                return nullptr;
              else
                return map2<wide_t<T>, T, T, [](T a, T b) { return mul_lo<wide_t<T>>(a, b); }>;
            }),
        why);
  if (in.has(Mod::hi))
    return checked(by_integer(in.type(),
                              []<class T>() -> Exec {
                                return map2<T, T, T, [](T a, T b) { return mul_hi<T>(a, b); }>;
                              }),
                   why);
  return checked(by_integer(in.type(),
                            []<class T>() -> Exec {
                              return map2<T, T, T, [](T a, T b) { return mul_lo<T>(a, b); }>;
                            }),
                 why);
}

Exec bind_mad(const Instr& in, std::string& why) {
  if (in.has(Mod::cc)) return checked(mad_cc(in), why);
  if (in.has(Mod::wide))
    return checked(by_integer(in.type(),
                              []<class T>() -> Exec {
                                using W = wide_t<T>;
                                if constexpr (sizeof(T) > 4)
                                  return nullptr;
                                else
                                  return map3<W, T, T, W, [](T a, T b, W c) {
                                    return wrap_add<W>(mul_lo<W>(a, b), c);
                                  }>;
                              }),
                   why);
  if (in.has(Mod::sat))
    return map3<int32_t, int32_t, int32_t, int32_t, [](int32_t a, int32_t b, int32_t c) {
      return saturated(int64_t(mul_hi<int32_t>(a, b)) + c);
    }>;
  if (in.has(Mod::hi))
    return checked(by_integer(in.type(),
                              []<class T>() -> Exec {
                                return map3<T, T, T, T, [](T a, T b, T c) {
                                  return wrap_add<T>(mul_hi<T>(a, b), c);
                                }>;
                              }),
                   why);
  return checked(
      by_integer(
          in.type(),
          []<class T>() -> Exec {
            return map3<T, T, T, T, [](T a, T b, T c) { return wrap_add<T>(mul_lo<T>(a, b), c); }>;
          }),
      why);
}

Exec bind_div(const Instr& in, std::string& why) {
  if (is_float(in.type())) return float_div(in);
  return checked(by_integer(in.type(),
                            []<class T>() -> Exec {
                              return map2<T, T, T, [](T a, T b) { return divide<T>(a, b); }>;
                            }),
                 why);
}

Exec bind_rem(const Instr& in, std::string& why) {
  return checked(by_integer(in.type(),
                            []<class T>() -> Exec {
                              return map2<T, T, T, [](T a, T b) { return remainder<T>(a, b); }>;
                            }),
                 why);
}

Exec bind_min(const Instr& in, std::string& why) {
  if (is_pair(in.type())) return min_pair(in);
  if (is_float(in.type())) return checked(float_min(in), why);
  return checked(by_integer(in.type(),
                            []<class T>() -> Exec {
                              return map2<T, T, T, [](T a, T b) { return a < b ? a : b; }>;
                            }),
                 why);
}

Exec bind_max(const Instr& in, std::string& why) {
  if (is_pair(in.type())) return max_pair(in);
  if (is_float(in.type())) return checked(float_max(in), why);
  return checked(by_integer(in.type(),
                            []<class T>() -> Exec {
                              return map2<T, T, T, [](T a, T b) { return a < b ? b : a; }>;
                            }),
                 why);
}

Exec bind_abs(const Instr& in, std::string& why) {
  if (is_float(in.type())) return checked(float_abs(in), why);
  return checked(by_integer(in.type(),
                            []<class T>() -> Exec {
                              return map1<T, T, [](T a) { return a < 0 ? wrap_sub<T>(0, a) : a; }>;
                            }),
                 why);
}

Exec bind_neg(const Instr& in, std::string& why) {
  if (is_float(in.type())) return checked(float_neg(in), why);
  return checked(by_integer(in.type(),
                            []<class T>() -> Exec {
                              return map1<T, T, [](T a) { return wrap_sub<T>(0, a); }>;
                            }),
                 why);
}

}  // namespace emu::ops
