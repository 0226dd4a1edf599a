#!/usr/bin/env python3
"""Writes test/fixtures/training.json: PyTorch's backward hooks and parametrisations.

Run with any Python that has torch: python3 scripts/training-fixtures.py

hooks:    a network of two inputs whose gradients a full backward hook changes; what it saw, and what arrived.
weightNorm, spectralNorm: weights, outputs and gradients of layers under these norms.
autocast: two layers in bf16 on the host, the loss in f32: outputs and gradients.
Tensors are {shape, data} of f64.
"""

import json
import pathlib

import torch
from torch import nn


def tensor(value):
    return {'shape': list(value.shape), 'data': [round(v, 12) for v in value.detach().reshape(-1).tolist()]}


class Pair(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2).double()

    def forward(self, x, y):
        hidden = self.linear(x)
        return hidden * y, (hidden + y).tanh()


def hooks():
    torch.manual_seed(1)
    pair = Pair()
    x = torch.randn(4, 3, dtype=torch.double, requires_grad=True)
    y = torch.randn(4, 2, dtype=torch.double, requires_grad=True)
    seen = {}

    def hook(module, grad_input, grad_output):
        seen['input'] = [tensor(g) for g in grad_input]
        seen['output'] = [tensor(g) for g in grad_output]
        return grad_input[0] * 2, grad_input[1] * -1

    pair.register_full_backward_hook(hook)
    a, b = pair(x, y)
    (a.square().sum() + b.sum()).backward()
    return {
        'weight': tensor(pair.linear.weight),
        'bias': tensor(pair.linear.bias),
        'x': tensor(x),
        'y': tensor(y),
        'seenInput': seen['input'],
        'seenOutput': seen['output'],
        'gradX': tensor(x.grad),
        'gradY': tensor(y.grad),
        'gradWeight': tensor(pair.linear.weight.grad),
    }


def weight_norm(dim):
    torch.manual_seed(2)
    layer = nn.Conv1d(2, 3, 2).double()
    weight = layer.weight.detach().clone()
    layer = nn.utils.weight_norm(layer, dim=dim)
    with torch.no_grad():
        layer.weight_g.mul_(1.5)
    x = torch.randn(2, 2, 5, dtype=torch.double)
    out = layer(x)
    out.square().sum().backward()
    return {
        'dim': dim,
        'weight': tensor(weight),
        'bias': tensor(layer.bias),
        'g': tensor(layer.weight_g),
        'v': tensor(layer.weight_v),
        'x': tensor(x),
        'out': tensor(out),
        'gradG': tensor(layer.weight_g.grad),
        'gradV': tensor(layer.weight_v.grad),
    }


def spectral_norm(kind):
    torch.manual_seed(3)
    layer = (nn.Linear(4, 3) if kind == 'Linear' else nn.Conv2d(2, 3, 2)).double()
    weight = layer.weight.detach().clone()
    layer = nn.utils.parametrizations.spectral_norm(layer, n_power_iterations=2)
    inner = layer.parametrizations.weight[0]
    start = {'u': tensor(inner._u), 'v': tensor(inner._v)}
    shape = (2, 4) if kind == 'Linear' else (1, 2, 3, 3)
    x = torch.randn(*shape, dtype=torch.double)
    outs = []
    for _ in range(2):
        out = layer(x)
        outs.append(tensor(out))
    out.square().sum().backward()
    layer.eval()
    return {
        'kind': kind,
        'weight': tensor(weight),
        'bias': tensor(layer.bias),
        'start': start,
        'x': tensor(x),
        'outs': outs,
        'grad': tensor(layer.parametrizations.weight.original.grad),
        'u': tensor(inner._u),
        'v': tensor(inner._v),
        'eval': tensor(layer(x)),
        'names': list(layer.state_dict().keys()),
    }


def autocast():
    torch.manual_seed(4)
    first, second = nn.Linear(8, 16), nn.Linear(16, 4)
    x, y = torch.randn(5, 8), torch.randn(5, 4)
    with torch.autocast('cpu', dtype=torch.bfloat16):
        hidden = first(x)
        out = second(hidden.relu())
        loss = nn.functional.mse_loss(out.float(), y)
    loss.backward()
    return {
        'weights': [tensor(p) for layer in (first, second) for p in (layer.weight, layer.bias)],
        'x': tensor(x),
        'y': tensor(y),
        'hidden': {'dtype': str(hidden.dtype), **tensor(hidden.float())},
        'out': tensor(out.float()),
        'loss': tensor(loss),
        'grads': [{'dtype': str(p.grad.dtype), **tensor(p.grad)} for layer in (first, second)
                  for p in (layer.weight, layer.bias)],
    }


fixture = {
    'autocast': autocast(),
    'hooks': hooks(),
    'weightNorm': [weight_norm(dim) for dim in (0, 1, None)],
    'spectralNorm': [spectral_norm(kind) for kind in ('Linear', 'Conv2d')],
}
path = pathlib.Path(__file__).parent.parent / 'test/fixtures/training.json'
path.write_text(json.dumps(fixture) + '\n')
print(path, path.stat().st_size)
