// Many kernels, drawn as a text is read: cards in rows, in the order they run, the rows under the
// stages of a train step. Values run in the gaps between rows and columns, where no card stands.
// Names of stages stand in a column of their own, as large as the whole drawing's view asks for.

import type { ExplainedKernel, TrainStage } from './types.ts';

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** A rectangle by its upper left corner. */
export interface Box extends Point {
  readonly width: number;
  readonly height: number;
}

/** A node inside the box of a kernel; a value may be drawn in several boxes. */
export interface PlacedNode extends Box {
  readonly node: number;
  /**
   * Part of the kernel that computes it, or `read` for what comes from memory and `scalar` for a
   * number given at run time.
   */
  readonly role: 'prologue' | 'body' | 'epilogue' | 'read' | 'scalar';
  readonly text: string;
  readonly written: boolean;
}

export interface PlacedKernel extends Box {
  readonly kernel: number;
  readonly nodes: readonly PlacedNode[];
  /** Inside the box, relative to the drawing like everything else. */
  readonly edges: readonly (readonly Point[])[];
  /** Nodes that are not drawn: of a kernel with many results only the first are. */
  readonly omitted: number;
}

/** A value that goes from one kernel to another through memory. */
export interface PlacedEdge {
  readonly from: number;
  readonly to: number;
  /** One in the drawing of nodes; all that pass between the two in the drawing of kernels. */
  readonly values: readonly number[];
  readonly points: readonly Point[];
  /** It leads from one stage to another. */
  readonly across?: boolean;
}

/** The kernels of a stage, where there are so many that they stand in rows. */
export interface PlacedGroup extends Box {
  readonly stage: TrainStage;
  readonly kernels: readonly number[];
  /** Of its name. */
  readonly size: number;
}

export interface Drawing {
  readonly width: number;
  readonly height: number;
  readonly kernels: readonly PlacedKernel[];
  readonly edges: readonly PlacedEdge[];
  readonly groups?: readonly PlacedGroup[];
}

/** Between columns and between rows: room for values side by side. */
const gap = { column: 46, row: 44 };
const margin = 18;
/** Between stages. */
const groupGap = 34;
/** Width over height of the view that drawings are made for, and its width in pixels. */
const view = { ratio: 1.15, width: 820 };
/** Sizes, in pixels, of the names of stages when the whole drawing is in view. */
const titlePixels = 17;
const lines = 4;

const order: readonly TrainStage[] = ['forward', 'backward', 'update'];

interface Passing {
  readonly from: number;
  readonly to: number;
  readonly values: readonly number[];
}

/** Kernels by stage; one whose stage is not told stays with the one before it. */
function groupsOf(kernels: readonly ExplainedKernel[]): (readonly [TrainStage, readonly number[]])[] {
  const places = new Map<TrainStage, number[]>(order.map((stage) => [stage, []]));
  let last: TrainStage = 'forward';
  kernels.forEach(({ stage = last }, i) => {
    places.get(stage)!.push(i);
    last = stage;
  });
  return [...places].filter(([, list]) => list.length > 0);
}

/** Cards of this size in rows under their stages. */
export function drawRows(
  kernels: readonly ExplainedKernel[],
  passings: readonly Passing[],
  card: { readonly width: number; readonly height: number },
): Drawing {
  const groups = groupsOf(kernels);
  const plans = Array.from({ length: 16 }, (_, i) => plan(groups, i + 2, card));
  const badness = ({ width, height }: Plan): number => Math.max(width / view.ratio, height);
  const best = plans.reduce((a, b) => (badness(b) < badness(a) ? b : a));
  return { ...best, edges: routed(passings, best, card) };
}

interface Plan extends Pick<Drawing, 'width' | 'height' | 'kernels'> {
  readonly groups: readonly PlacedGroup[];
  /** Column, and upper edge of the row, of every kernel. */
  readonly columns: readonly number[];
}

function plan(
  groups: readonly (readonly [TrainStage, readonly number[]])[],
  columnCount: number,
  card: { readonly width: number; readonly height: number },
): Plan {
  const [stepX, stepY] = [card.width + gap.column, card.height + gap.row];
  const cards = columnCount * stepX + gap.column;
  // The column of names takes its part of the width, whose share of the view decides the size.
  const size = Math.max(22, (titlePixels * cards) / (view.width - titlePixels * 8));
  const left = margin + size * 7;
  const width = left + cards + margin;
  const boxes: (Box & { readonly kernel: number })[] = [];
  const columns: number[] = [];
  const placed: PlacedGroup[] = [];
  let y = margin;
  for (const [stage, list] of groups) {
    const rows = Math.ceil(list.length / columnCount);
    const height = Math.max(rows * stepY + gap.row, size * 1.2 * lines);
    list.forEach((kernel, i) => {
      columns[kernel] = i % columnCount;
      const x = left + gap.column + (i % columnCount) * stepX;
      boxes.push({ kernel, x, y: y + gap.row + Math.floor(i / columnCount) * stepY, ...card });
    });
    placed.push({ stage, kernels: list, size, x: margin, y, width: width - 2 * margin, height });
    y += height + groupGap;
  }
  const drawn = boxes.map((box) => ({ ...box, nodes: [], edges: [], omitted: 0 }));
  return { width, height: y - groupGap + margin, kernels: drawn, groups: placed, columns };
}

/** Lanes of a gap: one value after the other, so that neighbours do not lie on each other. */
class Lanes {
  readonly #taken = new Map<string, number>();

  next(name: string, count: number): number {
    const taken = this.#taken.get(name) ?? 0;
    this.#taken.set(name, taken + 1);
    return taken % count;
  }
}

function routed(
  passings: readonly Passing[],
  { kernels, groups, columns }: Plan,
  card: { readonly width: number; readonly height: number },
): PlacedEdge[] {
  const lanes = new Lanes();
  const boxes = new Map(kernels.map((box) => [box.kernel, box]));
  const groupOf = new Map(groups.flatMap((group) => group.kernels.map((kernel) => [kernel, group] as const)));
  const between = (y: number): number => y + 10 + 5 * lanes.next(`row ${y}`, 5);
  return passings.map(({ from, to, values }): PlacedEdge => {
    const [above, below] = [boxes.get(from)!, boxes.get(to)!];
    const across = groupOf.get(from) !== groupOf.get(to);
    const told = { from, to, values, across };
    if (above.y === below.y && columns[to] === columns[from]! + 1) {
      const y = above.y + card.height / 2;
      const [x0, x1] = [above.x + card.width, below.x];
      return {
        ...told,
        points: [
          { x: x0, y },
          { x: x1, y },
        ] as readonly Point[],
      };
    }
    const x0 = above.x + 24 + 20 * lanes.next(`from ${from}`, 10);
    const x1 = below.x + 24 + 20 * lanes.next(`to ${to}`, 10);
    const y0 = above.y + card.height;
    const out = between(y0);
    const start = [
      { x: x0, y: y0 },
      { x: x0, y: out },
    ];
    const end = { x: x1, y: below.y };
    // The next row of the same stage: one gap leads there.
    if (below.y === y0 + gap.row) return { ...told, points: [...start, { x: x1, y: out }, end] };
    const into = between(below.y - gap.row);
    const beside = below.x - gap.column + 10 + 5 * lanes.next(`column ${columns[to]}`, 6);
    const way = [
      { x: beside, y: out },
      { x: beside, y: into },
      { x: x1, y: into },
    ];
    return { ...told, points: [...start, ...way, end] };
  });
}
