/* SPDX-License-Identifier: MIT
 *
 * nvfp4_gemm.h: NVFP4 matrix multiplication on NVIDIA GPUs behind a plain C API.      Version 0.1.0
 *
 *     D = act(alpha * A * B^T + beta * C + bias)
 *
 * A is M x K (tokens) and B is N x K (weights). Both are NVFP4: E2M1 elements with one UE4M3 scale
 * per 16 elements along K. A may be fp16 or bf16 instead. C and D are M x N, in fp16, bf16 or fp32.
 * Sums are fp32. C, bias and act are optional: each has fields in nvfp4_gemm_desc.
 *
 *     nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
 *     g.m = 128; g.n = 7168; g.k = 2048;
 *     g.a = a; g.a_ld = g.k; g.a_scales = sfa; g.a_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
 *     g.b = b; g.b_ld = g.k; g.b_scales = sfb; g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
 *     g.d = d; g.d_ld = g.n; g.d_type = NVFP4_TYPE_F16;
 *     nvfp4_gemm_workspace_bytes(&g, 90, &g.workspace_bytes);     // 90: compute capability 9.0
 *     g.workspace = memory_of(g.workspace_bytes);                 // your allocation; NULL for 0
 *     if (nvfp4_gemm_run(&g, stream) != NVFP4_SUCCESS) puts(nvfp4_last_error());
 *
 * WORDS      "9.0", "10.x" and so on are compute capabilities of GPUs. Tokens are the rows of A,
 *            and weights are the rows of B. A grouped product multiplies groups of rows of A by a B
 *            for each group. A gated product has a second matrix of weights, b2. A variant is one
 *            of the kernels, and an image is a file of machine code or PTX inside the library.
 * NEEDS      The header is C99 and needs no CUDA header. The library needs libc and libm. At the
 *            first call that runs on a GPU it opens the CUDA driver, libcuda.so.1, by soname. The
 *            driver must support CUDA 13.0, or CUDA 12.9 if CUDA 12.9 made the kernel images. CUDA
 *            12.4 is enough for products with a_type F16 or BF16 that are neither grouped nor
 *            gated, unless the field variant names a kernel that needs a newer driver.
 *            nvfp4_build_info() says which driver each image needs. Functions that take a compute
 *            capability (nvfp4_gemm_supported and others) assume a driver that loads every image.
 *            With an older driver nvfp4_gemm_run may still return NVFP4_STATUS_DRIVER_TOO_OLD.
 * THREADS    Any thread may call any function at any time. Any number of threads may run one plan
 *            at once. Destroy a plan only when no thread runs it. Two runs that use the same
 *            workspace must not overlap, neither on the host nor on the device: the kernels and the
 *            CTAs of a run pass partial sums to each other through it, and would read those of the
 *            other run.
 * STREAMS    nvfp4_gemm_run and nvfp4_gemm_plan_run enqueue on the caller's stream of the current
 *            context and return. They allocate nothing, on host or device, and synchronise nothing.
 *            There is one exception: the first call in a process opens the driver and loads an
 *            image. nvfp4_prepare() does both in advance: call it before you capture a stream.
 * OWNERSHIP  You own every buffer. Inputs must not change until the work has finished.
 * FORK       CUDA does not survive fork(). In the child of a process that has run a GEMM on a GPU,
 *            functions that need the GPU return NVFP4_STATUS_AFTER_FORK. Host functions work, and
 *            fork followed by exec is fine.
 * ERRORS     Everything is checked before anything is enqueued, and an error leaves the outputs
 *            unchanged. nvfp4_last_error() has a message with the field, its value and the rule.
 *            One exception: if K is 0 and D has gaps between its batches, each batch is filled by a
 *            driver call of its own. If the driver refuses one of these calls, the earlier ones are
 *            already enqueued.
 * LOGGING    NVFP4_LOG=0..3 in the environment: 0 silent (default), 1 errors, 2 one line per call
 *            with a command line that reproduces it, 3 details. A line of level 2 begins with
 *            "note:" in four cases, which are often mistakes: M, N or L (the number of products) is
 *            0, so D is unchanged; a quantizer or another function gets an empty matrix; alpha or
 *            alpha2 is 0; all groups of a grouped product share one B. Lines go to stderr, or to a
 *            callback (nvfp4_set_log_callback). The library reads no other variable of the
 *            environment and opens no file.
 * VERSIONS   The soname is libnvfp4gemm.so.0, and each function has the symbol version NVFP4GEMM_0.
 *            For all of 0.x no function, enumerator or field changes its name, value, offset or
 *            meaning. Structs grow at their end only, and 0 in a new field means the old behaviour.
 *            So a program runs with every later 0.x of the library. A program that was built with a
 *            newer header also runs with an older library if it leaves the fields that are unknown
 *            to that library at 0. struct_size tells the library which fields the program knows.
 *            nvfp4_version() tells the program which library is loaded.
 *            A later version may accept a problem that this one refuses. The text of messages, log
 *            lines and nvfp4_gemm_explain may change with any version. The choice of a variant, and
 *            so the bits of an inexact sum, may change with a minor version (0.1 to 0.2), but not
 *            with a patch.
 * BITS       The same inputs give the same bits on every run, stream and device of one compute
 *            capability, because each element of D is summed in one fixed order, without atomics.
 *            The driver must not be older than the CUDA that made the images. On 9.0 the order of
 *            the sum depends on the sizes, including M: see NUMERICS.
 *
 * NUMERICS   acc is the fp32 sum over K of a * scale_a * b * scale_b, as the tensor core forms it.
 *            Then, in this order,
 *                x = ((alpha * a_tensor_scale) * b_tensor_scale) * acc
 *                x = fma(beta, C, x)
 *                x = x + bias
 *                D = round(act(x))
 *            A gated product computes y from b2 as it computes x from b, and then
 *                x = min(x, gate_limit)
 *                y = max(min(y, gate_limit), -gate_limit) + gate_beta
 *                D = round(act(x) * y)
 *            Each of these operations is fp32 and rounded to nearest even; subnormals are kept. If
 *            you do not give C, bias or a factor, its operation is left out. act() is built from
 *            such operations by the formulas of docs/numerics.md. round() rounds once to D's type,
 *            to nearest even, and keeps subnormals; a value beyond the largest one of the type
 *            becomes infinite. So GPUs and the reference compute the same bits of D from the same
 *            acc. The rest of this section says how far acc is from the exact sum.
 *
 *            10.x and 12.x: the tensor core adds 64 products in a step and truncates the sum toward
 *            zero after it. Let
 *                S = the sum over K of |a * scale_a * b * scale_b|
 *                s = ceil(K / 64), the number of steps
 *                r = s for a small K. For a large K CTAs may share K and add partial sums in fp32:
 *                    on 10.x up to 4 CTAs if K is above 1792; then r = s + 2
 *                    on 12.x up to 8 CTAs if K is above 256; then r = s + 4
 *                z = the number of steps with a large block of zeros: its 16 products are all 0,
 *                    and each of its two scales is at least 256
 *            Then
 *                |acc - exact| <= r * 2^-23 * (1 + 2^-7) * S + z * 2^-18
 *            How tensor cores align the products of a step is not published. docs/numerics.md has
 *            two models, "groups" and "blocks". The bound holds for both; the term with z is needed
 *            for "blocks" only. The bits of 10.x and 12.x may differ.
 *
 *            acc is exact if two conditions hold. All partial sums are multiples of one power of
 *            two, 2^u, and below 2^(u+24). And u is at least -19, or no block has two scales of 256
 *            or more.
 *
 *            UE8M0 scales: if S is below 2^127,
 *                |acc - exact| <= r * 2^-23 * (1 + 2^-7) * S + r * 2^-149 + Z
 *            where Z concerns blocks of 16 products that are all 0. In each step that has such
 *            blocks, multiply the two scales of each of them; the largest result is 2^E. Z is the
 *            sum of 2^(E-32) over these steps; in the model "groups" it is 0. acc is exact if all
 *            partial sums are multiples of 2^u and below 2^(u+24), u is at least -149, and no E is
 *            above u + 35.
 *
 *            9.0 (Hopper): an element times its scale is exact in fp16, and fp16 tensor cores form
 *            the sum. A step adds 16 products, which need not be neighbours along K. K is rounded
 *            up to a multiple of 256, so there are 16 * ceil(K/256) steps. They form up to 32
 *            partial sums, which are added in fp32. Kernels for at most 4 tokens work differently.
 *            They form the exact sum of each block of 16 neighbours, and add it in fp32 to one of
 *            up to 24 partial sums. At the end they add the partial sums. So the bits of an inexact
 *            acc depend on the tile, and thereby on M.
 *
 *            On 9.0 acc is exact if for some u each product, and the sum of each subset of the
 *            products, is a multiple of 2^u and below 2^(u+24). D then has the same bits as
 *            elsewhere. Otherwise
 *                |acc - exact| <= (s + 4) * 2^-23 * S + (K + s) * 2^(E-25),  s = 16 * ceil(K/256)
 *            where E is the largest exponent of a product or a partial sum. The exponent of a
 *            product is max(-7, exponent of a * scale_a) + max(-7, exponent of b * scale_b). To
 *            bound E: the magnitude of a partial sum is at most (S + |exact|) / 2. The second term
 *            is larger than the first where large products cancel each other.
 *
 * KERNELS    NVFP4 tokens: kernels for 9.0, which have run on an H200 and an H100, and for 10.0,
 *            10.3, 12.0 and 12.1, which have run in an emulator only. Kernels for 10.7 and 11.0
 *            have been assembled but never run; only the field variant selects them.
 *            Tokens in fp16 or bf16: kernels for all of these and for 8.0, 8.6 and 8.9. Those for
 *            9.0 have run on GPUs, the others in an emulator or not at all.
 *            All kernels take any M, N, L >= 0, K a multiple of 16, and scales of either layout for
 *            each operand. They read both layouts directly, with one exception: on 10.x every call
 *            of an NVFP4 product first converts linear scales to 128x4, in the workspace. If a GPU
 *            has no kernel for NVFP4 tokens, a product with such tokens is refused for every K,
 *            including 0.
 *
 *            Grouped products support what their section lists. Gated products have kernels for
 *            9.0 and, if tokens are NVFP4 and scales of weights are 128x4, for 10.x. Kernels for
 *            gated products need K > 0. On 9.0 a gated product that is not grouped cannot have
 *            batch_invariant.
 *
 * SPEED      A product with row-major fp16 or bf16 D, a host alpha and no other epilogue field uses
 *            the fast epilogue. On 9.0, and with NVFP4 tokens on 10.x, D may also be fp32, and a
 *            product may have a device alpha, tensor scales and a bias per column, in any
 *            combination. On 9.0 this needs 128x4 scales and K a multiple of 64; D of NVFP4 tokens
 *            may then also have C, an activation and maxima. Most other products use the slower
 *            general epilogue. nvfp4_gemm_describe says which one is used.
 */
#ifndef NVFP4_GEMM_H
#define NVFP4_GEMM_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define NVFP4_API __attribute__((visibility("default")))
#else
#define NVFP4_API
#endif

/* ---- Version --------------------------------------------------------------------------------- */

#define NVFP4_VERSION_MAJOR 0
#define NVFP4_VERSION_MINOR 1
#define NVFP4_VERSION_PATCH 0
#define NVFP4_VERSION \
  (NVFP4_VERSION_MAJOR * 10000 + NVFP4_VERSION_MINOR * 100 + NVFP4_VERSION_PATCH)

/* NVFP4_VERSION of the library that is loaded, which may differ from the header's.     Since 0.1 */
NVFP4_API int32_t nvfp4_version(void);

/* One line: the version, the compiler of the kernels, and for each image its compute capabilities
 * and the oldest driver that loads it, as a version of CUDA. A static string, never NULL.
 *                                                                                      Since 0.1 */
NVFP4_API const char *nvfp4_build_info(void);

/* ---- Status ---------------------------------------------------------------------------------- */

/* Values are pinned: a number never changes its meaning. 20-39 are about your arguments, 40-59
 * about this machine. 60-79 mean that the driver refused; nvfp4_last_error() then names the driver
 * call and its result. */
typedef int32_t nvfp4_status;
enum {
  NVFP4_SUCCESS = 0,
  NVFP4_STATUS_INTERNAL = 1,           /* a bug in this library; please report the message        */

  NVFP4_STATUS_NULL_POINTER = 20,      /* a required pointer is NULL                              */
  NVFP4_STATUS_MISALIGNED = 21,        /* an address or a stride is not aligned as required       */
  NVFP4_STATUS_INVALID_VALUE = 22,     /* a number is outside its range                           */
  NVFP4_STATUS_INVALID_ENUM = 23,      /* a field holds none of the values of its enumeration     */
  NVFP4_STATUS_INVALID_STRUCT = 24,    /* struct_size is wrong, or an unknown field is not 0      */
  NVFP4_STATUS_OVERLAP = 25,           /* D overlaps an input                                     */
  NVFP4_STATUS_LIMIT = 26,             /* a size above a stated limit                             */
  NVFP4_STATUS_NOT_SUPPORTED = 28,     /* declared in this header, but no kernel here does it     */

  NVFP4_STATUS_NO_DRIVER = 40,         /* libcuda.so.1 cannot be opened, or is a stub             */
  NVFP4_STATUS_DRIVER_TOO_OLD = 41,    /* the driver is too old or lacks a function we need       */
  NVFP4_STATUS_NO_DEVICE = 42,         /* the driver sees no GPU                                  */
  NVFP4_STATUS_NO_CONTEXT = 43,        /* no CUDA context is current on the calling thread        */
  NVFP4_STATUS_UNSUPPORTED_ARCH = 44,  /* no kernel here for the device's compute capability      */
  NVFP4_STATUS_IMAGE_LOAD = 45,        /* the driver refused the kernel images                    */
  NVFP4_STATUS_AFTER_FORK = 46,        /* called in a fork()ed child of a process that used a GPU */

  NVFP4_STATUS_DRIVER_ERROR = 60,      /* any other failure of a driver call                      */
  NVFP4_STATUS_PRIOR_ERROR = 61,       /* the context carries an error of earlier work            */
  NVFP4_STATUS_OUT_OF_MEMORY = 62,     /* the driver or the host has no memory left               */
  NVFP4_STATUS_WRONG_RESULT = 63       /* nvfp4_selftest: a kernel computed a wrong result        */
};

/* "NVFP4_STATUS_MISALIGNED" and so on; "NVFP4_STATUS_UNKNOWN" for any other number.
 * A static string.                                                                     Since 0.1 */
NVFP4_API const char *nvfp4_status_name(nvfp4_status status);

/* What the status means, one sentence. A static string, never NULL.                    Since 0.1 */
NVFP4_API const char *nvfp4_status_string(nvfp4_status status);

/* The message of the last failed call on this thread: field, value, rule; "" if none failed yet.
 * Valid until the next failing call on the same thread.                                Since 0.1 */
NVFP4_API const char *nvfp4_last_error(void);

/* The library calls this function with one log line, without a newline. level is the level of the
 * line, 1 to 3 (LOGGING, above). Several threads may call it at once, from inside any function of
 * this library. The library holds no lock during the call. The callback may call this library: such
 * calls log nothing, and leave the caller's nvfp4_last_error() as it is. The text of lines may
 * change, except that the line of a product (level 2) always has image="NAME" variant=NAME: the
 * image and the variant that ran. */
typedef void (*nvfp4_log_callback)(void *user, int32_t level, const char *line);

/* Sends the lines up to `level` to the callback and none to stderr. If the callback is NULL, lines
 * go to stderr again, up to the level of NVFP4_LOG. This holds for the whole process. Calls in
 * other threads may still use the previous callback until they return, so its code and `user` must
 * outlive them. Each call of this function allocates a few bytes and never frees them, because
 * another thread may still read them. Returns INVALID_VALUE if level is not 0 to 3.    Since 0.1 */
NVFP4_API nvfp4_status nvfp4_set_log_callback(nvfp4_log_callback callback, void *user,
                                              int32_t level);

/* ---- Types ----------------------------------------------------------------------------------- */

/* Type of C, D and bias, and of A if it is not quantized. NVFP4, MXFP4 and E2M1_UE8M0 are types of
 * D only: the kernel quantizes D and writes its E2M1 codes and its scales. */
enum {
  NVFP4_TYPE_NONE = 0,
  NVFP4_TYPE_F16 = 1,
  NVFP4_TYPE_BF16 = 2,
  NVFP4_TYPE_F32 = 3,
  NVFP4_TYPE_NVFP4 = 4,                /* a UE4M3 scale per 16 elements                           */
  NVFP4_TYPE_MXFP4 = 5,                /* a UE8M0 scale per 32                                    */
  NVFP4_TYPE_E2M1_UE8M0 = 6            /* a UE8M0 scale per 16                                    */
};

/* Where the scale of (row, k) is stored. The field is required; the layout is never guessed. The
 * formulas are for one scale per 16 elements, with ks = k / 16. MXFP4 has one scale per 32: replace
 * K by K / 2 and k by k / 2, and pass k / 2 as the argument k of nvfp4_scale_convert.
 *
 * LINEAR  byte = row * (K/16) + ks. There is no padding. On 10.x every product first converts
 *         linear scales to 128X4, so convert those of weights once, by nvfp4_scale_convert.
 * 128X4   The layout that tensor cores read (cuBLASLt, CUTLASS, torch.nn.functional.scaled_mm). It
 *         consists of tiles of 128 rows x 4 scales, 512 bytes each; the next tile in memory is the
 *         next one along K, and after the last along K come the next 128 rows:
 *           byte = tile * 512 + inside
 *           tile = (row/128) * ceil(K/64) + ks/4
 *           inside = (row%32) * 16 + ((row%128)/32) * 4 + ks%4
 *         Rows round up to 128 and scales to 4: nvfp4_scale_bytes() counts the padding, which must
 *         be addressable; its values are never used. A batch starts a new tile.
 *
 * SLICES  You can pass a slice of a matrix as a matrix of its own with the same ld. A slice begins
 *         at row r, or at element k of every row. Its codes must begin at a multiple of 16 bytes:
 *         every r is allowed, and each k that is a multiple of 32. Its scales:
 *           128X4, from row r on      They begin at byte (r/128) * ceil(K/64) * 512. r must be a
 *                                     multiple of 128.
 *           128X4, from element k on  Copy the tiles of the slice into a new array. In each block
 *                                     of 128 rows its first tile is tile k/64, counted from 0. k
 *                                     must be a multiple of 64. If the slice ends inside a tile,
 *                                     the other scales of that tile count as padding.
 *           LINEAR, from row r on     They begin at byte r * (K/16), which must be a multiple of
 *                                     16.
 *           LINEAR, from element k on Copy them into an array of their own.
 *         For any other slice convert to LINEAR, copy the part, and convert back. */
enum {
  NVFP4_SCALE_LAYOUT_UNSET = 0,        /* invalid on purpose                                      */
  NVFP4_SCALE_LAYOUT_128X4 = 1,
  NVFP4_SCALE_LAYOUT_LINEAR = 2
};

/* The format of A and B: how their scales are stored, and how many elements share one. Elements are
 * E2M1 in every format. A UE8M0 scale is 2^(byte - 127); 0xFF is NaN, and there is no zero. The
 * format describes B alone if A is fp16 or bf16 (a_type). Formats with UE8M0 scales are supported
 * by the reference in all cases, and by kernels
 *   on 10.x                 with a quantized A or a bf16 A
 *   on 9.0                  with a quantized A or a bf16 A. Unless the tile has at most 4 tokens,
 *                           a quantized A is decoded to bf16 in the workspace on every call;
 *                           elements of 2^128 and more then become infinite.
 *   on other GPUs from 8.0  with a bf16 A
 * Anything else is refused as NOT_SUPPORTED. */
enum {
  NVFP4_OPERAND_FORMAT_NVFP4 = 0,      /* UE4M3 per 16                                            */
  NVFP4_OPERAND_FORMAT_MXFP4 = 1,      /* UE8M0 per 32; K a multiple of 32                        */
  NVFP4_OPERAND_FORMAT_E2M1_UE8M0 = 2  /* UE8M0 per 16                                            */
};

/* The order of an operand in memory. A name has two parts: the GPUs whose kernels read this order,
 * and a version number.
 * NONE    Not packed: codes and scales are two arrays, as the rules of a and a_scales, b and
 *         b_scales say.
 * SM90_1  Weights, for 9.0. Codes and scales are one array, in units of 64 rows x 64 elements of K:
 *         2,304 bytes, with MXFP4 2,176. The unit of row r and element k is number
 *         (r/64) * ceil(K/64) + k/64 of its matrix. Elements beyond N or K are zeros.
 *         docs/packing.md has the order inside a unit.
 * SM100_1 Weights, for 10.0 and 10.3. A unit has 128 rows and four scales per row. That is 64
 *         elements of K and 4,608 bytes, or with MXFP4 128 elements and 8,704 bytes. The units of a
 *         block of 128 rows lie one after the other along K. Elements beyond N or K are zeros.
 * SM90_TOKENS_1
 *         NVFP4 tokens, for 9.0. Each value is element * scale * 2^-7 in fp16, which is exact. The
 *         values have the order in which kernels for many tokens multiply (docs/packing.md). A row
 *         has ceil(K/256) units of 256 elements, 512 bytes each. Elements beyond K are zeros.
 * nvfp4_pack_weights packs weights, nvfp4_unpack_weights restores them. Kernels of 9.0 read SM90_1,
 * in products with fp16 or bf16 tokens. Kernels of 10.0 and 10.3 read SM100_1, in products with
 * quantized tokens. nvfp4_quantize and nvfp4_fused_quantize write packed tokens, nvfp4_dequantize
 * reads them. Kernels of 9.0 read packed tokens in products that are not grouped, which then need
 * no workspace for decoded tokens. The reference reads every packing wherever it is allowed. */
enum {
  NVFP4_PACKING_NONE = 0,
  NVFP4_PACKING_SM90_1 = 1,            /* b_packing, nvfp4_pack_desc                              */
  NVFP4_PACKING_SM100_1 = 2,           /* the same                                                */
  NVFP4_PACKING_SM90_TOKENS_1 = 3      /* a_packing, quantizers                                   */
};

/* How the scale of a block follows from its elements. For a UE8M0 scale let m * 2^e, 1 <= m < 2, be
 * the largest magnitude of the block:
 *   ROUND_UP  2^(e-2) if m <= 1.5, else 2^(e-1): no element is clipped. DEFAULT means this.
 *   FLOOR     2^(e-2), as in the MX specification of OCP. Elements that are larger than 6 times
 *             their scale are clipped.
 * For a UE4M3 scale let amax be the largest magnitude and t the tensor scale:
 *   DEFAULT   e4m3(amax / 6 / t), the rule of nvfp4_quantize_host.
 *   4OVER6    e4m3(amax / 6 / t) or e4m3(amax / 4 / t), the one with the smaller error; the first
 *             if both errors are equal. The error is the sum of ((code * scale) * t - x)^2 over the
 *             elements in their order, in fp32, each operation rounded to nearest even. Both scales
 *             saturate at 448. On normal data the root of the mean square error is 6 to 9 % smaller
 *             than by DEFAULT. Products are as fast. Only nvfp4_quantize and
 *             nvfp4_quantize_reference know this rule. */
enum {
  NVFP4_SCALE_RULE_DEFAULT = 0,
  NVFP4_SCALE_RULE_ROUND_UP = 1,
  NVFP4_SCALE_RULE_FLOOR = 2,
  NVFP4_SCALE_RULE_4OVER6 = 3
};

/* Where element (row, column) of C and D is: at row * ld + column, or column * ld + row. */
enum { NVFP4_CD_ORDER_ROW_MAJOR = 0, NVFP4_CD_ORDER_COLUMN_MAJOR = 1 };

/* Bias has a value for each column of D (an output feature), or for each row (a token). */
enum { NVFP4_BIAS_AXIS_COLUMN = 0, NVFP4_BIAS_AXIS_ROW = 1 };

/* HOST: alpha and beta are given by value. DEVICE: the kernel reads them from device memory. */
enum { NVFP4_SCALARS_HOST = 0, NVFP4_SCALARS_DEVICE = 1 };

/* Applied last, before the rounding to D's type. NaN stays NaN. Errors are in units of the last
 * place of fp32.
 *   RELU          x if x > 0, else +0
 *   GELU_TANH     x/2 * (1 + tanh(sqrt(2/pi) * (x + 0.044715 x^3))), error at most 3.3
 *   SILU          x / (1 + exp(-x)), error at most 3.3
 *   GELU_ERF      x/2 * (1 + erf(x / sqrt(2))), error at most 6.1
 *   RELU_SQUARED  x * x if x > 0, else +0 */
enum {
  NVFP4_ACTIVATION_NONE = 0,
  NVFP4_ACTIVATION_RELU = 1,
  NVFP4_ACTIVATION_GELU_TANH = 2,
  NVFP4_ACTIVATION_SILU = 3,
  NVFP4_ACTIVATION_GELU_ERF = 4,
  NVFP4_ACTIVATION_RELU_SQUARED = 5
};

/* Programmatic dependent launch. OFF: the kernel starts after all earlier work of the stream. ON:
 * it may start early and waits before its first read. ON_STATIC_WEIGHTS: as ON, and you promise
 * that no earlier work that may still run writes B or its scales. The kernel may then load them
 * before it waits. D has the same bits in all three. If the product needs a workspace, the kernel
 * that fills it starts after all earlier work in any case. The field has no effect if K = 0,
 * because no kernel multiplies then. */
enum { NVFP4_PDL_OFF = 0, NVFP4_PDL_ON = 1, NVFP4_PDL_ON_STATIC_WEIGHTS = 2 };

/* One problem: L independent products that share M, N, K and the leading dimensions.
 *
 * Start from NVFP4_GEMM_DESC_INIT, which sets struct_size, l = 1 and alpha = 1. If you memset the
 * struct to 0 instead, set these three yourself: with l = 0 nothing is computed, and with alpha = 0
 * A * B^T is taken to be 0. Sizes, leading dimensions and batch strides count elements, except
 * where a name says _bytes. The rules hold for every function that takes an nvfp4_gemm_desc; "is"
 * means "must be":
 *   struct_size  sizeof(nvfp4_gemm_desc). A smaller size is accepted if it includes everything
 *                before d_amax; missing fields count as 0. A larger size, up to 4096, is accepted
 *                if all bytes that this library does not know are 0.
 *   m, n, k, l   0 .. 2^31-1. K is a multiple of 16; if operand_format is MXFP4, of 32.
 *   enums        Each field holds a value of its enumeration. batch_invariant and
 *                a_tensor_scale_rows are 0 or 1, reserved2 is 0, and
 *                b_tensor_scale_columns is 0, 64, 128, ..
 *   variant      NULL lets the planner choose. Otherwise it is the name of a variant
 *                (nvfp4_variant_name; the message of a refusal lists the names). A name may end in
 *                  /2      K is split into two partitions, or into as many as the number says.
 *                  /even   Some variants of 9.0: the last tiles, which would leave SMs idle, are
 *                          cut along K, so that all CTAs get even shares of them.
 *                  /apart  It follows a plain name, /2 or /even. The kernel stores the sums in fp32
 *                          in the workspace, and a second kernel computes D from them, with the
 *                          same bits. The planner does so where it is faster. Refused if the fast
 *                          epilogue computes D, if K is 0, and in grouped products. In a gated
 *                          product l is 1, N a multiple of 4, D row-major, and there are no C,
 *                          maxima or bias per row. b and b2 are less than 2^40 bytes apart.
 *   empty        If m, n or l is 0, the call succeeds: it reads, writes and enqueues nothing, and
 *                checks no rule below. K = 0 gives acc = +0, and the rules of A, B and their scales
 *                are not checked.
 *   tiles        ceil(M/256) * ceil(N/128) * L is below 2^31; if `variant` is set, the sizes of its
 *                tiles replace 256 and 128. No kernel of a plan may have more than 2^31-1 CTAs,
 *                and a kernel can have several for each tile. Beyond these limits the status is
 *                LIMIT.
 *   16-bit A     With a_type F16 or BF16, a_scales is NULL, a_scale_layout may be UNSET, and the
 *                stride of the scales is ignored.
 *   C            If c_type is not set, c is NULL and beta is 0. If c_type is set, c is required,
 *                except with scalar_mode HOST and beta = 0: C is never read then, and c, c_ld, its
 *                stride and its overlap are not checked.
 *   bias         bias_type and bias are both set, or neither.
 *   scalars      scalar_mode HOST: alpha_device and beta_device are NULL. DEVICE: alpha_device is
 *                required; beta_device is required if there is a C, else it is NULL.
 *   tensor scales
 *                a_tensor_scale_rows = 1 requires a_tensor_scale, and a nonzero
 *                b_tensor_scale_columns requires b_tensor_scale.
 *   addresses    a, b, their scales, c, d and workspace are device addresses, aligned to 16 bytes.
 *                bias, tensor scales, alpha_device and beta_device are aligned to their type.
 *                nvfp4_gemm_supported, _workspace_bytes, _describe and _explain accept a desc whose
 *                addresses are all NULL. They then assume that a run will pass each address that
 *                the types and scalar_mode call for.
 *   workspace    It has at least nvfp4_gemm_workspace_bytes() bytes, with any content. Products
 *                that may run at the same time each need their own.
 *   a_packing    With NVFP4_PACKING_SM90_TOKENS_1, a holds what a quantizer with that packing and
 *                rows = m writes. a_type is NONE and operand_format NVFP4, and the product is not
 *                grouped. a_scales is NULL and a_ld is 0, a_scale_layout may be UNSET, and the
 *                stride of the scales is ignored. a_batch_stride is 0 or a multiple of 256, the
 *                elements of a unit. Without a gap between batches it is m * ceil(k/256) * 256.
 *                Slices are not possible. D has the same bits as with an A that is not packed and
 *                the same variant. Variants for few tokens decode A themselves and refuse this
 *                packing. So up to about 16 tokens an A that is not packed is faster.
 *   b_packing    Unless it is NONE, b and b2 hold codes and scales as nvfp4_pack_weights writes
 *                them. b_scales and b2_scales are NULL, b_ld is 0, b_scale_layout may be
 *                UNSET, and the stride of the scales is ignored. b_batch_stride is 0 or a multiple
 *                of a unit's elements: 4,096 of SM90_1, 8,192 of SM100_1 (MXFP4 16,384). A slice of
 *                rows begins at a multiple of a unit's rows. Slices along K are not possible.
 *   a_ld, b_ld   At least K, a multiple of 32 (16 bytes), and below 2^41. So K = 48 needs at least
 *                64. If a_type is F16 or BF16, a_ld and the batch stride of a are multiples of 8
 *                and below 2^39.
 *   c_ld, d_ld   At least N, for column-major at least M. Multiples of 8 are stored faster.
 *   strides      Ignored if l = 1.
 *                  a, b    a multiple of 32, below 2^41; 0 repeats the same matrix
 *                  scales  a multiple of 16 bytes, and at least nvfp4_scale_bytes_for(), or 0
 *                  d       Batches do not overlap. There are two ways. The batches follow each
 *                          other: the stride is at least (M-1) * d_ld + N. Or their rows alternate:
 *                          row 0 of every batch, then row 1 of every batch. The stride is then at
 *                          least N, and d_ld at least (L-1) * stride + N. In column-major order M
 *                          and N change places in these formulas.
 *                  c       any stride >= 0
 *   overlap      An array that is written (D, its scales, the maxima, the workspace) shares no byte
 *                with any other array. An array reaches from its first to its last byte, and scales
 *                include their padding. There is one exception: C may be the array of D, if it has
 *                the address, type, leading dimension and, with L > 1, stride of D. Each array ends
 *                within the address space.
 *
 * A, B: two elements per byte, the one with the lower k in the low nibble. E2M1 codes 0 to 7 are
 * 0, 0.5, 1, 1.5, 2, 3, 4 and 6, and codes 8 to 15 are their negatives. UE4M3 has an exponent bias
 * of 7 and three bits of mantissa: 0x38 is 1, 0x40 is 2, 0x7E is 448 and 0x7F is NaN
 * (docs/numerics.md).
 * A value is code * scale * tensor_scale. The tensor-wide (second-level) scale of NVFP4 is either a
 * factor of alpha, if you know it on the host, or a_tensor_scale and b_tensor_scale on the device.
 * If you give both, both multiply.
 *   D with scales  d_type NVFP4, MXFP4 or E2M1_UE8M0: D equals what nvfp4_quantize writes for the
 *                product in fp32 (tensor_scale = *d_tensor_scale, scale_rule = d_scale_rule). The
 *                product is not rounded to another type before. D is row-major, and N is a multiple
 *                of 16 (NVFP4, E2M1_UE8M0) or 32 (MXFP4). d_ld and d_batch_stride count elements
 *                and are even. d_scales is aligned to 16 bytes and does not overlap D or any input.
 *                Each batch has nvfp4_scale_bytes_for(m, n, d_scale_layout, the format) bytes of
 *                scales, and d_scales_batch_stride_bytes is a multiple of 16. Padding of scales
 *                keeps its bytes. With UE8M0 scales d_tensor_scale is NULL. With any other d_type
 *                d_scales, d_tensor_scale, d_scales_batch_stride_bytes, d_scale_layout and
 *                d_scale_rule keep the values of NVFP4_GEMM_DESC_INIT.
 *   gated        With b2, D = act(x) * y, where x is the product with b and y the product with b2;
 *                n counts the columns of D. x and y each have an alpha, a tensor scale and a bias.
 *                b2 has the format, leading dimension, strides and scale layout of b, so both may
 *                be halves of one matrix. There is no C. Three fields are for SILU only:
 *                  gate_limit  x becomes min(x, gate_limit), and y is clamped to the range from
 *                              -gate_limit to gate_limit. It is finite; 0 means no limit.
 *                  gate_alpha  silu(x) becomes x / (1 + exp(-gate_alpha * x)). It is between 1/64
 *                              and 64; 0 means 1.
 *                  gate_beta   is added to y. It is finite.
 *                Without b2, all fields of gated products are NULL or 0. If all addresses of a desc
 *                are NULL ("addresses"), a nonzero alpha2 says that the product will be gated.
 *   amax         d_amax receives the largest |act(x)| (gated: |act(x) * y|) of D, and d_row_amax
 *                that of each row. Both are maxima of the fp32 values before D is rounded. If a
 *                value is NaN, the maximum is the NaN 0x7FFFFFFF. The kernel takes the maximum with
 *                the value that is stored already: write 0 first, or keep the value to get the
 *                maximum over several products. The stored value is 0, positive, or the NaN
 *                0x7FFFFFFF. Others give a wrong maximum, since values are compared as int32_t. The
 *                bits do not depend on the order of CTAs. Both addresses are aligned to 4 bytes.
 *                The values are unchanged if M, N or L is 0. You may give one or both. SPEED says
 *                which epilogue the product then uses. If a plan was created with d_amax, a run may
 *                pass another address for it; the same holds for d_row_amax. In a grouped product
 *                d_row_amax is [m], and entries of rows that belong to no group are unchanged. */
typedef struct nvfp4_gemm_desc {
  uint64_t struct_size;

  int64_t m, n, k, l;

  const void *a;                       /* [l][m][k] E2M1                                          */
  int64_t a_ld, a_batch_stride;
  const void *a_scales;                /* a_scale_layout; bit 7 of every UE4M3 byte is 0          */
  int64_t a_scales_batch_stride_bytes;
  const float *a_tensor_scale;         /* one fp32, or [l][m] with a_tensor_scale_rows = 1. NULL:
                                          none                                                    */

  const void *b;                       /* [l][n][k] E2M1                                          */
  int64_t b_ld, b_batch_stride;
  const void *b_scales;
  int64_t b_scales_batch_stride_bytes;
  const float *b_tensor_scale;         /* fp32, one or several; NULL: none                        */
  int64_t b_tensor_scale_columns;      /* 0: one factor. Otherwise the number of columns of D, a
                                          multiple of 64, that share a factor. Weights that were
                                          concatenated at load need this                          */

  const void *c;                       /* [l][m][n] c_type; read only if beta != 0                */
  int64_t c_ld, c_batch_stride;

  void *d;                             /* [l][m][n] d_type                                        */
  int64_t d_ld, d_batch_stride;
  void *d_scales;                      /* D with scales: written, in d_scale_layout               */
  int64_t d_scales_batch_stride_bytes;
  const float *d_tensor_scale;         /* d_type NVFP4: D = code * scale * this, one fp32 on the
                                          device, above 0 and finite; NULL: 1                     */

  const void *bias;                    /* [n] or, by bias_axis, [m] bias_type; NULL: none         */

  const float *alpha_device;           /* scalar_mode DEVICE: read when the kernel runs           */
  const float *beta_device;
  float alpha, beta;                   /* scalar_mode HOST                                        */

  void *workspace;                     /* of nvfp4_gemm_workspace_bytes() bytes; NULL if 0        */
  uint64_t workspace_bytes;

  const char *variant;                 /* NULL: the planner chooses. A name forces it             */

  int32_t a_scale_layout, b_scale_layout, d_scale_layout;
  int32_t c_type, d_type, bias_type;
  int32_t scalar_mode, activation, pdl;
  int32_t operand_format;              /* of A and B                                              */
  int32_t a_type;                      /* NVFP4_TYPE_NONE: as operand_format says. _F16, _BF16: A is
                                          [l][m][k] of that type, not quantized, and a_scales NULL.
                                          GPUs from 8.0 on and the reference take such an A       */
  int32_t cd_order;                    /* of C and D together                                     */
  int32_t bias_axis;                   /* a value per column of D, or per row                     */
  int32_t batch_invariant;             /* 1: the bits of a row of D do not depend on M or on the
                                          row's index, for given N, K, types and compute capability;
                                          slower on 9.0 (docs/numerics.md). 0: not promised       */
  int32_t a_tensor_scale_rows;         /* 0: one factor. 1: a_tensor_scale has one for each row of
                                          A in each batch, whatever a_type is                     */
  int32_t d_scale_rule;                /* of UE8M0 scales of D: NVFP4_SCALE_RULE_..               */
  int32_t b_packing;                   /* of b and b2: NVFP4_PACKING_..                           */
  int32_t a_packing;                   /* of a: NVFP4_PACKING_..                                  */

  float *d_amax;                       /* one fp32 on the device; NULL: none                      */
  float *d_row_amax;                   /* [l][m] fp32; NULL: none                                 */
  const void *b2;                      /* [l][n][k] as b; NULL: not gated                         */
  const void *b2_scales;               /* as b_scales                                             */
  const float *b2_tensor_scale;        /* as b_tensor_scale, with b_tensor_scale_columns          */
  const void *bias2;                   /* like bias; both are set, or neither                     */
  const float *alpha2_device;          /* scalar_mode DEVICE                                      */
  float alpha2;                        /* scalar_mode HOST                                        */
  float gate_limit, gate_alpha, gate_beta;
  int32_t reserved2[4];                /* 0                                                       */
} nvfp4_gemm_desc;

/* l and alpha are 1, everything else is 0. This includes alpha2: set it yourself in a gated product
 * with scalar_mode HOST. */
#ifdef __cplusplus
static inline nvfp4_gemm_desc nvfp4_gemm_desc_init() {
  nvfp4_gemm_desc desc = nvfp4_gemm_desc();
  desc.struct_size = sizeof desc;
  desc.l = 1;
  desc.alpha = 1;
  return desc;
}
#define NVFP4_GEMM_DESC_INIT nvfp4_gemm_desc_init()
#else
#define NVFP4_GEMM_DESC_INIT {.struct_size = sizeof(nvfp4_gemm_desc), .l = 1, .alpha = 1}
#endif

/* For the other structs: struct_size is set, everything else is 0. */
#ifdef __cplusplus
#define NVFP4_DEFINE_INIT_(type)       \
  static inline type type##_init() {   \
    type made = type();                \
    made.struct_size = sizeof made;    \
    return made;                       \
  }
#endif

/* ---- Run ------------------------------------------------------------------------------------- */

/* Checks *desc, then enqueues the product on `stream` (a CUstream; NULL is the legacy default
 * stream) of the context that is current on the calling thread. Returns before the work is done.
 *
 * Arguments are checked first, in the order of the struct's rules, so a bad argument is reported on
 * any machine. Then the driver, the context, the device and the images are checked. A kernel that
 * fails while it runs shows in the caller's next driver call.
 *
 * Allocates nothing and waits for nothing. The stream may be captured into a graph, in any mode. A
 * graph then has these kernel nodes, with programmatic edges between them:
 *   1 for the product
 *   0 to 2 for the workspace: 0 if there is none, or if only "/even", "/apart" or batch_invariant
 *     needs it; 2 on 10.x if the scales of both operands are linear; otherwise 1
 *   1 if a second kernel computes D (nvfp4_plan_info, d_apart)
 * With K = 0 it has one kernel node instead. But if D is row-major and fp16, alpha is on the host
 * and no other epilogue field (C, bias, ..) is set, it has memset nodes: one, or one for each batch
 * if there are gaps between batches. The code of a kernel is loaded at its first use; the thread's
 * capture mode is relaxed while that happens.                                          Since 0.1 */
NVFP4_API nvfp4_status nvfp4_gemm_run(const nvfp4_gemm_desc *desc, void *stream);

/* Opens the driver, and loads the code of all kernels for the current context's device. Call it
 * where a later call must not load code, for example before capture or before you measure. Returns
 * the errors of nvfp4_gemm_run for a missing driver, device, context or image.       Since 0.1 */
NVFP4_API nvfp4_status nvfp4_prepare(void);

/* Computes small products with every variant that serves the current context's device and compares
 * all elements with the bits of nvfp4_gemm_reference: a plain one (K = 1088, D in fp16, alpha by
 * value), a general one (K = 1072, D and C in bf16, bias, SiLU, scalars and factors on the device),
 * and one with D in NVFP4 (K = 256) if a variant has separate code for it. `workspace` is device
 * memory, aligned to 256 bytes, of at least nvfp4_selftest_bytes(compute capability) bytes, with
 * any content; the content is lost. This is the only function that waits for the stream, so it
 * refuses a stream that is being captured. WRONG_RESULT: nvfp4_last_error() names variant, product,
 * row and column of the first wrong element. OUT_OF_MEMORY: host memory for operands and results is
 * exhausted. Other errors are those of nvfp4_gemm_run.
 *                                                                                      Since 0.1 */
NVFP4_API nvfp4_status nvfp4_selftest(void *workspace, uint64_t workspace_bytes, void *stream);

/* Bytes of workspace that nvfp4_selftest needs on a device of that compute capability; 0 if no
 * kernel of this library serves it. Needs no driver.                                Since 0.1 */
NVFP4_API uint64_t nvfp4_selftest_bytes(int32_t compute_capability);

/* ---- Plans ----------------------------------------------------------------------------------- */

/* A problem that is checked, planned and encoded once and can be launched many times. A plan is
 * immutable and lives in host memory. It keeps the desc's values, addresses included, and never
 * reads the memory that they point to. */
typedef struct nvfp4_gemm_plan nvfp4_gemm_plan;

/* Makes *plan for devices of the current context's compute capability; the context itself is not
 * kept. Errors are those of nvfp4_gemm_run, and *plan is then NULL. OUT_OF_MEMORY: host memory is
 * exhausted.
 *                                                                                      Since 0.1 */
NVFP4_API nvfp4_status nvfp4_gemm_plan_create(const nvfp4_gemm_desc *desc, nvfp4_gemm_plan **plan);

/* Other addresses for one run; NULL keeps the plan's. The rules of nvfp4_gemm_desc for addresses,
 * overlap and workspace apply. workspace_bytes is the size of a workspace given here. If the
 * problem needs a workspace, runs that may overlap in time each need their own. struct_size is
 * sizeof(nvfp4_gemm_addresses); other sizes are accepted as in nvfp4_gemm_desc. Fields from `rows`
 * on apply to grouped plans only. */
typedef struct nvfp4_gemm_addresses {
  uint64_t struct_size;
  const void *a, *a_scales;
  const float *a_tensor_scale;
  const void *b, *b_scales;
  const float *b_tensor_scale;
  const void *c;
  void *d, *d_scales;
  const float *d_tensor_scale;
  const void *bias;
  const float *alpha_device;
  const float *beta_device;
  void *workspace;
  uint64_t workspace_bytes;

  float *d_amax, *d_row_amax;          /* only if the plan was made with one                      */
  const void *b2, *b2_scales;          /* these five: plans of gated products only                */
  const float *b2_tensor_scale;
  const void *bias2;
  const float *alpha2_device;
  const int32_t *rows, *scale_rows;
  const float *group_alpha;
  const float *group_alpha2, *group_d_tensor_scale;
} nvfp4_gemm_addresses;
#ifdef __cplusplus
NVFP4_DEFINE_INIT_(nvfp4_gemm_addresses)
#define NVFP4_GEMM_ADDRESSES_INIT nvfp4_gemm_addresses_init()
#else
#define NVFP4_GEMM_ADDRESSES_INIT {.struct_size = sizeof(nvfp4_gemm_addresses)}
#endif

/* Enqueues the plan's product on `stream` of the current context, as nvfp4_gemm_run does and with
 * the same bits. `addresses` may be NULL. If it replaces a or b, the host encodes a tensor map for
 * each, which takes time but no memory.
 * UNSUPPORTED_ARCH: the current device has another compute capability than the plan.
 *                                                                                   Since 0.1 */
NVFP4_API nvfp4_status nvfp4_gemm_plan_run(const nvfp4_gemm_plan *plan,
                                           const nvfp4_gemm_addresses *addresses, void *stream);

/* Frees the plan. Work that it has enqueued still completes. NULL is allowed.          Since 0.1 */
NVFP4_API void nvfp4_gemm_plan_destroy(nvfp4_gemm_plan *plan);

/* ---- Queries, answered without a driver ------------------------------------------------------ */

/* What nvfp4_gemm_run would return for this problem on a device of that compute capability, given
 * as 10 * major + minor (B200: 100). A driver knows both numbers as the device attributes
 * CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR. Needs no driver and no GPU. Addresses
 * are checked, unless all of them are NULL, but memory at them is never read.
 *                                                                                    Since 0.1 */
NVFP4_API nvfp4_status nvfp4_gemm_supported(const nvfp4_gemm_desc *desc,
                                            int32_t compute_capability);

/* Bytes of workspace that the problem needs on a device of that compute capability, exactly:
 *   quantized tokens on 10.x     for linear scales converted to 128x4
 *   quantized tokens on 9.0      for the decoded tokens, if A has UE8M0 scales and the tile more
 *                                than 4 tokens, or if the tile is large and a_packing NONE
 *   K partitions                 for their sums, in four cases: a variant "/even"; batch_invariant
 *                                with large tiles on 9.0; a 16-bit A on any GPU except 9.0; every
 *                                product on 12.x
 *   d_apart (nvfp4_plan_info)    in addition, for the sums of D in fp32
 * In other cases 0 bytes are needed. desc->workspace is ignored. Errors are those of
 * nvfp4_gemm_supported, and *bytes is then unchanged.                               Since 0.1 */
NVFP4_API nvfp4_status nvfp4_gemm_workspace_bytes(const nvfp4_gemm_desc *desc,
                                                  int32_t compute_capability, uint64_t *bytes);

/* Describes the plan in lines of text, for people: images in the order tried, variant, tile,
 * stages, grid, waves on a device of sm_count SMs, where such kernels have run (NVFP4_PROOF_..),
 * bytes moved, and what the planner compared. The text also has the least times that the memory
 * needs for these bytes and the tensor cores for the arithmetic, on the GPU that the planner
 * assumes (for 10.x a B200 with 7.68 TB/s and 1.5 GHz). The last line is a command line for the
 * same problem, without batch strides of scales. Programs call nvfp4_gemm_describe instead, because
 * the wording may change with any version. INVALID_VALUE: the buffer is too small. It then holds as
 * much as fits, with a NUL at the end, and the message says how many bytes are needed. 4096 are
 * plenty.                                                                             Since 0.1 */
NVFP4_API nvfp4_status nvfp4_gemm_explain(const nvfp4_gemm_desc *desc, int32_t compute_capability,
                                          int32_t sm_count, char *buffer, size_t bytes);

/* The proof of a plan: where its kernel, or kernels with the same instructions, have run.
 * ASSEMBLED  nowhere: the image was assembled for such a GPU, no more
 * EMULATOR   in our emulator only
 * PUBLISHED  in our emulator; public kernels run the same instructions on such a GPU
 * HARDWARE   this library's kernel has run on such a GPU
 * The planner takes kernels with PUBLISHED and HARDWARE. Others run only if desc->variant names
 * them. */
enum {
  NVFP4_PROOF_NONE = 0,                /* no kernel multiplies                                    */
  NVFP4_PROOF_ASSEMBLED = 1,
  NVFP4_PROOF_EMULATOR = 2,
  NVFP4_PROOF_PUBLISHED = 3,
  NVFP4_PROOF_HARDWARE = 4
};

/* How D leaves the kernel: element by element from its threads, or in boxes by TMA. */
enum { NVFP4_STORE_NONE = 0, NVFP4_STORE_THREADS = 1, NVFP4_STORE_TMA = 2 };

/* Which epilogue computes D from the sums: one specialised for this problem, or the general one,
 * which serves every problem and is slower (docs/performance.md). */
enum { NVFP4_EPILOGUE_NONE = 0, NVFP4_EPILOGUE_FAST = 1, NVFP4_EPILOGUE_GENERAL = 2 };

/* A plan, in numbers. If no kernel multiplies (M, N, K or L is 0), the pointers are NULL,
 * variant_index is -1 and everything else is 0. */
typedef struct nvfp4_plan_info {
  uint64_t struct_size;                /* set by the caller: sizeof(nvfp4_plan_info)              */
  const char *variant;                 /* its name, without the number of K partitions. This and
                                          the next are static strings                             */
  const char *image;                   /* the image that is tried first                           */
  uint64_t workspace_bytes;            /* nvfp4_gemm_workspace_bytes()                            */
  uint64_t a_scales_bytes;             /* the part for linear scales of A, which every call first
                                          converts to 128x4                                       */
  uint64_t b_scales_bytes;             /* the same for B                                          */
  double predicted_ns;                 /* time of the kernel on the GPU that the planner assumes
                                          (9.0: 132 SMs); 0: there is no prediction for this GPU  */
  double bytes;                        /* of A, B, C, D and scales, each read or written once     */
  double memory_ns;                    /* least time in which the GPU's memory moves these bytes  */
  double math_ns;                      /* least time of the tensor cores of sm_count SMs          */
  int32_t variant_index;               /* index for nvfp4_variant_name                            */
  int32_t tile_m, tile_n, tile_k;      /* rows and columns of D; elements of K in a stage         */
  int32_t tile_ctas;                   /* CTAs that compute a tile side by side: 2 for a pair     */
  int32_t tiles;                       /* in all batches                                          */
  int32_t k_partitions;                /* parts of K; each has its own CTA, or pair of CTAs       */
  int32_t whole_tiles;                 /* tiles not split along K, if others are split; else 0    */
  int32_t cluster_ctas;
  int32_t grid_ctas;                   /* CTAs launched on sm_count SMs                           */
  int32_t cta_threads, ctas_per_sm;
  int32_t stages, stage_bytes;         /* the ring that A, B and scales are loaded into           */
  int32_t shared_bytes;                /* shared memory of a CTA                                  */
  int32_t tmem_columns;                /* columns of tensor memory; 0 if the GPU has none         */
  int32_t proof;                       /* NVFP4_PROOF_..                                          */
  int32_t store;                       /* NVFP4_STORE_..                                          */
  int32_t epilogue;                    /* NVFP4_EPILOGUE_..                                       */
  int32_t d_apart;                     /* 1: the kernel stores sums in the workspace, and a second
                                          one computes D from them                                */
  int32_t reserved[4];                 /* 0                                                       */
} nvfp4_plan_info;
#ifdef __cplusplus
NVFP4_DEFINE_INIT_(nvfp4_plan_info)
#define NVFP4_PLAN_INFO_INIT nvfp4_plan_info_init()
#else
#define NVFP4_PLAN_INFO_INIT {.struct_size = sizeof(nvfp4_plan_info)}
#endif

/* Fills *info with the plan of the problem on a device of that compute capability with sm_count
 * SMs. Needs no driver. The variant, tiles, K partitions and the workspace depend on the problem
 * only, never on sm_count. Numbers may change with any version. INVALID_STRUCT: info->struct_size
 * is smaller than in 0.1 or above 4096. If it is larger than in this library, the bytes that the
 * library does not know become 0. INVALID_VALUE: sm_count is less than 1. Other errors are those of
 * nvfp4_gemm_supported, and *info is then unchanged.                                Since 0.1 */
NVFP4_API nvfp4_status nvfp4_gemm_describe(const nvfp4_gemm_desc *desc, int32_t compute_capability,
                                           int32_t sm_count, nvfp4_plan_info *info);

/* The name of the index-th variant for that compute capability, counted from 0, as desc->variant
 * takes it. Returns NULL if no variant has that index or no kernel serves the capability. The
 * string is static. Needs no driver. Names and their order may change with any version.
 *                                                                                   Since 0.1 */
NVFP4_API const char *nvfp4_variant_name(int32_t compute_capability, int32_t index);

/* ---- Grouped products ------------------------------------------------------------------------ */

/* One launch for several groups, such as the experts of a layer. Group g has its own rows of A and
 * D and its own B. Device memory says which rows belong to a group, and no function reads it on the
 * host. Supported are
 *   fp16 and bf16 tokens   on every GPU from 8.0 on
 *   4-bit tokens           (a_type NONE) on 9.0, 10.0 and 10.3
 *   gated products         on the same GPUs, if K > 0; each group has its own b2. On 9.0 they may
 *                          have batch_invariant = 1; a gated product that is not grouped may not.
 *   every type of D        on 9.0 the scales of D are LINEAR
 * nvfp4_grouped_workspace_bytes says whether a workspace is needed: on 10.x for LINEAR scales of A,
 * on 9.0 for NVFP4 tokens, which are decoded first. If rows_kind is COUNTS and rows_hint is not 0
 * (below), there is room for 4 * rows_hint * l decoded rows. More rows still work, but take longer.
 *
 * The rows of a group have the bits of a separate product of that group. To get the same bits from
 * nvfp4_gemm_run, set batch_invariant = 1 for 4-bit tokens on 10.x. Elsewhere set desc->variant to
 * the variant that nvfp4_grouped_describe returns, followed by "/1", so that K is not split. With
 * batch_invariant = 1 in the grouped product the bits of a row do not depend on rows_hint.
 *
 * rows_kind says what the array rows holds:
 * ENDS    Group g has the rows rows[g-1] to rows[g] - 1 of A and D; the first group begins at
 *         row 0.
 * COUNTS  Group g has rows[g] rows, which begin at row g * capacity of A and D. */
enum { NVFP4_ROWS_UNSET = 0, NVFP4_ROWS_ENDS = 1, NVFP4_ROWS_COUNTS = 2 };

/* struct_size is sizeof(nvfp4_grouped_desc), larger ones as in nvfp4_gemm_desc.
 *   gemm         The rules of one product, except: m is the number of rows of A and D, l the number
 *                of groups, b and b2 are [l][n][k], a_tensor_scale is [m] if a_tensor_scale_rows
 *                is 1, and batch strides of a, c and d are ignored. It is read during the call
 *                only.
 *   b_shared     0: each group has its own B, so with l above 1 b_batch_stride and
 *                b_scales_batch_stride_bytes are above 0. 1: all groups use one B (and one b2), and
 *                with l above 1 both strides are 0.
 *   rows         The values are in device memory and are not checked. With ENDS they must not
 *                decrease, and the last is at most m. With COUNTS they are 0 to capacity, capacity
 *                is at least 1, and capacity * l is at most m. The kernel clamps values that break
 *                these rules, so nothing outside D is written. Rows that belong to no group keep
 *                their bytes.
 *   group_alpha  replaces alpha, and group_alpha2 replaces alpha2; scalar_mode is HOST.
 *   group_d_tensor_scale
 *                replaces d_tensor_scale. Only for a D of type NVFP4.
 *   bias_group_stride
 *                At least n: group g adds the bias from element g * bias_group_stride on, of bias
 *                and of bias2 alike. 0: all groups add the same one. Only for a bias per column.
 *   empty        l, m or n = 0: success, nothing is enqueued.
 *   tiles        Let t and w be tile_m and tile_n of nvfp4_grouped_describe; in a gated product w
 *                is half of tile_n, except for 4-bit tokens on 10.x. With ENDS, tiles_m is
 *                e + (m-e)/t, where e = min(l, m); with COUNTS it is l * ceil(capacity/t). Then
 *                tiles_m * ceil(n/w) * k_partitions is at most 2^31-1.
 *   scales of A  LINEAR: as without groups. 128X4: each group begins a new tile of 128 rows. On 9.0
 *                they must be LINEAR.
 *   scales of D  They are laid out as the scales of an A with m rows and K = n, so that D can be
 *                the A of a next product with the same rows.
 *   scale_rows   Allowed only if A has 128X4 scales, or if A has no scales and D has 128X4 scales.
 *                The 128X4 scales of group g, of A and of D, begin at row scale_rows[g]. If
 *                scale_rows is NULL, they follow those of group g-1. The values are in device
 *                memory and are not checked.
 *   overlap      The rule of one product. rows, scale_rows, group_alpha and group_alpha2 count as
 *                inputs, too. A bias has (l-1) * bias_group_stride + n elements. The scales of A
 *                are taken to have the largest size that they can have, whatever rows and
 *                scale_rows hold: nvfp4_grouped_scale_bytes(m, l, k, ...) bytes, or with COUNTS and
 *                128X4 nvfp4_scale_bytes_for(capacity, k, ...) bytes for each group. */
typedef struct nvfp4_grouped_desc {
  uint64_t struct_size;
  const nvfp4_gemm_desc *gemm;
  const int32_t *rows;                 /* [l] on the device, 4-byte aligned                       */
  const int32_t *scale_rows;           /* [l] on the device, 128X4 only: the scale row, of A and D,
                                          at which a group begins, a multiple of 128. NULL: the
                                          rows of the groups before, each rounded up to 128       */
  const float *group_alpha;            /* [l] fp32 on the device; NULL: alpha of gemm             */
  const float *group_alpha2;           /* the same for alpha2                                     */
  const float *group_d_tensor_scale;   /* the same for d_tensor_scale                             */
  int64_t capacity;                    /* COUNTS: rows from one group to the next; ENDS: 0        */
  int32_t rows_kind;                   /* NVFP4_ROWS_ENDS or _COUNTS                              */
  int32_t rows_hint;                   /* typical rows of a group, for the planner; 0: unknown    */
  int32_t b_shared;                    /* 1: all groups use one B                                 */
  int32_t reserved[3];                 /* 0                                                       */
  int64_t bias_group_stride;           /* elements from a group's bias to the next; 0: one bias   */
} nvfp4_grouped_desc;
#ifdef __cplusplus
NVFP4_DEFINE_INIT_(nvfp4_grouped_desc)
#define NVFP4_GROUPED_DESC_INIT nvfp4_grouped_desc_init()
#else
#define NVFP4_GROUPED_DESC_INIT {.struct_size = sizeof(nvfp4_grouped_desc)}
#endif

/* Each works as the function of the same name for nvfp4_gemm_desc. nvfp4_gemm_plan_run runs a
 * grouped plan, and nvfp4_gemm_plan_destroy destroys it.
 *                                                                                    Since 0.1 */
NVFP4_API nvfp4_status nvfp4_grouped_run(const nvfp4_grouped_desc *desc, void *stream);
NVFP4_API nvfp4_status nvfp4_grouped_plan_create(const nvfp4_grouped_desc *desc,
                                                 nvfp4_gemm_plan **plan);
NVFP4_API nvfp4_status nvfp4_grouped_supported(const nvfp4_grouped_desc *desc,
                                               int32_t compute_capability);
NVFP4_API nvfp4_status nvfp4_grouped_workspace_bytes(const nvfp4_grouped_desc *desc,
                                                     int32_t compute_capability, uint64_t *bytes);
NVFP4_API nvfp4_status nvfp4_grouped_describe(const nvfp4_grouped_desc *desc,
                                              int32_t compute_capability, int32_t sm_count,
                                              nvfp4_plan_info *info);
NVFP4_API nvfp4_status nvfp4_grouped_explain(const nvfp4_grouped_desc *desc,
                                             int32_t compute_capability, int32_t sm_count,
                                             char *buffer, size_t bytes);
NVFP4_API nvfp4_status nvfp4_grouped_reference(const nvfp4_grouped_desc *desc);

/* The most bytes that the scales of `rows` rows can take, however the rows are divided among
 * `groups` groups: in 128X4 every group begins a tile. The format is an NVFP4_OPERAND_FORMAT.
 * Returns 0 in three cases: nvfp4_scale_bytes_for returns 0; groups is negative; groups is 0 and
 * rows is not 0.                                                                       Since 0.1 */
NVFP4_API size_t nvfp4_grouped_scale_bytes(int64_t rows, int64_t groups, int64_t k, int32_t layout,
                                           int32_t format);

/* ---- Reference ------------------------------------------------------------------------------- */

/* The same product on the CPU, single-threaded. Every pointer is a host pointer, also those of
 * scalars and tensor scales. acc is the exact sum, rounded once to fp32, to nearest even; the rest
 * of NUMERICS applies as written. So results equal the GPU's bit for bit if acc is exact, and lie
 * within the bound otherwise. Takes either scale layout, and any multiple of 16 up to 2^20 as K.
 * Addresses need only the alignment of their type, so several threads can each compute some rows.
 * Computes in integers: the thread's rounding mode does not matter. Allocates nothing.
 *                                                                                      Since 0.1 */
NVFP4_API nvfp4_status nvfp4_gemm_reference(const nvfp4_gemm_desc *desc);

/* ---- Scales and quantization, on the host ---------------------------------------------------- */

/* Bytes of the scales of a [rows, k] matrix, padding included. 0 if a size is negative, k is no
 * multiple of 16, the layout is unknown or the result exceeds 2^63-1.                  Since 0.1 */
NVFP4_API size_t nvfp4_scale_bytes(int64_t rows, int64_t k, int32_t layout);

/* The same for an NVFP4_OPERAND_FORMAT: k is a multiple of the elements that share a scale, 16 or
 * 32. Also 0 if the format is unknown.                                                 Since 0.1 */
NVFP4_API size_t nvfp4_scale_bytes_for(int64_t rows, int64_t k, int32_t layout, int32_t format);

/* Rewrites scales from one layout to another (or copies). src and dst must not overlap; padding of
 * dst becomes 0, padding of src is not read.                                        Since 0.1 */
NVFP4_API nvfp4_status nvfp4_scale_convert_host(const void *src, int32_t src_layout, void *dst,
                                                int32_t dst_layout, int64_t rows, int64_t k);

/* Quantizes x [rows, k], row-major fp32 with leading dimension x_ld, to codes (leading dimension
 * codes_ld in elements, even) and scales. t = tensor_scale (finite, > 0) is the factor that
 * dequantizes: x ~ code * scale * t. A usual choice is amax(|x|) / 2688. Per block of 16:
 *   s = e4m3(amax / 6 / t), code = e2m1(x / (s * t)). Each operation is fp32 and rounded to nearest
 *   even. Conversions saturate. If s is 0, all codes are +0. A NaN in a block makes its scale NaN
 *   (0x7F) and its codes +0; an infinity has scale 448 and code +-6.
 * k is a multiple of 16. Padding of scales is written as 0.                            Since 0.1 */
NVFP4_API nvfp4_status nvfp4_quantize_host(const float *x, int64_t x_ld, int64_t rows, int64_t k,
                                           float tensor_scale, void *codes, int64_t codes_ld,
                                           void *scales, int32_t scale_layout);

/* x = (code * scale) * tensor_scale; the inner product is exact, the outer one an fp32
 * multiplication.                                                                      Since 0.1 */
NVFP4_API nvfp4_status nvfp4_dequantize_host(const void *codes, int64_t codes_ld,
                                             const void *scales,
                                             int32_t scale_layout, int64_t rows, int64_t k,
                                             float tensor_scale, float *x, int64_t x_ld);

/* ---- Quantization on the device -------------------------------------------------------------- */

/* Where the tensor scale t comes from.
 * VALUE   t is tensor_scale.
 * DEVICE  t is *tensor_scale_device, read when the kernel runs. It must be positive and finite,
 *         which is not checked.
 * AMAX    nvfp4_quantize computes t = amax / 2688, where amax is the largest magnitude of all
 *         finite elements of x; t is 1 if amax is 0. It writes t to *tensor_scale_device, which
 *         nvfp4_gemm_desc takes as a_tensor_scale or b_tensor_scale. This needs a workspace and a
 *         second kernel that reads x.
 * The other modes have a t for each row, tensor_scale_device[rows], which nvfp4_gemm_desc takes as
 * a_tensor_scale with a_tensor_scale_rows:
 * ROW_AMAX       The kernel computes t for each row as in AMAX and writes it. It needs no second
 *                kernel.
 * ROWS           The kernel reads t of each row.
 * FROM_ROW_AMAX  The array holds a product's d_row_amax. The kernel reads it and takes
 *                t = amax / 2688 (1 if amax is 0). The array keeps amax, not t. So if the next
 *                product takes it as a_tensor_scale, divide that product's alpha by 2688. */
enum {
  NVFP4_TENSOR_SCALE_VALUE = 0,
  NVFP4_TENSOR_SCALE_DEVICE = 1,
  NVFP4_TENSOR_SCALE_AMAX = 2,
  NVFP4_TENSOR_SCALE_ROW_AMAX = 3,
  NVFP4_TENSOR_SCALE_ROWS = 4,
  NVFP4_TENSOR_SCALE_FROM_ROW_AMAX = 5
};

/* A matrix x [rows][k], row-major, and its quantized form, all in device memory.
 *   struct_size  sizeof(nvfp4_quantize_desc); larger ones as in nvfp4_gemm_desc.
 *   rows, k      0 .. 2^31-1; k a multiple of 16. Either 0: success, nothing is read or written.
 *   x_type       NVFP4_TYPE_F16, _BF16 or _F32. x is aligned to its type; x_ld >= k, in elements.
 *                Rows that start at multiples of 16 bytes are read faster.
 *   codes        codes_ld >= k, even, in elements. Rows at multiples of 8 bytes are written faster.
 *   scales       nvfp4_scale_bytes_for(rows, k, scale_layout, format) bytes.
 *   pdl          NVFP4_PDL_OFF or _ON, as in nvfp4_gemm_desc. With either, a following kernel with
 *                programmatic launch may start before this one has finished.
 *   overlap      x, codes, scales, the memory at tensor_scale_device and the workspace do not
 *                overlap.
 *   format       an NVFP4_OPERAND_FORMAT. K a multiple of the elements that share a scale.
 *   scale_rule   With NVFP4: DEFAULT or 4OVER6. With UE8M0 scales: DEFAULT, ROUND_UP or FLOOR.
 *                UE8M0 scales cover the range of fp32, so tensor_scale_mode is VALUE and
 *                tensor_scale 1 with them.
 *   packing      NONE, or SM90_TOKENS_1 with format NVFP4. With the latter codes has
 *                nvfp4_packed_bytes(rows, k, packing, format) bytes, aligned to 16, and all of them
 *                are written. codes_ld is 0 and scales NULL, scale_layout may be UNSET. GPUs except
 *                9.0 refuse this packing; the functions on the CPU always take it.
 * Padding keeps its bytes: only the codes and scales of the elements of x are written. */
typedef struct nvfp4_quantize_desc {
  uint64_t struct_size;
  int64_t rows, k;
  void *x;                             /* read by nvfp4_quantize, written by nvfp4_dequantize     */
  int64_t x_ld;
  void *codes;                         /* E2M1, two to a byte                                     */
  int64_t codes_ld;
  void *scales;                        /* of that format, scale_layout                            */
  float *tensor_scale_device;          /* for each mode but VALUE; AMAX and ROW_AMAX write it     */
  void *workspace;                     /* AMAX: of nvfp4_quantize_workspace_bytes() bytes         */
  uint64_t workspace_bytes;
  float tensor_scale;                  /* VALUE: finite, above 0                                  */
  int32_t x_type, scale_layout, tensor_scale_mode, pdl;
  int32_t format, scale_rule;
  int32_t packing;                     /* of codes: NVFP4_PACKING_..                              */
} nvfp4_quantize_desc;
#ifdef __cplusplus
NVFP4_DEFINE_INIT_(nvfp4_quantize_desc)
#define NVFP4_QUANTIZE_DESC_INIT nvfp4_quantize_desc_init()
#else
#define NVFP4_QUANTIZE_DESC_INIT {.struct_size = sizeof(nvfp4_quantize_desc)}
#endif

/* Bytes of workspace that nvfp4_quantize needs: 0 except for AMAX. Addresses are ignored. Needs no
 * driver.
 *                                                                                      Since 0.1 */
NVFP4_API nvfp4_status nvfp4_quantize_workspace_bytes(const nvfp4_quantize_desc *desc,
                                                      uint64_t *bytes);

/* Quantizes x on `stream` of the current context, to the bits of nvfp4_quantize_reference of the
 * same values. One kernel, two with AMAX. Allocates nothing, waits for nothing, may be captured.
 *                                                                                   Since 0.1 */
NVFP4_API nvfp4_status nvfp4_quantize(const nvfp4_quantize_desc *desc, void *stream);

/* x = (code * scale) * t: the inner product is exact, the outer one an fp32 multiplication, then
 * one rounding to x_type. tensor_scale_mode is VALUE, DEVICE, ROWS or FROM_ROW_AMAX. Since 0.1 */
NVFP4_API nvfp4_status nvfp4_dequantize(const nvfp4_quantize_desc *desc, void *stream);

/* nvfp4_quantize and nvfp4_dequantize on the CPU, single-threaded, with the same bits; every
 * pointer is a host pointer, also tensor_scale_device, and the workspace is ignored. Padding
 * of scales is written as 0. Allocates nothing. Takes every format. With UE8M0 scales a code is
 * x / scale, rounded once. A block with a NaN gets the scale 0xFF and codes 0. A block with an
 * infinity gets the scale 2^127. A block of zeros gets the byte 0x00 and codes 0.      Since 0.1 */
NVFP4_API nvfp4_status nvfp4_quantize_reference(const nvfp4_quantize_desc *desc);
NVFP4_API nvfp4_status nvfp4_dequantize_reference(const nvfp4_quantize_desc *desc);

/* nvfp4_scale_convert_host in device memory, on `stream`; padding of dst keeps its bytes.
 *                                                                                   Since 0.1 */
NVFP4_API nvfp4_status nvfp4_scale_convert(const void *src, int32_t src_layout, void *dst,
                                           int32_t dst_layout, int64_t rows, int64_t k,
                                           void *stream);

/* ---- Packed weights -------------------------------------------------------------------------- */

/* Bytes of a packed [rows, k] matrix, a multiple of 128: rows and k are rounded up to units. 0
 * in these cases: a size is negative; k is no multiple of the elements that share a scale; packing
 * is NONE or unknown; format is unknown, or the packing does not support it; the result exceeds
 * 2^63-1.                                                                              Since 0.1 */
NVFP4_API size_t nvfp4_packed_bytes(int64_t rows, int64_t k, int32_t packing, int32_t format);

/* Two forms of l matrices of weights [n][k]: codes and scales as in a checkpoint, and packed. Both
 * are in device memory, or in host memory for the functions ..._host. NVFP4_PACK_DESC_INIT sets
 * struct_size and l = 1.
 *   struct_size  sizeof(nvfp4_pack_desc); larger ones as in nvfp4_gemm_desc.
 *   n, k, l      0 .. 2^31-1; k a multiple of 16, of 32 for MXFP4. Any of them 0: success, nothing
 *                is read or written.
 *   rows         A call converts the rows first_row to first_row + rows - 1 of each matrix. If
 *                rows is 0, it converts all from first_row on. first_row is a multiple of a unit's
 *                rows. `rows` must be such a multiple, too, unless first_row + rows is n. codes and
 *                scales hold these rows alone: a matrix [rows][k] with its own scales. `packed` is
 *                the whole matrix.
 *   codes        codes_ld >= k, a multiple of 32, below 2^41.
 *   scales       nvfp4_scale_bytes_for(rows, k, scale_layout, format) bytes for each matrix. Bit 7
 *                of a UE4M3 scale is not kept.
 *   packed       nvfp4_packed_bytes(n, k, packing, format) bytes for each matrix.
 *   strides      Ignored if l = 1. Matrices do not overlap. codes_batch_stride is a multiple of 32,
 *                scales_batch_stride_bytes of 16, and packed_batch_stride_bytes is whole units.
 *   addresses    codes, scales and packed are aligned to 16 bytes. The functions ..._host need no
 *                alignment.
 *   overlap      codes, scales and packed do not overlap. `packed` may hold an earlier matrix,
 *                which is overwritten. */
typedef struct nvfp4_pack_desc {
  uint64_t struct_size;
  int64_t n, k, l;
  void *codes;                         /* [l][rows][k] E2M1: read by pack, written by unpack      */
  int64_t codes_ld, codes_batch_stride;
  void *scales;                        /* of that format, scale_layout                            */
  int64_t scales_batch_stride_bytes;
  void *packed;                        /* written by pack, read by unpack                         */
  int64_t packed_batch_stride_bytes;
  int64_t first_row, rows;
  int32_t packing;                     /* NVFP4_PACKING_SM90_1                                    */
  int32_t format, scale_layout;
  int32_t reserved[1];                 /* 0                                                       */
} nvfp4_pack_desc;
#ifdef __cplusplus
static inline nvfp4_pack_desc nvfp4_pack_desc_init() {
  nvfp4_pack_desc desc = nvfp4_pack_desc();
  desc.struct_size = sizeof desc;
  desc.l = 1;
  return desc;
}
#define NVFP4_PACK_DESC_INIT nvfp4_pack_desc_init()
#else
#define NVFP4_PACK_DESC_INIT {.struct_size = sizeof(nvfp4_pack_desc), .l = 1}
#endif

/* Writes the packed rows, and zeros for the elements beyond n and k in their units. One kernel on
 * `stream` of the current context. Allocates nothing, waits for nothing, may be captured.
 *                                                                                      Since 0.1 */
NVFP4_API nvfp4_status nvfp4_pack_weights(const nvfp4_pack_desc *desc, void *stream);

/* Restores the codes and scales of the rows, byte for byte. Padding of scales keeps its bytes. In
 * all else it works as nvfp4_pack_weights.                                             Since 0.1 */
NVFP4_API nvfp4_status nvfp4_unpack_weights(const nvfp4_pack_desc *desc, void *stream);

/* The same bytes on the CPU, single-threaded; every pointer is a host pointer. Padding of scales is
 * written as 0. Allocates nothing.                                                     Since 0.1 */
NVFP4_API nvfp4_status nvfp4_pack_weights_host(const nvfp4_pack_desc *desc);
NVFP4_API nvfp4_status nvfp4_unpack_weights_host(const nvfp4_pack_desc *desc);

/* ---- Fused quantizers ------------------------------------------------------------------------ */

/* One kernel computes z [rows][k] in fp32 and quantizes it as nvfp4_quantize quantizes x. Each
 * operation is rounded to nearest even (docs/numerics.md).
 * SILU_MUL  z = silu(x) * y: the gated halves of a feed-forward layer.
 * RMS_NORM  h = x. With a residual y, h = x + y, rounded to the type of x, and is written to y.
 *           Then z = (h * (1 / sqrt(sum(h^2) / k + epsilon))) * weight. The sum over a row consists
 *           of 256 partial sums, in one fixed order. */
enum { NVFP4_FUSED_UNSET = 0, NVFP4_FUSED_SILU_MUL = 1, NVFP4_FUSED_RMS_NORM = 2 };

/* Operands of a fused quantizer, all in device memory; in host memory for the function ..._host.
 *   struct_size  sizeof(nvfp4_fused_quantize_desc); larger ones as in nvfp4_gemm_desc.
 *   rows, k      0 .. 2^31-1; k a multiple of 16, of 32 for MXFP4. Either 0: success, nothing is
 *                read or written.
 *   type         The type of x, y and weight: NVFP4_TYPE_F16, _BF16 or _F32. Their addresses are
 *                aligned to its size. x_ld and y_ld >= k. Rows, and a weight, that start at
 *                multiples of 16 bytes are read faster.
 *   y            SILU_MUL: the factor, which is read. RMS_NORM: the residual, which is read and
 *                overwritten with h, or NULL.
 *   weight       RMS_NORM: k of them. SILU_MUL: NULL.
 *   epsilon      RMS_NORM: finite, above 0. SILU_MUL: 0.
 *   codes, scales, tensor_scale, tensor_scale_device, pdl, format, scale_rule, packing
 *                as in nvfp4_quantize_desc; tensor_scale_mode is VALUE, DEVICE or ROW_AMAX, and
 *                scale_rule is not 4OVER6.
 *   overlap      No array that is written (codes, scales, a residual, tensor scales of rows)
 *                overlaps any other array. */
typedef struct nvfp4_fused_quantize_desc {
  uint64_t struct_size;
  int64_t rows, k;
  const void *x;
  int64_t x_ld;
  void *y;                             /* SILU_MUL: read. RMS_NORM: read and overwritten          */
  int64_t y_ld;
  const void *weight;
  void *codes;                         /* E2M1, two to a byte                                     */
  int64_t codes_ld;
  void *scales;                        /* as format says, in scale_layout                         */
  float *tensor_scale_device;          /* DEVICE: read; ROW_AMAX: written                         */
  float tensor_scale;                  /* VALUE: finite, above 0                                  */
  float epsilon;
  int32_t operation, type, scale_layout, tensor_scale_mode, pdl;
  int32_t format, scale_rule;
  int32_t packing;                     /* of codes: NVFP4_PACKING_..                              */
} nvfp4_fused_quantize_desc;
#ifdef __cplusplus
NVFP4_DEFINE_INIT_(nvfp4_fused_quantize_desc)
#define NVFP4_FUSED_QUANTIZE_DESC_INIT nvfp4_fused_quantize_desc_init()
#else
#define NVFP4_FUSED_QUANTIZE_DESC_INIT {.struct_size = sizeof(nvfp4_fused_quantize_desc)}
#endif

/* One kernel on `stream` of the current context. Allocates nothing, waits for nothing, may be
 * captured. Writes the codes and scales of z, and the residual; does not write padding.
 *                                                                                   Since 0.1 */
NVFP4_API nvfp4_status nvfp4_fused_quantize(const nvfp4_fused_quantize_desc *desc, void *stream);

/* The same bits on the CPU, single-threaded; every pointer is a host pointer. Padding of scales is
 * written as 0. Allocates nothing. It computes with integers and is slow: it is meant for tests.
 *                                                                                      Since 0.1 */
NVFP4_API nvfp4_status nvfp4_fused_quantize_host(const nvfp4_fused_quantize_desc *desc);

#ifdef __cplusplus
#undef NVFP4_DEFINE_INIT_
}
#endif

#endif /* NVFP4_GEMM_H */
