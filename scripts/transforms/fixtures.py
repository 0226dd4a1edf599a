"""Writes test/fixtures/functional.json: what torch.autograd.functional gives for a few functions.

python3 scripts/transforms/fixtures.py, with PyTorch 1.13. The functions are written once more in
test/tensor/transform/torch.test.ts, by name.
"""

import json
import pathlib

import torch
import torch.autograd.functional as functional

torch.manual_seed(0)

functions = {
    "softmax": (lambda x: torch.softmax(x, -1), [(2, 3)]),
    "product": (lambda x, w: torch.tanh(x @ w), [(2, 3), (3, 2)]),
    "norm": (lambda x: torch.nn.functional.layer_norm(x, [4]), [(3, 4)]),
    "solve": (lambda a, b: torch.linalg.solve(a + 3 * torch.eye(3), b), [(3, 3), (3, 2)]),
    "running": (lambda x: torch.cumprod(x, 0) + torch.cumsum(x, 0).exp(), [(5,)]),
    "convolution": (lambda x, w: torch.nn.functional.conv1d(x, w, padding=1), [(1, 2, 4), (2, 2, 3)]),
}


def listed(value):
    if isinstance(value, tuple):
        return [listed(each) for each in value]
    return {"shape": list(value.shape), "data": value.detach().reshape(-1).tolist()}


def case(name, function, shapes):
    inputs = tuple(torch.randn(shape, dtype=torch.float64) for shape in shapes)
    tangents = tuple(torch.randn(shape, dtype=torch.float64) for shape in shapes)
    total = lambda *args: function(*args).pow(2).sum()
    value, tangent = functional.jvp(function, inputs, tangents)
    return {
        "name": name,
        "inputs": listed(inputs),
        "tangents": listed(tangents),
        "value": listed(value),
        "jvp": listed(tangent),
        "jacobian": listed(functional.jacobian(function, inputs)),
        "hessian": listed(functional.hessian(total, inputs)),
        "vhp": listed(functional.vhp(total, inputs, tangents)[1]),
    }


torch.set_default_dtype(torch.float64)
cases = [case(name, *row) for name, row in functions.items()]
place = pathlib.Path(__file__).parent.parent.parent / "test" / "fixtures" / "functional.json"
place.write_text(json.dumps({"torch": torch.__version__.split("+")[0], "cases": cases}) + "\n")
