# SPDX-License-Identifier: MIT
# Promises about the library as a file. Each gate is one script and runs alone.

GATES := check-layers check-fields check-files check-hacking check-install check-symbols \
         check-hardening check-abi check-repro check-threads check-docs check-aarch64

# The library again, with types for abidiff to read in the sources that define what it exports.
# Nobody needs them where abidiff is not installed.
ABI_SRC := $(filter host/api/%,$(HOST_SRC))
ABI_OBJ := $(ABI_SRC:%.cc=$(B)/abi/%.o) $(filter-out $(ABI_SRC:%.cc=$(B)/obj/%.o),$(HOST_OBJ))
ABI_LIB := $(if $(shell command -v abidiff),$(B)/abi/libnvfp4gemm.so)
$(B)/abi/host/%.o: host/%.cc
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(HOST_FLAGS) -DNVFP4_COMPILER='"$(COMPILER_OF_KERNELS)"' -g -O1 \
	  $(DEPS) -c $< -o $@
$(B)/abi/libnvfp4gemm.so: $(ABI_OBJ) host/api/libnvfp4gemm.map
	$(call say,LINK)$(CC) $(LIB_FLAGS) -o $@ $(ABI_OBJ) -lm -ldl -pthread

.PHONY: gates layers $(GATES)
gates: check-ptxas $(GATES)  ## every gate
check-layers:  ## the import rules of HACKING.md: every include a path from the root, none upward
	@python3 tools/gates/check_layers.py
check-fields:  ## in how many files each field of nvfp4_gemm_desc stands: what its row says is not said again
	@python3 tools/gates/check_fields.py
check-files:  ## endings, blanks, tabs, licence lines and some habits of the English of every file that git has
	@python3 tools/gates/check_files.py
check-hacking:  ## HACKING.md's lists name nine of ten files that the last such change touched
	@python3 tools/gates/check_hacking.py
layers: | $(SETUP)  ## the rooms and who includes whom, as build/layers.svg
	@mkdir -p $(B) && python3 tools/gates/check_layers.py --draw $(B)/layers.svg
check-symbols: $(LIB)  ## exports, imports and needed libraries against the reviewed lists
	@tools/gates/check_symbols.sh $(LIB)
check-hardening: $(LIB)  ## RELRO, BIND_NOW, NX, no RPATH, no TEXTREL, build id, under 8,000,000 bytes
	@tools/gates/check_hardening.sh $(LIB)
	@CC='$(CC)' tools/gates/check_hardening.sh self-test $(LIB) $(HOST_OBJ)
check-abi: $(ABI_LIB) | $(SETUP)  ## the header in four dialects, two compilers; its interface against test/golden, abidiff
	@CC='$(CC)' PYTHON='$(PYTHON)' tools/gates/check_abi.sh $(B)
check-repro: library static kernels | $(SETUP)  ## library, archive, PTX, cubins: built again in other surroundings, same bytes
	@NVFP4_LONG=1 NVCC='$(abspath $(NVCC))' CC='$(CC)' CXX='$(CXX)' MAKE='$(MAKE)' \
	  PYTHON='$(PYTHON)' tools/gates/check_repro.sh $(B) $(KERNELS)

# Not in `gates`: it downloads.
.PHONY: check-pins
check-pins: | $(SETUP)  ## set-up's wheels for Python 3.10 to 3.14 on both processors, downloaded by hash
	@PYTHON='$(PYTHON)' tools/setup/check_pins.sh

# On a machine with a GPU; PART is gemm, sanitize, ptx, random, random-gemm, hazard, bench or
# first-hour. What was built elsewhere will do.
.PHONY: check-hw
check-hw:  ## PART=gemm|sanitize|ptx|random|random-gemm|hazard|python|bench|first-hour on this machine's GPU, nothing is compiled
	@tools/gates/check_hw.sh $(B) $(PART) $(TOOLS)

# Not in `make test`: it builds everything once more.
check-aarch64: $(LIB) | $(SETUP)  ## library, emulator and host tests built for aarch64, run by qemu
	@NVCC='$(abspath $(NVCC))' MAKE='$(MAKE)' tools/gates/check_aarch64.sh $(B)

# host/ again, instrumented. The kernels in images.o are data.
TSAN_OBJ := $(HOST_SRC:%.cc=$(B)/tsan/%.o)
$(B)/tsan/host/%.o: host/%.cc
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(HOST_FLAGS) -DNVFP4_COMPILER='"$(COMPILER_OF_KERNELS)"' -g -O1 \
	  -fsanitize=thread $(DEPS) -c $< -o $@
$(B)/tsan/first_use: test/api/first_use.cc $(TSAN_OBJ) $(B)/obj/host/images.o
	$(call say,LINK)$(CXX) $(TEST_FLAGS) -g -fsanitize=thread -o $@ $^ -lm -ldl -pthread
check-threads: $(B)/tsan/first_use $(B)/emulator/libcuda.so.1  ## ThreadSanitizer: first use from 64 threads, 20 fresh processes
	@tools/gates/check_threads.sh $(B)

-include $(TSAN_OBJ:.o=.d) $(ABI_SRC:%.cc=$(B)/abi/%.d)

.PHONY: support
support: $(LIB)  ## the support matrix of README.md, the package's page and docs/using.md, by what the library answers
	@python3 tools/gates/support.py $(B)
check-docs: $(LIB) | $(SETUP)  ## every table of docs/ recomputed, its C compiled
	@CC='$(CC)' $(PYTHON) tools/gates/check_docs.py $(B)
