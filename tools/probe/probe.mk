# SPDX-License-Identifier: MIT
# build/nvfp4_probes and its kernels: what a GPU is asked that decides a default. The kernels of
# copies and clusters are plain sm_90, so a Hopper and the emulator of one can be asked, too.

PROBE_SRC := $(sort $(wildcard tools/probe/*.cc))
PROBE_OBJ := $(PROBE_SRC:%.cc=$(B)/obj/%.o) \
             $(addprefix $(B)/obj/tools/harness/,driver.o module.o)
PROBE_PTX := $(patsubst tools/probe/%.cu,$(B)/probe/%.ptx,$(sort $(wildcard tools/probe/*.cu)))
PROBE_ARCH        := compute_100f
PROBE_ARCH_rates  := compute_90
PROBE_ARCH_start  := compute_90

$(B)/obj/tools/probe/%.o: TEST_FLAGS += -DNVFP4_PROBE_PTX='"$(B)/probe"'
$(B)/obj/tools/probe/%.o: tools/probe/%.cc $(PROGRAM_GCH)
	$(compile_program)
$(B)/probe/%.ptx: tools/probe/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) $(NVCC_DEPS) \
	  -arch=$(or $(PROBE_ARCH_$*),$(PROBE_ARCH)) -ptx $< -o $@
$(B)/nvfp4_probes: $(PROBE_OBJ) | $(PROBE_PTX)
	$(call say,LINK)$(CXX) -o $@ $(filter %.o,$^) -ldl -pthread
-include $(PROBE_SRC:%.cc=$(B)/obj/%.d) $(PROBE_PTX:=.d)
