#!/usr/bin/env python3
"""Writes test/fixtures/torch-files/*.pt: files of torch.save that `readTorch` reads, and one that it must refuse.

Run with any Python that has torch: python3 scripts/torch-files.py
"""

import collections
import pathlib

import torch
from torch import nn


class Evil:
    def __reduce__(self):
        return (print, ('ran',))


folder = pathlib.Path(__file__).resolve().parent.parent / 'test' / 'fixtures' / 'torch-files'
folder.mkdir(parents=True, exist_ok=True)
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2), nn.ReLU(), nn.Linear(2, 2, bias=False))
model(torch.randn(5, 3))
torch.save(model.state_dict(), folder / 'model.pt')
matrix = torch.arange(12, dtype=torch.float32).reshape(3, 4)
kinds = [torch.bool, torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64, torch.float16, torch.bfloat16, torch.float64]
torch.save({
    'epoch': 3, 'loss': 0.25, 'name': 'a run', 'done': False, 'nothing': None, 'big': 2 ** 70, 'negative': -5,
    'betas': (0.9, 0.999), 'list': [1, [2.5]], 'shape': torch.Size([2, 3]),
    'model': collections.OrderedDict([('turned', matrix.T), ('part', matrix[1:, ::2]), ('same', matrix), ('scalar', torch.tensor(7.5)),
                                      ('empty', torch.zeros(0, 3)), ('parameter', nn.Parameter(torch.ones(2)))]),
    'kinds': [torch.tensor([0, 1, 3]).to(kind) for kind in kinds],
    0: torch.tensor([1.0]),
}, folder / 'checkpoint.pt')
torch.save({'x': Evil()}, folder / 'function.pt')
torch.save(matrix, folder / 'old.pt', _use_new_zipfile_serialization=False)
