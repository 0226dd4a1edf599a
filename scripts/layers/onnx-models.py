#!/usr/bin/env python3
"""Writes test/fixtures/onnx: small models that PyTorch exported, by both of its exporters, with what PyTorch gives.

    python scripts/layers/onnx-models.py

needs torch, onnx, onnxscript and transformers (tried: 2.13, 1.23, 0.7, 5.18). `models.json` has of each model the sizes that are
open, and arguments and results at the sizes of the export and at others. The older exporter writes NAME.script.onnx, the
newer one NAME.dynamo.onnx; where in Python a node was made is left out.
"""

import json
import warnings
from pathlib import Path

import onnx
import torch
from torch import nn
from torch.nn import functional as F

warnings.filterwarnings("ignore")
torch.manual_seed(0)
folder = Path(__file__).resolve().parent.parent.parent / "test/fixtures/onnx"
rand = torch.randn


class Of(nn.Module):
    """A function of tensors, with modules."""

    def __init__(self, function, **modules):
        super().__init__()
        self.function = function
        for name, module in modules.items():
            setattr(self, name, module)

    def forward(self, *given):
        return self.function(self, *given)


def tokens(*shape):
    return torch.randint(0, 20, shape)


def mask(batch, length):
    return (torch.arange(length) < length - torch.arange(batch)[:, None]).long()


models = {}


def model(name, module, dims, *runs, only=None):
    """`dims`: of each argument the names of open axes. `runs`: arguments, those of the export first."""
    models[name] = (module if isinstance(module, Of) else Of(lambda own, *x: own.inner(*x), inner=module), dims, runs, only)


model(
    "mlp",
    nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.LayerNorm(16), nn.Linear(16, 4), nn.Softmax(-1)),
    [{0: "n"}],
    (rand(3, 8),),
    (rand(5, 8),),
)
model(
    "cnn",
    nn.Sequential(
        nn.Conv2d(3, 4, 3, 2, 1, bias=False),
        nn.BatchNorm2d(4),
        nn.ReLU6(),
        nn.MaxPool2d(3, 2, 1),
        nn.Conv2d(4, 4, 3, groups=4, padding="same"),
        nn.SiLU(),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(4, 5),
    ),
    [{0: "n", 2: "h", 3: "w"}],
    (rand(2, 3, 16, 16),),
    (rand(1, 3, 21, 18),),
)
model(
    "unet",
    Of(
        lambda own, x: own.up(
            torch.cat([x, F.interpolate(own.down(F.avg_pool2d(x, 2)), size=x.shape[-2:], mode="bilinear")], 1)
        ),
        down=nn.Conv2d(2, 2, 3, padding=1),
        up=nn.ConvTranspose2d(4, 3, 2, 2),
    ),
    [{2: "h", 3: "w"}],
    (rand(1, 2, 8, 10),),
    (rand(1, 2, 12, 6),),
)
model("lstm", Of(lambda own, x: own.lstm(x)[0], lstm=nn.LSTM(6, 4, 2, bidirectional=True, batch_first=True)), [{1: "t"}], (rand(2, 5, 6),), (rand(2, 8, 6),))
model("gru", Of(lambda own, x: own.gru(x)[0], gru=nn.GRU(6, 4)), [{0: "t"}], (rand(5, 2, 6),), (rand(3, 2, 6),), only="script")
model(
    "encoder",
    nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 1, enable_nested_tensor=False),
    [{0: "b", 1: "t"}],
    (rand(2, 7, 8),),
    (rand(3, 5, 8),),
    only="dynamo",
)
model(
    "bag",
    Of(
        lambda own, x: own.table(x).sum(1) / (x != 0).sum(1, keepdim=True).clamp(min=1),
        table=nn.Embedding(20, 6, padding_idx=0),
    ),
    [{0: "b", 1: "t"}],
    (tokens(3, 5),),
    (tokens(2, 9),),
)
model(
    "attention",
    Of(
        lambda own, q, k, v: (
            F.scaled_dot_product_attention(q, k, v, is_causal=True),
            F.scaled_dot_product_attention(q, k, v, attn_mask=torch.ones(q.shape[-2], k.shape[-2]).tril().bool()),
        )
    ),
    [{2: "t"}] * 3,
    tuple(rand(2, 2, 5, 8) for _ in range(3)),
    tuple(rand(2, 2, 7, 8) for _ in range(3)),
)
model(
    "rotary",
    Of(
        lambda own, x: (
            lambda angle: torch.cat(
                [x[..., :4] * angle.cos() - x[..., 4:] * angle.sin(), x[..., 4:] * angle.cos() + x[..., :4] * angle.sin()], -1
            )
        )(torch.outer(torch.arange(x.shape[1]).float(), 10000.0 ** (-torch.arange(4) / 4)))
    ),
    [{1: "t"}],
    (rand(2, 5, 8),),
    (rand(2, 9, 8),),
)
model(
    "shapes",
    Of(
        lambda own, x: (
            x.view(x.shape[0], -1, 2),
            torch.arange(x.shape[1]).expand(x.shape[0], -1),
            x.chunk(2, -1)[1],
            x.repeat(1, 2, 1),
            torch.ones(x.shape[1], x.shape[1]).tril(),
            torch.linspace(0, 1, 5) * x.shape[0],
            x.new_zeros(x.shape[0], 3),
            x.permute(2, 0, 1),
            torch.full((x.shape[1],), float("-inf")),
            x.unflatten(-1, (2, -1)),
            x.roll(1, 0),
            x[x.shape[0] - 1],
            x.flatten(1).cumsum(-1),
        )
    ),
    [{0: "n", 1: "m"}],
    (rand(2, 3, 4),),
    (rand(4, 5, 4),),
)

import transformers as hf  # noqa: E402

common = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, vocab_size=20, max_position_embeddings=16)
texts = [{0: "b", 1: "t"}]
model(
    "bert",
    Of(lambda own, *x: own.bert(*x)[0], bert=hf.BertModel(hf.BertConfig(**common, attn_implementation="sdpa"))),
    texts * 2,
    (tokens(2, 6), mask(2, 6)),
    (tokens(3, 9), mask(3, 9)),
)
model(
    "gpt2",
    Of(
        lambda own, x: own.gpt(x)[0],
        gpt=hf.GPT2LMHeadModel(hf.GPT2Config(n_embd=8, n_layer=1, n_head=2, vocab_size=20, n_positions=16, bos_token_id=0, eos_token_id=0)),
    ),
    texts,
    (tokens(2, 6),),
    (tokens(3, 9),),
)
model(
    "llama",
    Of(
        lambda own, x: own.llama(x)[0],
        llama=hf.LlamaForCausalLM(hf.LlamaConfig(**common, num_key_value_heads=1, attn_implementation="eager")),
    ),
    texts,
    (tokens(2, 6),),
    (tokens(3, 9),),
)
model(
    "t5",
    Of(lambda own, x: own.t5(x)[0], t5=hf.T5EncoderModel(hf.T5Config(d_model=8, d_kv=4, d_ff=16, num_layers=1, num_heads=2, vocab_size=20))),
    texts,
    (tokens(2, 6),),
    (tokens(3, 11),),
    only="script",
)


def array(tensor):
    kind = {torch.float32: "f32", torch.int64: "i64", torch.bool: "bool"}[tensor.dtype]
    values = tensor.flatten().tolist()
    if kind == "f32":
        infinite = {float("inf"): "Infinity", float("-inf"): "-Infinity"}
        values = [infinite.get(x) or float(f"{x:.6g}") for x in values]
    return {"dtype": kind, "shape": list(tensor.shape), "data": [int(x) if kind == "bool" else x for x in values]}


folder.mkdir(parents=True, exist_ok=True)
for old in folder.iterdir():
    old.unlink()
index = {}
for name, (module, dims, runs, only) in models.items():
    module.eval()
    names = [f"in{i}" for i in range(len(dims))]
    exporters = ["script", "dynamo"] if only is None else [only]
    for exporter in exporters:
        path = folder / f"{name}.{exporter}.onnx"
        if exporter == "dynamo":
            axes = tuple({axis: torch.export.Dim(dim) for axis, dim in each.items()} for each in dims)
            torch.onnx.export(module, runs[0], path, input_names=names, dynamo=True, dynamic_shapes=(axes,), external_data=False)
        else:
            axes = dict(zip(names, dims))
            torch.onnx.export(module, runs[0], path, input_names=names, dynamo=False, dynamic_axes=axes, opset_version=17)
        made = onnx.load(path)
        graph = made.graph
        for node in graph.node:
            node.doc_string = ""
        for part in [graph, *graph.node, *graph.value_info, *graph.input, *graph.output, *graph.initializer]:
            del part.metadata_props[:]
        onnx.save(made, path)
    results = []
    for given in runs:
        with torch.no_grad():
            out = module(*given)
        out = out if isinstance(out, tuple) else (out,)
        results.append({"inputs": [array(x) for x in given], "outputs": [array(x) for x in out]})
    open_dims = sorted({dim for each in dims for dim in each.values()})
    index[name] = {"exporters": exporters, "dims": open_dims, "runs": results}
rows = [f"  {json.dumps(name)}: {json.dumps(row, separators=(',', ':'))}" for name, row in index.items()]
(folder / "models.json").write_text("{\n" + ",\n".join(rows) + "\n}\n")
