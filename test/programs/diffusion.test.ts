// A diffusion model (Ho et al., "Denoising Diffusion Probabilistic Models", 2020) with a small U-shaped network: it learns to tell noise,
// and its sampling loop is one compiled program that is called for every step.

import { expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { Conv2d, GroupNorm, Linear, Module } from '../../src/nn/index.ts';
import { AdamW } from '../../src/optim/index.ts';

const steps = 20;
const kept = sn.cumprod(sn.tensor(1).sub(sn.linspace(1e-3, 0.2, steps)), 0);

/** sin and cos of a time at some frequencies [N, 8]. */
function timeOf(t: sn.Tensor): sn.Tensor {
  const angles = t
    .cast('f32')
    .unsqueeze(1)
    .mul(sn.tensor([1, 0.5, 0.25, 0.125]));
  return sn.cat([angles.sin(), angles.cos()], 1);
}

class Unet extends Module {
  readonly time = new Linear(8, 8);
  readonly down = new Conv2d(1, 8, 3, { padding: 1 });
  readonly norm = new GroupNorm(2, 8);
  readonly middle = new Conv2d(8, 8, 3, { padding: 1 });
  readonly up = new Conv2d(16, 1, 3, { padding: 1 });

  forward(x: sn.Tensor, t: sn.Tensor): sn.Tensor {
    const time = this.time.forward(timeOf(t)).silu().unsqueeze(-1).unsqueeze(-1);
    const wide = this.norm.forward(this.down.forward(x)).add(time).silu();
    const small = this.middle.forward(sn.avgPool2d(wide, 2)).silu();
    const back = sn.interpolate(small, { scaleFactor: 2, mode: 'nearest' });
    return this.up.forward(sn.cat([wide, back], 1));
  }
}

test('a small network learns to tell noise, and samples by one program', async () => {
  sn.setDevice('wasm');
  sn.manualSeed(5);
  const model = new Unet();
  const optimizer = new AdamW(model, { lr: 0.01 });
  const images = sn.linspace(-1, 1, 64).reshape([1, 1, 8, 8]).expand([4, 1, 8, 8]);
  const losses: number[] = [];
  for (let i = 0; i < 30; i++) {
    const t = sn.randint(0, steps, [4]);
    const noise = sn.randn([4, 1, 8, 8]);
    const part = kept.indexSelect(0, t).reshape([4, 1, 1, 1]);
    const seen = images.mul(part.sqrt()).add(noise.mul(part.neg().add(1).sqrt()));
    optimizer.zeroGrad();
    const loss = sn.mseLoss(model.forward(seen, t), noise);
    loss.backward();
    optimizer.step();
    losses.push(await loss.item());
  }
  const mean = (part: readonly number[]): number => part.reduce((a, b) => a + b, 0) / part.length;
  expect(mean(losses.slice(-5))).toBeLessThan(0.7 * mean(losses.slice(0, 5)));

  // Deterministic steps backwards (Song et al., "Denoising Diffusion Implicit Models", 2021).
  const back = sn.compile((x: sn.Tensor, t: sn.Tensor) => {
    const [now, before] = [kept.indexSelect(0, t), kept.indexSelect(0, t.sub(1).maximum(0))];
    const noise = model.forward(x, t);
    const clean = x.sub(noise.mul(now.neg().add(1).sqrt())).div(now.sqrt());
    return clean
      .clamp(-1, 1)
      .mul(before.sqrt())
      .add(noise.mul(before.neg().add(1).sqrt()));
  });
  const compiled = sn.stats().programs;
  let x: sn.Tensor = sn.randn([1, 1, 8, 8]);
  const seen: number[] = [];
  for (let t = steps - 1; t >= 0; t--) {
    x = back(x, sn.tensor([t], { dtype: 'i32' }));
    await x.data();
    seen.push(sn.stats().programs - compiled);
  }
  expect(await x.isFinite().all().item()).toBe(true);
  expect(seen.at(-1)).toBe(seen[1]);
});
