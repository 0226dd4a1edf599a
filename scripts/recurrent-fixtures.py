#!/usr/bin/env python3
"""Writes test/fixtures/recurrent.json: PyTorch's recurrent layers and cells, their outputs, last states and gradients.

Run with any Python that has torch: python3 scripts/recurrent-fixtures.py

A case: the layer's name and options, its state dictionary, inputs, what it gives, weights of these and the gradients of
Σ (output · weight) by name. Tensors are {shape, data} of f64.
"""

import json
import pathlib

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

STEPS, BATCH, INPUTS, HIDDEN = 4, 3, 2, 3


def tensor(value):
    return {'shape': list(value.shape), 'data': [round(v, 12) for v in value.detach().reshape(-1).tolist()]}


def flat(value):
    return [value] if isinstance(value, torch.Tensor) else [t for item in value for t in flat(item)]


def case(kind, options, lengths=None, state=True):
    torch.manual_seed(len(json.dumps([kind, options, lengths])))
    names = {'numLayers': 'num_layers', 'batchFirst': 'batch_first', 'projSize': 'proj_size'}
    layer = getattr(nn, kind)(INPUTS, HIDDEN, **{names.get(k, k): v for k, v in options.items()}).double()
    is_cell = kind.endswith('Cell')
    shape = [BATCH, INPUTS] if is_cell else [STEPS, BATCH, INPUTS]
    if options.get('batchFirst'):
        shape[0], shape[1] = shape[1], shape[0]
    x = torch.randn(shape, dtype=torch.float64, requires_grad=True)
    states = []
    if state:
        count = options.get('numLayers', 1) * (2 if options.get('bidirectional') else 1)
        lead = [BATCH] if is_cell else [count, BATCH]
        widths = [options.get('projSize', HIDDEN), HIDDEN] if kind.startswith('LSTM') else [HIDDEN]
        states = [torch.randn(lead + [w], dtype=torch.float64, requires_grad=True) for w in widths]
    given = tuple(states) if len(states) > 1 else states[0] if states else None
    if lengths is None:
        results = flat(layer(x, given))
    else:
        first = options.get('batchFirst', False)
        packed = pack_padded_sequence(x, lengths, batch_first=first, enforce_sorted=False)
        output, last = layer(packed, given)
        results = [pad_packed_sequence(output, batch_first=first, total_length=STEPS)[0], *flat(last)]
    weights = [torch.rand_like(t) - 0.5 for t in results]
    total = sum((t * w).sum() for t, w in zip(results, weights))
    parameters = dict(layer.named_parameters())
    wanted = {'x': x, **{f'state{i}': s for i, s in enumerate(states)}, **parameters}
    found = torch.autograd.grad(total, list(wanted.values()))
    return {
        'kind': kind, 'options': options, 'lengths': lengths, 'state': {k: tensor(v) for k, v in parameters.items()},
        'x': tensor(x), 'states': [tensor(s) for s in states], 'outputs': [tensor(t) for t in results],
        'weights': [tensor(w) for w in weights], 'grads': {k: tensor(g) for k, g in zip(wanted, found)},
    }


cases = [
    *(case(kind, options) for kind in ('RNN', 'GRU', 'LSTM') for options in ({}, {'numLayers': 2, 'bidirectional': True})),
    *(case(kind, {'bidirectional': True, 'batchFirst': True}, [2, 4, 1]) for kind in ('RNN', 'GRU', 'LSTM')),
    case('RNN', {'nonlinearity': 'relu', 'bias': False}, state=False),
    case('LSTM', {'projSize': 2, 'numLayers': 2}),
    *(case(kind, {}) for kind in ('RNNCell', 'GRUCell', 'LSTMCell')),
    case('RNNCell', {'nonlinearity': 'relu', 'bias': False}, state=False),
]
path = pathlib.Path(__file__).resolve().parent.parent / 'test' / 'fixtures' / 'recurrent.json'
path.write_text('[\n' + ',\n'.join(json.dumps(one, separators=(',', ':')) for one in cases) + '\n]\n')
print(f'{len(cases)} cases, {path.stat().st_size:,} bytes')
