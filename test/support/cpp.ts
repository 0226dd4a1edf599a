// The machine's C++ compiler, where it has one: some tests run generated code through it.

import { spawnSync } from 'node:child_process';

/** The first C++ compiler that answers: `CXX`, then the usual names. */
export function findCompiler(): string | undefined {
  const given = process.env['CXX'];
  const names = given === undefined || given === '' ? ['g++', 'c++', 'clang++'] : [given];
  return names.find((name) => spawnSync(name, ['--version'], { stdio: 'ignore' }).status === 0);
}
