# SPDX-License-Identifier: MIT
"""Greedy generation by one step that is the same work for each token, as a CUDA graph repeats it:
static cache, and token and position in tensors that the step itself writes."""
import inspect

import torch
from transformers import StaticCache


class Step:
    """The next token of each sequence, and its logits, from a prompt [sequences, length]."""

    def __init__(self, model, prompt, steps):
        self.model = model
        # Its name in transformers 5.24, and before.
        known = inspect.signature(model.forward).parameters
        self.word = "cache" if "cache" in known else "past_key_values"
        self.cache = StaticCache(config=model.config, max_cache_len=prompt.shape[1] + steps)
        logits = model(prompt, **{self.word: self.cache}).logits[:, -1:]
        self.position = torch.tensor([[prompt.shape[1]]], device=prompt.device)
        self.logits, self.token = logits.clone(), logits.argmax(-1)
        self.replay = self._step

    def _step(self):
        logits = self.model(self.token, position_ids=self.position.expand_as(self.token),
                            **{self.word: self.cache}).logits
        self.logits.copy_(logits)
        self.token.copy_(logits.argmax(-1))
        self.position += 1

    def capture(self):
        """From now on replay() is one CUDA graph. The step runs once before, outside of it: it
        makes plans and loads kernels; then all that it wrote is as it was."""
        kept = [tensor for layer in self.cache.layers for tensor in vars(layer).values()
                if isinstance(tensor, torch.Tensor)] + [self.token, self.position, self.logits]
        before = [tensor.clone() for tensor in kept]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            self._step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self._step()
        for tensor, value in zip(kept, before):
            tensor.copy_(value)
        self.replay = graph.replay


@torch.no_grad()
def generate(model, prompt, steps, capture=False):
    """(Prompt and `steps` new tokens, the logits [sequences, steps, vocabulary] that chose
    them.)"""
    step = Step(model, prompt, steps)
    tokens, logits = [prompt, step.token.clone()], [step.logits.clone()]
    if capture:
        step.capture()
    for _ in range(steps - 1):
        step.replay()
        tokens.append(step.token.clone())
        logits.append(step.logits.clone())
    return torch.cat(tokens, 1), torch.cat(logits, 1)
