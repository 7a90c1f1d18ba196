# SPDX-License-Identifier: MIT
# Device code: one PTX per family from nvcc, every cubin by ptxas from that very file. The same PTX
# is embedded in the library and run by the emulator.

# -fmad=false: the epilogue is one stated expression, with explicit fma where it wants one.
NVCC_FLAGS := -std=c++17 -O3 -I. -fmad=false --Werror all-warnings $(if $(LINEINFO),-lineinfo) \
              $(if $(CLOCKS),-DNVFP4_CLOCKS)
# The library carries the PTX, a quarter of which would be nvcc's comments, empty lines and blanks.
NO_COMMENTS = sed -i -e '/^[[:space:]]*\(\/\/.*\)\{0,1\}$$/d' -e 's/^[[:space:]]*//' -e 's/, /,/g' $@
KERNEL_OUT := $(B)/kernel
KERNEL_DIRS := kernel $(addprefix kernel/,ptx sm100 sm90 sm90/tiny sm90/wide sm90/sums quantize)
KERNEL_HDR := $(wildcard $(foreach d,$(KERNEL_DIRS),$d/*.cuh $d/*.h $d/*.def))

SM100_PTX    := $(KERNEL_OUT)/gemm_sm100.ptx
SM100_ARCHES := sm_100a sm_103a sm_100f
SM100_CUBINS := $(SM100_ARCHES:%=$(KERNEL_OUT)/gemm_sm100.%.cubin)

$(SM100_PTX): kernel/sm100/gemm.cu $(KERNEL_HDR)
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) -arch=compute_100f -ptx $< -o $@ && $(NO_COMMENTS)

$(KERNEL_OUT)/gemm_sm100.%.cubin: $(SM100_PTX)
	$(call say,PTXAS)$(PTXAS) -arch=$* -v $< -o $@ 2> $@.report || { cat $@.report; exit 1; }

SM90_PTX   := $(KERNEL_OUT)/gemm_sm90.ptx
SM90_CUBIN := $(KERNEL_OUT)/gemm_sm90.sm_90a.cubin

$(SM90_PTX): kernel/sm90/gemm.cu $(KERNEL_HDR)
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) -arch=compute_90a -ptx $< -o $@ && $(NO_COMMENTS)

$(SM90_CUBIN): $(SM90_PTX)
	$(call say,PTXAS)$(PTXAS) -arch=sm_90a -v $< -o $@ 2> $@.report || { cat $@.report; exit 1; }

# The quantizer: one source, in PTX for any device, which rounds to E2M1 by arithmetic, and for 10.x, which
# converts.
QUANTIZE_PTX    := $(KERNEL_OUT)/quantize.ptx
QUANTIZE_CUBIN  := $(KERNEL_OUT)/quantize.sm_90.cubin
QUANTIZE100_PTX    := $(KERNEL_OUT)/quantize_sm100.ptx
QUANTIZE100_ARCHES := sm_100a sm_103a
QUANTIZE100_CUBINS := $(QUANTIZE100_ARCHES:%=$(KERNEL_OUT)/quantize_sm100.%.cubin)

$(QUANTIZE_PTX): kernel/quantize/quantize.cu $(KERNEL_HDR)
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) -arch=compute_90 -ptx $< -o $@ && $(NO_COMMENTS)

$(QUANTIZE100_PTX): kernel/quantize/quantize.cu $(KERNEL_HDR)
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) -arch=compute_100f -ptx $< -o $@

$(KERNEL_OUT)/quantize.%.cubin: $(QUANTIZE_PTX)
	$(call say,PTXAS)$(PTXAS) -arch=$* -v $< -o $@ 2> $@.report || { cat $@.report; exit 1; }

$(KERNEL_OUT)/quantize_sm100.%.cubin: $(QUANTIZE100_PTX)
	$(call say,PTXAS)$(PTXAS) -arch=$* -v $< -o $@ 2> $@.report || { cat $@.report; exit 1; }

KERNEL_IMAGES := $(SM100_PTX) $(SM100_CUBINS) $(SM90_PTX) $(SM90_CUBIN) $(QUANTIZE_PTX) $(QUANTIZE_CUBIN) \
                 $(QUANTIZE100_PTX) $(QUANTIZE100_CUBINS)

.PHONY: kernels check-ptxas
kernels: $(KERNEL_IMAGES)  ## the PTX and every cubin
check-ptxas: $(SM100_CUBINS) $(SM90_CUBIN) $(QUANTIZE_CUBIN) $(QUANTIZE100_CUBINS) | $(SETUP)  ## ptxas: no spills, no stack, instructions there, main loops no slower to issue
	tools/check_ptxas.sh sm100 $(SM100_PTX) $(SM100_CUBINS)
	tools/check_ptxas.sh sm90 $(SM90_PTX) $(SM90_CUBIN)
	tools/check_ptxas.sh quantize $(QUANTIZE_PTX) $(QUANTIZE_CUBIN)
	tools/check_ptxas.sh quantize100 $(QUANTIZE100_PTX) $(QUANTIZE100_CUBINS)
	$(PYTHON) tools/sass.py $(COMPILER_OF_KERNELS) sm100 $(KERNEL_OUT)/gemm_sm100.sm_100a.cubin
	$(PYTHON) tools/sass.py $(COMPILER_OF_KERNELS) sm90 $(SM90_CUBIN)
