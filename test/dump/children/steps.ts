// A program whose stages are written: recorded operations, a function compiled twice, and, by the first
// argument, how it ends.

import { add, compile, mul, ones, setDevice, sum } from '../../../src/index.ts';

setDevice('wasm');
const scale = mul(ones([4]), 2);
await scale.data();
const step = compile(function step(x: typeof scale) {
  return sum(add(mul(x, 1), scale));
});
console.log(await step(ones([4])).item(), await step(ones([3, 4])).item());
if (process.argv[2] === 'exit') process.exit(0);
