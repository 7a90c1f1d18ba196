/* SPDX-License-Identifier: MIT */
/* What the emulator's libcuda.so.1 exports beside the CUDA driver API: settings, counters, a record
 * of calls, planned failures, a ledger of live objects, and what a descriptor says. Tests find
 * these with dlsym; where dlsym finds nothing, the driver is a real one.
 *
 * All functions may be called from any thread, before and after cuInit, and need no context. Those
 * that return int answer 0, or -1 when a name or value is unknown (and change nothing then).
 */
#ifndef NVFP4EMU_H
#define NVFP4EMU_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* One counter of the last launch that ran to its end: a name of machine/counters.def ("mmas",
 * "tma_bytes", "barrier_waits", ...). A launch that faulted leaves the counters as they were. */
int nvfp4emu_counters(const char* name, uint64_t* value);

/* The counters one by one: name and meaning of number `index`, 0 first; -1 after the last. */
int nvfp4emu_counter_name(unsigned index, const char** name, const char** meaning);

/* Changes a setting for the launches to come: a row of settings.def by its environment name,
 * "EMU_SEED" with "7" for example. Otherwise settings are read from the environment once. -1: no
 * such setting, not a value of it, or fixed for the process. */
int nvfp4emu_set(const char* name, const char* value);

/* The reports of what the ordering checks found in the last launch, errors and formal findings;
 * empty text = nothing. The counters "hazards" and "formal_hazards" say how many there were.
 * `text`, `bytes` and the result are as for nvfp4emu_calls below. */
size_t nvfp4emu_findings(char* text, size_t bytes);

/* The number of findings of the last launch that broke `rule`. That is the "rule" of an object in
 * NVFP4EMU_REPORT's file: a name of order/reasons.def ("reused_columns", "tensor_fence", ...), a
 * name of machine/rules.def ("late_wait", "early_register", ...), or a kind of misuse
 * ("barrier_misuse", "tensor_memory_misuse", ...). -1: no rule has this name. */
int nvfp4emu_findings_of(const char* rule, uint64_t* count);

/* From now on each report goes to `reader`, as the JSON object that NVFP4EMU_REPORT's file would
 * have on a line ("class", "rule", "lines", "text"), instead of to stderr and that file. NULL:
 * reports go to both again. The text lives until `reader` returns. It is called during driver
 * calls, from whichever thread finds something, and must not call the driver. */
void nvfp4emu_report_to(void (*reader)(const char* object));

/* The base names of the driver calls made since the start or the last reset ("cuMemAlloc" for
 * cuMemAlloc_v2), one per line, in order, all threads together. Writes at most `bytes` bytes,
 * always NUL-terminated unless `bytes` is 0; returns the bytes needed with the NUL. Calls that
 * failed by plan (nvfp4emu_fail) are listed, too. */
size_t nvfp4emu_calls(char* text, size_t bytes);
void nvfp4emu_reset_calls(void);

/* Plans a failure: call number `nth` from now on (1 = the next) of the entry point with that base
 * name does nothing and returns `status`; later calls work again. An asynchronous error (700, 702,
 * 710, 714 to 719, 721) also becomes the current context's sticky error, as if an earlier launch
 * had failed. There is one plan at a time; nth = 0 withdraws it. nvfp4emu_fail_pending: 1 while the
 * planned call has not come. */
int nvfp4emu_fail(const char* entry, uint64_t nth, int status);
int nvfp4emu_fail_pending(void);

/* What is alive. All zero at the end of a program that cleans up. */
struct nvfp4emu_counts {
  uint64_t allocations, allocated_bytes; /* device memory, module variables included */
  uint64_t host_allocations;             /* cuMemHostAlloc, cuMemAllocHost */
  uint64_t modules;                      /* loaded by the caller, not by way of a library */
  uint64_t libraries;
  uint64_t streams, events;
  uint64_t contexts; /* created ones and active primary ones */
  uint64_t graphs, graph_instances;
};
void nvfp4emu_ledger(struct nvfp4emu_counts* counts);

/* The 64-bit shared-memory descriptor of a K-major operand of tcgen05.mma, or of the source of
 * tcgen05.cp (PTX ISA table 40), as the emulator reads it for an instruction that takes `rows` rows
 * of `chunks` 16-byte pieces. -1: it would be refused, and `text` gets the sentence that names each
 * wrong field, cut to `bytes` with its NUL. */
struct nvfp4emu_smem_descriptor {
  uint32_t address;      /* in the CTA's shared memory */
  uint32_t lead, stride; /* bytes */
  uint32_t swizzle;      /* bytes of a row of the pattern: 32, 64, 128; 0 = none */
};
int nvfp4emu_read_smem_descriptor(uint64_t bits, uint32_t rows, uint32_t chunks,
                                  struct nvfp4emu_smem_descriptor* descriptor, char* text,
                                  size_t bytes);

/* The same for the 32-bit instruction descriptor of tcgen05.mma (PTX ISA tables 42 to 44). `kind`
 * is "mxf4nvf4", "mxf4", "mxf8f6f4", "f8f6f4", "f16", "tf32" or "i8", `block` the elements of K per
 * scale (16, 32), which only the first three have; `pair` says .cta_group::2. */
struct nvfp4emu_instruction_descriptor {
  uint32_t m, n;
  const char *a, *b;     /* types of the operands: "e2m1" */
  const char *d, *scale; /* of the accumulator: "f32"; of the scales: "ue4m3" */
  int negate_a, negate_b;
  int transpose_a, transpose_b; /* operands that are not K-major */
  uint32_t scale_a_id, scale_b_id;
};
int nvfp4emu_read_instruction_descriptor(uint32_t bits, const char* kind, uint32_t block, int pair,
                                         struct nvfp4emu_instruction_descriptor* descriptor,
                                         char* text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
