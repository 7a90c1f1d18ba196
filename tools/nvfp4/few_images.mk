# SPDX-License-Identifier: MIT
# Libraries with few images, for `make run` and `make try`. Their objects are those of the full
# library, so that neither compiles them again.

# $(call library_in,FOLDER): the library and the command line with the images of FOLDER/images.o.
define library_in
$1/libnvfp4gemm.so: $1/images.o $(filter-out $(B)/obj/host/images.o,$(HOST_OBJ)) \
                    host/api/libnvfp4gemm.map
	$$(call say,LINK)$$(CC) $$(LIB_FLAGS) -o $$@ $$(filter %.o,$$^) -lm -ldl -pthread
	@ln -sf $$(@F) $1/$(SONAME)
$1/nvfp4: $(TOOL_OBJ) $(SUPPORT_OBJ) $1/libnvfp4gemm.so
	$$(call say,LINK)$$(CXX) -o $$@ $(TOOL_OBJ) $(SUPPORT_OBJ) -L$1 -lnvfp4gemm \
	  -Wl,-rpath,'$$$$ORIGIN' $$(LDFLAGS) -ldl -pthread
endef

# `make run` builds the images of a GPU with kernels for NVFP4 tokens, if there is one, or else the
# Blackwell PTX and the emulator. The tests use the same library.
RUN := $(B)/run
RUN_GPUS    := $(strip $(if $(filter run first first-run test test-programs,$(MAKECMDGOALS)),\
                 $(shell tools/setup/gpus.sh)))
RUN_IMAGES  := $(shell kernel/images.sh $(if $(RUN_GPUS),'$(RUN_GPUS)','100' ptx))
RUN_FATBINS = $(call fatbins_of,$(RUN_IMAGES))

# Another GPU than last time has other images.
$(RUN)/gpus.txt: $(ALWAYS)
	@mkdir -p $(@D) && echo '$(RUN_GPUS)' | cmp -s - $@ || echo '$(RUN_GPUS)' >$@
$(RUN)/images.o: host/run/images.S $(RUN_FATBINS) $(COMPILER_TXT) $(RUN)/gpus.txt
	@kernel/images.sh $(if $(RUN_GPUS),'$(RUN_GPUS)','100' ptx) $(KERNEL_OUT) $(@D)/images
	$(compile_images)
$(eval $(call library_in,$(RUN)))

# Run alone, it says how many steps there are: those that make would take once the stamps are made.
ifeq ($(MAKECMDGOALS),run)
ifneq ($(wildcard $(SETUP)),)
OF_RUN  := $(MAKEOVERRIDES) RUN_GPUS='$(RUN_GPUS)' RUN_IMAGES='$(RUN_IMAGES)'
STAMPS  := $(IMAGES_FROM) $(if $(filter prebuilt,$(KERNELS)),,$(PACKED) $(COMPILER_TXT)) \
           $(RUN)/gpus.txt
STEPS   := $(shell rm -f $(B)/steps; $(MAKE) -s $(OF_RUN) $(STAMPS) >/dev/null 2>&1; \
             $(MAKE) -n --no-print-directory $(OF_RUN) first-run ALWAYS= 2>/dev/null \
               | grep -c "^printf '  ")
endif
endif
ON_EMULATOR = LD_LIBRARY_PATH="$(abspath $(B)/emulator)$${LD_LIBRARY_PATH:+:$$LD_LIBRARY_PATH}"
.PHONY: run first-run
run: $(SETUP) first-run  ## the three shapes of the GPU MODE task, verified: a table with PASS or FAIL
ifneq ($(RUN_GPUS),)
	+@if $(RUN)/nvfp4 run --m 1 --n 128 --k 64 >$(B)/gpu.txt 2>&1; then \
	    $(RUN)/nvfp4 run --headline; \
	  else \
	    sed 's/^/make run: /' $(B)/gpu.txt; echo 'make run: the emulator runs instead of the GPU'; \
	    $(MAKE) --no-print-directory first-run RUN_GPUS= && \
	    $(ON_EMULATOR) $(RUN)/nvfp4 run --headline; \
	  fi
else
	@$(ON_EMULATOR) $(RUN)/nvfp4 run --headline
endif
first-run: $(RUN_FATBINS) $(if $(RUN_GPUS),,emulator) $(RUN)/nvfp4

# README's program, with the driver of the GPU or the emulator in its place.
.PHONY: first
first: $(SETUP) first-run  ## README's first program, examples/c/first.c, on the GPU or in the emulator
	$(CC) -std=c99 -Wall -Iinclude examples/c/first.c -o $(RUN)/first -L$(RUN) -lnvfp4gemm \
	  $(if $(RUN_GPUS),,-L$(B)/emulator) -l:libcuda.so.1 -Wl,-rpath,'$$ORIGIN'
	@$(if $(RUN_GPUS),,$(ON_EMULATOR)) $(RUN)/first

# One family's PTX, compiled by itself, and a product that runs it in the emulator: the loop of
# somebody who changes a kernel. The Hopper kernel is compiled for the tile of the product alone.
FAMILY      ?= sm100
TRY_sm100   := 100 B200 100f
TRY_sm90    := 90 H200 90a
TRY_sm80    := 80 A100 80
TRY_sm120   := 120 RTX5090 120f
TRY_OF      := $(or $(TRY_$(FAMILY)),$(if $(filter try,$(MAKECMDGOALS)),\
                 $(error FAMILY=$(FAMILY): sm100, sm90, sm80 or sm120)))
TILES       ?= $(if $(filter sm90,$(FAMILY)),128x64)
PROBLEM     ?= --m 64 --n 256 --k 512 $(if $(filter sm80,$(FAMILY)),--a-type bf16) \
               $(if $(TILES),--variant $(FAMILY)_$(firstword $(TILES))x256)
TRY         := $(B)/try/$(FAMILY)
TRY_IMAGES  := $(call fatbins_of,$(shell kernel/images.sh '$(or $(firstword $(TRY_OF)),100)' ptx))
TRY_GEMM    := gemm_$(FAMILY).ptx
$(TRY)/kernel/$(TRY_GEMM): kernel/$(FAMILY)/gemm.cu
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) $(call only,$(TILES)) $(NVCC_DEPS) \
	  -arch=compute_$(word 3,$(TRY_OF)) \
	  -ptx $< -o $@ && $(NO_COMMENTS)
$(TRY)/kernel/%.ptx.fatbin: $(TRY)/kernel/%.ptx
	$(call to_fatbin,ptx,$(shell sed -n 's/^.target sm_//p' $<))
$(TRY)/kernel/%.fatbin: $(KERNEL_OUT)/%.fatbin
	@mkdir -p $(@D) && cp $< $@
$(TRY)/images.o: host/run/images.S $(TRY_IMAGES:$(KERNEL_OUT)/%=$(TRY)/kernel/%) $(COMPILER_TXT)
	@cp $(COMPILER_TXT) $(TRY)/kernel/
	@kernel/images.sh $(firstword $(TRY_OF)) ptx $(TRY)/kernel $(@D)/images
	$(compile_images)
$(eval $(call library_in,$(TRY)))
.PHONY: try
try: $(SETUP) $(TRY)/nvfp4 emulator  ## FAMILY=sm100: a family's kernel compiled for the emulator, and a product (PROBLEM="--m 64 ..", TILES)
	EMU_DEVICE=$(word 2,$(TRY_OF)) EMU_FORMAL=stop \
	  EMU_EXCEPT=reused_columns:sm100_256x256 LD_LIBRARY_PATH=$(B)/emulator \
	  $(TRY)/nvfp4 run $(PROBLEM)
-include $(TRY)/kernel/$(TRY_GEMM).d

