// SPDX-License-Identifier: MIT
// Roots and elementary functions against MPFR, which comes with gcc and is opened by name: the few
// lines of its interface that this needs stand here, so nothing needs its headers.
#include "tools/emulator/arithmetic/softmath.h"

#include <dlfcn.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "tools/emulator/test/support/unit_support.h"

namespace soft = emu::soft;

namespace {

// mpfr_t, as libmpfr.so.6 has it on every 64-bit Linux.
struct Multiple {
  long precision;
  int sign;
  long exponent;
  void* limbs;
};

class Mpfr {
 public:
  Mpfr() {
    if (!library) return;
    find("mpfr_init2", init);
    find("mpfr_set_d", set);
    find("mpfr_get_ld", get);
    init(&number, 160);
  }
  explicit operator bool() const { return library; }

  // function(x), rounded to nearest twice: to 160 bits and to those of long double.
  long double operator()(const char* name, double x) {
    int (*function)(Multiple*, const Multiple*, int) = nullptr;
    find(name, function);
    set(&number, x, nearest);
    function(&number, &number, nearest);
    return get(&number, nearest);
  }

 private:
  template <class Function>
  void find(const char* name, Function*& function) {
    function = reinterpret_cast<Function*>(dlsym(library, name));
    REQUIRE(function);
  }

  static constexpr int nearest = 0;
  void* library = dlopen("libmpfr.so.6", RTLD_NOW);
  Multiple number{};
  void (*init)(Multiple*, long) = nullptr;
  int (*set)(Multiple*, double, int) = nullptr;
  long double (*get)(const Multiple*, int) = nullptr;
};

struct Function {
  const char* name;
  uint64_t (*soft)(uint64_t, const soft::Format&, const soft::Rules&);
};
const Function functions[] = {
    {"mpfr_sqrt", soft::sqrt}, {"mpfr_rec_sqrt", soft::rsqrt}, {"mpfr_exp2", soft::exp2},
    {"mpfr_log2", soft::log2}, {"mpfr_sin", soft::sin},        {"mpfr_cos", soft::cos},
    {"mpfr_tanh", soft::tanh},
};

double value_of(uint64_t code, const soft::Format& f) {
  return std::bit_cast<double>(soft::convert(code, f, soft::f64));
}

// How far `have` is from the number, in units of the format's last place there.
long double places(double have, long double exact, const soft::Format& f) {
  const int smallest = 1 - f.bias();
  const int exponent = exact != 0 ? std::max(std::ilogb(exact), smallest) : smallest;
  const double beyond = std::ldexp(1.0, f.bias() + 1);  // where infinity begins to be nearest
  const double there = std::isinf(have) ? std::copysign(beyond, have) : have;
  if (std::isinf(have) && std::fabs(exact) >= beyond) return 0;
  return std::fabs(there - exact) / std::ldexp(1.0L, exponent - f.mantissa_bits);
}

class Worst {
 public:
  Worst(const Function& of, const soft::Format& in, Mpfr& by)
      : function(of), format(in), mpfr(by) {}

  void see(uint64_t code) {
    const double x = value_of(code, format);
    if (std::isnan(x) || x == 0) return;
    const double have = value_of(function.soft(code, format, {}), format);
    const long double exact = mpfr(function.name, x);
    if (std::isnan(have) != std::isnan(exact)) error = INFINITY;
    if (std::isnan(have)) return;
    error = std::max(error, places(have, exact, format));
  }
  long double error = 0;

 private:
  const Function& function;
  const soft::Format& format;
  Mpfr& mpfr;
};

// Every step-th number, and those close to 1, where a logarithm is small.
long double worst_of(const Function& function, const soft::Format& format, uint64_t step,
                     Mpfr& mpfr) {
  Worst worst(function, format, mpfr);
  const uint64_t codes = 1ull << (1 + format.exponent_bits + format.mantissa_bits);
  for (uint64_t code = 1; code < codes; code += step) worst.see(code);
  const uint64_t one = uint64_t(format.bias()) << format.mantissa_bits;
  worst.see(one);
  for (int i = 0; i < format.mantissa_bits; ++i) {
    worst.see(one + (1ull << i));
    worst.see(one - (1ull << i));
  }
  return worst.error;
}

}  // namespace

TEST_CASE("roots and elementary functions are the numbers nearest to MPFR's") {
  Mpfr mpfr;
  if (!mpfr) SKIP_TEST("there is no libmpfr.so.6 here");
  constexpr uint64_t step = 99991;  // a prime: every exponent, fractions without a pattern
  for (const Function& f : functions) {
    CAPTURE(f.name);
    CHECK(worst_of(f, soft::f32, step, mpfr) < 0.5L + 0x1p-12L);
    if (f.soft == soft::sqrt || f.soft == soft::exp2 || f.soft == soft::tanh) {
      CHECK(worst_of(f, soft::f16, 1, mpfr) < 0.5L + 0x1p-12L);
      CHECK(worst_of(f, soft::bf16, 1, mpfr) < 0.5L + 0x1p-12L);
    }
  }
}
