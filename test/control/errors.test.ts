// What loops refuse: each message names the function and the argument, and says what to do.

import { expect, test } from 'vitest';

import * as sn from '../../src/index.ts';

const ones = sn.ones([3]);

test('carries of other types', () => {
  expect(() => sn.scan((c, x) => [sn.cat([c, x], 0), x], ones, sn.ones([2, 3]))).toThrow(
    /scan: the carry is f32\[3\] before an iteration and f32\[6\] after it[^]*try: begin with a carry of the shape/,
  );
  expect(() => sn.foriLoop(0, 3, (i, { a }) => ({ a: a.cast('f16').mul(i) }), { a: ones })).toThrow(
    /foriLoop: the carry at \.a is f32\[3\] before an iteration and f16\[3\] after it/,
  );
  expect(() => sn.scan((c) => [[c, c], undefined], ones, undefined, { length: 2 })).toThrow(
    /scan: the carry is a tree of \{a tensor\} before an iteration and of \{\[0\], \[1\]\} after it/,
  );
});

test('lengths that do not fit', () => {
  expect(() => sn.scan((c) => [c, c], ones)).toThrow(/without slices the number of iterations is not known/);
  expect(() => sn.scan((c, x) => [c, x], ones, ones, { length: 4 })).toThrow(
    /the slices are 3 along axis 0 of f32\[3\], but length is 4/,
  );
  expect(() => sn.scan((c) => [c, c], ones, { a: ones, b: sn.ones([4]) })).toThrow(
    /the slices at \.b are 4 along axis 0 of f32\[4\], but the first has 3/,
  );
  expect(() => sn.map((x) => x, sn.tensor(1))).toThrow(/map: the slices have no axis to go along: f32\[\]/);
});

test('bodies that return no pair', () => {
  expect(() => sn.scan((c) => c as never, ones, ones)).toThrow(
    /scan: the function must return \[carry, slice\]/,
  );
  expect(() => sn.scan((async (c: sn.Tensor) => [c, c]) as never, ones, ones)).toThrow(
    /scan: the function is asynchronous/,
  );
});

test('bodies with effects', () => {
  const state = sn.zeros([3]);
  const turn = (effect: (c: sn.Tensor) => unknown) => (): unknown =>
    sn.scan((c: sn.Tensor) => [(effect(c), c), undefined], ones, undefined, { length: 2 });
  expect(turn((c) => state.assign(c))).toThrow(/scan: the body assigns to f32\[3\]/);
  expect(turn(() => sn.rand([3]))).toThrow(/scan: the body draws random numbers[^]*try: draw them before/);
  expect(turn((c) => c.sum().backward())).toThrow(/scan: the body calls backward\(\)/);
});

test('bodies that read data', async () => {
  let read: Promise<unknown> | undefined;
  sn.scan((c: sn.Tensor) => [c, void (read = c.data())], ones, undefined, { length: 2 });
  await expect(read).rejects.toThrow(/data: the value of f32\[3\] is not known while/);
});

test('a value that a body made cannot be used outside, and the message names the loop', () => {
  const x = sn.ones([3]);
  let kept = x;
  const keep = (value: sn.Tensor): sn.Tensor => (kept = value);
  const calls: Readonly<Record<string, () => unknown>> = {
    'body of scan': () =>
      sn.scan((held: sn.Tensor) => [keep(held.add(1)), undefined], x, undefined, { length: 2 }),
    'body of map': () => sn.map((one: sn.Tensor) => keep(one.add(1)), x),
    'body of foriLoop': () => sn.foriLoop(0, 3, (_, held: sn.Tensor) => keep(held.add(1)), x),
    'body of whileLoop': () =>
      sn.whileLoop(
        (held: sn.Tensor) => held.sum().lt(10),
        (held) => keep(held.add(1)),
        x,
      ),
    'branch of cond': () =>
      sn.cond(
        sn.tensor(true),
        () => keep(x.add(1)),
        () => x,
      ),
  };
  for (const [home, call] of Object.entries(calls)) {
    call();
    const [what, , op] = home.split(' ');
    const law = new RegExp(
      `exists only inside the ${home} that made it[^]*try: return it from that ${what}[^]*${op} gives`,
    );
    expect(() => kept.add(1)).toThrow(law);
    // Another loop captures it no more than the world outside.
    expect(() => sn.map((one: sn.Tensor) => one.add(kept), x)).toThrow(law);
  }
});
