// Where NVIDIA's compiler and disassembler are installed: no kernel spills more, holds fewer workgroups, divides more often by a
// call or could reach less of the roofline than it did. Needs CUDA's tools, no GPU.

import { expect, test } from 'vitest';
import { codeRows, committedCode, regressions } from '../../scripts/sass/figures.ts';
import { machines, type Arch } from '../../scripts/sass/machines.ts';
import { compiledPrograms } from '../../scripts/sass/programs.ts';
import { findTools } from '../../scripts/sass/tools.ts';
import { setDevice } from '../../src/index.ts';
import { isQuick } from '../support/sample.ts';

const archs = Object.keys(machines) as Arch[];
const tools = findTools();
const { rows } = committedCode();

test('the committed figures name these programs, and kernels that could be modelled', () => {
  const names = compiledPrograms.map(({ name }) => name);
  for (const arch of archs) {
    expect(Object.keys(rows[arch])).toEqual(names);
    for (const row of Object.values(rows[arch]).flat()) {
      expect(row.share, row.kernel).toBeGreaterThan(0);
      // The model takes the mean of workgroups, of which the heaviest decides.
      expect(row.share, row.kernel).toBeLessThan(1.2);
    }
  }
});

test('tools that are missing are named', () => {
  expect(findTools({ SINTER_NVDISASM: '/nowhere/nvdisasm' })).toMatchObject({
    missing: expect.stringContaining('nvdisasm'),
  });
});

for (const arch of archs) {
  for (const one of compiledPrograms) {
    test(`${arch}: the machine code of ${one.name} is not worse`, (context) => {
      if (isQuick) context.skip('compiling takes more than the quick tier has time for');
      if ('missing' in tools)
        return context.skip(`machine code cannot be counted: there is no ${tools.missing}`);
      setDevice('interpreter');
      try {
        expect(regressions(rows[arch][one.name]!, codeRows(arch, tools, [one])[one.name]!)).toEqual([]);
      } finally {
        setDevice(undefined);
      }
    });
  }
}
