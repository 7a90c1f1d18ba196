# SPDX-License-Identifier: MIT
# The timing model: docs/model.md.

# Measures what parameters.def says of a Hopper GPU; links the CUDA runtime.
$(B)/model_probe: tools/model/probe.cu
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) -std=c++17 -O2 -arch=sm_90a -o $@ $<

MODEL_SRC := $(filter-out tools/model/test.cc tools/model/main.cc,\
             $(sort $(wildcard tools/model/*.cc)))
MODEL_OBJ := $(MODEL_SRC:%.cc=$(B)/obj/%.o)

# Clocks that the sm_100a kernel's threads take to issue, of the compiler that made
# tools/gates/sass.txt.
$(B)/timing/sass.def: tools/gates/sass.txt
	@mkdir -p $(@D)
	$(call say,AWK)awk '/^nvfp4_gemm_sm100_/ { name = substr($$1, 12); \
	    count = split(substr($$0, length($$1) + 2), figures, /; /); \
	    for (i = 1; i <= count; ++i) { what = figures[i]; number = what; \
	      sub(/ [0-9]+$$/, "", what); sub(/.* /, "", number); \
	      if (what == "clocks before the first load") load[name] = number; \
	      if (what == "clocks before the first bulk copy") bulk[name] = number; \
	      if (what == "clocks before the first map") map[name] = number; \
	      if (what ~ /^stall .* of a k-block$$/) block[name] = number; \
	      if (sub(/^clocks of /, "", what) || what ~ /^fences /) \
	        print "TAIL(" name ", \"" what "\", " number ")" } } \
	  END { for (k in load) print "ISSUED(" k ", " load[k] ", " bulk[k] + 0 ", " map[k] \
	        ", " block[k] ")"; \
	        print "#undef ISSUED\n#undef TAIL" }' $< >$@
$(MODEL_OBJ): | $(B)/timing/sass.def
$(B)/obj/tools/model/sm100.o: $(B)/timing/sass.def
$(B)/obj/tools/model/%.o: TEST_FLAGS += -DSASS_DEF='"$(B)/timing/sass.def"'

$(B)/obj/tools/model/%.o: tools/model/%.cc $(PROGRAM_GCH)
	$(compile_program)

$(B)/model: $(MODEL_OBJ) $(B)/obj/tools/model/main.o
	$(call say,LINK)$(CXX) -o $@ $^

$(B)/test_model: $(MODEL_OBJ) $(B)/obj/tools/model/test.o $(TEST_MAIN)
	$(call say,LINK)$(CXX) -o $@ $^ $(CATCH_LIBS)

H200_CLOCKS := $(lastword $(sort $(wildcard bench/results/clocks-h200-*.csv)))
H200_GPU    := $(lastword $(sort $(wildcard bench/results/gpu-h200-*.csv)))

.PHONY: model
model: $(B)/model  ## times on a B200 by the model, with band and binding limit: build/model.csv, .svg
	$(B)/model micro >$(B)/model.txt
	$(B)/model public >>$(B)/model.txt
	$(B)/model h200 $(H200_CLOCKS) $(H200_GPU) >>$(B)/model.txt
	$(B)/model shapes >$(B)/model.csv
	$(PYTHON) tools/model/picture.py $(B)/model.csv $(B)/model.txt $(B)/model.svg
	grep -e '^# [0-9a-z]' -e MISSING $(B)/model.txt

.PHONY: check-model
check-model: $(B)/nvfp4 emulator  ## stages of every variant are what tools/model/traced.def says: 15 s
	$(PYTHON) tools/model/trace.py $(B)

-include $(MODEL_OBJ:.o=.d) $(B)/obj/tools/model/main.d $(B)/obj/tools/model/test.d
