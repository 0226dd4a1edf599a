"""The workloads of bench/gpu-workloads.ts in PyTorch, eager and compiled, timed alike: what `npm run bench:gpu` is read beside.

usage: python3 bench/gpu-torch.py [--workload NAMES] [--rounds N] [--small]

Prints one line of JSON: of each workload and way its time on the device's clock, with GB/s or TFLOP/s. PyTorch's products are
cuBLAS's, so `eager` of a product is what that reaches on this machine.
"""

import argparse
import json
import statistics
import sys

import torch
import torch.nn.functional as F

FULL = dict(elements=2**27, rows=16384, width=8192, parameters=2**27, tensors=100, sides=[2048, 4096, 8192],
            simple=4096, heads=16, positions=4096, head=128, long=16384, cache=(32, 16384), matrix=(8192, 32768), pictures=(32, 128, 56),
            loss=(4096, 2048, 32768), wide=(2048, 32768), sorted=2**24)
SMALL = dict(elements=4096, rows=8, width=256, parameters=4000, tensors=10, sides=[64], simple=64, heads=2,
             positions=64, head=32, long=128, cache=(2, 96), matrix=(256, 512), pictures=(1, 16, 8), loss=(16, 32, 64),
             wide=(2, 4096), sorted=5000)


def normal(*shape, dtype=torch.float32):
    return torch.randn(*shape, device="cuda").to(dtype)


def gelu(x):
    return F.gelu(x, approximate="tanh")


def workloads(s):
    """Name, bytes or None, flops or None, a function that makes the step and its arguments."""
    pairs = 2 * 4 * s["rows"] * s["width"]
    yield "elementwise", 2 * 4 * s["elements"], None, lambda: (
        lambda x: gelu(2 * x + 1) * x, [normal(s["elements"])])
    yield "softmax", pairs, None, lambda: (lambda x: torch.softmax(x, -1), [normal(s["rows"], s["width"])])
    yield "layerNorm", pairs, None, lambda: (
        lambda x, g, b: F.layer_norm(x, (s["width"],), g, b),
        [normal(s["rows"], s["width"]), normal(s["width"]), normal(s["width"])])
    each = max(4, s["parameters"] // s["tensors"] // 4 * 4)
    yield "adam", 7 * 4 * s["tensors"] * each, None, lambda: adam(s["tensors"], each)
    for dtype, name, sides in ((torch.float32, "f32", [s["simple"]]), (torch.bfloat16, "bf16", s["sides"]),
                               (torch.float16, "f16", s["sides"][-1:])):
        for n in sides:
            yield f"matmul-{name}-{n}", None, 2 * n**3, lambda n=n, dtype=dtype: (
                torch.matmul, [normal(n, n, dtype=dtype), normal(n, n, dtype=dtype)])
    n = s["sides"][-1]
    bf16 = torch.bfloat16
    yield f"matmul-bias-gelu-bf16-{n}", None, 2 * n**3, lambda: (
        lambda x, w, c: gelu(x @ w + c), [normal(n, n, dtype=bf16), normal(n, n, dtype=bf16), normal(n, dtype=bf16)])
    for name, positions in (("attention", s["positions"]), ("attention-long", s["long"])):
        yield name, None, 2 * s["heads"] * positions**2 * s["head"], lambda n=positions: (
            causal, [normal(1, s["heads"], n, s["head"], dtype=bf16) for _ in range(3)])
    yield "attention-gradient", None, 7 * s["heads"] * s["positions"]**2 * s["head"], lambda: attention_gradient(s)
    heads, keys = s["cache"]
    for name, dtype in (("f32", torch.float32), ("f16", torch.float16)):
        cache = heads * keys * s["head"] * dtype.itemsize
        yield f"decode-attention-{name}", 2 * cache, None, lambda dtype=dtype: (
            lambda q, k, v: F.scaled_dot_product_attention(q, k, v),
            [normal(1, heads, 1, s["head"], dtype=dtype)] + [normal(1, heads, keys, s["head"], dtype=dtype) for _ in "kv"])
    inputs, outputs = s["matrix"]
    for name, dtype in (("f32", torch.float32), ("f16", torch.float16)):
        yield f"row-by-matrix-{name}", inputs * outputs * dtype.itemsize, None, lambda dtype=dtype: (
            F.linear, [normal(1, inputs, dtype=dtype), normal(outputs, inputs, dtype=dtype)])
    count, channels, side = s["pictures"]
    for name, layout in (("convolution-bf16", torch.contiguous_format), ("convolution-bf16-nhwc", torch.channels_last)):
        yield name, None, 2 * 9 * count * channels**2 * side**2, lambda layout=layout: (
            lambda x, w: F.conv2d(x, w, padding=1),
            [normal(count, channels, side, side, dtype=bf16).to(memory_format=layout),
             normal(channels, channels, 3, 3, dtype=bf16).to(memory_format=layout)])
    tokens, features, words = s["loss"]
    yield "head-loss", None, 2 * tokens * features * words, lambda: (
        head_loss, [normal(tokens, features, dtype=bf16), normal(words, features, dtype=bf16),
                    torch.randint(words, (tokens,), device="cuda")])
    yield "head-loss-gradient", None, 6 * tokens * features * words, lambda: head_loss_gradient(s)
    yield "add-bf16", 6 * s["elements"], None, lambda: (
        torch.add, [normal(s["elements"], dtype=bf16), normal(s["elements"], dtype=bf16)])
    rows, width = s["wide"]
    yield "softmax-wide", 8 * rows * width, None, lambda: (lambda x: torch.softmax(x, -1), [normal(rows, width)])
    yield "sum", 4 * s["elements"], None, lambda: (torch.sum, [normal(s["elements"])])
    yield "running-sum", 8 * s["sorted"], None, lambda: (lambda x: torch.cumsum(x, 0), [normal(s["sorted"])])
    yield "sort", 8 * s["sorted"], None, lambda: (lambda x: torch.sort(x).values, [normal(s["sorted"])])


def causal(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True)


def head_loss(h, w, t):
    return F.cross_entropy(h @ w.T, t)


def attention_gradient(s):
    shape = (1, s["heads"], s["positions"], s["head"])
    given = [normal(*shape, dtype=torch.bfloat16).requires_grad_() for _ in range(3)]
    upstream = normal(*shape, dtype=torch.bfloat16)
    return gradient_step(causal, given, [], upstream)


def head_loss_gradient(s):
    tokens, features, words = s["loss"]
    given = [normal(tokens, features, dtype=torch.bfloat16).requires_grad_(),
             normal(words, features, dtype=torch.bfloat16).requires_grad_()]
    return gradient_step(head_loss, given, [torch.randint(words, (tokens,), device="cuda")], None)


def gradient_step(fn, given, others, upstream):
    """Forward and backward; `measure` compiles what it is given, so the step is made of the function."""

    def step(*args):
        with torch.enable_grad():
            value = fn(*args)
            return torch.autograd.grad(value, args[: len(given)], upstream)

    return step, given + others


def adam(count, width):
    params = [torch.nn.Parameter(normal(width)) for _ in range(count)]
    for p in params:
        p.grad = normal(width)
    optimizer = torch.optim.Adam(params, lr=1e-3, fused=True)
    return optimizer.step, []


def timed(step, args, repeat):
    """Milliseconds of a call, by events around `repeat` of them."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    for _ in range(repeat):
        step(*args)
    end.record()
    torch.cuda.synchronize()
    return start.elapsed_time(end) / repeat


def measure(step, args, rounds):
    with torch.no_grad():
        for _ in range(3):
            step(*args)
        torch.cuda.synchronize()
        repeat = min(100, max(1, round(20 / max(timed(step, args, 1), 1e-3))))
        times = [timed(step, args, repeat) for _ in range(rounds + 1)][1:]
    return statistics.median(times), min(times)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--workload")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--small", action="store_true")
    given = parser.parse_args()
    wanted = given.workload.split(",") if given.workload else None
    lines = []
    for name, size, flops, make in workloads(SMALL if given.small else FULL):
        if wanted and name not in wanted:
            continue
        for way in ("eager", "compiled"):
            step, args = make()
            if way == "compiled":
                if name == "adam" or name.endswith("gradient"):
                    continue  # Fused already, or a call of autograd.
                step = torch.compile(step)
            try:
                ms, least = measure(step, args, given.rounds)
            except Exception as error:  # What one cannot run is left out, and named.
                print(name, way, str(error).splitlines()[0], file=sys.stderr)
                continue
            line = dict(name=name, way=way, ms=ms, msMin=least)
            if size:
                line["GBs"] = size / ms / 1e6
            if flops:
                line["TFLOPs"] = flops / ms / 1e9
            lines.append(line)
            print(name, way, f"{ms:.4f} ms", file=sys.stderr)
            del step, args
            torch.cuda.empty_cache()
    device = torch.cuda.get_device_name()
    print(json.dumps(dict(device=device, torch=torch.__version__, workloads=lines)))


main()
