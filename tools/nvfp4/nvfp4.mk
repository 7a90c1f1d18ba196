# SPDX-License-Identifier: MIT
# build/nvfp4, the command line. It shares data sets, driver table and verdicts with the tests.

SUPPORT_SRC := $(sort $(wildcard tools/harness/*.cc))
SUPPORT_OBJ := $(SUPPORT_SRC:%.cc=$(B)/obj/%.o)
TOOL_SRC    := $(sort $(wildcard tools/nvfp4/*.cc))
TOOL_OBJ    := $(TOOL_SRC:%.cc=$(B)/obj/%.o)
# Programs find the library beside themselves.
USE_LIBRARY  = -L$(B) -lnvfp4gemm -Wl,-rpath,'$$ORIGIN' $(LDFLAGS)

# Here, in bench/, tools/model and tools/probe.
PROGRAM_GCH := $(call gch,tools/harness)
$(B)/obj/tools/harness/precompiled.h.gch: $(B)/obj/tools/harness/precompiled.h
	$(call precompile,$(TEST_COMMON))
PROGRAM_BEFORE = $(call precompiled,tools/harness)
define compile_program
@mkdir -p $(@D)
$(call say,CXX)$(CXX) $(TEST_FLAGS) $(PROGRAM_BEFORE) $(DEPS) -c $< -o $@
endef
$(B)/obj/tools/nvfp4/%.o: tools/nvfp4/%.cc $(PROGRAM_GCH)
	$(compile_program)
$(B)/obj/tools/harness/%.o: tools/harness/%.cc $(PROGRAM_GCH)
	$(compile_program)

# Its loop over all products is the one that is worth vectorising. g++ 12 takes what was compiled at
# another level, and breaks off.
$(B)/obj/tools/harness/exact.o: private TEST_FLAGS += -O3
$(B)/obj/tools/harness/exact.o: private PROGRAM_BEFORE =
# There it believes that std::string leaves its bounds, as in the emulator.
$(B)/obj/tools/harness/cublaslt.o: private PROGRAM_BEFORE =

$(B)/nvfp4: $(TOOL_OBJ) $(SUPPORT_OBJ) $(LIB)
	$(call say,LINK)$(CXX) -o $@ $(TOOL_OBJ) $(SUPPORT_OBJ) $(USE_LIBRARY) -ldl -pthread

# What one block of the kernel does, from its first load to its last store.
.PHONY: picture
picture: $(SETUP) all  ## the time line of one block in the emulator, as build/trace.json and .svg
	LD_LIBRARY_PATH=$(B)/emulator EMU_TRACE_BLOCKS=0 $(B)/nvfp4 run --m 64 --n 128 --k 4096 \
	  --trace $(B)/trace.json
	$(PYTHON) tools/emulator/trace/picture.py $(B)/trace.json $(B)/trace.svg

# The pictures of kernel/sm100/README.md: its constants, and the life of a CTA with three stages'
# worth of K.
.PHONY: drawings
$(B)/draw_numbers: tools/draw/numbers.cc kernel/sm100/tile.h kernel/common/hardware.h \
                     kernel/common/scale_tile.h kernel/sm100/shared.h kernel/sm100/tiles.def
	@mkdir -p $(@D)
	$(call say,LINK)$(CXX) $(TEST_FLAGS) -o $@ $<
drawings: $(SETUP) all $(B)/draw_numbers  ## docs/drawings/*.svg, of the walk through the Blackwell kernel
	$(B)/draw_numbers >$(B)/draw_numbers.txt
	$(PYTHON) tools/draw/draw.py $(B)/draw_numbers.txt docs/drawings
	LD_LIBRARY_PATH=$(B)/emulator EMU_TRACE_BLOCKS=0 EMU_SEED=2 \
	  $(B)/nvfp4 run --m 64 --n 128 --k 768 --trace $(B)/drawing.json
	$(PYTHON) tools/emulator/trace/picture.py --brief $(B)/drawing.json docs/drawings/pipeline.svg

-include $(TOOL_OBJ:.o=.d) $(PROGRAM_GCH:.gch=.d)
