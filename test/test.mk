# SPDX-License-Identifier: MIT
# The suite. test/run.py starts the programs listed here and those of the emulator, by the lines of
# test/jobs.txt, and adds up their results.
#   nvfp4_test     the library as a user sees it, on whatever driver the loader finds
#   test_host      the library's inner parts, without a driver
#   test_regression  bugs of other projects, each under the name of its public thread

ALONE += test/host/quotients.cc
GEMM_TEST_OBJ := $(call units,$(sort $(wildcard test/gemm/*.cc)))
HOST_TEST_OBJ := $(call units,$(sort $(wildcard test/host/*.cc)))
REGRESSION_OBJ := $(call units,$(sort $(wildcard test/regression/*.cc))) \
                  $(B)/obj/test/host/child.o
ALL_TEST_OBJ  := $(B)/obj/test/random/main.o $(GEMM_TEST_OBJ) $(REGRESSION_OBJ) \
                 $(HOST_TEST_OBJ) $(SUPPORT_OBJ)

define compile_test
@mkdir -p $(@D)
$(call say,CXX)$(CXX) $(TEST_FLAGS) $(BEFORE) $(DEPS) -c $< -o $@
endef
$(B)/obj/test/%.o: test/%.cc
	$(compile_test)
$(B)/obj/test/%.o: $(B)/obj/test/%.cc
	$(compile_test)
CATCH_TEST_OBJ := $(GEMM_TEST_OBJ) $(REGRESSION_OBJ) $(HOST_TEST_OBJ)
$(CATCH_TEST_OBJ): private OPTIMIZE := -O0
# Loops of minutes.
$(B)/obj/test/host/quotients.o: private OPTIMIZE := -O2
$(CATCH_TEST_OBJ): private BEFORE = $(AFTER_CATCH)
$(CATCH_TEST_OBJ): $(TEST_GCH)
# What has no Catch2 in it.
PLAIN_TEST_OBJ := $(addprefix $(B)/obj/test/,random/main.o fuzz/api.o fuzz/plan.o fuzz/npy.o)
$(PLAIN_TEST_OBJ): private BEFORE = $(PROGRAM_BEFORE)
$(PLAIN_TEST_OBJ): $(PROGRAM_GCH)

# The kernels as no one ships them, with the entries alone that test/gemm/debug.cc and apart.cc
# launch. With debug information every wrapper is a function that is called; the emulator reads
# both.
PTX_debug      := -G
PTX_lineinfo   := -O3 -lineinfo
PTX_clocks     := -O3 -DNVFP4_CLOCKS
PTX_apart      := -O3 -DNVFP4_MMA_BEFORE_CP=0
SM100_debug    := 128x64_plain 128x128_plain
SM100_lineinfo := $(SM100_debug)
SM100_clocks   := $(SM100_debug)
SM100_apart    := 256x256_plain
SM90_debug     := 128x64 128x128 128x256
SM90_clocks    := 128x64 128x128
DEBUG_PTX := $(addprefix $(B)/test/,gemm_sm100.debug.ptx gemm_sm100.lineinfo.ptx \
               gemm_sm90.debug.ptx gemm_sm100.clocks.ptx gemm_sm90.clocks.ptx \
               gemm_sm100.apart.ptx)
to_debug_ptx = $(call say,NVCC)$(NVCC) -std=c++17 -I. $(PTX_$*) $(call only,,$1) $(NVCC_DEPS) \
  -fmad=false -arch=$2 -ptx $< -o $@
$(B)/test/gemm_sm100.%.ptx: kernel/sm100/gemm.cu
	@mkdir -p $(@D)
	$(call to_debug_ptx,$(SM100_$*),compute_100f)
$(B)/test/gemm_sm90.%.ptx: kernel/sm90/gemm.cu
	@mkdir -p $(@D)
	$(call to_debug_ptx,$(SM90_$*),compute_90a)
-include $(DEBUG_PTX:=.d)

# The library does not have these images yet, so what came without them has no rule for them either.
ifneq ($(KERNELS),prebuilt)
TEST_SM80_PTX := $(SM80_PTX) $(SM80_90_PTX)
endif

$(B)/nvfp4_test: $(GEMM_TEST_OBJ) $(TEST_MAIN) $(SUPPORT_OBJ) $(B)/obj/bench/tensor_rate.o \
                  $(LIB) | $(DEBUG_PTX) $(TEST_SM80_PTX)
	$(call say,LINK)$(CXX) -o $@ $(filter %.o,$^) $(USE_LIBRARY) $(CATCH_LIBS) -ldl -pthread

$(B)/test_host: $(HOST_TEST_OBJ) $(TEST_MAIN) $(SUPPORT_OBJ) $(HOST_OBJ) $(B)/obj/bench/csv.o \
                $(addprefix $(B)/obj/tools/nvfp4/,chooser.o described.o every.o gpus.o inputs.o \
                  npy.o options.o quantized_files.o table.o)
	$(call say,LINK)$(CXX) -o $@ $(filter %.o,$^) $(CATCH_LIBS) -lm -ldl -pthread

$(B)/test_regression: $(REGRESSION_OBJ) $(TEST_MAIN) $(SUPPORT_OBJ) $(LIB) | $(B)/nvfp4
	$(call say,LINK)$(CXX) -o $@ $(filter %.o,$^) $(USE_LIBRARY) $(CATCH_LIBS) -ldl -pthread

# The library with another row of 9.0 in arch.def. Other constants, no hook: what ships knows
# nothing of it.
#   few_sms     as plans would be for a Hopper of 16 SMs: 18 tiles are more than it has, which takes
#               134 of an H200's
#   compute_80  without the mma.sync image for 9.0: a Hopper then runs the one of all other GPUs
PLANNED_SRC := $(sort $(wildcard host/plan/*.cc host/family/*.cc))
ROW_few_sms    := s/^ARCH(90, sm90, sm80, of_mechanism, 132,/ARCH(90, sm90, sm80, of_mechanism, 16,/
ROW_compute_80 := s/kImage_mma_sm_90a, kImage_mma_compute_90a)/kImage_mma_compute_80)/
define other_row
$(B)/$1/include/host/plan/arch.def: host/plan/arch.def
	@mkdir -p $$(@D)
	@sed '$(ROW_$1)' $$< >$$@.new && ! cmp -s $$< $$@.new && mv $$@.new $$@
$(B)/$1/%.o: %.cc $(B)/$1/include/host/plan/arch.def
	@mkdir -p $$(@D)
	$$(call say,CXX)$$(CXX) -I$(B)/$1/include $$(HOST_FLAGS) $$(DEPS) -c $$< -o $$@
$(B)/$1/$(SONAME): $(PLANNED_SRC:%.cc=$(B)/$1/%.o) $(HOST_OBJ)
	$$(call say,LINK)$$(CC) $$(LIB_FLAGS) -o $$@ \
	  $$(filter-out $(PLANNED_SRC:%.cc=$(B)/obj/%.o),$$(HOST_OBJ)) \
	  $(PLANNED_SRC:%.cc=$(B)/$1/%.o) -lm -ldl -pthread
-include $(PLANNED_SRC:%.cc=$(B)/$1/%.d)
endef
OTHER_ROWS := few_sms compute_80
$(foreach row,$(OTHER_ROWS),$(eval $(call other_row,$(row))))

# The header and the library as a C99 program sees them, and the header as C++11 does.
$(B)/obj/test/api/header.o: TEST_FLAGS := -std=c++11 -Wall -Wextra -Wpedantic -Werror -Iinclude
$(B)/test_c99: test/api/c99.c $(LIB) | $(B)/obj/test/api/header.o
	$(call say,CC)$(CC) -std=c99 -Wall -Wextra -Wpedantic -Werror -Iinclude \
	  -o $@ $< $(USE_LIBRARY)

# The examples as their first lines say to build them; those in Python and Rust are run by
# test/oracle.
$(B)/example_gemm: examples/c/gemm.c include/nvfp4_gemm.h $(LIB)
	$(call say,LINK)$(CC) -std=c99 -Wall -Wextra -Iinclude -o $@ $< $(USE_LIBRARY) -ldl -lm
$(B)/example_plan: examples/cpp/gemm.cc include/nvfp4_gemm.h $(LIB)
	$(call say,LINK)$(CXX) -std=c++17 $(WARN) -Iinclude -o $@ $< $(USE_LIBRARY) -ldl
# A kernel and the program that launches it, from one file.
ONE_TILE := $(B)/one_tile $(B)/one_tile.ptx
$(B)/one_tile.ptx: examples/cuda/one_tile.cu
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) -arch=compute_100f -ptx $< -o $@
$(B)/one_tile: examples/cuda/one_tile.cu | $(B)/emulator/libcuda.so.1
	$(call say,LINK)$(CXX) -std=c++17 $(WARN) $(CUDA_INCLUDE) -x c++ $< -o $@ -L$(B)/emulator -lcuda
.PHONY: examples
examples: $(B)/example_gemm $(B)/example_plan $(ONE_TILE)  ## the examples in C, C++ and CUDA

$(B)/check_random: $(B)/obj/test/random/main.o $(SUPPORT_OBJ) $(LIB)
	$(call say,LINK)$(CXX) -o $@ $(filter %.o,$^) $(USE_LIBRARY) -ldl -pthread

PROBLEMS ?= 10000
SEED     ?= 1
.PHONY: check-random
check-random: $(B)/check_random emulator  ## PROBLEMS=10000 SEED=1: random problems on emulated 10.0 and 9.0
	EMU_DEVICE=B200 LD_LIBRARY_PATH=$(B)/emulator \
	  $(B)/check_random --problems $(PROBLEMS) --seed $(SEED)
	EMU_DEVICE=H200 LD_LIBRARY_PATH=$(B)/emulator \
	  $(B)/check_random --problems $(PROBLEMS) --seed $(SEED)

include test/fuzz/fuzz.mk
TEST_PROGRAMS := $(RUN)/nvfp4 $(B)/check_random $(B)/nvfp4_test $(B)/test_host $(B)/test_emulator \
                 $(B)/emulator_hw_test $(B)/test_regression $(B)/test_c99 \
                 $(B)/test_model $(B)/model $(B)/nvfp4_probes \
                 $(B)/example_gemm $(ONE_TILE) $(REPLAYS) $(OTHER_ROWS:%=$(B)/%/$(SONAME))

# What needs neither a GPU nor the emulator: a distribution's build runs it.
.PHONY: test-host
test-host: $(B)/test_host $(B)/test_c99 $(STATIC)  ## the tests that need neither GPU nor emulator
	$(B)/test_c99
	$(B)/test_host

.PHONY: test test-programs mutants list-regressions
test-programs: $(TEST_PROGRAMS) $(B)/example_plan
test: $(SETUP) all static check-ptxas test-programs $(B)/tsan/first_use $(ABI_LIB) $(B)/nvfp4_bench  ## the suite in the emulator; ends with the totals
	PATH="$(CUDA_HOME)/bin:$$PATH" PYTHON=$(PYTHON) NVCC='$(abspath $(NVCC))' \
	  NVFP4_KERNELS='$(KERNEL_OUT)' KERNELS='$(KERNELS)' \
	  CC='$(CC)' CXX='$(CXX)' $(PYTHON) test/run.py $(B)

.PHONY: test-times
test-times: test  ## the suite, then its tests above 10 processor seconds, which must have a reason in test/slow.txt
	$(PYTHON) test/times.py $(B)

.PHONY: test-long
test-long:  ## the suite with every combination of its sweeps, also on the emulated H200
	NVFP4_LONG=1 $(MAKE) test

list-regressions:  ## bugs of other projects that the suite repeats here: thread, and what happened there
	@awk -f test/regression/list.awk test/regression/*.cc

mutants: $(SETUP) all test-programs  ## one-line bugs, each found by the test that names it; SINCE=REV: of what changed; ALL=1: again; JOBS=8: in eight copies
	$(PYTHON) tools/mutate/mutate.py $(B) $(if $(SINCE),--since $(SINCE)) $(if $(ALL),--all)

include test/host/children.mk
-include $(ALL_TEST_OBJ:.o=.d)
