// SPDX-License-Identifier: MIT
// The rules of nvfp4_grouped_desc, as far as they can be told: this version has no such product.
#include <cinttypes>
#include <cstddef>

#include "host/problem/check.h"
#include "host/problem/enumeration.h"
#include "host/problem/rule.h"

namespace nvfp4 {

nvfp4_status check_grouped(const nvfp4_grouped_desc* desc, const char* function) {
  NVFP4_TRY(rule_not_null("desc", desc));
  NVFP4_TRY(
      rule_struct_size(desc, desc->struct_size, sizeof *desc, sizeof *desc, "nvfp4_grouped_desc"));
  NVFP4_TRY(rule_not_null("gemm", desc->gemm));
  NVFP4_TRY(rule_enumerator("rows_kind", desc->rows_kind, Enumeration::rows,
                            only(NVFP4_ROWS_ENDS) | only(NVFP4_ROWS_COUNTS)));
  NVFP4_TRY(rule_range("capacity", desc->capacity, INT32_MAX));
  NVFP4_TRY(rule_range("rows_hint", desc->rows_hint, INT32_MAX));
  NVFP4_TRY(rule_reserved(desc->reserved));
  return fail(NVFP4_STATUS_NOT_SUPPORTED, "%s is not there in version %d.%d.%d", function,
              NVFP4_VERSION_MAJOR, NVFP4_VERSION_MINOR, NVFP4_VERSION_PATCH);
}

}  // namespace nvfp4
