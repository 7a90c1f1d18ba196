// SPDX-License-Identifier: MIT
// The parts of check_gemm, one file each, and what they share.
#pragma once

#include "host/problem/check.h"
#include "host/problem/enumeration.h"

namespace nvfp4 {

constexpr int64_t kAddressAlignment = 16;  // TMA and 16-byte stores

// A or B with its scales.
struct Operand {
  const char *name, *ld_name, *stride_name, *scales_name, *scales_stride_name;
  int64_t rows, k, l;
  const void *elements, *scales;
  int64_t ld, stride, scales_stride;
  int32_t layout;
  int32_t type;     // NVFP4_TYPE_NONE: quantized, with scales
  int32_t format;   // format of a quantized operand
  int32_t packing;  // NVFP4_PACKING_NONE: elements and scales apart

  bool quantized() const { return type == NVFP4_TYPE_NONE; }
  bool packed() const { return packing != NVFP4_PACKING_NONE; }
};
Operand operand_a(const nvfp4_gemm_desc& g);
Operand operand_b(const nvfp4_gemm_desc& g);
Operand operand_b2(
    const nvfp4_gemm_desc& g);  // for gated products; b2 shares type and strides with b
// Bytes of the scales of one matrix, in either layout. False if they are more than 2^63 - 1.
bool scale_bytes_of(const Operand& x, int32_t layout, int64_t* bytes);

// C or D as contiguous lines: rows, or columns if cd_order says so.
struct Lines {
  const char *count_name, *length_name;  // "m" or "n"
  int64_t count, length;
};
Lines lines_of_cd(const nvfp4_gemm_desc& g);

// Whether the product reads packed tokens; with K = 0 it reads none.
bool has_packed_tokens(const nvfp4_gemm_desc& g);

// Bytes of an element of NVFP4_TYPE_F16, _BF16 or _F32.
int64_t bytes_of_type(int32_t type);
// True if beta is a host value of 0 or -0, so that C is not read.
bool beta_is_zero(const nvfp4_gemm_desc& g);
// True if C has to be checked: it may be read, and its address is given unless only sizes are.
bool has_c(const nvfp4_gemm_desc& g, bool sizes_alone);

// Whether the product is gated. If no address is given, an alpha2 says that there will be a b2.
bool is_gated(const nvfp4_gemm_desc& g);
// gated.cc: values of the fields of gated products.
nvfp4_status check_gated(const nvfp4_gemm_desc& g);

// companions.cc: the conditions of fields.def that hold. If no address is given, an alpha2 says
// that there will be a b2.
uint32_t conditions_of(const nvfp4_gemm_desc& g);

// Whether every address of the problem is NULL.
bool has_no_address(const nvfp4_gemm_desc& g);

// enums.cc: each enumerator belongs to its enumeration.
nvfp4_status check_enums(const nvfp4_gemm_desc& g);

// absent.cc: switches and reserved words have legal values.
nvfp4_status check_switches(const nvfp4_gemm_desc& g);
// The addresses of a run are those that its plan has a use for.
nvfp4_status check_absent_addresses(const nvfp4_gemm_addresses& x, const nvfp4_gemm_desc& plan,
                                    bool grouped, bool gated);
// Those that are NULL keep the desc's address.
void replace_addresses(const nvfp4_gemm_addresses& x, nvfp4_gemm_desc* g);

// companions.cc: each field is given, or NULL or 0, as the conditions of its row in fields.def say.
nvfp4_status check_companions(const nvfp4_gemm_desc& g, bool sizes_alone);

// layout.cc: leading dimensions and batch strides.
nvfp4_status check_leading_dimensions(const nvfp4_gemm_desc& g, bool sizes_alone);
nvfp4_status check_strides(const nvfp4_gemm_desc& g, bool sizes_alone);
nvfp4_status check_input_strides(const nvfp4_gemm_desc& g, bool sizes_alone);

// scaled_d.cc: shape, layout and rule of the scales of D.
// `batches` of D: 1 in a grouped product.
nvfp4_status check_scaled_d(const nvfp4_gemm_desc& g, int64_t batches);

// grouped.cc: arrays of the groups are aligned, and the product takes those that are given.
nvfp4_status check_group_arrays(const nvfp4_gemm_desc& gemm, const GroupArrays& groups);

// addresses.cc: addresses are aligned.
nvfp4_status check_addresses(const nvfp4_gemm_desc& g, Caller caller);

// overlap.cc: arrays end within the address space, and no output shares a byte with another array.
// `groups` is NULL for a single product. The workspace is one of these arrays if it has bytes.
nvfp4_status check_overlap(const nvfp4_gemm_desc& g, const GroupArrays* groups,
                           uint64_t workspace_bytes);
// The part of these rules that needs sizes alone.
nvfp4_status check_extents(const nvfp4_gemm_desc& g, const GroupArrays* groups);

}  // namespace nvfp4
