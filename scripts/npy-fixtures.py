#!/usr/bin/env python3
"""Writes test/fixtures/npy/*.npy with NumPy itself (Debian: apt install python3-numpy). Tests need no Python.

Numeric files hold [2,3,4] values: i - 5 for signed types, i for unsigned ones, (i - 5) / 8 for floats, with
imaginary parts i / 4 for complex numbers.
"""

import pathlib

import numpy as np
from numpy.lib import format as npy

folder = pathlib.Path(__file__).resolve().parent.parent / 'test' / 'fixtures' / 'npy'
folder.mkdir(parents=True, exist_ok=True)

count = np.arange(24).reshape(2, 3, 4)
kinds = {'i8': '|i1', 'u8': '|u1', 'i16': '<i2', 'u16': '<u2', 'i32': '<i4', 'u32': '<u4', 'i64': '<i8', 'u64': '<u8',
         'f16': '<f2', 'f32': '<f4', 'f64': '<f8', 'c64': '<c8', 'c128': '<c16'}


def save(name, array, **options):
    np.save(folder / f'{name}.npy', array, **options)


for name, code in kinds.items():
    numbers = {'u': count, 'f': (count - 5) / 8, 'i': count - 5, 'c': (count - 5) / 8 + count / 4 * 1j}
    values = numbers[name[0]].astype(code)
    save(name, values)
    save(f'{name}-fortran', np.asfortranarray(values))
    if values.itemsize > 1:
        save(f'{name}-big-endian', values.astype(code.replace('<', '>')))
        save(f'{name}-fortran-big-endian', np.asfortranarray(values.astype(code.replace('<', '>'))))
save('bool', count % 3 == 0)
save('rank-0', np.float32(2.5))
save('rank-1', np.arange(3, dtype='<i4'))
save('no-elements', np.zeros((0, 3), '<f4'))
for version in (2, 3):
    with open(folder / f'version-{version}.npy', 'wb') as file:
        npy.write_array(file, np.arange(3, dtype='<i4'), version=(version, 0))

# What Sinter must refuse by name.
save('refused-structured', np.zeros(2, [('a', '<f4'), ('b', '<i4')]))
save('refused-object', np.array([{}, []], object), allow_pickle=True)
save('refused-text', np.array(['ab', 'c']))
save('refused-long-double', np.zeros(2, np.longdouble))
save('refused-time', np.zeros(2, 'datetime64[s]'))
