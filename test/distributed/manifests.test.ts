// The scripts that start the example on clusters: their fields, and that `join` understands what they start.
// No parser of YAML is installed: the manifest is read as the few forms of lines that it has.

import { existsSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, test } from 'vitest';

import { timeoutFrom } from '../../src/distributed/call.ts';
import { starterOf } from '../../src/distributed/place.ts';

const root = fileURLToPath(new URL('../../', import.meta.url));
const read = (name: string): string => readFileSync(`${root}examples/distributed/${name}`, 'utf8');
const scalar = (text: string): string => text.replace(/^'(.*)'$/, '$1');

/**
 * Values by path of a manifest of maps, lists and plain or quoted texts: `spec.slotsPerWorker`, `spec.list[0].name`. Throws where a line
 * has another form.
 */
function fieldsOf(yaml: string): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  let open: { readonly indent: number; readonly path: string }[] = [];
  const counts = new Map<string, number>();
  for (const line of yaml.split('\n').filter((one) => one.trim() !== '' && !one.startsWith('#'))) {
    let [, space = '', rest = ''] = /^( *)(.*)$/.exec(line)!;
    let indent = space.length;
    open = open.filter((one) => one.indent < indent);
    let path = open.at(-1)?.path ?? '';
    if (rest.startsWith('- ')) {
      const place = counts.get(path) ?? 0;
      counts.set(path, place + 1);
      path = `${path}[${place}]`;
      open.push({ indent, path });
      rest = rest.slice(2);
      indent += 2;
    }
    const [, key, value] = /^([A-Za-z]\w*):(?: (.+))?$/.exec(rest) ?? [];
    if (key === undefined) {
      if (!path.endsWith(']') || rest.includes(': ')) throw new Error(`not read: ${line}`);
      fields.set(path, scalar(rest));
      continue;
    }
    const own = path === '' ? key : `${path}.${key}`;
    if (fields.has(own)) throw new Error(`twice: ${own}`);
    if (value === undefined) open.push({ indent, path: own });
    else fields.set(own, scalar(value));
  }
  return fields;
}

/** The texts of a list. */
function listAt(fields: ReadonlyMap<string, string>, path: string): readonly string[] {
  return [...fields].flatMap(([at, value]) => (at.startsWith(`${path}[`) ? [value] : []));
}

/** The script that a command runs is there. */
function expectScript(words: readonly string[]): void {
  const script = words.find((word) => word.endsWith('.ts'));
  expect(script).toBeDefined();
  expect(existsSync(`${root}${script}`)).toBe(true);
}

describe('the MPIJob', () => {
  const fields = fieldsOf(read('mpijob.yaml'));
  const launcher = 'spec.mpiReplicaSpecs.Launcher.template.spec.containers[0]';
  const worker = 'spec.mpiReplicaSpecs.Worker';

  test('is one of version 2 of the MPI Operator', () => {
    expect(fields.get('apiVersion')).toBe('kubeflow.org/v2beta1');
    expect(fields.get('kind')).toBe('MPIJob');
    expect(fields.get('spec.mpiImplementation')).toBe('OpenMPI');
    expect(fields.get('spec.mpiReplicaSpecs.Launcher.replicas')).toBe('1');
    expect(fields.get(`${launcher}.image`)).toBe(fields.get(`${worker}.template.spec.containers[0].image`));
  });

  test('starts as many ranks as the workers have places for', () => {
    const command = listAt(fields, `${launcher}.command`);
    expect(command[0]).toBe('mpirun');
    const ranks = Number(command[command.indexOf('-n') + 1]);
    const places = Number(fields.get(`${worker}.replicas`)) * Number(fields.get('spec.slotsPerWorker'));
    expect(ranks).toBe(places);
    expectScript(command);
  });

  test('hands on a variable that ranks read, with its value', () => {
    const command = listAt(fields, `${launcher}.command`);
    const name = command[command.indexOf('-x') + 1]!;
    expect(fields.get(`${launcher}.env[0].name`)).toBe(name);
    expect(timeoutFrom({ [name]: fields.get(`${launcher}.env[0].value`) })).toBe(300_000);
    expect(timeoutFrom({ [name]: '7' })).toBe(7000);
  });

  test('its ranks are those of Open MPI, also in pods of an indexed job', () => {
    const env = { OMPI_COMM_WORLD_RANK: '5', OMPI_COMM_WORLD_SIZE: '8', JOB_COMPLETION_INDEX: '1' };
    expect(starterOf(env)).toMatchObject({ engine: 'mpi', rank: 5, size: 8 });
  });
});

describe('the Slurm script', () => {
  const script = read('slurm.sh');
  const options = new Map(
    [...script.matchAll(/^#SBATCH --([\w-]+)=(.+)$/gm)].map(([, name, value]) => [name!, value!]),
  );
  const command = script.trim().split('\n').at(-1)!.split(' ');
  const slurm = { SLURM_PROCID: '3', SLURM_STEP_NUM_TASKS: '8' };

  test('begins as a script whose options come before its commands', () => {
    expect(script.startsWith('#!/bin/sh\n')).toBe(true);
    expect([...options.keys()]).toEqual(['job-name', 'nodes', 'ntasks-per-node', 'cpus-per-task', 'time']);
    expect(script.lastIndexOf('#SBATCH')).toBeLessThan(script.indexOf('\nexport '));
    expect(Number(options.get('nodes')) * Number(options.get('ntasks-per-node'))).toBe(8);
  });

  test('starts the example by srun with a PMI, which gives each rank what join reads', () => {
    expect(command[0]).toBe('srun');
    expect(command).toContain('--mpi=pmix');
    expectScript(command);
    expect(starterOf({ ...slurm, PMIX_RANK: '3' })).toMatchObject({ engine: 'mpi', rank: 3 });
    expect(starterOf({ ...slurm, PMI_RANK: '3', PMI_SIZE: '8' })).toMatchObject({ rank: 3, size: 8 });
  });

  test('says what join asks for where Slurm gives no PMI', () => {
    expect(() => starterOf(slurm)).toThrow('srun --mpi=pmix');
  });

  test('sets a time-out that ranks read', () => {
    const [, name, value] = /^export (\w+)=(\d+)$/m.exec(script)!;
    expect(timeoutFrom({ [name!]: value })).toBe(Number(value) * 1000);
    expect(timeoutFrom({ [name!]: '7' })).toBe(7000);
  });
});
