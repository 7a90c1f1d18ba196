# SPDX-License-Identifier: MIT
# Promises about the library as a file. Each gate is one script and runs alone.

.PHONY: check-symbols check-hardening check-abi check-repro check-threads
check-symbols: $(LIB)  ## exports, imports and needed libraries against the reviewed lists
	@tools/check_symbols.sh $(LIB)
check-hardening: $(LIB)  ## RELRO, BIND_NOW, NX, no RPATH, no TEXTREL, build id, under 5 MB
	@tools/check_hardening.sh $(LIB)
	@CC='$(CC)' tools/check_hardening.sh self-test $(LIB) $(HOST_OBJ)
check-abi:  ## the header in four dialects and two compilers; its layout against test/golden/abi.txt
	@CC='$(CC)' PYTHON='$(PYTHON)' tools/check_abi.sh $(B)
check-repro: | $(SETUP)  ## library, archive, PTX, cubins: built twice in different surroundings, same bytes
	@NVCC='$(abspath $(NVCC))' CC='$(CC)' CXX='$(CXX)' MAKE='$(MAKE)' tools/check_repro.sh $(B)
