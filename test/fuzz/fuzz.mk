# SPDX-License-Identifier: MIT
# Fuzz targets: a source and a file of inputs each. `make test` replays the inputs in plain
# programs; `make fuzz` runs them under libFuzzer with AddressSanitizer and UBSan, for which
# everything that they reach is compiled once more by clang.

FUZZ_TARGETS := api plan ptx npy
SECONDS      ?= 60
CLANGXX      ?= clang++
FUZZ         := $(B)/fuzz

FUZZ_SRC_api  := test/fuzz/api
FUZZ_SRC_plan := test/fuzz/plan
FUZZ_SRC_npy  := test/fuzz/npy

# What each target reaches. That of the emulator is in its own makefile.
FUZZ_OF_api  := $(SUPPORT_OBJ) $(HOST_OBJ)
FUZZ_OF_plan := $(HOST_OBJ)
FUZZ_OF_npy  := $(B)/obj/tools/nvfp4/npy.o

REPLAYS := $(FUZZ_TARGETS:%=$(B)/replay_%)
REPLAY_MAIN := $(B)/obj/tools/testing/fuzz_replay.o
REPLAY_OBJ  := $(REPLAY_MAIN) $(foreach t,$(FUZZ_TARGETS),$(B)/obj/$(FUZZ_SRC_$t).o)
.SECONDEXPANSION:
$(REPLAYS): $(B)/replay_%: $(B)/obj/$$(FUZZ_SRC_$$*).o $(REPLAY_MAIN) $$(FUZZ_OF_$$*)
	$(call say,LINK)$(CXX) -o $@ $^ -lm -ldl -pthread

# ---- under libFuzzer ----------------------------------------------------------------------------

SANITIZE := -g -O1 -fno-omit-frame-pointer -fsanitize=address,undefined,fuzzer-no-link \
            -fno-sanitize-recover=all
# Only for what the command line names: the compiler is looked for when the rule runs.
$(FUZZ)/obj/host/%.o: host/%.cc
	@mkdir -p $(@D)
	$(call say,FUZZ)$(CLANGXX) $(HOST_FLAGS) -U_FORTIFY_SOURCE \
	  -DNVFP4_COMPILER='"$(COMPILER_OF_KERNELS)"' \
	  $(SANITIZE) $(DEPS) -c $< -o $@
$(FUZZ)/obj/host/images.o: $(B)/obj/host/images.o
	@mkdir -p $(@D)
	cp $< $@
$(FUZZ)/obj/tools/emulator/%.o: tools/emulator/%.cc
	@mkdir -p $(@D)
	$(call say,FUZZ)$(CLANGXX) $(EMU_FLAGS) $(SANITIZE) $(DEPS) -c $< -o $@
$(FUZZ)/obj/%.o: %.cc
	@mkdir -p $(@D)
	$(call say,FUZZ)$(CLANGXX) $(TEST_FLAGS) $(SANITIZE) $(DEPS) -c $< -o $@

FUZZ_EMULATOR := $(FUZZ)/emulator/libcuda.so.1
$(FUZZ_EMULATOR): $(EMU_OBJ:$(B)/obj/%=$(FUZZ)/obj/%) tools/emulator/driver/libcuda.map
	@mkdir -p $(@D)
	$(call say,LINK)$(CLANGXX) -shared -Wl,-soname,libcuda.so.1 $(SANITIZE) \
	  -Wl,--version-script=tools/emulator/driver/libcuda.map -o $@ $(filter %.o,$^) -pthread -ldl

FUZZERS := $(FUZZ_TARGETS:%=$(FUZZ)/%)
$(FUZZERS): $(FUZZ)/%: $(FUZZ)/obj/$$(FUZZ_SRC_$$*).o \
    $$(patsubst $(B)/obj/$$(PERCENT),$(FUZZ)/obj/$$(PERCENT),$$(FUZZ_OF_$$*))
	$(call say,LINK)$(CLANGXX) -o $@ $^ $(SANITIZE) -fsanitize=fuzzer -lm -ldl -pthread
PERCENT := %
$(FUZZ)/api: | $(FUZZ_EMULATOR)

.PHONY: fuzz fuzzers
fuzzers: $(FUZZERS)
fuzz:  ## each fuzz target under libFuzzer, SECONDS=60 each; TARGETS='ptx plan' for some
	@CLANGXX='$(CLANGXX)' MAKE='$(MAKE)' test/fuzz/run $(FUZZ) $(SECONDS) \
	  $(or $(TARGETS),$(FUZZ_TARGETS))

-include $(REPLAY_OBJ:.o=.d) $(wildcard $(FUZZ)/obj/*/*.d $(FUZZ)/obj/*/*/*.d $(FUZZ)/obj/*/*/*/*.d)
