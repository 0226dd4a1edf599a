"""Workloads of `sinter bench` in PyTorch on the CPU, on the data of src/workloads/timed: what `bench/train.ts` and `bench/compare.ts` time
beside ours. PyTorch runs them eagerly, as most programs do.

usage: python3 bench/train-torch.py --losses NAME | --list | --workload NAME [--measure FILE] [--threads N]

`--losses` prints the first losses of a training in float64, `--list` the names of all workloads. `--measure` times the workload as
drivers of `bench/compare.ts` do: a first call, calls for 0.8 s to warm up, and then calls for 1 s, five at least. It prints the first,
median and least milliseconds as JSON; FILE gets the first result, or the first three losses, as f32. Otherwise one step is timed for each
line on standard input, and answered with milliseconds of wall clock and of the processor.
"""

import argparse
import json
import sys
import time

import numpy as np
import torch
import torch.nn.functional as F


def uniform(count, seed, low=-1.0, high=1.0):
    """The numbers of src/workloads/timed/inputs.ts: Mulberry32."""
    return torch.from_numpy((low + (high - low) * source(count, seed)).astype(np.float32))


def source(count, seed):
    state = ((seed or 1) + (np.arange(1, count + 1, dtype=np.uint64) * 0x6D2B79F5)).astype(np.uint32)
    mixed = (state ^ (state >> np.uint32(15))) * (state | np.uint32(1))
    mixed ^= mixed + (mixed ^ (mixed >> np.uint32(7))) * (mixed | np.uint32(61))
    return (mixed ^ (mixed >> np.uint32(14))) / 2.0**32


def conv_train():
    x = uniform(8 * 64 * 56 * 56, 60).reshape(8, 64, 56, 56).requires_grad_()
    weight = uniform(64 * 64 * 9, 61, -0.1, 0.1).reshape(64, 64, 3, 3).requires_grad_()

    def step():
        x.grad = weight.grad = None
        y = F.conv2d(x, weight, padding=1)
        y.backward(y.detach())
        return weight.grad

    return step


def resnet_train(dtype=torch.float32):
    channels = [16, 32, 64]
    shapes, stages = [(16, 1, 3, 3)], []
    for stage, width in enumerate(channels):
        before = shapes[-1][0]
        shapes += [(width, before, 3, 3), (width, width, 3, 3)] + ([(width, before, 1, 1)] if stage else [])

    def kernel(shape, number):
        size = int(np.prod(shape))
        bound = (1 / shape[0]) ** 0.5 if len(shape) == 2 else (6 / (size / shape[0])) ** 0.5
        return uniform(size, 70 + number, -bound, bound).reshape(shape).to(dtype)

    layers = [(kernel(shape, i), torch.ones(shape[0]).to(dtype), torch.zeros(shape[0]).to(dtype)) for i, shape in enumerate(shapes)]
    running = [(torch.zeros(shape[0]).to(dtype), torch.ones(shape[0]).to(dtype)) for shape in shapes]
    head, bias = kernel((64, 10), len(shapes)), torch.zeros(10).to(dtype)
    labels = torch.from_numpy(np.floor(source(64, 62) * 10).astype(np.int64))
    images = uniform(64 * 784, 63).reshape(64, 1, 28, 28).to(dtype)
    params = [tensor.requires_grad_() for layer in layers for tensor in layer] + [head.requires_grad_(), bias.requires_grad_()]
    optimizer = torch.optim.SGD(params, lr=0.05, fused=True)

    def step():
        seen = iter(range(len(layers)))

        def norm(x, stride=1):
            at = next(seen)
            weight, gain, shift = layers[at]
            y = F.conv2d(x, weight, stride=stride, padding=(weight.shape[2] - 1) // 2)
            return F.batch_norm(y, *running[at], gain, shift, training=True)

        optimizer.zero_grad(set_to_none=True)
        x = norm(images).relu()
        for stage in range(3):
            stride = 1 if stage == 0 else 2
            inner = norm(norm(x, stride).relu())
            x = (inner + (norm(x, stride) if stage else x)).relu()
        loss = F.cross_entropy(x.mean((2, 3)) @ head + bias, labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def lstm_train(dtype=torch.float32):
    """128 steps, batch 32, 128 wide."""
    layer = torch.nn.LSTM(128, 128).to(dtype)
    params = [layer.weight_ih_l0, layer.weight_hh_l0, layer.bias_ih_l0, layer.bias_hh_l0]
    with torch.no_grad():
        for i, each in enumerate(params):
            each.copy_(uniform(each.numel(), 92 + i, -(128**-0.5), 128**-0.5).reshape(each.shape))
    x, target = (uniform(128 * 32 * 128, seed).reshape(128, 32, 128).to(dtype) for seed in (90, 91))
    optimizer = torch.optim.SGD(params, lr=100, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = F.mse_loss(layer(x)[0], target)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def gelu():
    x = uniform(2**22, 11, -3, 3)
    return lambda: F.gelu(x * 2 + 1, approximate="tanh") * x


def softmax():
    x = uniform(1024 * 1024, 12, -4, 4).reshape(1024, 1024)
    return lambda: torch.softmax(x, -1)


def layer_norm():
    x = uniform(1024 * 1024, 13, -4, 4).reshape(1024, 1024)
    gain, shift = uniform(1024, 14, 0.5, 1.5), uniform(1024, 15)
    return lambda: F.layer_norm(x, (1024,), gain, shift)


def matmul(m, k, n):
    a, b = uniform(m * k, 16).reshape(m, k), uniform(k * n, 17).reshape(k, n)
    return lambda: a @ b


def conv3x3():
    x = uniform(32 * 56 * 56, 18).reshape(1, 32, 56, 56)
    weight = uniform(64 * 32 * 9, 19, -0.1, 0.1).reshape(64, 32, 3, 3)
    return lambda: F.conv2d(x, weight, padding=1)


def gpt_block_forward():
    """Pre-norm, width 256, 4 heads, batch 4, 128 positions, hidden 1024, causal."""

    def matrix(rows, columns, seed):
        return uniform(rows * columns, seed, -(rows**-0.5), rows**-0.5).reshape(rows, columns).t()

    x = uniform(4 * 128 * 256, 20).reshape(4, 128, 256)
    gain1, shift1 = uniform(256, 21, 0.5, 1.5), uniform(256, 22, -0.1, 0.1)
    qkv, qkv_bias = matrix(256, 768, 23), uniform(768, 24, -0.1, 0.1)
    out, out_bias = matrix(256, 256, 25), uniform(256, 26, -0.1, 0.1)
    gain2, shift2 = uniform(256, 27, 0.5, 1.5), uniform(256, 28, -0.1, 0.1)
    up, up_bias = matrix(256, 1024, 29), uniform(1024, 30, -0.1, 0.1)
    down, down_bias = matrix(1024, 256, 31), uniform(256, 32, -0.1, 0.1)

    def step():
        seen = F.linear(F.layer_norm(x, (256,), gain1, shift1), qkv, qkv_bias)
        q, k, v = seen.reshape(4, 128, 3, 4, 64).permute(2, 0, 3, 1, 4)
        attended = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = x + F.linear(attended.transpose(1, 2).reshape(4, 128, 256), out, out_bias)
        hidden = F.linear(F.layer_norm(y, (256,), gain2, shift2), up, up_bias)
        return y + F.linear(F.gelu(hidden, approximate="tanh"), down, down_bias)

    return step


def mlp_train_adam():
    """A perceptron 784-256-10, batch 64, cross-entropy."""
    labels = torch.from_numpy(np.floor(source(64, 40) * 10).astype(np.int64))
    x = uniform(64 * 784, 41, 0, 1).reshape(64, 784)
    w1, b1 = uniform(784 * 256, 42, -0.05, 0.05).reshape(784, 256), torch.zeros(256)
    w2, b2 = uniform(256 * 10, 43, -0.1, 0.1).reshape(256, 10), torch.zeros(10)
    params = [each.requires_grad_() for each in (w1, b1, w2, b2)]
    optimizer = torch.optim.Adam(params, lr=1e-3, fused=True)

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(torch.addmm(b2, torch.addmm(b1, x, w1).relu(), w2), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


def additions():
    a, b = uniform(64, 50), uniform(64, 51)

    def step():
        y = a
        for _ in range(100):
            y = y + b
        return y

    return step


def decode_attention():
    """One query over 4096 keys, 32 heads, 128 features."""
    size = 32 * 4096 * 128
    query = uniform(32 * 128, 64).reshape(1, 32, 1, 128)
    keys, values = (uniform(size, seed).reshape(1, 32, 4096, 128) for seed in (65, 66))
    return lambda: F.scaled_dot_product_attention(query, keys, values)


def gemv(dtype):
    row = uniform(4096, 67).reshape(1, 4096).to(dtype)
    matrix = (torch.floor(1024 * uniform(4096 * 4096, 68) + 0.5) / 1024).reshape(4096, 4096).to(dtype)
    return lambda: row @ matrix


def gemv_q8():
    """By a matrix of bytes [outputs, inputs] with a scale for each output."""
    row = uniform(4096, 67).reshape(1, 4096)
    # In float64, as its rounding is that of the workload.
    steps = torch.floor(127 * uniform(4096 * 4096, 68).double() + 0.5).to(torch.int8).reshape(4096, 4096)
    scales = torch.full((4096,), 1 / 128)
    return lambda: torch._weight_int8pack_mm(row, steps, scales)


workloads = {
    "gelu": gelu,
    "softmax": softmax,
    "layerNorm": layer_norm,
    "matmul256": lambda: matmul(256, 256, 256),
    "matmul512": lambda: matmul(512, 512, 512),
    "matmul1024": lambda: matmul(1024, 1024, 1024),
    "vectorMatmul": lambda: matmul(1, 1024, 4096),
    "conv3x3": conv3x3,
    "gptBlockForward": gpt_block_forward,
    "mlpTrainAdam": mlp_train_adam,
    "additionsCompiled": additions,
    "convTrain": conv_train,
    "resnetTrain": resnet_train,
    "lstmTrain": lstm_train,
    "decodeAttention": decode_attention,
    "gemv": lambda: gemv(torch.float32),
    "gemvQ8": gemv_q8,
}


# Those that `--losses` takes.
trained = {"resnetTrain": resnet_train, "lstmTrain": lstm_train}


def measure(step, file):
    """The first, median and least milliseconds of calls; the first result goes to a file, of losses the first three."""

    def timed():
        start = time.perf_counter()
        result = step()
        return 1e3 * (time.perf_counter() - start), result

    first, result = timed()
    found = [result, step(), step()] if isinstance(result, float) else result.detach().numpy()
    np.asarray(found, dtype=np.float32).tofile(file)
    until = time.perf_counter() + 0.8
    while time.perf_counter() < until:
        step()
    times = []
    until = time.perf_counter() + 1
    while len(times) < 5 or time.perf_counter() < until:
        times.append(timed()[0])
    return {"first_ms": first, "median_ms": float(np.median(times)), "min_ms": min(times)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--losses", choices=trained)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--workload", choices=workloads)
    parser.add_argument("--measure", metavar="FILE")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.list:
        print("\n".join(workloads))
        return
    if options.losses:
        step = trained[options.losses](torch.float64)
        print(json.dumps([step() for _ in range(3)]))
        return
    torch.set_grad_enabled("Train" in options.workload)
    step = workloads[options.workload]()
    if options.measure:
        print(json.dumps(measure(step, options.measure)))
        return
    for _ in sys.stdin:
        wall, used = time.perf_counter(), time.process_time()
        step()
        print(1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - used), flush=True)


if __name__ == "__main__":
    main()
