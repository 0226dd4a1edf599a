// Values that follow from open sizes alone, in the nodes that exporters write for them (PyTorch's first and second
// exporter, at opset 17): masks of what comes later, positions, rotary and sinusoidal tables, slopes, buckets of
// distances. Each is an output of one model whose batch and length are open.

import { attribute, float, graph, int64, modelOf, node, port, type Draft } from './file.ts';

/** Most positions of the table. */
export const mostPositions = 24;

const lowest = -3.4028234663852886e38;

/** Writes nodes, and names what they give. */
class Writer {
  readonly nodes: Draft[] = [];
  readonly initializers: Draft[] = [];
  #made = 0;

  op(
    opType: string,
    inputs: readonly string[],
    attributes: Readonly<Record<string, number | number[] | Draft>> = {},
  ): string {
    const name = `${opType}_${this.#made++}`;
    const list = Object.entries(attributes).map(([key, value]) =>
      typeof value === 'object' && !Array.isArray(value) ? value : attribute(key, value),
    );
    this.nodes.push(node(opType, inputs, [name], list, '', name));
    return name;
  }

  ints(values: readonly number[], shape: readonly number[] = [values.length]): string {
    const name = `i${this.#made++}`;
    this.initializers.push(int64(name, shape, values.map(BigInt)));
    return name;
  }

  int(value: number): string {
    return this.ints([value], []);
  }

  floats(values: readonly number[], shape: readonly number[] = [values.length]): string {
    const name = `f${this.#made++}`;
    this.initializers.push(float(name, shape, values));
    return name;
  }

  number(value: number): string {
    return this.floats([value], []);
  }

  /** One axis of a shape, as `x.size(axis)`. */
  size(of: string, axis: number): string {
    return this.op('Gather', [this.op('Shape', [of]), this.int(axis)], { axis: 0 });
  }

  unsqueeze(x: string, ...axes: number[]): string {
    return this.op('Unsqueeze', [x, this.ints(axes)]);
  }

  /** A list of sizes. */
  shape(...sizes: readonly (string | number)[]): string {
    const parts = sizes.map((size) =>
      typeof size === 'number' ? this.ints([size]) : this.unsqueeze(size, 0),
    );
    return this.op('Concat', parts, { axis: 0 });
  }

  filled(shape: string, type: 'float' | 'int64' | 'bool', value: number): string {
    const data =
      type === 'int64'
        ? BigInt64Array.of(BigInt(value))
        : type === 'bool'
          ? Uint8Array.of(value)
          : Float32Array.of(value);
    const dataType = { float: 1, int64: 7, bool: 9 }[type];
    const t = { dataType, dims: [1n], rawData: new Uint8Array(data.buffer) };
    return this.op('ConstantOfShape', [shape], { value: { name: 'value', type: 4, t } });
  }

  cast(x: string, to: 'float' | 'int64' | 'bool' | 'double'): string {
    return this.op('Cast', [x], { to: { float: 1, int64: 7, bool: 9, double: 11 }[to] });
  }

  range(limit: string): string {
    return this.op('Range', [this.int(0), limit, this.int(1)]);
  }

  /** As `x.expand`, where the first exporter asks which sizes are -1. */
  expand(x: string, shape: string, rank: number): string {
    const ones = this.filled(this.ints([rank]), 'int64', 1);
    const kept = this.op('Mul', [ones, this.ints([-1], [])]);
    return this.op('Expand', [x, this.op('Where', [this.op('Equal', [shape, kept]), ones, shape])]);
  }
}

/** What nodes give: its name, its element type, its shape. */
type Made = readonly [name: string, type: number, shape: readonly (number | string)[]];

/** Each kind of value, by the name of the output that it is. */
const kinds: Readonly<Record<string, (w: Writer) => Made>> = {
  /** `torch.ones(t, t).tril()`, and what it hides. */
  triangle: (w) => {
    const t = w.size('x', 1);
    const tril = w.op('Trilu', [w.filled(w.shape(t, t), 'float', 1)], { upper: 0 });
    const cut = w.op('Slice', [tril, w.ints([0]), w.unsqueeze(t, 0), w.ints([1]), w.ints([1])]);
    const hidden = w.op('Equal', [cut, w.number(0)]);
    const scores = w.op('MatMul', ['x', w.op('Transpose', ['x'], { perm: [0, 2, 1] })]);
    return [
      w.op('Softmax', [w.op('Where', [hidden, w.number(-Infinity), scores])], { axis: -1 }),
      1,
      ['batch', 'length', 'length'],
    ];
  },
  /** A triangle that is stored, of which the first rows and columns are taken. */
  stored: (w) => {
    const t = w.size('x', 1);
    const all = Array.from({ length: mostPositions ** 2 }, (_, i) =>
      Number(i % mostPositions <= Math.floor(i / mostPositions)),
    );
    const stored = w.op('Cast', [w.floats(all, [1, 1, mostPositions, mostPositions])], { to: 9 });
    const end = w.unsqueeze(t, 0);
    const start = w.unsqueeze(w.op('Sub', [t, t]), 0);
    const rows = w.op('Slice', [stored, start, end, w.ints([2]), w.ints([1])]);
    return [w.op('Slice', [rows, w.ints([0]), end, w.ints([3]), w.ints([1])]), 9, [1, 1, 'length', 'length']];
  },
  /** The lowest number above the diagonal, spread over the batch, together with a mask of the input. */
  causal: (w) => {
    const [b, t] = [w.size('mask', 0), w.size('mask', 1)];
    const upper = w.op('Trilu', [w.op('Expand', [w.number(lowest), w.shape(t, t)]), w.int(1)], { upper: 1 });
    const places = w.range(t);
    const later = w.op('Greater', [places, w.op('Reshape', [places, w.ints([-1, 1])])]);
    const causal = w.op('Mul', [upper, w.cast(later, 'float')]);
    const spread = w.expand(w.unsqueeze(w.unsqueeze(causal, 0), 1), w.shape(b, 1, -1, -1), 4);
    const shown = w.cast(w.unsqueeze('mask', 1, 2), 'float');
    const padded = w.op('Equal', [w.op('Add', [spread, shown]), w.number(0)]);
    return [w.op('Where', [padded, w.number(lowest), spread]), 1, ['batch', 1, 'length', 'length']];
  },
  /** The mask of the second exporter: whole numbers compared, and words of what may be seen. */
  comparison: (w) => {
    const [b, t] = [w.size('mask', 0), w.size('mask', 1)];
    const places = w.range(t);
    const across = w.unsqueeze(places, 0, 1, 2);
    const down = w.unsqueeze(places, 0, 1, 3);
    const near = w.op('Less', [w.op('Sub', [down, across]), w.int(5)]);
    const seen = w.op('And', [w.op('LessOrEqual', [across, down]), near]);
    const everywhere = w.op('Expand', [seen, w.shape(b, 1, t, t)]);
    const both = w.op('And', [everywhere, w.unsqueeze('mask', 1, 2)]);
    return [w.op('Where', [both, w.number(0), w.number(-Infinity)]), 1, ['batch', 1, 'length', 'length']];
  },
  /** Rows of a table, by positions. */
  positions: (w) => {
    const [b, t] = [w.size('mask', 0), w.size('mask', 1)];
    const table = w.floats(
      Array.from({ length: mostPositions * 3 }, (_, i) => Math.sin(i)),
      [mostPositions, 3],
    );
    const places = w.expand(w.unsqueeze(w.range(t), 0), w.shape(b, t), 2);
    return [w.op('Gather', [table, places]), 1, ['batch', 'length', 3]];
  },
  /** Halves of x turned by angles of their positions. */
  rotary: (w) => {
    const [b, t] = [w.size('x', 0), w.size('x', 1)];
    const speeds = w.op('Expand', [w.floats([1, 0.1, 0.01, 0.001], [1, 4, 1]), w.shape(b, 4, 1)]);
    const places = w.cast(w.unsqueeze(w.unsqueeze(w.range(t), 0), 1), 'float');
    const angles = w.op('Transpose', [w.op('MatMul', [speeds, places])], { perm: [0, 2, 1] });
    const both = w.op('Concat', [angles, angles], { axis: -1 });
    const half = w.unsqueeze(w.op('Div', [w.size('x', 2), w.int(2)]), 0);
    const low = w.op('Slice', ['x', w.ints([0]), half, w.ints([2]), w.ints([1])]);
    const high = w.op('Slice', ['x', half, w.ints([2147483647]), w.ints([2]), w.ints([1])]);
    const turned = w.op('Concat', [w.op('Neg', [high]), low], { axis: -1 });
    const sum = w.op('Add', [
      w.op('Mul', ['x', w.op('Cos', [both])]),
      w.op('Mul', [turned, w.op('Sin', [both])]),
    ]);
    return [sum, 1, ['batch', 'length', 8]];
  },
  /** Sines and cosines by turns. */
  sinusoids: (w) => {
    const t = w.size('x', 1);
    const exponents = w.cast(w.op('Range', [w.int(0), w.int(8), w.int(2)]), 'float');
    const speeds = w.op('Exp', [w.op('Mul', [exponents, w.number(-Math.log(10000) / 8)])]);
    const angles = w.op('Mul', [w.unsqueeze(w.cast(w.range(t), 'float'), 1), speeds]);
    const pairs = w.op(
      'Concat',
      [w.unsqueeze(w.op('Sin', [angles]), -1), w.unsqueeze(w.op('Cos', [angles]), -1)],
      { axis: -1 },
    );
    return [w.op('Add', ['x', w.op('Reshape', [pairs, w.shape(t, 8)])]), 1, ['batch', 'length', 8]];
  },
  /** Distances, by a slope for each head. */
  slopes: (w) => {
    const t = w.size('x', 1);
    const places = w.range(t);
    const apart = w.op('Sub', [w.unsqueeze(places, 0), w.unsqueeze(places, 1)]);
    const far = w.cast(w.op('Neg', [w.op('Abs', [apart])]), 'float');
    return [
      w.op('Mul', [w.floats([0.5, 0.25, 0.125], [3, 1, 1]), w.unsqueeze(far, 0)]),
      1,
      [3, 'length', 'length'],
    ];
  },
  /** Rows of a table, by distances that are counted more coarsely the larger they are. */
  buckets: (w) => {
    const t = w.size('x', 1);
    const table = w.floats(
      Array.from({ length: 16 * 2 }, (_, i) => Math.cos(i)),
      [16, 2],
    );
    const places = w.range(t);
    const apart = w.op('Sub', [w.unsqueeze(places, 0), w.unsqueeze(places, 1)]);
    const side = w.op('Mul', [w.cast(w.op('Greater', [apart, w.int(0)]), 'int64'), w.int(8)]);
    const far = w.op('Abs', [apart]);
    const ratio = w.op('Log', [w.op('Div', [w.cast(far, 'float'), w.number(4)])]);
    const coarse = w.cast(w.op('Mul', [w.op('Div', [ratio, w.number(Math.log(7))]), w.number(4)]), 'int64');
    const rough = w.op('Add', [coarse, w.int(4)]);
    const most = w.op('Expand', [w.int(7), w.op('Shape', [rough])]);
    const bucket = w.op('Where', [w.op('Less', [far, w.int(4)]), far, w.op('Min', [rough, most])]);
    const rows = w.op('Gather', [table, w.op('Add', [side, bucket])]);
    return [w.unsqueeze(w.op('Transpose', [rows], { perm: [2, 0, 1] }), 0), 1, [1, 2, 'length', 'length']];
  },
  /** The scale of products, in which an exporter takes roots of sizes. */
  scaled: (w) => {
    const size = (axis: number): string =>
      w.op('Slice', [w.op('Shape', ['x']), w.ints([axis]), w.ints([axis + 1])]);
    const width = w.op('Sqrt', [w.op('Div', [w.number(1), w.op('Sqrt', [w.cast(size(2), 'float')])])]);
    const length = w.op('Log', [w.cast(size(1), 'float')]);
    return [w.op('Mul', [w.op('Mul', ['x', width]), length]), 1, ['batch', 'length', 8]];
  },
  /** Counted the way of opset 9, which has no Range: the places of ones. */
  counted: (w) => {
    const t = w.size('x', 1);
    const places = w.op('NonZero', [w.filled(w.shape(t), 'int64', 1)]);
    return [w.op('Squeeze', [w.op('Transpose', [places], { perm: [1, 0] }), w.ints([1])]), 7, ['length']];
  },
  /** Only the last row, and something else where there is but one. */
  last: (w) => {
    const t = w.size('x', 1);
    const row = w.op('Gather', ['x', w.op('Sub', [t, w.int(1)])], { axis: 1 });
    return [w.op('Where', [w.op('Equal', [t, w.int(1)]), w.op('Neg', [row]), row]), 1, ['batch', 8]];
  },
  /** Sizes themselves. */
  sizes: (w) => [w.op('Shape', ['x']), 7, [3]],
  /** Added up in a loop, whose body reads angles from around it. */
  repeated: (w) => {
    const angles = w.op('Mul', [w.cast(w.range(w.size('x', 1)), 'float'), w.number(0.5)]);
    const body = {
      name: 'body',
      ...graph({
        inputs: [port('turn', 7, []), port('before', 9, []), port('sum', 1, ['length'])],
        outputs: [port('after', 9, []), port('next', 1, ['length'])],
        nodes: [
          node('Cast', ['turn'], ['real'], [attribute('to', 1)]),
          node('Mul', ['real', angles], ['turned']),
          node('Cos', ['turned'], ['part']),
          node('Add', ['sum', 'part'], ['next']),
          node('Identity', ['before'], ['after']),
        ],
      }),
    };
    const first = w.op('ReduceMean', ['x'], { axes: [0, 2], keepdims: 0 });
    return [w.op('Loop', [w.int(3), '', first], { body: attribute('body', body) }), 1, ['length']];
  },
  /** A square in which rows are written one by one, as slices that are assigned to are. */
  written: (w) => {
    const t = w.size('x', 1);
    const blank = w.filled(w.shape(t, t), 'float', 0);
    const rows = w.unsqueeze(w.range(t), 1);
    const lines = w.op('Expand', [w.cast(w.unsqueeze(w.range(t), 0), 'float'), w.shape(t, t)]);
    return [w.op('ScatterND', [blank, rows, lines]), 1, ['length', 'length']];
  },
};

export const kindsOfPositions: readonly string[] = Object.keys(kinds);

/** The element type of each, by its number in the format. */
export const typesOfPositions: Readonly<Record<string, number>> = Object.fromEntries(
  Object.entries(kinds).map(([kind, make]) => [kind, make(new Writer())[1]]),
);

/** The model whose outputs are these kinds of values, all by default. */
export function positions(chosen: readonly string[] = kindsOfPositions): Uint8Array {
  const w = new Writer();
  const made: Record<string, Made> = Object.fromEntries(chosen.map((kind) => [kind, kinds[kind]!(w)]));
  const outputs = Object.entries(made).map(([kind, [name, type, shape]]) => {
    w.nodes.push(node('Identity', [name], [kind]));
    return port(kind, type, shape);
  });
  const inputs = [port('x', 1, ['batch', 'length', 8]), port('mask', 9, ['batch', 'length'])];
  return modelOf({ inputs, outputs, initializers: w.initializers, nodes: w.nodes }, 17);
}
