// Loop IR as text, one statement a line: `let y: f32x4 = mul(x[at:4], 2_f32x4)`. `parseLoop` reads
// the text back to an equal Loop, so everything that a Loop says stands in it. A plain whole number
// is an i32; other constants name their type.

import { operandsOf } from './builder.ts';
import type { Loop, LoopBuffer, RegisterType, Stmt, TileOperand, Value, Width } from './loop.ts';
import { bodiesOf } from './walk.ts';

/** The whole kernel, one statement a line. */
export function printLoop(loop: Loop): string {
  const { name, kind, grid, workgroup, usesScalars } = loop;
  const lines = [
    `loop ${name} (${kind}) grid ${grid.join('x')} workgroup ${workgroup.join('x')}${usesScalars ? ' scalars' : ''}`,
    ...loop.header.map((line) => `  // ${line}`.trimEnd()),
    ...loop.buffers.map((buffer) => `  ${printBuffer(buffer)}`),
    ...(loop.tileMaps ?? []).map(
      ({ name: map, buffer, offset, sizes, strides, box }) =>
        `  map ${map}: ${buffer}[${offset}] sizes ${sizes.join('x')} strides ${strides.join(',')} box ${box.join('x')}`,
    ),
    ...(loop.mbarriers ?? []).map(({ name: barrier, size }) => `  mbarriers ${barrier}: ${size}`),
    '{',
  ];
  printBody(loop.body, '  ', lines);
  lines.push('}');
  return lines.join('\n');
}

/** `global in0: f32[64] read`. */
function printBuffer({ space, name, dtype, size, tiled, access }: LoopBuffer): string {
  return `${space} ${name}: ${dtype}[${size}]${tiled ? ' tiled' : ''}${access === 'read' ? ' read' : ''}`;
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
    case 'clearTile':
      return `clear ${stmt.buffer}[${printValue(stmt.index)}]`;
    case 'publishTiles':
      return 'publish tiles';
    case 'wgmma': {
      const { sums, operand, lhs, words, rhs } = stmt;
      const left = [
        ...(lhs === undefined ? [] : [printTile(lhs)]),
        ...(words === undefined ? [] : [printValue(words)]),
      ];
      return `${sums.join(', ')} += wgmma ${operand} ${left.join(' ')}, ${printTile(rhs)}`;
    }
    case 'wgmmaFence':
      return `fence ${stmt.sums.join(', ')}`;
    case 'wgmmaCommit':
      return 'commit products';
    case 'wgmmaWait':
      return `wait for products but ${stmt.pending}${stmt.sums.length > 0 ? ` into ${stmt.sums.join(', ')}` : ''}`;
    case 'setRegisters':
      return `${stmt.grow ? 'grow' : 'shrink'} to ${stmt.count} registers`;
    case 'prefetch':
      return `prefetch ${stmt.buffer}[${printValue(stmt.index)}]`;
    case 'comment':
      return `// ${stmt.text}`.trimEnd();
    default:
      return stmt satisfies never;
  }
}

function printTile({ buffer, index, alongK, panel }: TileOperand): string {
  return `${buffer}[${printValue(index)}]${alongK ? '' : ' transposed'} panel ${panel}`;
}

export function printType(type: RegisterType, width: Width): string {
  return width === 1 ? type : `${type}x${width}`;
}

export function printValue(value: Value): string {
  const args = (): string => operandsOf(value).map(printValue).join(', ');
  switch (value.kind) {
    case 'constant':
      return printConstant(value);
    case 'variable':
      return value.name;
    case 'builtin':
      return `${value.of}.${'xyz'[value.axis]}`;
    case 'subgroup':
      return `subgroup.${value.of}`;
    case 'op':
      return `${printOp(value)}(${args()})`;
    case 'load':
      return `${value.buffer}[${args()}${value.width === 1 ? '' : `:${value.width}`}${value.aligned ? '' : '?'}]`;
    case 'scalar':
      return `scalar${value.slot}_${value.type}`;
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

/** `3`, `0.5_f32x4`, `-inf_f32`, `7n_i64`, `true`. */
function printConstant({ value, exact, type, width }: Extract<Value, { kind: 'constant' }>): string {
  if (type === 'bool' && width === 1 && (value === 0 || value === 1)) return value === 1 ? 'true' : 'false';
  const suffix = type === 'i32' && width === 1 ? '' : `_${printType(type, width)}`;
  if (exact !== undefined) return `${exact}n${suffix}`;
  if (Object.is(value, -0)) return `-0${suffix}`;
  if (Number.isNaN(value)) return `nan_${printType(type, width)}`;
  if (Number.isFinite(value)) return `${value}${suffix}`;
  return `${value > 0 ? 'inf' : '-inf'}_${printType(type, width)}`;
}

/** `add`, `add.wraps`, `cast<f32>`, `philox4`: what the arguments do not tell of an operation. */
function printOp({ op, type, width, wraps }: Extract<Value, { kind: 'op' }>): string {
  const lanes = op === 'philox' && width > 1 ? width : '';
  const into = op === 'cast' || op === 'bitcast' ? `<${type}>` : '';
  return `${op}${lanes}${wraps === true ? '.wraps' : ''}${into}`;
}

function printBody(body: readonly Stmt[], indent: string, lines: string[]): void {
  for (const stmt of body) {
    const bodies = bodiesOf(stmt);
    if (bodies.length === 0) {
      lines.push(indent + printStmt(stmt));
      continue;
    }
    bodies.forEach((inner, i) => {
      lines.push(i === 0 ? `${indent}${printStmt(stmt)} {` : `${indent}} else {`);
      printBody(inner, `${indent}  `, lines);
    });
    lines.push(`${indent}}`);
  }
}
