// The whole idea on one screen: operations record, derivatives are graphs, a step compiles to a few fused kernels that can be
// read. Run it with `npx tsx examples/00-idea.ts`.

import { pathToFileURL } from 'node:url';
import * as sn from 'sinter';

type Params = { w: sn.Tensor; b: sn.Tensor };

/** Fits a line through noisy points; gives the loss before and after. */
export async function idea(steps: number, say: (text: string) => void): Promise<[number, number]> {
  sn.manualSeed(1);
  const x = sn.randn([256, 3]); // nothing runs: x is a promise with a shape
  const y = x
    .matmul(sn.tensor([[2], [-1], [0.5]]))
    .add(1)
    .add(sn.randn([256, 1]).mul(0.1));

  const loss = ({ w, b }: Params): sn.Tensor => x.matmul(w).add(b).sub(y).square().mean();
  const descend = (p: Params): Params => sn.treeMap((v, g) => v.sub(g.mul(0.1)), p, sn.grad(loss)(p));
  const step = sn.compile(descend, { donate: [0] }); // traced once, then one program per call

  let p: Params = { w: sn.zeros([3, 1]), b: sn.zeros([1]) };
  const before = await loss(p).item(); // only reading computes
  say(`${sn.explain(descend, p)}\n`); // graph and kernels, without running them
  for (let i = 0; i < steps; i++) p = step(p);
  const after = await loss(p).item();
  say(
    `loss ${before} → ${after}\nw = ${JSON.stringify(await p.w.array())}, b = ${JSON.stringify(await p.b.array())}`,
  );
  return [Number(before), Number(after)];
}

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) await idea(100, console.log);
