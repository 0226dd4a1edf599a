// Convolutions whose operands a device can copy by tiles: the weight laid out taps first, and the input as it is,
// seen as lines of neighbouring places of every channel. A box holds 64 channels, of one tap, or of the places
// that this tap looks at. What leaves the picture at its first or last line is outside the map, and zero; what
// leaves it at the end of a line has to be cleared.

import { coefficientOf } from '../../../ir/index-algebra/expr.ts';
import { dims, type Node, type NodeOf } from '../../../ir/graph.ts';
import type { Expr } from '../../../schedule/expression/expr.ts';
import { reachOf } from '../../../schedule/flat-taps.ts';
import type { Axis, Body } from '../../../schedule/kernel.ts';
import { strideProblem } from '../../../runtime/program.ts';
import { addInts, constant, mulInts, operation } from '../../loop/builder.ts';
import type { TileMap, Value } from '../../loop/loop.ts';
import { tileAlignment, tileLine } from '../../loop/verify-warpgroup.ts';
import { narrowed } from './problem.ts';
import { offsetOf, tiledOperand } from './tile-map.ts';

/** An operand as a tensor, the axis along which elements are neighbours first. */
interface Lies {
  readonly node: Node;
  readonly offset: number;
  readonly sizes: readonly number[];
  readonly strides: readonly number[];
}

/** Both operands, and how a tap moves along the places. */
export interface TiledConv {
  /** Channels, outputs, taps. */
  readonly weight: Lies;
  /** Places, channels, images. */
  readonly input: Lies;
  readonly channels: number;
  readonly taps: number;
  /** Taps and places of a line; the first tap of all looks `first` places further. */
  readonly lineTaps: number;
  readonly width: number;
  readonly first: number;
  /** How far apart taps look, of a line and of neighbouring lines. */
  readonly alongLine: number;
  readonly acrossLines: number;
  /** How far along its line the first tap of a line looks; undefined where no end of a line is inside the map. */
  readonly lineFirst: number | undefined;
}

type Contract = Extract<Body, { kind: 'contract' }>;

/** Undefined where it is none whose operands can be copied by tiles. */
export function tiledConv({ node, flatTaps, batch, m }: Contract): TiledConv | undefined {
  if (flatTaps === undefined || node.op !== 'conv') return undefined;
  const { channel, tap, place, weight, input } = flatTaps;
  const left = liesAlong(weight, [channel, m, tap]);
  const right = liesAlong(input, [place, channel, batch]);
  if (left === undefined || right === undefined) return undefined;
  return { weight: left, input: right, channels: channel.extent, taps: tap.extent, ...movesOf(node) };
}

function movesOf(
  node: NodeOf<'conv'>,
): Pick<TiledConv, 'lineTaps' | 'width' | 'first' | 'alongLine' | 'acrossLines' | 'lineFirst'> {
  const { padLow, rhsDilation } = node.attrs;
  const [lines, taps] = node.inputs.map((input) => dims(input as Node).slice(2)) as [number[], number[]];
  const isPlane = lines.length === 2;
  const width = lines.at(-1)!;
  const [lineFirst, lineLast] = reachOf(node);
  return {
    lineTaps: taps.at(-1)!,
    width,
    first: lineFirst - (isPlane ? padLow[0]! * width : 0),
    alongLine: rhsDilation.at(-1)!,
    acrossLines: isPlane ? rhsDilation[0]! * width : 0,
    lineFirst: isPlane && (lineFirst !== 0 || lineLast !== 0) ? lineFirst : undefined,
  };
}

/** A read that lies by constant strides along axes, 1 along the first of them. */
function liesAlong(operand: Expr, axes: readonly Axis[]): Lies | undefined {
  if (operand.kind !== 'read') return undefined;
  const { index, node } = operand;
  const offset = offsetOf(index, axes);
  if (offset === undefined || offset % tileAlignment !== 0) return undefined;
  const sizes = axes.map(({ extent }) => extent);
  const strides: number[] = [];
  for (const [i, { atom, extent }] of axes.entries()) {
    // An axis with one index has no stride, but a device wants one: as if it came behind those before.
    const behind = i === 0 ? 1 : tileAlignment * Math.ceil((sizes[i - 1]! * strides[i - 1]!) / tileAlignment);
    const stride = extent === 1 ? behind : coefficientOf(index, atom);
    if (stride === undefined) return undefined;
    strides.push(stride);
  }
  const isKnown = strides[0] === 1 && strideProblem({ sizes, strides }) === undefined;
  return isKnown ? { node, offset, sizes, strides } : undefined;
}

/** The maps of both operands, for boxes of 64 channels. */
export function convMaps(
  { weight, input }: TiledConv,
  buffer: (node: Node) => string,
  tileM: number,
): readonly [weight: TileMap, input: TileMap] {
  const map = (name: string, { node, ...lies }: Lies, box: readonly number[]): TileMap => {
    return { name, buffer: buffer(node), ...lies, box };
  };
  return [map('map_lhs', weight, [tileLine, tileM, 1]), map('map_rhs', input, [tileLine, tileLine, 1])];
}

/** How many places further a tap looks. */
export function shiftOf({ lineTaps, first, alongLine, acrossLines }: TiledConv, tap: Value): Value {
  const by = (count: Value, step: number): Value => mulInts(count, constant(step));
  const line = operation('div', [tap, constant(lineTaps)], 'i32');
  const inLine = operation('mod', [tap, constant(lineTaps)], 'i32');
  return addInts(constant(first), addInts(by(line, acrossLines), by(inLine, alongLine)));
}

/** How far along its line a tap looks. */
export function lineShiftOf({ lineTaps, alongLine }: TiledConv, lineFirst: number, tap: Value): Value {
  const inLine = operation('mod', [tap, constant(lineTaps)], 'i32');
  return addInts(constant(lineFirst), mulInts(inLine, constant(alongLine)));
}

/** What both operands of a product or a convolution are copied from, where both can be copied by tiles. */
export function copiedOperands(body: Contract): readonly [lhs: Node, rhs: Node] | undefined {
  const conv = tiledConv(body);
  const lhs = conv?.weight ?? tiledOperand(narrowed(body.lhs), body.m, body);
  const rhs = conv?.input ?? tiledOperand(narrowed(body.rhs), body.n, body);
  return lhs && rhs && [lhs.node, rhs.node];
}
