# SPDX-License-Identifier: MIT
# Catch2 and what every test program of both products is linked with.

# Catch2 3 is a library, 2.13 one header. What that header compiles for main takes longer than a
# folder's tests. Debian has it compiled, with a main that only runs the session. The main takes
# another name here; what is copied is still an archive, which the linker knows by its content.
CATCH_3      := $(wildcard $(addsuffix /include/catch2/catch_all.hpp,/usr /usr/local))
CATCH_LIBS   := $(if $(CATCH_3),-lCatch2)
CATCH_MAIN_A := $(if $(CATCH_3),,$(firstword $(wildcard /usr/lib/libCatch2WithMain.a \
                  /usr/lib/*/libCatch2WithMain.a)))
CATCH_MAIN   := $(if $(CATCH_MAIN_A),$(B)/obj/tools/testing/catch_main.o)
TEST_SESSION := $(addprefix $(B)/obj/tools/testing/,session.o instances.o) $(CATCH_MAIN)
TEST_MAIN    := $(B)/obj/tools/testing/main.o $(TEST_SESSION)

$(B)/obj/tools/testing/%.o: tools/testing/%.cc
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(TEST_FLAGS) $(DEPS) -c $< -o $@
$(B)/obj/tools/testing/session.o: TEST_FLAGS += -O0 \
  $(if $(CATCH_MAIN),-DNVFP4_CATCH_MAIN=catch_main)
$(CATCH_MAIN): $(CATCH_MAIN_A)
	@mkdir -p $(@D)
	$(call say,COPY)$(OBJCOPY) --redefine-sym main=catch_main $< $@

# For what includes catch.h, which is compiled in half the time if not optimised. No macros: a
# program that has others would have to read the text.
TEST_GCH := $(call gch,tools/testing)
# Catch2 turns this warning off, for its macros; g++ 12 forgets that with the header compiled.
AFTER_CATCH = $(call precompiled,tools/testing) -Wno-parentheses
$(B)/obj/tools/testing/instances.o: private TEST_FLAGS += -O0 $(AFTER_CATCH)
$(B)/obj/tools/testing/instances.o: $(TEST_GCH)
$(B)/obj/tools/testing/precompiled.h.gch: OPTIMIZE := -O0
$(B)/obj/tools/testing/precompiled.h.gch: $(B)/obj/tools/testing/precompiled.h
	$(call precompile,$(TEST_COMMON))

# $(call units,SOURCES): a folder's tests as objects, UNIT_OF of them to an object, which has the
# name of the first: what they all include and instantiate is most of what they cost. Sources that
# others call, which define a namespace with a name, and those that ALONE names besides have one
# each.
UNIT_OF ?= 12
ALONE   := $(shell grep -lE '^(namespace [a-z0-9_:]+ \{|int main)' test/*/*.cc \
             tools/emulator/test/*/*.cc)
units    = $(patsubst %.cc,$(B)/obj/%.o,$(filter $(ALONE),$1)) \
           $(call united,$(filter-out $(ALONE),$1))
united   = $(if $1,$(call unit,$(wordlist 1,$(UNIT_OF),$1)) $(call united,$(wordlist \
             $(shell expr $(UNIT_OF) + 1),$(words $1),$1)))
unit     = $(eval $(call unit_rule,$(call unit_name,$(firstword $1)),$1)) \
           $(call unit_name,$(firstword $1)).o
unit_name = $(B)/obj/$(dir $1)from_$(basename $(notdir $1))
define unit_rule
$1.cc: $2 tools/testing/unit.sh $(UNIT_LIST)
	@tools/testing/unit.sh $$@ $2
endef
# Which sources there are: one that is gone makes no file newer.
UNIT_LIST := $(B)/obj/units.txt
$(UNIT_LIST): FORCE
	@mkdir -p $(@D) && echo $(UNIT_OF) test/*/*.cc tools/emulator/test/*/*.cc >$@.new
	@if cmp -s $@.new $@; then rm $@.new; else mv $@.new $@; fi

-include $(TEST_MAIN:.o=.d) $(TEST_GCH:.gch=.d)
