// Loop IR as short text for reports and bug messages: `let y: f32x4 = mul(x[at:4], 2)`. Meant for eyes, not for parsing.

import { operandsOf } from './builder.ts';
import type { Loop, RegisterType, Stmt, TileOperand, Value, Width } from './loop.ts';

/** The whole kernel, one statement a line. */
export function printLoop(loop: Loop): string {
  const { name, kind, grid, workgroup, usesScalars } = loop;
  const lines = [
    `loop ${name} (${kind}) grid ${grid.join('x')} workgroup ${workgroup.join('x')}${usesScalars ? ' scalars' : ''}`,
    ...loop.header.map((line) => `  // ${line}`),
    ...loop.buffers.map(
      (buffer) =>
        `  ${buffer.space} ${buffer.name}: ${buffer.dtype}[${buffer.size}]${buffer.tiled ? ' tiled' : ''}${buffer.access === 'read' ? ' read' : ''}`,
    ),
    ...(loop.tileMaps ?? []).map(
      ({ name: map, buffer, offset, sizes, strides, box }) =>
        `  map ${map}: ${buffer}[${offset}] sizes ${sizes.join('x')} strides ${strides.join(',')} box ${box.join('x')}`,
    ),
    ...(loop.mbarriers ?? []).map(({ name: barrier, size }) => `  mbarriers ${barrier}: ${size}`),
  ];
  printBody(loop.body, '  ', lines);
  return lines.join('\n');
}

/** One statement's first line, e.g. `out[at:4] = y`. */
export function printStmt(stmt: Stmt): string {
  switch (stmt.kind) {
    case 'let':
    case 'var': {
      const { type, width } = stmt.value;
      return `${stmt.kind} ${stmt.name}: ${printType(type, width)} = ${printValue(stmt.value)}`;
    }
    case 'assign':
      return `${stmt.name} = ${printValue(stmt.value)}`;
    case 'store': {
      const { value } = stmt;
      const run = value.width === 1 ? '' : `:${value.width}`;
      return `${stmt.buffer}[${printValue(stmt.index)}${run}] ${stmt.owned ? '=' : '=merge'} ${printValue(value)}`;
    }
    case 'atomic':
      return `${stmt.buffer}[${printValue(stmt.index)}] atomic ${stmt.op} ${printValue(stmt.value)}`;
    case 'for': {
      const step = stmt.step === 1 ? '' : ` by ${stmt.step}`;
      return `for ${stmt.name} in ${printValue(stmt.start)} .. ${printValue(stmt.end)}${step}`;
    }
    case 'if':
      return `if ${printValue(stmt.condition)}`;
    case 'barrier':
      return 'barrier';
    case 'subgroupReduce': {
      const { type, width } = stmt.value;
      return `let ${stmt.name}: ${printType(type, width)} = subgroup ${stmt.monoid} ${printValue(stmt.value)}`;
    }
    case 'loadMatrix': {
      const turned = stmt.transposed ? ' transposed' : '';
      return `let ${stmt.name}: u32x4 = matrices ${stmt.buffer}[${printValue(stmt.index)}]${turned}`;
    }
    case 'mma':
      return `${stmt.name} += mma ${stmt.operand} ${printValue(stmt.lhs)}, ${printValue(stmt.rhs)}`;
    case 'shuffle': {
      const { type, width } = stmt.value;
      return `let ${stmt.name}: ${printType(type, width)} = shuffle ${stmt.mask} ${printValue(stmt.value)}`;
    }
    case 'asyncCopy':
      return `${stmt.buffer}[${printValue(stmt.index)}:8] <- ${stmt.from}[${printValue(stmt.at)}:8] if ${printValue(stmt.inside)}`;
    case 'asyncCommit':
      return 'commit copies';
    case 'asyncWait':
      return `wait for copies but ${stmt.pending}`;
    case 'initBarrier':
      return `${stmt.barrier}[${printValue(stmt.index)}] begins, for ${stmt.count}`;
    case 'arrive':
      return `arrive ${stmt.barrier}[${printValue(stmt.index)}]${stmt.bytes === 0 ? '' : ` with ${stmt.bytes} bytes`}`;
    case 'awaitBarrier':
      return `await ${stmt.barrier}[${printValue(stmt.index)}] phase ${printValue(stmt.parity)}`;
    case 'copyTile': {
      const at = stmt.at.map(printValue).join(', ');
      return `${stmt.buffer}[${printValue(stmt.index)}] <- ${stmt.map}(${at}) for ${stmt.barrier}[${printValue(stmt.slot)}]`;
    }
    case 'wgmma': {
      const many = stmt.sums.length > 1 ? `${stmt.sums[0]}..${stmt.sums.at(-1)}` : stmt.sums[0];
      return `${many} += wgmma ${stmt.operand} ${printTile(stmt.lhs)}, ${printTile(stmt.rhs)}`;
    }
    case 'wgmmaFence':
      return 'fence sums';
    case 'wgmmaCommit':
      return 'commit products';
    case 'wgmmaWait':
      return `wait for products but ${stmt.pending}`;
    case 'setRegisters':
      return `${stmt.grow ? 'grow' : 'shrink'} to ${stmt.count} registers`;
    case 'comment':
      return `// ${stmt.text}`;
    default:
      return stmt satisfies never;
  }
}

function printTile({ buffer, index, alongK }: TileOperand): string {
  return `${buffer}[${printValue(index)}]${alongK ? '' : ' transposed'}`;
}

export function printType(type: RegisterType, width: Width): string {
  return width === 1 ? type : `${type}x${width}`;
}

export function printValue(value: Value): string {
  const args = (): string => operandsOf(value).map(printValue).join(', ');
  switch (value.kind) {
    case 'constant':
      return Object.is(value.value, -0) ? '-0' : String(value.exact ?? value.value);
    case 'variable':
      return value.name;
    case 'builtin':
      return `${value.of}.${'xyz'[value.axis]}`;
    case 'subgroup':
      return `subgroup.${value.of}`;
    case 'op':
      return `${value.op === 'cast' || value.op === 'bitcast' ? `${value.op}<${value.type}>` : value.op}(${args()})`;
    case 'load':
      return `${value.buffer}[${args()}${value.width === 1 ? '' : `:${value.width}${value.aligned ? '' : '?'}`}]`;
    case 'scalar':
      return `scalar${value.slot}`;
    case 'vector':
      return `{${args()}}`;
    case 'splat':
      return `splat${value.width}(${args()})`;
    case 'lane':
      return `${args()}.${value.lane}`;
    default:
      return value satisfies never;
  }
}

function printBody(body: readonly Stmt[], indent: string, lines: string[]): void {
  for (const stmt of body) {
    lines.push(indent + printStmt(stmt));
    if (stmt.kind === 'for') printBody(stmt.body, `${indent}  `, lines);
    if (stmt.kind === 'if') {
      printBody(stmt.then, `${indent}  `, lines);
      if (stmt.else !== undefined && stmt.else.length > 0) {
        lines.push(`${indent}else`);
        printBody(stmt.else, `${indent}  `, lines);
      }
    }
  }
}
