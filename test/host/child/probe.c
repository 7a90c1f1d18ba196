/* SPDX-License-Identifier: MIT
 *
 * A small program that links the library and prints what it answers, one line per action: status
 * name, a colon, the sentence. Tests run it as a child process with a driver of their choice,
 * because a process opens one driver once.
 *
 *   probe ACTION...     run        one batch of 256 x 384 x 512
 *                       run-k0     the same with K = 0 and 3 batches
 *                       run-pdl1   run with NVFP4_PDL_ON; run-pdl2 with ON_STATIC_WEIGHTS
 *                       run-bf16   run with A in bf16
 *                       run-split  the same with two K partitions by name, without a workspace
 *                       run-pairs  run in tiles of two CTAs, four of them
 *                       run-wide   run with leading dimensions above 32 bits, D the longest
 *                       run-empty  the same with M = 0 and no pointers
 *                       fork-run   `run` in a forked child
 *                       threads    `run` from 32 threads at once; prints each status once
 *                       callback   sends log lines up to level 2 to stdout
 *                       callback-calls  sends lines up to level 3 to a callback that prints them,
 *                                  prepares, runs and makes a call that fails
 *                       prepare    nvfp4_prepare
 *                       plan       plan_create of `run`, kept for the actions below
 *                       plan-k0    the same with K = 0 and 3 batches; plan-empty with M = 0
 *                       plan-run   the plan with its own addresses
 *                       plan-d     the plan with another D; plan-all with five other addresses
 *                       plan-bad   the plan with addresses that break one rule each
 *                       grouped-bad   a plan of groups, and runs with addresses over others of it
 *                       plan-threads  plan-all from 32 threads at once; prints each status once
 *                       destroy    plan_destroy
 *                       allocations   allocations by the library during the actions so far
 *                       capture-run   `run` into a capture in global mode (a real driver)
 *                       churn      100,000 plans made, run and destroyed; prints by how many KiB
 *                                  the process has grown since the thousandth
 *                       refuse=N   the Nth allocation of the process from here on fails
 *                       refuse-from=N   the Nth and all later ones; 0: none
 *                       refused    how many were asked for since
 *                       current    makes the primary context of device 0 current (a real driver)
 */
#define _GNU_SOURCE /* dladdr */
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nvfp4_gemm.h"

/* Seconds, in each process: a hang is a failed test, not a hung suite. */
enum { TIME_LIMIT = 60 };

static nvfp4_gemm_desc problem(void) {
  nvfp4_gemm_desc g = NVFP4_GEMM_DESC_INIT;
  g.m = 256, g.n = 384, g.k = 512, g.l = 1;
  g.a = (void*)0x100000, g.a_ld = 512, g.a_scales = (void*)0x200000;
  g.b = (void*)0x300000, g.b_ld = 544, g.b_scales = (void*)0x400000;
  g.a_scale_layout = g.b_scale_layout = NVFP4_SCALE_LAYOUT_128X4;
  g.d = (void*)0x500000, g.d_ld = 385, g.d_type = NVFP4_TYPE_F16;
  g.alpha = 1.5f;
  return g;
}

static void print_answer(nvfp4_status status) {
  const char* sentence = status == NVFP4_SUCCESS ? "" : nvfp4_last_error();
  printf("%s: %s\n", nvfp4_status_name(status), sentence);
  fflush(stdout);
}

static void run(int64_t m, int64_t k, int64_t l) {
  nvfp4_gemm_desc g = problem();
  g.m = m, g.k = k, g.l = l;
  g.d_batch_stride = 1000000;
  if (k == 0) g.a = g.b = g.a_scales = g.b_scales = NULL;
  if (m == 0) g.d = NULL;
  print_answer(nvfp4_gemm_run(&g, (void*)0x57));
}

static void quantize_packed(void) {
  nvfp4_quantize_desc q = NVFP4_QUANTIZE_DESC_INIT;
  q.rows = 16, q.k = q.x_ld = 256, q.x_type = NVFP4_TYPE_BF16;
  q.x = (void*)0x100000, q.codes = (void*)0x200000;
  q.packing = NVFP4_PACKING_SM90_TOKENS_1, q.tensor_scale = 1;
  print_answer(nvfp4_quantize(&q, NULL));
}

static void run_wide(void) {
  nvfp4_gemm_desc g = problem();
  g.a_ld = ((int64_t)1 << 34) + 32, g.b_ld = ((int64_t)1 << 33) + 32;
  g.d_ld = ((int64_t)1 << 32) + 1;
  /* far enough apart that none overlaps another */
  g.a = (void*)((uintptr_t)1 << 44), g.b = (void*)((uintptr_t)2 << 44);
  g.d = (void*)((uintptr_t)3 << 44);
  print_answer(nvfp4_gemm_run(&g, (void*)0x57));
}

static void run_pdl(int32_t pdl) {
  nvfp4_gemm_desc g = problem();
  g.pdl = pdl;
  print_answer(nvfp4_gemm_run(&g, (void*)0x57));
}

static void run_pairs(void) {
  nvfp4_gemm_desc g = problem();
  g.variant = "sm100_256x128x256";
  print_answer(nvfp4_gemm_run(&g, (void*)0x57));
}

static void run_bf16(const char* variant) {
  nvfp4_gemm_desc g = problem();
  g.a_type = NVFP4_TYPE_BF16, g.a_scales = NULL;
  g.variant = variant;
  print_answer(nvfp4_gemm_run(&g, (void*)0x57));
}

static void run_alpha0(void) {
  nvfp4_gemm_desc g = problem();
  nvfp4_gemm_plan* of_g = NULL;
  g.alpha = 0;
  print_answer(nvfp4_gemm_run(&g, (void*)0x57));
  print_answer(nvfp4_gemm_plan_create(&g, &of_g));
  print_answer(nvfp4_gemm_plan_run(of_g, NULL, (void*)0x57));
  nvfp4_gemm_plan_destroy(of_g);
}

/* One array of a run over another of the plan, which the run does not replace. */
static void grouped_bad_addresses(void) {
  nvfp4_gemm_desc g = problem();
  nvfp4_grouped_desc grouped = NVFP4_GROUPED_DESC_INIT;
  nvfp4_gemm_addresses x = NVFP4_GEMM_ADDRESSES_INIT;
  nvfp4_gemm_plan* of_groups = NULL;
  g.l = 2, g.b_batch_stride = 384 * 544, g.b_scales_batch_stride_bytes = 384 * 32;
  g.a_scale_layout = NVFP4_SCALE_LAYOUT_LINEAR;
  g.workspace = (void*)0x600000, g.workspace_bytes = 1 << 20;
  grouped.gemm = &g, grouped.rows_kind = NVFP4_ROWS_ENDS;
  grouped.rows = (void*)0x700000, grouped.group_alpha = (void*)0x800000;
  print_answer(nvfp4_grouped_plan_create(&grouped, &of_groups));
  x.d = (void*)0x700000;
  print_answer(nvfp4_gemm_plan_run(of_groups, &x, (void*)0x58));
  x.d = (void*)0x7e0000;
  x.rows = (void*)0x900000;
  print_answer(nvfp4_gemm_plan_run(of_groups, &x, (void*)0x58));
  x.d = NULL, x.rows = (void*)0x600000;
  print_answer(nvfp4_gemm_plan_run(of_groups, &x, (void*)0x58));
  x.rows = NULL, x.group_alpha = (void*)0x600010;
  print_answer(nvfp4_gemm_plan_run(of_groups, &x, (void*)0x58));
  x.group_alpha = (void*)0x600002;
  print_answer(nvfp4_gemm_plan_run(of_groups, &x, (void*)0x58));
  x.group_alpha = NULL, x.workspace = (void*)0x500000, x.workspace_bytes = 1 << 20;
  print_answer(nvfp4_gemm_plan_run(of_groups, &x, (void*)0x58));
  print_answer(nvfp4_gemm_plan_run(of_groups, NULL, (void*)0x58));
  nvfp4_gemm_plan_destroy(of_groups);
}

static void fork_and_run(void) {
  pid_t child = fork();
  if (child == 0) {
    alarm(TIME_LIMIT);
    run(256, 512, 1);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

enum { THREADS = 32 };
static pthread_barrier_t gate;

static void* run_in_thread(void* status) {
  nvfp4_gemm_desc g = problem();
  pthread_barrier_wait(&gate);
  *(nvfp4_status*)status = nvfp4_gemm_run(&g, NULL);
  return NULL;
}

static void run_in_threads(void* (*body)(void*)) {
  pthread_t threads[THREADS];
  nvfp4_status statuses[THREADS];
  pthread_barrier_init(&gate, NULL, THREADS);
  for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, body, &statuses[i]);
  for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  for (int i = 0; i < THREADS; ++i) {
    int seen = 0;
    for (int j = 0; j < i; ++j) seen |= statuses[j] == statuses[i];
    if (!seen) printf("threads %s\n", nvfp4_status_name(statuses[i]));
  }
}

/* The driver's own functions by hand: no CUDA header is needed to use the library. */
static void make_context_current(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  int (*init)(unsigned), (*retain)(void**, int), (*set)(void*);
  void* context = NULL;
  if (driver == NULL) {
    printf("current: no driver\n");
    return;
  }
  *(void**)&init = dlsym(driver, "cuInit");
  *(void**)&retain = dlsym(driver, "cuDevicePrimaryCtxRetain");
  *(void**)&set = dlsym(driver, "cuCtxSetCurrent");
  const int failed = init(0) || retain(&context, 0) || set(context);
  printf("current: %s\n", failed ? "failed" : "yes");
}

static void capture_and_run(void) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  int (*create)(void**, unsigned), (*begin)(void*, int), (*end)(void*, void**);
  void *stream = NULL, *graph = NULL;
  nvfp4_gemm_desc g = problem();
  *(void**)&create = dlsym(driver, "cuStreamCreate");
  *(void**)&begin = dlsym(driver, "cuStreamBeginCapture_v2");
  *(void**)&end = dlsym(driver, "cuStreamEndCapture");
  printf("begin %d\n", create(&stream, 1) || begin(stream, 0));
  print_answer(nvfp4_gemm_run(&g, stream));
  printf("end %d\n", end(stream, &graph));
}

static void print_line(void* user, int32_t level, const char* line) {
  printf("%s %d: %s\n", (const char*)user, (int)level, line);
}

static void call_for_line(void* user, int32_t level, const char* line) {
  nvfp4_gemm_desc g = problem();
  (void)user;
  printf("line %d: %s\n", (int)level, line);
  printf("inside %s\n", nvfp4_status_name(nvfp4_prepare()));
  printf("inside %s\n", nvfp4_status_name(nvfp4_gemm_run(&g, (void*)0x59)));
  printf("inside %s\n", nvfp4_status_name(nvfp4_gemm_run(NULL, NULL)));
}

/* ---- plans ---- */

static nvfp4_gemm_plan* plan;

static void create(int64_t m, int64_t k, int64_t l) {
  nvfp4_gemm_desc g = problem();
  char name[] = "sm100_128x128x256";
  g.m = m, g.k = k, g.l = l;
  g.d_batch_stride = 1000000;
  g.variant = name;
  if (k == 0) g.a = g.b = g.a_scales = g.b_scales = NULL;
  if (m == 0) g.d = NULL;
  print_answer(nvfp4_gemm_plan_create(&g, &plan));
  memset(name, 'x', sizeof name - 1); /* the plan must not need the caller's string */
}

static nvfp4_gemm_addresses other_addresses(void) {
  nvfp4_gemm_addresses x = {.struct_size = sizeof x};
  x.a = (void*)0x1100000, x.a_scales = (void*)0x1200000;
  x.b = (void*)0x1300000, x.b_scales = (void*)0x1400000;
  x.d = (void*)0x1500000;
  return x;
}

static void plan_run(const nvfp4_gemm_addresses* addresses) {
  print_answer(nvfp4_gemm_plan_run(plan, addresses, (void*)0x58));
}

static void plan_other_d(void) {
  nvfp4_gemm_addresses x = {.struct_size = sizeof x, .d = (void*)0x2500000};
  plan_run(&x);
}

static void plan_other_addresses(void) {
  nvfp4_gemm_addresses x = other_addresses();
  plan_run(&x);
}

static void plan_bad_addresses(void) {
  nvfp4_gemm_addresses x = other_addresses();
  x.a = (void*)0x1100008;
  plan_run(&x);
  x = other_addresses(), x.b_scales = (void*)0x1400001;
  plan_run(&x);
  x = other_addresses(), x.d = (void*)0x1300010;
  plan_run(&x);
  x = other_addresses(), x.d = (void*)~(uintptr_t)15;
  plan_run(&x);
  x = other_addresses(), x.struct_size = offsetof(nvfp4_gemm_addresses, d_amax) - 1;
  plan_run(&x);
}

static void fork_and_run_plan(void) {
  pid_t child = fork();
  if (child == 0) {
    alarm(TIME_LIMIT);
    plan_run(NULL);
    _exit(0);
  }
  waitpid(child, NULL, 0);
}

static void* plan_run_in_thread(void* status) {
  nvfp4_gemm_addresses x = other_addresses();
  pthread_barrier_wait(&gate);
  *(nvfp4_status*)status = nvfp4_gemm_plan_run(plan, &x, NULL);
  return NULL;
}

static long resident_kib(void) {
  long pages = 0;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%*d %ld", &pages) != 1) exit(1);
  fclose(file);
  return pages * sysconf(_SC_PAGESIZE) / 1024;
}

static void churn(void) {
  nvfp4_gemm_desc g = problem();
  nvfp4_gemm_addresses x = other_addresses();
  long before = 0;
  for (int i = 0; i < 100000; ++i) {
    nvfp4_gemm_plan* made = NULL;
    if (i == 1000) before = resident_kib();
    if (nvfp4_gemm_plan_create(&g, &made) != NVFP4_SUCCESS ||
        nvfp4_gemm_plan_run(made, &x, NULL) != NVFP4_SUCCESS) {
      printf("churn: %s\n", nvfp4_last_error());
      exit(1);
    }
    nvfp4_gemm_plan_destroy(made);
  }
  printf("grown by %ld KiB\n", resident_kib() - before);
}

/* ---- allocations: this program's malloc stands in front of the C library's ---- */

extern void* __libc_malloc(size_t bytes);
extern void* __libc_calloc(size_t count, size_t bytes);
extern void* __libc_realloc(void* old, size_t bytes);
extern void* __libc_memalign(size_t alignment, size_t bytes);
static int allocations;
static int are_counted; /* asking whose each is would take most of the process's time */

/* Everybody's, the loader's for dlopen included. */
static int asked_for, first_refused, last_refused;

static int refuse(void) {
  if (first_refused == 0) return 0;
  const int number = ++asked_for;
  return number >= first_refused && number <= last_refused;
}

static void refuse_allocations(int first, int last) {
  asked_for = 0, first_refused = first, last_refused = last;
}

static void count_if_by_library(const void* caller) {
  Dl_info info;
  if (are_counted && dladdr(caller, &info) != 0 && strstr(info.dli_fname, "libnvfp4gemm") != NULL) {
    __atomic_fetch_add(&allocations, 1, __ATOMIC_RELAXED);
  }
}

void* malloc(size_t bytes) {
  count_if_by_library(__builtin_return_address(0));
  return refuse() ? NULL : __libc_malloc(bytes);
}

void* calloc(size_t count, size_t bytes) { return refuse() ? NULL : __libc_calloc(count, bytes); }
void* realloc(void* old, size_t bytes) { return refuse() ? NULL : __libc_realloc(old, bytes); }

int posix_memalign(void** memory, size_t alignment, size_t bytes) {
  count_if_by_library(__builtin_return_address(0));
  if (refuse()) return 12;
  *memory = __libc_memalign(alignment, bytes);
  return *memory == NULL ? 12 : 0;
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IONBF, 0); /* no buffer, no allocation */
  for (int i = 1; i < argc; ++i) are_counted |= strcmp(argv[i], "allocations") == 0;
  for (int i = 1; i < argc; ++i) {
    if (strcmp(argv[i], "callback") == 0) {
      print_answer(nvfp4_set_log_callback(print_line, "callback", 2));
    } else if (strcmp(argv[i], "callback-calls") == 0) {
      alarm(TIME_LIMIT);
      print_answer(nvfp4_set_log_callback(call_for_line, NULL, 3));
    } else if (strcmp(argv[i], "prepare") == 0) {
      print_answer(nvfp4_prepare());
    } else if (strcmp(argv[i], "plan") == 0) {
      create(256, 512, 1);
    } else if (strcmp(argv[i], "plan-k0") == 0) {
      create(256, 0, 3);
    } else if (strcmp(argv[i], "plan-empty") == 0) {
      create(0, 512, 1);
    } else if (strcmp(argv[i], "plan-run") == 0) {
      plan_run(NULL);
    } else if (strcmp(argv[i], "plan-d") == 0) {
      plan_other_d();
    } else if (strcmp(argv[i], "plan-all") == 0) {
      plan_other_addresses();
    } else if (strcmp(argv[i], "fork-plan-run") == 0) {
      fork_and_run_plan();
    } else if (strcmp(argv[i], "plan-bad") == 0) {
      plan_bad_addresses();
    } else if (strcmp(argv[i], "plan-threads") == 0) {
      run_in_threads(plan_run_in_thread);
    } else if (strcmp(argv[i], "destroy") == 0) {
      nvfp4_gemm_plan_destroy(plan);
      plan = NULL;
    } else if (strcmp(argv[i], "allocations") == 0) {
      printf("allocations %d\n", allocations);
      fflush(stdout);
    } else if (strcmp(argv[i], "run") == 0) {
      run(256, 512, 1);
    } else if (strcmp(argv[i], "run-alpha0") == 0) {
      run_alpha0();
    } else if (strcmp(argv[i], "grouped-bad") == 0) {
      grouped_bad_addresses();
    } else if (strcmp(argv[i], "run-pdl1") == 0) {
      run_pdl(NVFP4_PDL_ON);
    } else if (strcmp(argv[i], "run-pdl2") == 0) {
      run_pdl(NVFP4_PDL_ON_STATIC_WEIGHTS);
    } else if (strcmp(argv[i], "run-bf16") == 0) {
      run_bf16(NULL);
    } else if (strcmp(argv[i], "run-split") == 0) {
      run_bf16("sm80_bf16_64x8w4x128/2");
    } else if (strcmp(argv[i], "run-pairs") == 0) {
      run_pairs();
    } else if (strcmp(argv[i], "run-wide") == 0) {
      run_wide();
    } else if (strcmp(argv[i], "quantize-packed") == 0) {
      quantize_packed();
    } else if (strcmp(argv[i], "run-k0") == 0) {
      run(256, 0, 3);
    } else if (strcmp(argv[i], "run-empty") == 0) {
      run(0, 512, 1);
    } else if (strcmp(argv[i], "fork-run") == 0) {
      fork_and_run();
    } else if (strcmp(argv[i], "threads") == 0) {
      run_in_threads(run_in_thread);
    } else if (strncmp(argv[i], "refuse=", 7) == 0) {
      const int n = atoi(argv[i] + 7);
      refuse_allocations(n, n);
    } else if (strncmp(argv[i], "refuse-from=", 12) == 0) {
      refuse_allocations(atoi(argv[i] + 12), 1 << 30);
    } else if (strcmp(argv[i], "churn") == 0) {
      churn();
    } else if (strcmp(argv[i], "refused") == 0) {
      printf("asked %d\n", asked_for);
    } else if (strcmp(argv[i], "capture-run") == 0) {
      capture_and_run();
    } else if (strcmp(argv[i], "current") == 0) {
      make_context_current();
    } else {
      fprintf(stderr, "probe: unknown action %s\n", argv[i]);
      return 2;
    }
  }
  return 0;
}
