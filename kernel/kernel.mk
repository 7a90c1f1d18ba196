# SPDX-License-Identifier: MIT
# Device code: one PTX per family, every cubin by ptxas from that very file. The same PTX is
# embedded in the library and run by the emulator.

# KERNELS: who makes the images.
#   nvcc      the compiler that set-up found
#   12.9      NVRTC and ptxas of CUDA 12.9 from their wheels: images that drivers from 12.9 take
#   prebuilt  nobody: they came with the source, in kernel/prebuilt (tools/package/dist.sh)
KERNELS    ?= $(if $(wildcard kernel/prebuilt/compiler.txt),prebuilt,nvcc)
ifeq ($(filter $(KERNELS),nvcc 12.9 prebuilt),)
$(error KERNELS=$(KERNELS): nvcc, 12.9 or prebuilt)
endif
KERNEL_OUT_nvcc     := $(B)/kernel
KERNEL_OUT_12.9     := $(B)/kernel-12.9
KERNEL_OUT_prebuilt := kernel/prebuilt
KERNEL_OUT  := $(KERNEL_OUT_$(KERNELS))

# GPUS="90 100": the compute capabilities for which the library has images, 10 * major + minor. By
# default all that it knows. $(call fatbins_of,IMAGES) are the files of a list by images.sh.
GPUS           ?= all
IMAGES_OF_GPUS := $(shell kernel/images.sh '$(GPUS)')
ifneq ($(filter unknown,$(IMAGES_OF_GPUS)),)
$(error GPUS="$(GPUS)": known compute capabilities are $(wordlist 2,99,$(IMAGES_OF_GPUS)))
endif
fatbins_of = $(foreach image,$(filter %:1,$1),$(KERNEL_OUT)/$(word 2,$(subst :, ,$(image))))

KERNEL_DIRS := $(addprefix kernel/,ptx common helpers sm80 sm90 sm90/tiny sm90/wide sm90/sums \
                 sm100 sm120 quantize)
KERNEL_HDR  := $(wildcard $(foreach d,$(KERNEL_DIRS),$d/*.cuh $d/*.h $d/*.def))

SM100_PTX       := $(KERNEL_OUT)/gemm_sm100.ptx
SM100_ARCHES    := sm_100a sm_100f
SM100_CUBINS    := $(SM100_ARCHES:%=$(KERNEL_OUT)/gemm_sm100.%.cubin)
# 11.0 is a family of its own, which takes no image of sm_100f. No line of the kernels asks which of
# them it is compiled for, so its PTX is that of 10.x with another target.
SM110_PTX       := $(KERNEL_OUT)/gemm_sm110.ptx
SM110_CUBIN     := $(KERNEL_OUT)/gemm_sm100.sm_110f.cubin
# 12.0 and 12.1 take the same image.
SM120_PTX       := $(KERNEL_OUT)/gemm_sm120.ptx
SM120_CUBIN     := $(KERNEL_OUT)/gemm_sm120.sm_120f.cubin
SM90_PTX        := $(KERNEL_OUT)/gemm_sm90.ptx
SM90_CUBIN      := $(KERNEL_OUT)/gemm_sm90.sm_90a.cubin
# mma.sync, one source: with clusters for 9.0, and for any GPU from 8.0 on.
SM80_PTX        := $(KERNEL_OUT)/gemm_sm80.ptx
SM80_90_PTX     := $(KERNEL_OUT)/gemm_sm80_sm90.ptx
SM80_ARCHES     := sm_80 sm_100 sm_120
SM80_CUBINS     := $(SM80_ARCHES:%=$(KERNEL_OUT)/gemm_sm80.%.cubin)
SM80_90_CUBIN   := $(KERNEL_OUT)/gemm_sm80_sm90.sm_90a.cubin
# The quantizer: one source, in PTX for 9.0 and for any device, which round to E2M1 by arithmetic,
# and for 10.x, which converts.
QUANTIZE80_PTX     := $(KERNEL_OUT)/quantize_sm80.ptx
QUANTIZE_PTX       := $(KERNEL_OUT)/quantize.ptx
QUANTIZE_CUBIN     := $(KERNEL_OUT)/quantize.sm_90.cubin
QUANTIZE100_PTX    := $(KERNEL_OUT)/quantize_sm100.ptx
QUANTIZE100_ARCHES := sm_100f
QUANTIZE100_CUBINS := $(QUANTIZE100_ARCHES:%=$(KERNEL_OUT)/quantize_sm100.%.cubin)
QUANTIZE110_PTX    := $(KERNEL_OUT)/quantize_sm110.ptx
QUANTIZE110_CUBIN  := $(KERNEL_OUT)/quantize_sm100.sm_110f.cubin
QUANTIZE120_PTX    := $(KERNEL_OUT)/quantize_sm120.ptx
QUANTIZE120_CUBIN  := $(KERNEL_OUT)/quantize_sm120.sm_120f.cubin
# Who compiled, in words that the library repeats: "nvcc 13.0.88".
COMPILER_TXT    := $(KERNEL_OUT)/compiler.txt
# As the library carries them, a ninth of the size: a fat binary each, which the driver unpacks.
KERNEL_FATBINS  := $(call fatbins_of,$(IMAGES_OF_GPUS))
KERNEL_IMAGES   := $(KERNEL_FATBINS:.fatbin=)
COMPILER_OF_KERNELS = $(shell cat $(COMPILER_TXT))

# ---- compilers -----------------------------------------------------------------------------------

# -fmad=false: the epilogue is one stated expression, with explicit fma where it wants one.
NVCC_FLAGS  := -std=c++17 -O3 -I. -fmad=false --Werror all-warnings $(if $(LINEINFO),-lineinfo) \
               $(if $(CLOCKS),-DNVFP4_CLOCKS)
# $(call only,TILES,ENTRIES) compiles those alone (common/some_entries.h). ONLY_TILES="64x4
# f16_64x16" does so with tiles of the Hopper and the Blackwell kernel; the library of such a build
# refuses other variants. Mutants set it, the products never.
only         = $(if $1$2,-DNVFP4_ONLY $(addprefix -DNVFP4_ONLY_TILE_,$1) \
                 $(addprefix -DNVFP4_ONLY_ENTRY_,$2))
$(SM90_PTX) $(SM100_PTX): NVCC_FLAGS += $(call only,$(ONLY_TILES))
NVRTC_FLAGS := --fmad=false $(if $(LINEINFO),-lineinfo) $(if $(CLOCKS),-DNVFP4_CLOCKS)
NVRTC_HOME  := .tools/cuda-12.9
NVRTC       := $(NVRTC_HOME)/nvidia/cuda_nvrtc/lib/libnvrtc.so.12

# An image is made again when something changes that its source includes. NVRTC does not say what it
# reads, so its images depend on every header.
NVCC_DEPS    = -MMD -MP -MF $@.d
NVRTC_HDR   := $(if $(filter 12.9,$(KERNELS)),$(KERNEL_HDR))

# No comments, empty lines or superfluous blanks, a quarter of what nvcc writes. fatbinary drops the
# same ones: the text that the library carries is that of the file (test/oracle/test_images.py).
NO_COMMENTS = sed -i -e 's/\(^\|[[:space:]]\)\/\/.*//' -e 's/[[:space:]]\{1,\}/ /g' -e 's/^ //' \
  -e 's/ $$//' \
              -e 's/, /,/g' -e '/^$$/d' $@
to_ptx_nvcc = $(call say,NVCC)$(NVCC) $(NVCC_FLAGS) $(NVCC_DEPS) -arch=$1 -ptx $< -o $@ && \
              $(NO_COMMENTS)
to_ptx_12.9 = $(call say,NVRTC)$(PYTHON) tools/nvrtc/compile.py $(NVRTC) $1 $< $@ \
  $(NVRTC_FLAGS) && $(NO_COMMENTS)
version_nvcc = $(NVCC) --version | sed -n 's/.*release .*, V/nvcc /p'
version_12.9 = sed -n 's/^nvidia-cuda-nvrtc-cu12==\([0-9.]*\).*/NVRTC \1/p' \
  tools/setup/cuda-12.9.txt
to_cubin    = $(call say,PTXAS)$(KERNEL_PTXAS) -arch=$1 -v $< -o $@ 2> $@.report || \
  { cat $@.report; exit 1; }

# zstd, which drivers unpack from 12.4 on, and the emulator; the kernels want 12.9 anyhow. Packing
# for size takes thirty times as long and saves 4.4 MB of 13.1: it is for what ships, and for the
# tests of it.
PACKED_FOR_SIZE := dist install wheel check-wheel test test-times test-long gates check-hardening
PACK        ?= $(if $(filter $(PACKED_FOR_SIZE),$(MAKECMDGOALS)),size,balance)
FATBINARY    = $(CUDA_HOME)/bin/fatbinary
to_fatbin    = $(call say,FATBIN)$(FATBINARY) --create=$@ -64 --compress-all \
               --compress-mode=$(PACK) --image3=kind=$1,sm=$2,file=$<

KERNEL_PTXAS := $(PTXAS)
ifeq ($(KERNELS),12.9)
KERNEL_PTXAS := $(NVRTC_HOME)/nvidia/cuda_nvcc/bin/ptxas
$(NVRTC): tools/setup/cuda-12.9.txt
	@PYTHON='$(call given,PYTHON)' tools/setup/setup.sh $(NVRTC_HOME) 12.9
	@touch $@
$(SM100_PTX) $(SM120_PTX) $(SM90_PTX) $(SM80_PTX) $(SM80_90_PTX) $(QUANTIZE80_PTX) \
  $(QUANTIZE_PTX) $(QUANTIZE100_PTX): $(NVRTC) tools/nvrtc/compile.py \
  $(wildcard tools/nvrtc/include/*)
endif

# ---- images --------------------------------------------------------------------------------------

ifneq ($(KERNELS),prebuilt)
$(SM100_PTX): kernel/sm100/gemm.cu $(NVRTC_HDR)
	@mkdir -p $(@D)
	$(call to_ptx_$(KERNELS),compute_100f)
$(KERNEL_OUT)/gemm_sm100.sm_10%.cubin: $(SM100_PTX)
	$(call to_cubin,sm_10$*)
$(SM110_CUBIN) $(QUANTIZE110_CUBIN): $(KERNEL_OUT)/%_sm100.sm_110f.cubin: $(KERNEL_OUT)/%_sm110.ptx
	$(call to_cubin,sm_110f)
$(SM110_PTX) $(QUANTIZE110_PTX): $(KERNEL_OUT)/%_sm110.ptx: $(KERNEL_OUT)/%_sm100.ptx
	sed -e 's/^\.version .*/.version 9.0/' -e 's/^\.target sm_100f/.target sm_110f/' $< >$@
# PTX 9.0 gave it that name, and no driver before 13.0 has it: ptxas of 12.9 does not know it.
$(SM110_CUBIN) $(QUANTIZE110_CUBIN): KERNEL_PTXAS = $(PTXAS)

$(SM120_PTX): kernel/sm120/gemm.cu $(NVRTC_HDR)
	@mkdir -p $(@D)
	$(call to_ptx_$(KERNELS),compute_120f)
$(SM120_CUBIN): $(SM120_PTX)
	$(call to_cubin,sm_120f)
# The quantizer converts as on 10.x.
$(QUANTIZE120_PTX): $(QUANTIZE100_PTX)
	sed -e 's/^\.target sm_100f/.target sm_120f/' $< >$@
$(QUANTIZE120_CUBIN): $(QUANTIZE120_PTX)
	$(call to_cubin,sm_120f)

$(SM90_PTX): kernel/sm90/gemm.cu $(NVRTC_HDR)
	@mkdir -p $(@D)
	$(call to_ptx_$(KERNELS),compute_90a)
$(SM90_CUBIN): $(SM90_PTX)
	$(call to_cubin,sm_90a)

# The oldest version that its instructions need, so that older drivers take the text; the pragma is
# a hint to ptxas that those do not know.
OLDEST_VERSION = @sed -i -e 's/^\.version .*/.version 7.0/' -e '/used_bytes_mask/d' $@
$(SM80_PTX): kernel/sm80/gemm.cu $(NVRTC_HDR)
	@mkdir -p $(@D)
	$(call to_ptx_$(KERNELS),compute_80)
	$(OLDEST_VERSION)
$(KERNEL_OUT)/gemm_sm80.%.cubin: $(SM80_PTX)
	$(call to_cubin,$*)
$(SM80_90_PTX): kernel/sm80/gemm.cu $(NVRTC_HDR)
	@mkdir -p $(@D)
	$(call to_ptx_$(KERNELS),compute_90a)
$(SM80_90_CUBIN): $(SM80_90_PTX)
	$(call to_cubin,sm_90a)

$(QUANTIZE80_PTX): kernel/quantize/quantize.cu $(NVRTC_HDR)
	@mkdir -p $(@D)
	$(call to_ptx_$(KERNELS),compute_80)
	$(OLDEST_VERSION)
$(QUANTIZE_PTX): kernel/quantize/quantize.cu $(NVRTC_HDR)
	@mkdir -p $(@D)
	$(call to_ptx_$(KERNELS),compute_90)
$(KERNEL_OUT)/quantize.%.cubin: $(QUANTIZE_PTX)
	$(call to_cubin,$*)

$(QUANTIZE100_PTX): kernel/quantize/quantize.cu $(NVRTC_HDR)
	@mkdir -p $(@D)
	$(call to_ptx_$(KERNELS),compute_100f)
$(KERNEL_OUT)/quantize_sm100.sm_10%.cubin: $(QUANTIZE100_PTX)
	$(call to_cubin,sm_10$*)

PACKED      := $(KERNEL_OUT)/pack.txt
$(PACKED): $(ALWAYS)
	@mkdir -p $(@D) && echo $(PACK) | cmp -s - $@ || echo $(PACK) >$@
$(KERNEL_OUT)/%.cubin.fatbin: $(KERNEL_OUT)/%.cubin $(PACKED)
	$(call to_fatbin,elf,$(patsubst .sm_%,%,$(suffix $*)))
$(KERNEL_OUT)/%.ptx.fatbin: $(KERNEL_OUT)/%.ptx $(PACKED)
	$(call to_fatbin,ptx,$(shell sed -n 's/^.target sm_//p' $<))

# Looked at each time, since another compiler may have come to the same place: then all images are
# made again.
$(COMPILER_TXT): $(ALWAYS)
	@mkdir -p $(@D) && $(version_$(KERNELS)) >$@.new && [ -s $@.new ]
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi
COMPILED_PTX := $(SM100_PTX) $(SM120_PTX) $(SM90_PTX) $(SM80_PTX) $(SM80_90_PTX) \
                $(QUANTIZE80_PTX) $(QUANTIZE_PTX) $(QUANTIZE100_PTX)
$(COMPILED_PTX): $(COMPILER_TXT)
-include $(COMPILED_PTX:=.d)
# What was made without a list of what its source includes depends on every header.
$(foreach ptx,$(COMPILED_PTX),$(if $(wildcard $(ptx).d),,$(eval $(ptx): $(KERNEL_HDR))))
endif

# make begins with what it reads first, and nothing takes as long as the Hopper kernel.
long-steps: $(filter $(SM90_CUBIN),$(KERNEL_IMAGES))
.PHONY: kernels check-ptxas
kernels: $(KERNEL_IMAGES) $(KERNEL_FATBINS) $(COMPILER_TXT)  ## the PTX and the cubins; KERNELS=12.9 for drivers from 12.9, GPUS="90 100" for these GPUs alone
check-ptxas: $(SM100_CUBINS) $(SM120_CUBIN) $(SM90_CUBIN) $(SM80_CUBINS) $(SM80_90_CUBIN) $(QUANTIZE80_PTX) $(QUANTIZE_CUBIN) $(QUANTIZE100_CUBINS) $(COMPILER_TXT) | $(SETUP)  ## ptxas: no spills, no stack, instructions there, main loops no slower to issue
	tools/gates/check_ptxas.sh sm100 $(SM100_PTX) $(SM100_CUBINS)
	tools/gates/check_ptxas.sh sm120 $(SM120_PTX) $(SM120_CUBIN)
	tools/gates/check_ptxas.sh sm90 $(SM90_PTX) $(SM90_CUBIN)
	tools/gates/check_ptxas.sh mma $(SM80_PTX) $(SM80_CUBINS)
	tools/gates/check_ptxas.sh mma90 $(SM80_90_PTX) $(SM80_90_CUBIN)
	tools/gates/check_ptxas.sh quantize $(QUANTIZE_PTX) $(QUANTIZE_CUBIN)
	$(KERNEL_PTXAS) -arch=sm_80 $(QUANTIZE80_PTX) -o /dev/null
	tools/gates/check_ptxas.sh quantize100 $(QUANTIZE100_PTX) $(QUANTIZE100_CUBINS)
	$(PYTHON) tools/gates/sass.py $(lastword $(COMPILER_OF_KERNELS)) sm100 \
	  $(KERNEL_OUT)/gemm_sm100.sm_100a.cubin
	$(PYTHON) tools/gates/sass.py $(lastword $(COMPILER_OF_KERNELS)) sm90 $(SM90_CUBIN)
	$(PYTHON) tools/gates/sass.py $(lastword $(COMPILER_OF_KERNELS)) sm120 $(SM120_CUBIN)
	$(PYTHON) tools/gates/sass.py $(lastword $(COMPILER_OF_KERNELS)) sm80 $(SM80_90_CUBIN)
