# SPDX-License-Identifier: MIT
# The emulator, a product of its own: a libcuda.so.1 that programs find through LD_LIBRARY_PATH, its
# tests and what they run.
#   test_emulator      its inner parts
#   emulator_hw_test   instructions and racy programs on whatever driver the loader finds

EMU_DIRS := base ptx memory arithmetic hardware machine op order trace driver
EMU_SRC  := $(sort $(foreach d,$(EMU_DIRS),$(wildcard tools/emulator/$d/*.cc)))
EMU_OBJ  := $(EMU_SRC:%.cc=$(B)/obj/%.o)
EMU_GCH  := $(call gch,tools/emulator/base)
# These folders know the machine, whose headers take longer to read than most of their sources.
EMU_MACHINE_OBJ := $(filter $(addprefix $(B)/obj/tools/emulator/,machine/% op/% order/% trace/%),\
                     $(EMU_OBJ))
EMU_MACHINE_GCH := $(call gch,tools/emulator/machine)

$(EMU_MACHINE_OBJ): $(EMU_MACHINE_GCH)
$(EMU_MACHINE_OBJ): private EMU_BEFORE = $(call precompiled,tools/emulator/machine)
$(B)/obj/tools/emulator/%.o: tools/emulator/%.cc $(EMU_GCH)
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(EMU_FLAGS) $(EMU_BEFORE) $(DEPS) -c $< -o $@
EMU_BEFORE = $(call precompiled,tools/emulator/base)
# g++ 12 believes that std::string leaves its bounds there, and with the header compiled says so.
$(addprefix $(B)/obj/tools/emulator/ptx/,body.o body_routine.o body_table.o calls.o \
  declarations.o notation.o): private EMU_BEFORE =
$(EMU_GCH) $(EMU_MACHINE_GCH): %.gch: %
	$(call precompile,$(EMU_FLAGS))

# Loops of constant length, which -O2 leaves scalar where pointers might overlap.
$(B)/obj/tools/emulator/arithmetic/mma_%.o \
  $(B)/obj/tools/emulator/arithmetic/host_float.o: private EMU_FLAGS += -O3

# What answers that it is not emulated: what the toolkit's header declares, of each version.
$(B)/emulator/unsupported.def: $(addprefix tools/emulator/driver/,unsupported.awk entries.def) \
                               $(wildcard $(CUDA_HOME)/include/cudaTypedefs.h)
	@mkdir -p $(@D)
	$(call say,AWK)$(CXX) $(CUDA_INCLUDE) -D__CUDA_API_VERSION_INTERNAL -E -include cudaTypedefs.h \
	  -x c++ /dev/null | awk -f $(wordlist 1,2,$^) - >$@
UNSUPPORTED_OBJ := $(addsuffix /tools/emulator/driver/unsupported.o,$(B)/obj $(B)/fuzz/obj)
$(UNSUPPORTED_OBJ): $(B)/emulator/unsupported.def
$(UNSUPPORTED_OBJ): private EMU_FLAGS += -DEMU_UNSUPPORTED_DEF='"$(B)/emulator/unsupported.def"'

.PHONY: emulator
emulator: $(B)/emulator/libcuda.so.1  ## the stand-in for libcuda.so.1
$(B)/emulator/libcuda.so.1: $(EMU_OBJ) tools/emulator/driver/libcuda.map
	@mkdir -p $(@D)
	$(call say,LINK)$(CXX) -shared -Wl,-soname,libcuda.so.1 -Wl,-z,defs \
	  -Wl,--version-script=tools/emulator/driver/libcuda.map -o $@ $(EMU_OBJ) $(LDFLAGS) -pthread -ldl
# The name that linkers look for, and some programs open.
	@ln -sf libcuda.so.1 $(@D)/libcuda.so

# ---- tests ---------------------------------------------------------------------------------------

EMU_TEST       := tools/emulator/test
EMU_TEST_FLAGS := -std=c++20 -O0 -ffp-contract=off $(WARN) -I. $(CUDA_INCLUDE) \
                  -Itools/emulator/include -DEMU_TEST_CUDA_H='"$(CUDA_HOME)/include/cuda.h"' \
                  -DEMU_TEST_PTX_DIR='"$(B)/emulator/test"'
emu_test_sources = $(sort $(foreach d,$1,$(wildcard $(EMU_TEST)/$d/*.cc)))
emu_test_objects = $(foreach d,$1,$(call units,$(call emu_test_sources,$d)))
ALONE          += $(EMU_TEST)/support/reports.cc
EMU_TEST_OBJ   := $(call emu_test_objects,$(EMU_DIRS) models support pairs)
EMU_HW_OBJ     := $(call emu_test_objects,h200 models pairs)

define compile_emu_test
@mkdir -p $(@D)
$(call say,CXX)$(CXX) $(EMU_TEST_FLAGS) $(EMU_TEST_BEFORE) $(DEPS) -c $< -o $@
endef
$(B)/obj/$(EMU_TEST)/%.o: $(EMU_TEST)/%.cc $(TEST_GCH)
	$(compile_emu_test)
$(B)/obj/$(EMU_TEST)/%.o: $(B)/obj/$(EMU_TEST)/%.cc $(TEST_GCH)
	$(compile_emu_test)
EMU_TEST_BEFORE = $(AFTER_CATCH)
# Loops of minutes.
$(B)/obj/$(EMU_TEST)/arithmetic/%.o: private EMU_TEST_FLAGS += -O1
# It asks Catch2 for more of itself.
$(B)/obj/$(EMU_TEST)/support/reports.o: private EMU_TEST_BEFORE =
# replay_ptx has them without Catch2.
$(addprefix $(B)/obj/$(EMU_TEST)/,fuzz/ptx.o support/ptx_samples.o): private EMU_TEST_BEFORE =

# Plain sm_90: the one PTX runs on Hopper and, in the emulator, on Blackwell. With debug information
# every function is called; the emulator reads both.
EMU_PTX := $(B)/emulator/test
$(EMU_PTX)/%.ptx: $(EMU_TEST)/h200/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) -arch=compute_90 -ptx $< -o $@
$(EMU_PTX)/%.debug.ptx: $(EMU_TEST)/h200/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) -std=c++17 -G -fmad=false -arch=compute_90 -ptx $< -o $@
$(EMU_PTX)/%.lineinfo.ptx: $(EMU_TEST)/h200/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) -std=c++17 -O3 -lineinfo -fmad=false -arch=compute_90 -ptx $< -o $@
EMU_TEST_PTX := $(addprefix $(EMU_PTX)/,call_probe.ptx call_probe.debug.ptx carry_probe.ptx \
                  load_probe.ptx load_probe.debug.ptx load_probe.lineinfo.ptx)

$(B)/test_emulator: $(EMU_TEST_OBJ) $(TEST_MAIN) $(EMU_OBJ) | $(EMU_TEST_PTX)
	$(call say,LINK)$(CXX) -o $@ $(filter %.o,$^) $(CATCH_LIBS) -ldl -pthread

$(B)/emulator_hw_test: $(EMU_HW_OBJ) $(TEST_SESSION) | $(EMU_TEST_PTX)
	$(call say,LINK)$(CXX) -o $@ $(filter %.o,$^) $(CATCH_LIBS) -ldl -pthread

# 20,000 mutants of PTX: the emulator accepts none that ptxas refuses.
.PHONY: check-legality
check-legality: $(B)/test_emulator $(SM100_PTX)  ## LEGALITY_MUTANTS=20000 LEGALITY_SEED=1: the emulator's loader against ptxas
	@PATH="$(CUDA_HOME)/bin:$$PATH" LEGALITY_PTX=$(SM100_PTX) $(B)/test_emulator '[legality]'

# What others wrote, which a folder has, against the committed verdicts. Their programs are built
# here with a few calls of the CUDA runtime, which nobody installs; Triton's kernels are compiled by
# the Triton that $(PYTHON) has.
OUTSIDE_OBJ := $(patsubst %.cc,$(B)/obj/%.o,$(wildcard $(EMU_TEST)/outside/*.cc))
$(OUTSIDE_OBJ): private EMU_TEST_BEFORE =
$(B)/emulator/test/runtime.a: $(OUTSIDE_OBJ)
	@mkdir -p $(@D)
	$(call say,AR)rm -f $@ && $(AR) crs $@ $^
.PHONY: check-outside
check-outside: $(B)/emulator/libcuda.so.1 $(B)/emulator/test/runtime.a  ## DIR=..: others' PTX, programs
	@$(PYTHON) tools/emulator/outside_programs.py --runtime $(word 2,$^) --library $< \
	  --cuda $(CUDA_HOME) $(DIR)
	@$(PYTHON) tools/emulator/outside_triton.py $(DIR)
	@$(PYTHON) tools/emulator/outside_python.py $(DIR)
	@$(PYTHON) tools/emulator/outside.py --library $< $(DIR)
	@EMU_PYTHON='$(PYTHON)' NVFP4_BUILD='$(abspath $(B))' $(PYTHON) $(EMU_TEST)/test_recipes.py -v

# ---- Python -------------------------------------------------------------------------------------

.PHONY: emulator-wheel check-emulator-wheel
emulator-wheel: $(B)/emulator/libcuda.so.1 | $(filter setup-wheel,$(MAKECMDGOALS))  ## build/emulator-wheel/*.whl: nvfp4emu, the emulator as a Python module with its command
	@PYTHON='$(PYTHON)' tools/emulator/python/wheel.sh $(B)
check-emulator-wheel: emulator-wheel  ## that wheel, with pytest alone under each CPython that is here, runs a test file
	@tools/emulator/python/check_wheel.sh $(B)

# ---- speed ---------------------------------------------------------------------------------------

# Linked with the emulator itself, so that no other driver can be timed.
EMU_BENCH_OBJ := $(B)/obj/tools/emulator/bench/families.o
$(B)/emulator_bench: $(EMU_BENCH_OBJ) $(B)/emulator/libcuda.so.1
	$(call say,LINK)$(CXX) -o $@ $^ -Wl,-rpath,'$$ORIGIN/emulator'

# For test/fuzz/fuzz.mk: a source and what it reaches.
FUZZ_SRC_ptx := $(EMU_TEST)/fuzz/ptx
FUZZ_OF_ptx  := $(EMU_OBJ) $(B)/obj/$(EMU_TEST)/support/ptx_samples.o

-include $(sort $(EMU_GCH:.gch=.d) $(EMU_MACHINE_GCH:.gch=.d) $(EMU_OBJ:.o=.d) \
           $(EMU_TEST_OBJ:.o=.d) \
           $(EMU_HW_OBJ:.o=.d) $(EMU_BENCH_OBJ:.o=.d) $(OUTSIDE_OBJ:.o=.d))
