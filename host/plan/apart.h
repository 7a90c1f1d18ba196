// SPDX-License-Identifier: MIT
// D that is made apart from its product: the product stores complete sums in fp32, in the
// workspace, and a second kernel makes D of them. The fast epilogue of the product's kernel stores
// fp32, so a second launch may be faster than an epilogue that computes more. The bits of D are
// those of one launch with the same variant and split.
#pragma once

#include <cstdint>

#include "nvfp4_gemm.h"

namespace nvfp4 {

// Who makes D.
//   one        the product's kernel
//   quantizer  nvfp4_quantize, of D in fp32, with everything that comes before the rounding
//   finish     a kernel of kernel/helpers/finish.cuh, of sums alone
enum class Apart : uint8_t { one, quantizer, finish };

// How the D of a problem that breaks no rule can be made apart. `one`: not at all, or the fast
// epilogue computes it anyway. The two matrices of weights of a gated product are multiplied in one
// launch, as batches of one product, so they are less than 2^40 bytes apart; and its D is one that
// has_usual_rows().
Apart way_apart(const nvfp4_gemm_desc& desc);

// D by rows without maxima, of N a multiple of 4, with no C and no bias by rows: a shorter kernel
// finishes it.
bool has_usual_rows(const nvfp4_gemm_desc& desc);

// The product without its epilogue. Its D lies at the beginning of the workspace, the rest of which
// is its workspace.
nvfp4_gemm_desc sums_product(const nvfp4_gemm_desc& desc, Apart way);

// Bytes from a batch of packed weights to the next, of such a product, too: there b_ld has them.
int64_t packed_batch_bytes(const nvfp4_gemm_desc& desc);

// Bytes of that D, a multiple of 256.
uint64_t sums_bytes(const nvfp4_gemm_desc& desc);

// Whether b2 has lower addresses than b: the first batch of sums is then that with b2.
bool comes_first(const void* b2, const void* b);

// CTAs of the second kernel, if each takes as many rows as it can.
int64_t finish_ctas(const nvfp4_gemm_desc& desc);

}  // namespace nvfp4
