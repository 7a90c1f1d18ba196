# SPDX-License-Identifier: MIT
# The suite. test/run starts the programs listed here and adds up their results.
#   nvfp4_test     the library as a user sees it, on whatever driver the loader finds
#   test_host      the library's inner parts, without a driver
#   test_emulator  the emulator's inner parts
#   test_regression  bugs of other projects, each under the name of its public thread

# Catch2 3 is a library, 2.13 one header.
CATCH_LIBS := $(if $(wildcard $(addsuffix /include/catch2/catch_all.hpp,/usr /usr/local)),-lCatch2)
TEST_MAIN  := $(B)/obj/tools/testing/main.o
GEMM_TEST_OBJ := $(patsubst %.cc,$(B)/obj/%.o,$(sort $(wildcard test/gemm/*.cc tools/emulator/test/h200/*.cc)))
HOST_TEST_OBJ := $(patsubst %.cc,$(B)/obj/%.o,$(sort $(wildcard test/host/*.cc)))
EMU_TEST_DIRS := base ptx arithmetic hardware machine op order trace driver kernel support
EMU_TEST_OBJ  := $(patsubst %.cc,$(B)/obj/%.o,$(sort $(foreach d,$(EMU_TEST_DIRS),\
                   $(wildcard tools/emulator/test/$d/*.cc)))) $(B)/obj/tools/emulator/test/pairs/pairs.o
MMA_SUPPORT_OBJ := $(addprefix $(B)/obj/tools/emulator/test/models/,wgmma.o warp_mma.o tensor_numbers.o)
REGRESSION_OBJ := $(patsubst %.cc,$(B)/obj/%.o,$(sort $(wildcard test/regression/*.cc))) \
                  $(B)/obj/test/host/child.o
ALL_TEST_OBJ  := $(TEST_MAIN) $(GEMM_TEST_OBJ) $(REGRESSION_OBJ) $(HOST_TEST_OBJ) $(EMU_TEST_OBJ) $(SUPPORT_OBJ)

$(B)/obj/test/%.o: test/%.cc
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(TEST_FLAGS) $(DEPS) -c $< -o $@
$(B)/obj/tools/testing/%.o: tools/testing/%.cc
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(TEST_FLAGS) $(DEPS) -c $< -o $@
$(B)/obj/tools/emulator/test/%.o: tools/emulator/test/%.cc
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(TEST_FLAGS) $(DEPS) -c $< -o $@
$(TEST_MAIN): TEST_FLAGS += -O0

# Plain sm_90: the one PTX runs on Hopper and, in the emulator, on Blackwell.
$(B)/test/load_probe.ptx: tools/emulator/test/h200/load_probe.cu $(KERNEL_HDR)
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) -arch=compute_90 -ptx $< -o $@
$(B)/test/carry_probe.ptx: tools/emulator/test/h200/carry_probe.cu
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) -arch=compute_90 -ptx $< -o $@
# With debug information every wrapper is a function that is called; the emulator reads both.
$(B)/test/load_probe.%.ptx: tools/emulator/test/h200/load_probe.cu $(KERNEL_HDR)
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) -std=c++17 -I. $(PTX_$*) -fmad=false -arch=compute_90 -ptx $< -o $@
$(B)/test/gemm_sm100.%.ptx: kernel/sm100/gemm.cu $(KERNEL_HDR)
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) -std=c++17 -I. $(PTX_$*) -fmad=false -arch=compute_100f -ptx $< -o $@
$(B)/test/gemm_sm90.%.ptx: kernel/sm90/gemm.cu $(KERNEL_HDR)
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) -std=c++17 -I. $(PTX_$*) -fmad=false -arch=compute_90a -ptx $< -o $@
PTX_debug    := -G
PTX_lineinfo := -O3 -lineinfo
DEBUG_PTX := $(foreach k,load_probe gemm_sm100,$(B)/test/$k.debug.ptx $(B)/test/$k.lineinfo.ptx) \
  $(B)/test/gemm_sm90.debug.ptx
TEST_PTX := $(B)/test/load_probe.ptx $(B)/test/carry_probe.ptx

$(B)/nvfp4_test: $(GEMM_TEST_OBJ) $(TEST_MAIN) $(SUPPORT_OBJ) $(MMA_SUPPORT_OBJ) $(B)/obj/bench/tensor_rate.o $(LIB) $(TEST_PTX) $(DEBUG_PTX)
	$(call say,LINK)$(CXX) -o $@ $(filter %.o,$^) $(USE_LIBRARY) $(CATCH_LIBS) -ldl -pthread

$(B)/test_host: $(HOST_TEST_OBJ) $(TEST_MAIN) $(SUPPORT_OBJ) $(MMA_SUPPORT_OBJ) $(HOST_OBJ) $(B)/obj/bench/csv.o
	$(call say,LINK)$(CXX) -o $@ $(filter %.o,$^) $(CATCH_LIBS) -lm -ldl -pthread

$(B)/test_emulator: $(EMU_TEST_OBJ) $(TEST_MAIN) $(EMU_OBJ) $(MMA_SUPPORT_OBJ) | $(DEBUG_PTX)
	$(call say,LINK)$(CXX) -o $@ $(filter %.o,$^) $(CATCH_LIBS) -ldl -pthread

$(B)/test_regression: $(REGRESSION_OBJ) $(TEST_MAIN) $(SUPPORT_OBJ) $(LIB) | $(B)/nvfp4
	$(call say,LINK)$(CXX) -o $@ $(filter %.o,$^) $(USE_LIBRARY) $(CATCH_LIBS) -ldl -pthread

# The header and the library as a C99 program sees them, and the header as C++11 does.
$(B)/obj/test/api/header.o: TEST_FLAGS := -std=c++11 -Wall -Wextra -Wpedantic -Werror -Iinclude
$(B)/test_c99: test/api/c99.c $(LIB) | $(B)/obj/test/api/header.o
	$(call say,CC)$(CC) -std=c99 -Wall -Wextra -Wpedantic -Werror -Iinclude \
	  -o $@ $< $(USE_LIBRARY)

# The examples as their first lines say to build them; those in Python and Rust are run by test/oracle.
$(B)/example_gemm: examples/c/gemm.c include/nvfp4_gemm.h $(LIB)
	$(call say,LINK)$(CC) -std=c99 -Wall -Wextra -Iinclude -o $@ $< $(USE_LIBRARY) -ldl -lm
$(B)/example_plan: examples/cpp/gemm.cc include/nvfp4_gemm.h $(LIB)
	$(call say,LINK)$(CXX) -std=c++17 $(WARN) -Iinclude -o $@ $< $(USE_LIBRARY) -ldl

include test/fuzz/fuzz.mk
TEST_PROGRAMS := $(B)/nvfp4_test $(B)/test_host $(B)/test_emulator $(B)/test_regression $(B)/test_c99 \
                 $(B)/example_gemm $(REPLAYS)

.PHONY: test test-programs mutants list-regressions
test-programs: $(TEST_PROGRAMS) $(B)/example_plan
test: $(SETUP) all static check-ptxas test-programs $(B)/tsan/first_use $(ABI_LIB) $(B)/nvfp4_bench  ## the suite in the emulator; ends with the totals
	PATH="$(CUDA_HOME)/bin:$$PATH" PYTHON=$(PYTHON) NVCC='$(abspath $(NVCC))' \
	  CC='$(CC)' CXX='$(CXX)' test/run $(B)

list-regressions:  ## bugs of other projects that the suite repeats here: thread, and what happened there
	@awk -f test/regression/list.awk test/regression/*.cc

mutants: $(SETUP) all test-programs  ## one-line bugs, each found by the test that names it
	$(PYTHON) tools/mutate/mutate.py $(B)

include test/host/children.mk
-include $(ALL_TEST_OBJ:.o=.d)

# The pairs of programs of tools/emulator/test/pairs on whatever driver the loader finds.
$(B)/hazard_run: $(B)/obj/tools/emulator/test/pairs/run.o $(B)/obj/tools/emulator/test/pairs/pairs.o
	$(call say,LINK)$(CXX) -o $@ $^ -ldl
