"""A small mixture-of-experts decoder, with its cells and attributes named as MindSpore Transformers names them."""

# mypy: disallow-subclassing-any=False

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from mindspore import Parameter, Tensor, float32, mint, nn, ops
from mindspore.common.initializer import HeUniform, Normal, Uniform, initializer


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of the decoder; `ffn` is the width inside an expert, `topk` how many experts a token goes to."""

    vocabulary: int = 256
    layers: int = 2
    hidden: int = 64
    heads: int = 4
    ffn: int = 128
    experts: int = 8
    topk: int = 2
    sequence: int = 32
    balance: float = 0.01  # weight of the load-balancing loss


class RMSNorm(nn.Cell):
    def __init__(self, hidden: int, eps: float = 1e-6) -> None:
        super().__init__()
        self.eps = eps
        self.weight = Parameter(initializer("ones", (hidden,), float32))

    def construct(self, x: Tensor) -> Tensor:
        return x * mint.rsqrt(mint.mean(x * x, -1, True) + self.eps) * self.weight


class CoreAttention(nn.Cell):
    """Scaled dot-product attention; `max_logits_val` is each head's largest logit of the last forward pass."""

    def __init__(self, heads: int, head_dim: int) -> None:
        super().__init__()
        self.scale = 1.0 / math.sqrt(head_dim)
        self.max_logits_val = Tensor(np.zeros(heads, np.float32))

    def construct(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
        logits = mint.matmul(query, key.swapaxes(-1, -2)) * self.scale + mask
        self.max_logits_val = ops.stop_gradient(logits).max(axis=(0, 2, 3))
        return mint.matmul(mint.softmax(logits, -1), value)


class SelfAttention(nn.Cell):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.heads, self.head_dim = shape.heads, shape.hidden // shape.heads
        self.linear_qkv = mint.nn.Linear(shape.hidden, 3 * shape.hidden, bias=False)
        self.core_attention = CoreAttention(self.heads, self.head_dim)
        self.linear_proj = mint.nn.Linear(shape.hidden, shape.hidden, bias=False)

    def construct(self, x: Tensor, mask: Tensor) -> Tensor:
        batch, sequence, hidden = x.shape
        qkv = self.linear_qkv(x).reshape(batch, sequence, 3, self.heads, self.head_dim).permute(2, 0, 3, 1, 4)
        context = self.core_attention(qkv[0], qkv[1], qkv[2], mask)
        return self.linear_proj(context.permute(0, 2, 1, 3).reshape(batch, sequence, hidden))


class TopKRouter(nn.Cell):
    """Chooses `topk` experts a token; `tokens_per_expert` counts the assignments of the last forward pass."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.num_experts, self.topk = shape.experts, shape.topk
        self.weight = Parameter(initializer(HeUniform(math.sqrt(5)), (shape.experts, shape.hidden), float32))
        self.bias = Parameter(initializer("zeros", (shape.experts,), float32))
        self.tokens_per_expert = Tensor(np.zeros(shape.experts, np.float32))
        self.on, self.off = Tensor(1.0, float32), Tensor(0.0, float32)

    def draw(self) -> None:
        """Draw weight and bias, as `mint.nn.Linear` does."""
        hidden = self.weight.shape[1]
        weight = initializer(HeUniform(math.sqrt(5)), self.weight.shape, float32)
        bias = initializer(Uniform(1.0 / math.sqrt(hidden)), self.bias.shape, float32)
        self.weight.set_data(weight.init_data())
        self.bias.set_data(bias.init_data())

    def construct(self, tokens: Tensor) -> tuple[Tensor, Tensor]:
        """Tokens [T, hidden] -> gates [T, experts], zero for the experts not chosen, and the load-balancing loss."""
        probabilities = mint.softmax(mint.matmul(tokens, self.weight.T) + self.bias, -1)
        weights, chosen = ops.topk(probabilities, self.topk, -1)
        choice = ops.one_hot(chosen, self.num_experts, self.on, self.off)
        counts = mint.sum(choice, (0, 1))
        self.tokens_per_expert = ops.stop_gradient(counts)
        gates = mint.sum(choice * (weights / mint.sum(weights, -1, True)).unsqueeze(-1), 1)
        share = counts / (tokens.shape[0] * self.topk)
        return gates, self.num_experts * mint.sum(mint.mean(probabilities, 0) * share)


class Experts(nn.Cell):
    """Feed-forward experts with their weights stacked: two batched matrix products over all of them."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        up, down = (shape.experts, shape.hidden, shape.ffn), (shape.experts, shape.ffn, shape.hidden)
        self.weight1 = Parameter(initializer(Normal(0.02), up, float32))
        self.weight2 = Parameter(initializer(Normal(0.02), down, float32))

    def construct(self, tokens: Tensor, gates: Tensor) -> Tensor:
        inner = mint.nn.functional.silu(mint.matmul(tokens.unsqueeze(0), self.weight1))
        return mint.sum(mint.matmul(inner, self.weight2) * gates.T.unsqueeze(-1), 0)


class MoELayer(nn.Cell):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.router = TopKRouter(shape)
        self.experts = Experts(shape)
        # drawn last, so that a seed gives the weights of the runs from which docs/demo.md has its steps
        self.router.draw()

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        tokens = x.reshape(-1, x.shape[-1])
        gates, balance = self.router(tokens)
        return self.experts(tokens, gates).reshape(x.shape), balance


class TransformerLayer(nn.Cell):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = RMSNorm(shape.hidden)
        self.self_attention = SelfAttention(shape)
        self.pre_mlp_layernorm = RMSNorm(shape.hidden)
        self.mlp = MoELayer(shape)

    def construct(self, x: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        x = x + self.self_attention(self.input_layernorm(x), mask)
        update, balance = self.mlp(self.pre_mlp_layernorm(x))
        return x + update, balance


class Decoder(nn.Cell):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.layers = nn.CellList([TransformerLayer(shape) for _ in range(shape.layers)])
        self.final_layernorm = RMSNorm(shape.hidden)
        self.mask = Tensor(np.triu(np.full((shape.sequence, shape.sequence), -1e9, np.float32), 1))

    def construct(self, x: Tensor) -> tuple[Tensor, Tensor]:
        total = 0.0
        for layer in self.layers:
            x, balance = layer(x, self.mask)
            total = total + balance
        return self.final_layernorm(x), total


class Embedding(nn.Cell):
    def __init__(self, shape: Shape) -> None:
        super().__init__()
        words, positions = (shape.vocabulary, shape.hidden), (shape.sequence, shape.hidden)
        self.word_embeddings = Parameter(initializer(Normal(0.02), words, float32))
        self.position_embeddings = Parameter(initializer(Normal(0.02), positions, float32))

    def construct(self, tokens: Tensor) -> Tensor:
        return ops.gather(self.word_embeddings, tokens, 0) + self.position_embeddings[: tokens.shape[1]]


class MoEModel(nn.Cell):
    """Tokens and labels [batch, sequence] -> (training loss with the balancing term, cross entropy alone)."""

    def __init__(self, shape: Shape | None = None) -> None:
        super().__init__()
        self.shape = shape or Shape()
        self.embedding = Embedding(self.shape)
        self.decoder = Decoder(self.shape)
        self.output_layer = mint.nn.Linear(self.shape.hidden, self.shape.vocabulary, bias=False)

    def construct(self, tokens: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
        hidden, balance = self.decoder(self.embedding(tokens))
        logits = self.output_layer(hidden).reshape(-1, self.shape.vocabulary)
        loss = ops.cross_entropy(logits, labels.reshape(-1))
        return loss + self.shape.balance * balance, loss
