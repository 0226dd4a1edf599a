// Runs Loops for tests: on the software device through emitted WGSL, with the same arguments as the interpreter takes.

import { emitWgsl } from '../../src/codegen/emit/wgsl/emit.ts';
import { addInts, builtin, constant, less, LoopBuilder, mulInts } from '../../src/codegen/loop/builder.ts';
import type { Loop, LoopBuffer, LoopOp, RegisterType, Value, Width } from '../../src/codegen/loop/loop.ts';
import { dtypeBytes, lowered, type DType } from '../../src/ir/dtype.ts';
import { emptyData, packBytes, unpackBytes, type HostData } from '../../src/ir/value.ts';
import type { Device } from '../../src/runtime/device.ts';
import { deviceBytes, type Program, type ProgramBuffer } from '../../src/runtime/program.ts';
import '../../src/compile/all.ts';

/** Element arrays by buffer name. */
export type Arrays = Map<string, HostData>;

/** Device bytes: packed elements up to whole vec4s, as an emitted kernel may declare them. */
function roomFor({ dtype, size }: LoopBuffer): number {
  return Math.ceil(deviceBytes(dtypeBytes(dtype), size) / 16) * 16;
}

/** A Program of one dispatch of the Loop; read-only buffers are its inputs, the others inputs and donated outputs. */
export function programOf(loop: Loop, scalars: Program['scalars'] = [], source?: string): Program {
  const global = loop.buffers.filter((buffer) => buffer.space === 'global');
  const buffers = global.map((buffer): ProgramBuffer => ({
    name: buffer.name,
    role: 'input',
    bytes: roomFor(buffer),
    dtype: lowered(buffer.dtype),
    shape: [buffer.size],
  }));
  const written = global.flatMap((buffer, i) => (buffer.access === 'read_write' ? [i] : []));
  return {
    version: 1,
    target: 'wgsl',
    kernels: [
      {
        name: loop.name,
        kind: loop.kind,
        source: source ?? emitWgsl(loop, { scalarSlots: scalars.length }),
        workgroup: loop.workgroup,
        bindings: global.map((buffer) => buffer.access),
        usesScalars: loop.usesScalars,
        flops: 0,
        bytes: 0,
      },
    ],
    buffers,
    packs: [],
    arenas: [],
    steps: [{ kind: 'dispatch', kernel: 0, buffers: global.map((_, i) => i), grid: loop.grid }],
    inputs: global.map((_, i) => i),
    outputs: written,
    donated: written.map((input, output) => ({ output, input })),
    scalars,
  };
}

/** Runs the Loop on a device: `arrays` hold every global buffer's elements; those written are replaced by the results. */
export async function runLoop(
  device: Device,
  loop: Loop,
  arrays: Arrays,
  scalars: readonly number[] = [],
  types: Program['scalars'] = scalars.map((_, i) => ({ name: `s${i}`, dtype: 'f32' })),
): Promise<void> {
  const program = programOf(loop, types);
  const global = loop.buffers.filter((buffer) => buffer.space === 'global');
  const buffers = global.map((buffer) => {
    const memory = device.allocate(roomFor(buffer));
    const data = arrays.get(buffer.name) ?? emptyData(buffer.dtype, buffer.size);
    const bytes = new Uint8Array(roomFor(buffer));
    bytes.set(packBytes({ dtype: buffer.dtype, shape: [data.length], data }));
    device.write(memory, bytes);
    return memory;
  });
  const loaded = device.load(program);
  try {
    loaded.run(
      buffers,
      program.outputs.map((i) => buffers[i]!),
      scalars,
    );
    for (const i of program.outputs) {
      const { name, dtype, size } = global[i]!;
      const bytes = await device.read(buffers[i]!, roomFor(global[i]!));
      arrays.set(name, unpackBytes(bytes, dtype, [size]).data);
    }
  } finally {
    loaded.destroy();
    for (const buffer of buffers) buffer.destroy();
  }
}

/** A Loop that applies one operation to whole arrays `x0`, `x1`, …, `width` elements at a time, and writes `out`. */
export function mapLoop(
  row: { op: LoopOp; args: readonly RegisterType[]; result: RegisterType; last?: number },
  width: Width,
  size: number,
): Loop {
  const loaded = row.last === undefined ? row.args : row.args.slice(0, -1);
  const invocations = Math.ceil(size / width / 64);
  const buffer = (name: string, dtype: DType, access: LoopBuffer['access']): LoopBuffer => ({
    name,
    space: 'global',
    dtype,
    size,
    access,
  });
  const b = new LoopBuilder(new Set(['out']));
  const id = b.let(addInts(mulInts(builtin('workgroup', 0), constant(64)), builtin('local', 0)), 'id');
  b.if(less(id, constant(size / width)), () => {
    const at = b.let(mulInts(id, constant(width)), 'at');
    const args: Value[] = loaded.map((type, k) => {
      const load: Value = { kind: 'load', buffer: `x${k}`, index: at, aligned: true, type, width };
      return b.let(load, `v${k}`);
    });
    if (row.last !== undefined) args.push(constant(row.last, row.args[row.args.length - 1]!, width));
    b.store(
      'out',
      at,
      b.let({ kind: 'op', op: row.op, args, type: row.result, width, wraps: true }, 'result'),
      width === 4,
    );
  });
  return {
    name: 'apply',
    kind: 'map',
    header: [],
    buffers: [
      ...loaded.map((type, k) => buffer(`x${k}`, type, 'read')),
      buffer('out', row.result, 'read_write'),
    ],
    usesScalars: false,
    grid: [invocations, 1, 1],
    workgroup: [64, 1, 1],
    body: b.body,
  };
}
