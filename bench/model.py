#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""model.py >RESULT.csv: a whole Llama of transformers on a GPU, with random weights: microseconds
of a decoding step and of a prompt, of bf16 weights and of ours, by CUDA graphs that take turns; of
each also what its products alone take, and the memory. Needs torch with CUDA and transformers 5;
NVFP4GEMM_LIBRARY names the library if it is not installed.

--layers and the sizes that follow it choose another model; `bench/plot.py RESULT.csv RESULT.svg`
draws the table."""
import argparse
import datetime
import gc
import os
import statistics
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path[:0] = [os.path.join(ROOT, "tools/python"), os.path.join(ROOT, "tools/python/test/models")]

import torch  # noqa: E402
import transformers  # noqa: E402

import nvfp4gemm  # noqa: E402
from decode import Step  # noqa: E402
from nvfp4gemm.nn import Linear, replace_linear  # noqa: E402

# What replace_linear is called with, and whether its layers are packed. The first kind is what the
# others are compared with.
KINDS = {"bf16": (None, False), "w4a16": ({}, False), "w4a16_packed": ({}, True),
         "w4a4": ({"quantize_input": True}, False)}
BATCHES, PROMPTS = (1, 8, 32, 64), (512, 2048)
CONTEXT = 128  # tokens of each sequence before the step that is measured
TURNS, REPLAYS = 9, 5
# The logits of packed W4A16 beside those of the same weights dequantized, both of bf16 tokens.
NEAR = 0.1
COLUMNS = ("work", "sequences", "tokens", "kind", "us", "products_us", "gb")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    for name, default in (("layers", 28), ("hidden", 3072), ("intermediate", 8192), ("heads", 24),
                          ("kv-heads", 8), ("vocabulary", 128256)):
        parser.add_argument(f"--{name}", type=int, default=default)
    return parser.parse_args()


def config_of(sizes):
    return transformers.LlamaConfig(
        hidden_size=sizes.hidden, intermediate_size=sizes.intermediate,
        num_hidden_layers=sizes.layers, num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.kv_heads, head_dim=sizes.hidden // sizes.heads,
        vocab_size=sizes.vocabulary, tie_word_embeddings=True, max_position_embeddings=8192,
        pad_token_id=0, bos_token_id=1, eos_token_id=2)


def model_of(config, options, pack):
    """The same random weights each time; ours are quantized from them."""
    torch.manual_seed(1)
    with torch.device("cuda"):
        torch.set_default_dtype(torch.bfloat16)
        model = transformers.LlamaForCausalLM(config).eval()
        torch.set_default_dtype(torch.float32)
    if options is not None:
        replace_linear(model, skip=["lm_head"], **options)
    for layer in model.modules() if pack else ():
        if isinstance(layer, Linear):
            layer.pack()
    gc.collect()
    torch.cuda.empty_cache()
    return model


def tokens_of(sequences, length, vocabulary):
    torch.manual_seed(2)
    return torch.randint(3, vocabulary, (sequences, length), device="cuda")


@torch.no_grad()
def verify(config):
    """Of ours beside a model of the same weights, dequantized."""
    ours, exact = model_of(config, {}, True), model_of(config, None, False)
    for name, layer in ours.named_modules():
        if isinstance(layer, Linear):
            exact.get_submodule(name).weight.data.copy_(layer.packed().dequantize())
    prompt = tokens_of(2, 64, config.vocab_size)
    found, expected = (model(prompt).logits.float() for model in (ours, exact))
    lacks = float((found - expected).norm() / expected.norm())
    if not lacks < NEAR:
        sys.exit(f"model.py: logits are {lacks:.3f} off those of the weights dequantized")
    return lacks


def graph_of(work):
    """What replays the work as a CUDA graph. The work runs once before, outside of it, since it
    makes plans and loads kernels then; it is kept, and with it the tensors that the graph reads."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        work()
    return lambda: (graph.replay(), work)


def products_of(model, rows):
    """All products of the layers that KINDS differ in, one after the other, of `rows` tokens."""
    layers = [layer for layer in model.model.modules() if isinstance(layer, torch.nn.Linear)]
    inputs = {width: torch.randn(rows, width, device="cuda", dtype=torch.bfloat16)
              for width in sorted({layer.in_features for layer in layers})}

    def work():
        for layer in layers:
            layer(inputs[layer.in_features])
    return graph_of(work)


def step_of(model, work, prompt):
    if work == "prompt":
        return graph_of(lambda: model(prompt, use_cache=False, logits_to_keep=1))
    step = Step(model, prompt, 1 + (TURNS + 1) * REPLAYS)
    step.capture()
    return lambda: step.replay()  # a bound method of the graph alone would not keep the cache


def microseconds(replay):
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(REPLAYS):
        replay()
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) * 1e3 / REPLAYS


def in_turns(replays):
    """The median of each, after one turn that warms up."""
    times = [[microseconds(replay) for replay in replays] for _ in range(TURNS + 1)][1:]
    return [statistics.median(column) for column in zip(*times)]


@torch.no_grad()
def cell(models, own, work, sequences, length, config):
    """A row of each kind."""
    prompt, rows = tokens_of(sequences, length, config.vocab_size), sequences
    rows *= length if work == "prompt" else 1
    replays, peaks = [], []
    for kind, model in models.items():
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        replays.append(step_of(model, work, prompt))
        peaks.append((own[kind] + torch.cuda.max_memory_allocated() - before) / 1e9)
    steps = in_turns(replays)
    replays = None
    products = in_turns([products_of(model, rows) for model in models.values()])
    for kind, step, alone, peak in zip(models, steps, products, peaks):
        print(work, sequences, length, kind, f"{step:.1f}", f"{alone:.1f}", f"{peak:.2f}", sep=",",
              flush=True)


def driver():
    try:
        with open("/sys/module/nvidia/version") as file:
            return file.read().strip()
    except OSError:
        return "?"


def main():
    sizes = arguments()
    config = config_of(sizes)
    lacks = verify(config)
    properties = torch.cuda.get_device_properties(0)
    for name, value in (
            ("date", datetime.datetime.now(datetime.timezone.utc).date()),
            ("command", " ".join(["bench/model.py", *sys.argv[1:]])),
            ("device", f"{properties.name}, {properties.multi_processor_count} SMs"),
            ("driver", f"{driver()}, CUDA {torch.version.cuda}"),
            ("library", f"nvfp4gemm {nvfp4gemm.__version__}, torch {torch.__version__}, "
                        f"transformers {transformers.__version__}"),
            ("model", f"Llama, {sizes.layers} layers, {sizes.hidden} x {sizes.intermediate}, "
                      f"{sizes.heads} heads, {sizes.kv_heads} of keys; random weights"),
            ("context", f"{CONTEXT} tokens of each sequence before a decoding step"),
            ("verified", f"packed: logits {lacks:.4f} off those of the same weights dequantized")):
        print(f"# {name:9} {value}")
    print(*COLUMNS, sep=",")
    models, own = {}, {}
    for kind, how in KINDS.items():
        before = torch.cuda.memory_allocated()
        models[kind] = model_of(config, *how)
        own[kind] = torch.cuda.memory_allocated() - before
    for sequences in BATCHES:
        cell(models, own, "decode", sequences, CONTEXT, config)
    for length in PROMPTS:
        cell(models, own, "prompt", 1, length, config)


if __name__ == "__main__":
    main()
