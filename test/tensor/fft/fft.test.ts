// Laws of transforms as users call them. What PyTorch gives for them is among its own samples.

import * as fc from 'fast-check';
import { afterAll, describe, expect, test } from 'vitest';
import * as sn from '../../../src/index.ts';
import { explainFor } from '../../../src/explain/explain.ts';
import { gpuTarget, wasmTarget } from '../../../src/schedule/target.ts';
import { checkLawAsync } from '../../support/property.ts';

afterAll(() => sn.setDevice(undefined));

const norms = fc.constantFrom(undefined, 'backward', 'ortho', 'forward');
const optional = (norm: sn.FftNorm | undefined): { norm?: sn.FftNorm } =>
  norm === undefined ? {} : { norm };

async function expectSame(x: sn.Tensor, y: sn.Tensor, tolerance = 1e-4): Promise<void> {
  expect(x.shape).toEqual(y.shape);
  expect(x.dtype).toBe(y.dtype);
  const off = await sn.max(sn.abs(sn.sub(x, y))).item();
  expect(off).toBeLessThan(tolerance);
}

const signal = (...shape: number[]): sn.Tensor => sn.complex(sn.randn(shape), sn.randn(shape));

describe.each(['interpreter', 'wasm'])('on %s', (device) => {
  test('an inverse gives back what was transformed, whatever is scaled', async () => {
    sn.setDevice(device);
    const sizes = fc.record({
      n: fc.integer({ min: 1, max: 45 }),
      dim: fc.constantFrom(0, 1, -1),
      norm: norms,
    });
    await checkLawAsync(20, sizes, async ({ n, dim, norm }) => {
      const z = dim === 0 ? signal(n, 3) : signal(3, n);
      const how = { dim, ...optional(norm) };
      await expectSame(sn.fft.ifft(sn.fft.fft(z, how), how), z);
      await expectSame(sn.fft.hfft(sn.fft.ihfft(sn.real(z), how), { n, ...how }), sn.real(z));
      await expectSame(sn.fft.irfft(sn.fft.rfft(sn.real(z), how), { n, ...how }), sn.real(z));
    });
  });

  test('half a spectrum is the first half of the whole one', async () => {
    sn.setDevice(device);
    for (const n of [1, 2, 7, 10, 64, 74]) {
      const x = sn.randn([2, n]);
      const whole = sn.fft.fft(x);
      await expectSame(sn.fft.rfft(x), sn.narrow(whole, 1, 0, Math.floor(n / 2) + 1));
    }
  });

  test('transforms along several axes are transforms along each', async () => {
    sn.setDevice(device);
    const z = signal(4, 5, 6);
    await expectSame(sn.fft.fftn(z, { dim: [0, 2] }), sn.fft.fft(sn.fft.fft(z, { dim: 0 }), { dim: 2 }));
    await expectSame(sn.fft.irfft2(sn.fft.rfft2(sn.real(z)), { s: [5, 6] }), sn.real(z));
  });

  test('convolutions by transforms are the sums that they stand for', async () => {
    sn.setDevice(device);
    const [x, y] = [sn.randn([1, 1, 37]), sn.randn([1, 1, 6])];
    const direct = sn.conv1d(x, sn.flip(y, 2), undefined, { padding: 5 });
    await expectSame(sn.fft.convolve(x, y, { dim: -1 }), direct);
    await expectSame(sn.fft.convolve(x, y, { dim: -1, mode: 'same' }), sn.narrow(direct, 2, 2, 37));
    await expectSame(sn.fft.convolve(y, x, { dim: -1, mode: 'same' }), sn.narrow(direct, 2, 18, 6));
    await expectSame(sn.fft.correlate(x, y, { dim: -1, mode: 'valid' }), sn.conv1d(x, y));
  });

  test('a signal comes back from its frames', async () => {
    sn.setDevice(device);
    const x = sn.randn([2, 200]);
    const how = { window: sn.hannWindow(32), hopLength: 8 };
    const spectra = sn.stft(x, 32, how);
    expect(spectra.shape).toEqual([2, 17, 26]);
    await expectSame(sn.istft(spectra, 32, { ...how, length: 200 }), x);
  });

  test('the derivative of a power of a spectrum is the signal, by Parseval', async () => {
    sn.setDevice(device);
    const x = sn.randn([3, 12]);
    const power = (y: sn.Tensor): sn.Tensor => {
      const z = sn.fft.fft(y, { norm: 'ortho' });
      return sn.sum(sn.mul(sn.abs(z), sn.abs(z)));
    };
    await expectSame(sn.grad(power)(x), sn.mul(x, 2));
  });

  test('functions that transform can be compiled, after and before they are called', async () => {
    sn.setDevice(device);
    const z = signal(2, 24);
    const f = sn.compile((y: sn.Tensor) => sn.fft.ifft(sn.mul(sn.fft.fft(y), 2)));
    await expectSame(f(z), sn.mul(z, 2));
    await expectSame(sn.fft.ifft(sn.fft.fft(z)), z);
    await expectSame(sn.compile((y: sn.Tensor) => sn.fft.fft(y, { n: 26 }))(z), sn.fft.fft(z, { n: 26 }));
  });
});

test('filters take a kernel each way, and windows and scales none', () => {
  const z = sn.zeros([8, 1024], { dtype: 'c64' });
  const filter = sn.zeros([1024], { dtype: 'c64' });
  const filtered = (x: sn.Tensor): sn.Tensor => sn.fft.ifft(sn.mul(sn.fft.fft(x), filter));
  const windowed = (x: sn.Tensor): sn.Tensor => sn.fft.fft(sn.mul(x, sn.real(filter)), { norm: 'ortho' });
  for (const target of [gpuTarget, wasmTarget]) {
    expect(explainFor(target, filtered, z).totals.kernels).toBe(2);
    expect(explainFor(target, windowed, z).totals.kernels).toBe(1);
    expect(explainFor(target, windowed, sn.zeros([8, 1024])).totals.kernels).toBe(1);
  }
});

test('windows are those of PyTorch', async () => {
  const rows: readonly (readonly [sn.Tensor, readonly number[]])[] = [
    // torch.hann_window(5), hamming_window(4, periodic=False), blackman_window(4), bartlett_window(5), kaiser_window(4).
    [sn.hannWindow(5), [0, 0.3454915, 0.9045085, 0.9045085, 0.3454915]],
    [sn.hammingWindow(4, { periodic: false }), [0.08, 0.77, 0.77, 0.08]],
    [sn.blackmanWindow(4), [0, 0.34, 1, 0.34]],
    [sn.bartlettWindow(5), [0, 0.4, 0.8, 0.8, 0.4]],
    [sn.kaiserWindow(4), [5.277e-5, 0.21566, 1, 0.21566]],
  ];
  for (const [window, wanted] of rows) await expectSame(window, sn.tensor([...wanted]), 2e-5);
});

test('what cannot be transformed says so where it is asked for', () => {
  expect(() => sn.fft.rfft(signal(4))).toThrow('real numbers');
  expect(() => sn.fft.fft(sn.zeros([0]))).toThrow('0 points');
  expect(() => sn.fft.irfft(sn.zeros([1]))).toThrow('0 points');
  expect(() => sn.fft.fft(sn.tensor(1))).toThrow('axis');
  expect(() => sn.fft.fft(sn.zeros([4], { dtype: 'f16' }))).toThrow('16-bit');
  expect(() => sn.stft(sn.zeros([3]), 8, { center: false })).toThrow('do not fit');
});
