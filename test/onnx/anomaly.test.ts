// The first NaN or infinity of an ONNX model is found as in recorded code: the node of the model is named, also where the model has run,
// and was compiled, before anybody looked.

import { afterAll, beforeAll, expect, test } from 'vitest';
import * as sn from '../../src/index.ts';
import { exportOnnx, loadOnnx } from '../../src/onnx/index.ts';

beforeAll(() => sn.setDevice('interpreter'));
afterAll(() => sn.setDevice(undefined));

test.each(['before', 'after'])('detectAnomaly names the node of a model %s it was compiled', async (when) => {
  const { bytes } = await exportOnnx((x: sn.Tensor) => x.log().sqrt().mul(2), [sn.ones([2])]);
  const model = await loadOnnx(bytes);
  const name = model.inputs[0]!.name;
  const run = async (first: number): Promise<unknown> => {
    const out = await model.run({ [name]: sn.tensor([first, 3]) });
    return Object.values(out)[0]!.array();
  };
  if (when === 'after') await run(2);
  await expect(sn.detectAnomaly(() => run(0))).rejects.toThrow(
    /^detectAnomaly: log made -Infinity at \[0\] of f32\[2\] from 0\n {2}at Log '.*' of the model$/,
  );
  expect(await sn.detectAnomaly(() => run(2))).toHaveLength(2);
});
