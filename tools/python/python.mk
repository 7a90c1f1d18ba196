# SPDX-License-Identifier: MIT
# Models of the transformers package on ours, whole: tools/python/test/models. Their packages are in
# an environment of their own, which nothing else needs.
MODELS := .models

.PHONY: setup-models test-models check-types
setup-models:  ## torch, transformers, peft and what else models.txt pins, into .models: 2.4 GB
	@PYTHON='$(call given,PYTHON)' tools/setup/setup.sh $(MODELS) models
test-models: check-types $(LIB) emulator  ## types; small models from their own files, grouped, beside float64; skips are failures
	@[ -x $(MODELS)/bin/python ] || { echo 'no $(MODELS): "make setup-models" makes it' >&2; exit 1; }
	$(MODELS)/bin/python tools/python/test/models/run_models.py $(B)
# Half a minute the first time, with torch's own types; 2 seconds then.
check-types:  ## mypy --strict of the package nvfp4gemm and of a program that uses it
	@tools/python/check_types.sh $(B) $(MODELS)
