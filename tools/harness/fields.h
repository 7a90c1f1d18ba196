// SPDX-License-Identifier: MIT
// What a test or a command asks of a product: the numbers of a descriptor, and which arrays it has.
// All of it goes by the rows of host/problem/fields.def.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "host/problem/field_rows.h"
#include "tools/harness/operand.h"

namespace support {

using nvfp4::GemmField;

// The values of the enumeration, from 0 on.
constexpr int32_t count_of(nvfp4::Enumeration enumeration) {
  int32_t count = 0;
#define ENUMERATOR(of, value) count += enumeration == nvfp4::Enumeration::of;
#include "host/problem/enumeration.def"
#undef ENUMERATOR
  return count;
}
constexpr int32_t kActivations = count_of(nvfp4::Enumeration::activation);

struct Shape {
  int64_t m, n, k, l = 1;
};
std::string to_string(const Shape& shape);

// The address of an array that a test asks for, as `fields.d_amax = kGiven`.
struct Given {
  bool there;
  template <typename T>
  operator T*() const {
    return there ? reinterpret_cast<T*>(uintptr_t{1} << 12) : nullptr;
  }
};
constexpr Given kGiven{true};

// A descriptor that says what a product has. An address in it says only that there is an array; of
// those that a number already tells of, such as C, it says nothing.
struct Fields : nvfp4_gemm_desc {
  Fields();                                  // alpha by value to fp16 by rows
  bool c_is_d = false;                       // C lies where D will, and is overwritten
  int64_t c_ld_gap = 0, d_ld_gap = 0;        // elements beyond a line of C, of D
  int64_t c_batch_gap = 0, d_batch_gap = 0;  // beyond a batch

  // Takes the shape, and for C and D the strides that follow from the gaps.
  void lay_out(const Shape& shape);

  Shape shape() const { return {m, n, k, l}; }
  bool has_c() const { return c_type != NVFP4_TYPE_NONE; }
  bool by_pointer() const { return scalar_mode == NVFP4_SCALARS_DEVICE; }
  bool gated() const { return nvfp4_gemm_desc::b2 != nullptr; }
  bool by_row() const { return cd_order == NVFP4_CD_ORDER_ROW_MAJOR; }
  // The lines of C and D in memory.
  int64_t lines() const { return by_row() ? m : n; }
  int64_t line_length() const { return by_row() ? n : m; }
  // Where an element of C or D is, in elements, by the descriptor's prose.
  int64_t index(int64_t batch, int64_t row, int64_t column, int64_t ld, int64_t stride) const {
    return batch * stride + (by_row() ? row * ld + column : column * ld + row);
  }
};
std::string to_string(const Fields& fields);  // the epilogue, where it is not the simplest
bool is_general(const Fields& fields);        // more than alpha by value to fp16 by rows

// `over`, and where one of its fields but alpha is the simplest, that of `under`.
Fields merged(const Fields& under, const Fields& over);
// The descriptor's numbers, without those of what is not there, and without addresses.
nvfp4_gemm_desc numbers_of(const Fields& fields);
// Whether a product with these fields has this array. Where C is D, there is no C.
bool is_there(const Fields& fields, const GemmField& array);
// Gives `g` an address of each array that is there.
void set_addresses(const Fields& fields, nvfp4_gemm_desc& g, const std::function<void*()>& next);

// A field as a whole number, from which a random problem makes it: 300 times an alpha, for example.
int64_t step_of(const Fields& fields, const GemmField& field);
void set_step(Fields& fields, const GemmField& field, int64_t step);
int64_t simplest_step(const GemmField& field);
// Those that are a number of steps: all but sizes, strides and addresses that others tell of.
std::vector<const GemmField*> fields_in_steps();

// Any epilogue of a product that is not gated, for a problem of that shape.
Fields random_fields(const Shape& shape, Random& random);
// The same of a gated product.
Fields random_gated_fields(const Shape& shape, Random& random);
// Those of D in 16 bits by rows, and of it what a column has alone: factors, and a bias of columns.
Fields random_column_fields(Random& random);
// The same without what no product of that shape has: where D cannot have scales it is fp16.
Fields possible(Fields fields, const Shape& shape);

int64_t bytes_of_type(int32_t type);

}  // namespace support
