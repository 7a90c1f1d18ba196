# SPDX-License-Identifier: MIT
# Catch2 and what every test program of both products is linked with.

# Catch2 3 is a library, 2.13 one header.
CATCH_3      := $(wildcard $(addsuffix /include/catch2/catch_all.hpp,/usr /usr/local))
CATCH_LIBS   := $(if $(CATCH_3),-lCatch2)
TEST_SESSION := $(B)/obj/tools/testing/session.o
TEST_MAIN    := $(B)/obj/tools/testing/main.o $(TEST_SESSION)

$(B)/obj/tools/testing/%.o: tools/testing/%.cc
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(TEST_FLAGS) $(DEPS) -c $< -o $@
$(TEST_SESSION): TEST_FLAGS += -O0

# For what includes catch.h, which is compiled in half the time if not optimised. No macros: a
# program that has others would have to read the text.
TEST_GCH := $(call gch,tools/testing)
# Catch2 turns this warning off, for its macros; g++ 12 forgets that with the header compiled.
AFTER_CATCH = $(call precompiled,tools/testing) -Wno-parentheses
$(B)/obj/tools/testing/precompiled.h.gch: OPTIMIZE := -O0
$(B)/obj/tools/testing/precompiled.h.gch: $(B)/obj/tools/testing/precompiled.h
	$(call precompile,$(TEST_COMMON))

-include $(TEST_MAIN:.o=.d) $(TEST_GCH:.gch=.d)
