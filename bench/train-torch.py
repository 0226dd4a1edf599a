"""Workloads of `sinter bench` in PyTorch on the CPU: what `bench/train.ts` times beside ours. The convolutions that train have the data of
src/workloads/timed/networks.ts, the others have random data of the same sizes.

usage: python3 bench/train-torch.py --losses | --workload NAME [--threads N]

`--losses` prints the first losses of `resnetTrain` in float64. Otherwise it times one step for each line on standard input, and
answers with milliseconds of wall clock and of the processor.
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
    optimizer = torch.optim.SGD(params, lr=0.05)

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


def softmax():
    x = torch.rand(1024, 1024)
    return lambda: torch.softmax(x, -1)


def layer_norm():
    x, gain, shift = torch.rand(1024, 1024), torch.rand(1024), torch.rand(1024)
    return lambda: F.layer_norm(x, (1024,), gain, shift)


def matmul512():
    a, b = torch.rand(512, 512), torch.rand(512, 512)
    return lambda: a @ b


def conv3x3():
    x, weight = torch.rand(1, 32, 56, 56), torch.rand(64, 32, 3, 3)
    return lambda: F.conv2d(x, weight, padding=1)


def gpt_block_forward():
    """Pre-norm, width 256, 4 heads, batch 4, 128 positions, hidden 1024, causal."""
    x = torch.rand(4, 128, 256)
    gains = [torch.rand(256) for _ in range(4)]
    qkv, out, up, down = (torch.rand(n, m) / 16 for n, m in [(256, 768), (256, 256), (256, 1024), (1024, 256)])
    past = torch.ones(128, 128).triu(1).bool()

    def step():
        q, k, v = (F.layer_norm(x, (256,), *gains[:2]) @ qkv).reshape(4, 128, 3, 4, 64).permute(2, 0, 3, 1, 4)
        scores = (q @ k.transpose(-1, -2) / 8).masked_fill(past, float("-inf"))
        y = x + (scores.softmax(-1) @ v).transpose(1, 2).reshape(4, 128, 256) @ out
        return y + F.gelu(F.layer_norm(y, (256,), *gains[2:]) @ up) @ down

    return lambda: torch.no_grad()(step)()


def mlp_train_adam():
    """A perceptron 784-256-10, batch 64, cross-entropy."""
    model = torch.nn.Sequential(torch.nn.Linear(784, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    x, labels = torch.rand(64, 784), torch.randint(10, (64,))

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x), labels)
        loss.backward()
        optimizer.step()
        return loss.item()

    return step


workloads = {
    "convTrain": conv_train,
    "resnetTrain": resnet_train,
    "softmax": softmax,
    "layerNorm": layer_norm,
    "matmul512": matmul512,
    "conv3x3": conv3x3,
    "gptBlockForward": gpt_block_forward,
    "mlpTrainAdam": mlp_train_adam,
}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--losses", action="store_true")
    parser.add_argument("--workload", choices=workloads)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.losses:
        step = resnet_train(torch.float64)
        print(json.dumps([step() for _ in range(3)]))
        return
    step = workloads[options.workload]()
    for _ in sys.stdin:
        wall, used = time.perf_counter(), time.process_time()
        step()
        print(1e3 * (time.perf_counter() - wall), 1e3 * (time.process_time() - used), flush=True)


if __name__ == "__main__":
    main()
