// Variables of modules are state that nobody can see, set aside or have twice. The tensor layer keeps its state in a session
// (src/tensor/session.ts); what other rooms have left is listed here, and the list only shrinks.

import { expect, test } from 'vitest';
import { sources, withoutComments } from './source.ts';

/** How many variables the modules of each room have. A number that has become too great here is to be lowered. */
const left: Readonly<Record<string, number>> = {
  'bundle-runtime': 1,
  cli: 2,
  codegen: 1,
  compile: 1,
  data: 3,
  // A process is in one world.
  distributed: 1,
  dump: 3,
  explain: 1,
  interop: 1,
  ir: 5,
  llm: 1,
  onnx: 2,
  optim: 1,
  runtime: 4,
};

/** Those of the tensor layer, and why each is none of a session's. */
const ofTensors: Readonly<Record<string, string>> = {
  'src/tensor/tensor.ts reveal': 'opens a private field of Tensor to its module, and is set once',
  'src/tensor/handle/leaf.ts parameterCount': 'numbers that no two parameters share, in whichever session',
  'src/tensor/handle/recorded.ts changeCount':
    'layers, and what was traced of them, may go from session to session',
};

const variables = [...sources.values()].flatMap(({ path, text }) =>
  // The script of a page is text to the program.
  path === 'src/explain/page-script.ts'
    ? []
    : [...withoutComments(text).matchAll(/^(?:export )?let (\w+)/gm)].map(([, name]) => ({
        path,
        name: name!,
      })),
);

test('modules of other rooms have no variables but those that are left', () => {
  const counts: Record<string, number> = {};
  for (const { path } of variables) {
    const room = path.split('/')[1]!;
    if (room !== 'tensor') counts[room] = (counts[room] ?? 0) + 1;
  }
  expect(counts).toEqual(left);
});

test('modules of the tensor layer keep their state in the session', () => {
  const found = variables.filter(({ path }) => path.startsWith('src/tensor/'));
  expect(found.map(({ path, name }) => `${path} ${name}`).toSorted()).toEqual(
    Object.keys(ofTensors).toSorted(),
  );
});
