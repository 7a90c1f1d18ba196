# SPDX-License-Identifier: MIT
# The timing model: docs/model.md.

# Measures what parameters.def says of a Hopper GPU; links the CUDA runtime.
$(B)/model_probe: tools/model/probe.cu
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) -std=c++17 -O2 -arch=sm_90a -o $@ $<
