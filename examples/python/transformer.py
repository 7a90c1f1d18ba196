# SPDX-License-Identifier: MIT
"""transformer.py: a Llama with its linear layers in NVFP4, beside itself in bfloat16, on a GPU.

    make setup-wheel wheel && pip install build/wheel/*.whl torch transformers
    python examples/python/transformer.py           # --layers 4 --hidden 8192 --inner 28672

The model is made here, with random weights: nothing is downloaded. It runs in bfloat16, then
nvfp4gemm.nn.replace_linear puts NVFP4 layers in the place of all linear ones but lm_head, and it
runs again. It prints tokens per second of a prompt, of generation by transformers, where the host's
time counts, and of one step without past in a CUDA graph, where it does not; bytes; and how far the
logits are from those in bfloat16. Random weights are the hardest case for that: nothing in them
repeats.
"""

import argparse
import time

# Prompts of so many tokens, and batches that generate.
PROMPT, BATCHES, NEW_TOKENS = 2048, (1, 16, 64), 32


def model_of(options, device):
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM
    heads = max(1, options.hidden // 128)
    config = LlamaConfig(
        vocab_size=32000, hidden_size=options.hidden, intermediate_size=options.inner,
        num_hidden_layers=options.layers, num_attention_heads=heads,
        num_key_value_heads=max(1, heads // 8), max_position_embeddings=4096,
        # Each linear layer keeps the size of what goes in, as training would.
        initializer_range=options.hidden ** -0.5)
    torch.manual_seed(0)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)
    try:
        with torch.device(device):
            return LlamaForCausalLM(config).eval()
    finally:
        torch.set_default_dtype(before)


def seconds(call, device, times):
    """The best of some."""
    import torch
    best = float("inf")
    for _ in range(times + 1):
        if device == "cuda":
            torch.cuda.synchronize()
        start = time.perf_counter()
        call()
        if device == "cuda":
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return best


def step_in_a_graph(model, ids):
    """A forward pass of one token each of a batch, captured."""
    import torch
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(2):
            model(ids, use_cache=False)
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(ids, use_cache=False)
    return graph.replay


def measure(model, ids, options, device):
    """{what: tokens per second}, and the logits of a prompt."""
    rates = {f"prompt of {ids.shape[1]}": ids.shape[1] / seconds(
        lambda: model(ids, use_cache=False), device, 3)}
    for batch in options.batches:
        prompts = ids[0, :16].repeat(batch, 1)

        def generate():
            model.generate(prompts, attention_mask=prompts.new_ones(prompts.shape), do_sample=False,
                           min_new_tokens=options.new_tokens, max_new_tokens=options.new_tokens,
                           pad_token_id=0)

        rate = batch * options.new_tokens / seconds(generate, device, 2)
        rates[f"generation, batch {batch}"] = rate
        if device == "cuda":
            step = step_in_a_graph(model, prompts[:, :1].contiguous())
            rates[f"a step in a graph, batch {batch}"] = batch / seconds(step, device, 20)
    return rates, model(ids, use_cache=False).logits[0].float()


def weight_bytes(model):
    return sum(x.numel() * x.element_size() for x in (*model.parameters(), *model.buffers()))


def run(options, device):
    import torch
    from nvfp4gemm.nn import replace_linear
    model = model_of(options, device)
    ids = torch.randint(0, 32000, (1, options.prompt),
                        generator=torch.Generator().manual_seed(1)).to(device)
    with torch.inference_mode():
        before, logits = measure(model, ids, options, device)
        bytes_before = weight_bytes(model)
        # 16-bit activations as they are where the library has that; elsewhere quantized, too.
        quantize = device == "cuda" and torch.cuda.get_device_capability() != (9, 0)
        names = replace_linear(model, skip=["lm_head"], quantize_input=quantize)
        after, approximate = measure(model, ids, options, device)
    print(f"{options.layers} layers, hidden {options.hidden}, inner {options.inner}: {len(names)} "
          f"linear layers in NVFP4, activations {'quantized' if quantize else 'bfloat16'}")
    print("| tokens per second | bfloat16 | NVFP4 | |\n|---|---|---|---|")
    for what, rate in before.items():
        print(f"| {what} | {rate:.0f} | {after[what]:.0f} | {after[what] / rate:.2f} x |")
    print(f"weights: {bytes_before / 1e9:.2f} GB, then {weight_bytes(model) / 1e9:.2f} GB")
    error = float((approximate - logits).norm() / logits.norm())
    same = float((approximate.argmax(-1) == logits.argmax(-1)).float().mean())
    print(f"logits: relative error {error:.3f}, the same best token at {100 * same:.0f} % "
          "of places")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--hidden", type=int, default=8192, help="a multiple of 128")
    parser.add_argument("--inner", type=int, default=28672, help="a multiple of 16")
    parser.add_argument("--prompt", type=int, default=PROMPT, help="tokens, at most 4096")
    parser.add_argument("--batches", type=int, nargs="*", default=BATCHES)
    parser.add_argument("--new-tokens", type=int, default=NEW_TOKENS)
    parser.add_argument("--cpu", action="store_true",
                        help="by the library's reference: for tiny models")
    options = parser.parse_args()
    try:
        import torch
        import transformers
    except ImportError as missing:
        print(f"transformer.py: {missing}; it needs torch and transformers; nothing was done")
        return 0
    if not options.cpu and not torch.cuda.is_available():
        print("transformer.py: torch finds no GPU here and nothing was done; --cpu with tiny sizes "
              "needs none")
        return 0
    transformers.logging.set_verbosity_error()
    run(options, "cpu" if options.cpu else "cuda")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
