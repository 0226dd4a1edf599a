#!/usr/bin/env python3
"""Writes test/fixtures/blocks.json: random blocks of every GGML format, and the values that they stand for.

Run with any Python that has numpy, from anywhere:

    python3 scripts/llm/block-fixtures.py

Every format is read here by what one value is, given its place in the block: bits are looked up by number, and
arithmetic is that of float32. The product reads blocks another way, byte by byte.
"""

import base64
import json
from pathlib import Path

import numpy as np

rng = np.random.default_rng(18)
f32 = np.float32


class Block:
    """The bytes of a block, as fields of bits."""

    def __init__(self, data):
        self.data = data
        self.bits = np.unpackbits(data, bitorder="little")

    def half(self, byte):
        return f32(self.data[byte : byte + 2].view(np.float16)[0])

    def field(self, byte, bit, width):
        at = 8 * byte + bit
        return sum(int(b) << i for i, b in enumerate(self.bits[at : at + width]))

    def signed(self, byte):
        return int(self.data[byte : byte + 1].view(np.int8)[0])


def nibble(block, start, i):
    """Of 32 values: 16 in low halves of bytes, 16 in high ones."""
    return block.field(start + i % 16, 4 * (i // 16), 4)


def scale_and_minimum(block, start, group):
    if group < 4:
        return block.field(start + group, 0, 6), block.field(start + 4 + group, 0, 6)
    low, high = block.field(start + 4 + group, 0, 4), block.field(start + 4 + group, 4, 4)
    return low + 16 * block.field(start + group - 4, 6, 2), high + 16 * block.field(start + group, 6, 2)


def q4_0(b, i):
    return b.half(0) * f32(nibble(b, 2, i) - 8)


def q4_1(b, i):
    return b.half(0) * f32(nibble(b, 4, i)) + b.half(2)


def q5_0(b, i):
    return b.half(0) * f32(nibble(b, 6, i) + 16 * b.field(2, i, 1) - 16)


def q5_1(b, i):
    return b.half(0) * f32(nibble(b, 8, i) + 16 * b.field(4, i, 1)) + b.half(2)


def q8_0(b, i):
    return b.half(0) * f32(b.signed(2 + i))


def q2_k(b, i):
    group = i // 16
    scale, minimum = b.half(80) * f32(b.field(group, 0, 4)), b.half(82) * f32(b.field(group, 4, 4))
    half, place = divmod(i, 128)
    return scale * f32(b.field(16 + 32 * half + place % 32, 2 * (place // 32), 2)) - minimum


def q3_k(b, i):
    group = i // 16
    low = b.field(96 + group % 8, 4 * (group // 8), 4)
    scale = b.half(108) * f32(low + 16 * b.field(104 + group % 4, 2 * (group // 4), 2) - 32)
    half, place = divmod(i, 128)
    level = b.field(32 + 32 * half + place % 32, 2 * (place // 32), 2) + 4 * b.field(i % 32, i // 32, 1) - 4
    return scale * f32(level)


def q4_k(b, i):
    scale, minimum = scale_and_minimum(b, 4, i // 32)
    level = b.field(16 + 32 * (i // 64) + i % 32, 4 * (i // 32 % 2), 4)
    return b.half(0) * f32(scale) * f32(level) - b.half(2) * f32(minimum)


def q5_k(b, i):
    scale, minimum = scale_and_minimum(b, 4, i // 32)
    level = b.field(48 + 32 * (i // 64) + i % 32, 4 * (i // 32 % 2), 4) + 16 * b.field(16 + i % 32, i // 32, 1)
    return b.half(0) * f32(scale) * f32(level) - b.half(2) * f32(minimum)


def q6_k(b, i):
    half, place = divmod(i, 128)
    run, l = divmod(place, 32)
    low = b.field(64 * half + 32 * (run % 2) + l, 4 * (run // 2), 4)
    level = low + 16 * b.field(128 + 32 * half + l, 2 * run, 2) - 32
    return b.half(208) * f32(b.signed(192 + i // 16)) * f32(level)


TABLE = [-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113]


def iq4_nl(b, i):
    return b.half(0) * f32(TABLE[nibble(b, 2, i)])


def iq4_xs(b, i):
    group = i // 32
    scale = b.field(4, 4 * group, 4) + 16 * b.field(2, 2 * group, 2) - 32
    return b.half(0) * f32(scale) * f32(TABLE[nibble(b, 8 + 16 * group, i % 32)])


FLOATS = [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def mxfp4(b, i):
    level = nibble(b, 1, i)
    with np.errstate(over="ignore"):
        value = f32(np.ldexp(FLOATS[level % 8], int(b.data[0]) - 127))
    # A zero has no sign here.
    return -value if level > 8 else value


# Name: reader, values, bytes, places of halves.
FORMATS = {
    "q4_0": (q4_0, 32, 18, [0]),
    "q4_1": (q4_1, 32, 20, [0, 2]),
    "q5_0": (q5_0, 32, 22, [0]),
    "q5_1": (q5_1, 32, 24, [0, 2]),
    "q8_0": (q8_0, 32, 34, [0]),
    "q2_k": (q2_k, 256, 84, [80, 82]),
    "q3_k": (q3_k, 256, 110, [108]),
    "q4_k": (q4_k, 256, 144, [0, 2]),
    "q5_k": (q5_k, 256, 176, [0, 2]),
    "q6_k": (q6_k, 256, 210, [208]),
    "iq4_nl": (iq4_nl, 32, 18, [0]),
    "iq4_xs": (iq4_xs, 256, 136, [0]),
    "mxfp4": (mxfp4, 32, 17, []),
}


def encode(array):
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()


def case(read, values, size, halves):
    blocks = rng.integers(0, 256, (2 if values == 256 else 5, size), dtype=np.uint8)
    for n, block in enumerate(blocks):
        for place in halves:
            # The first block has subnormal halves, the others ordinary ones of either sign.
            half = np.float16(3e-6 if n == 0 else rng.normal())
            block[place : place + 2] = np.frombuffer(half.tobytes(), np.uint8)
    if not halves:
        blocks[:, 0] = [0, 1, 120, 127, 253]
    out = [f32(read(Block(block), i)) for block in blocks for i in range(values)]
    return {"bytes": encode(blocks), "values": encode(np.array(out, f32))}


fixtures = {name: case(*row) for name, row in FORMATS.items()}
path = Path(__file__).parents[2] / "test/fixtures/blocks.json"
path.write_text(json.dumps(fixtures, indent=1) + "\n")
