// The messages of the ONNX format as one table: names, field numbers and wire types are facts of
// the format. wire.ts reads and writes messages by this table; the wire format is protobuf's.

export type ProtoScalar = 'string' | 'bytes' | 'int32' | 'int64' | 'uint64' | 'float' | 'double';

/** Field number, type, and whether it repeats. */
export type MessageField = readonly [number: number, type: ProtoScalar | MessageName, many?: 'many'];

export type MessageName =
  | 'Model'
  | 'Graph'
  | 'Node'
  | 'Attribute'
  | 'Tensor'
  | 'SparseTensor'
  | 'ValueInfo'
  | 'Type'
  | 'TensorType'
  | 'SequenceType'
  | 'OptionalType'
  | 'MapType'
  | 'Sequence'
  | 'Map'
  | 'Optional'
  | 'Shape'
  | 'Dimension'
  | 'OperatorSet'
  | 'Function'
  | 'Entry';

/**
 * Every message that is read or written; fields that are not listed (documentation, metadata) are
 * passed over.
 */
export const messages = {
  Model: {
    irVersion: [1, 'int64'],
    producerName: [2, 'string'],
    producerVersion: [3, 'string'],
    domain: [4, 'string'],
    graph: [7, 'Graph'],
    opsetImport: [8, 'OperatorSet', 'many'],
    metadata: [14, 'Entry', 'many'],
    functions: [25, 'Function', 'many'],
  },
  OperatorSet: { domain: [1, 'string'], version: [2, 'int64'] },
  Graph: {
    node: [1, 'Node', 'many'],
    name: [2, 'string'],
    initializer: [5, 'Tensor', 'many'],
    input: [11, 'ValueInfo', 'many'],
    output: [12, 'ValueInfo', 'many'],
    valueInfo: [13, 'ValueInfo', 'many'],
    sparseInitializer: [15, 'SparseTensor', 'many'],
  },
  Node: {
    input: [1, 'string', 'many'],
    output: [2, 'string', 'many'],
    name: [3, 'string'],
    opType: [4, 'string'],
    attribute: [5, 'Attribute', 'many'],
    domain: [7, 'string'],
    overload: [8, 'string'],
  },
  Attribute: {
    name: [1, 'string'],
    f: [2, 'float'],
    i: [3, 'int64'],
    s: [4, 'bytes'],
    t: [5, 'Tensor'],
    g: [6, 'Graph'],
    floats: [7, 'float', 'many'],
    ints: [8, 'int64', 'many'],
    strings: [9, 'bytes', 'many'],
    tensors: [10, 'Tensor', 'many'],
    graphs: [11, 'Graph', 'many'],
    tp: [14, 'Type'],
    type: [20, 'int32'],
    refAttrName: [21, 'string'],
    sparseTensor: [22, 'SparseTensor'],
  },
  Tensor: {
    dims: [1, 'int64', 'many'],
    dataType: [2, 'int32'],
    floatData: [4, 'float', 'many'],
    int32Data: [5, 'int32', 'many'],
    stringData: [6, 'bytes', 'many'],
    int64Data: [7, 'int64', 'many'],
    name: [8, 'string'],
    rawData: [9, 'bytes'],
    doubleData: [10, 'double', 'many'],
    uint64Data: [11, 'uint64', 'many'],
    externalData: [13, 'Entry', 'many'],
    dataLocation: [14, 'int32'],
  },
  SparseTensor: { values: [1, 'Tensor'], indices: [2, 'Tensor'], dims: [3, 'int64', 'many'] },
  ValueInfo: { name: [1, 'string'], type: [2, 'Type'] },
  Type: {
    tensor: [1, 'TensorType'],
    sequence: [4, 'SequenceType'],
    map: [5, 'MapType'],
    optional: [9, 'OptionalType'],
  },
  TensorType: { elemType: [1, 'int32'], shape: [2, 'Shape'] },
  SequenceType: { elem: [1, 'Type'] },
  OptionalType: { elem: [1, 'Type'] },
  MapType: { key: [1, 'int32'], value: [2, 'Type'] },
  Sequence: {
    name: [1, 'string'],
    elemType: [2, 'int32'],
    tensors: [3, 'Tensor', 'many'],
    sequences: [5, 'Sequence', 'many'],
    maps: [6, 'Map', 'many'],
    optionals: [7, 'Optional', 'many'],
  },
  Map: {
    name: [1, 'string'],
    keyType: [2, 'int32'],
    keys: [3, 'int64', 'many'],
    stringKeys: [4, 'bytes', 'many'],
    values: [5, 'Sequence'],
  },
  Optional: {
    name: [1, 'string'],
    elemType: [2, 'int32'],
    tensor: [3, 'Tensor'],
    sequence: [5, 'Sequence'],
    map: [6, 'Map'],
    optional: [7, 'Optional'],
  },
  Shape: { dim: [1, 'Dimension', 'many'] },
  Dimension: { value: [1, 'int64'], param: [2, 'string'] },
  Function: {
    name: [1, 'string'],
    input: [4, 'string', 'many'],
    output: [5, 'string', 'many'],
    attribute: [6, 'string', 'many'],
    node: [7, 'Node', 'many'],
    opsetImport: [9, 'OperatorSet', 'many'],
    domain: [10, 'string'],
    attributeProto: [11, 'Attribute', 'many'],
    overload: [13, 'string'],
  },
  Entry: { key: [1, 'string'], value: [2, 'string'] },
} as const;
messages satisfies Record<MessageName, Readonly<Record<string, MessageField>>>;

type Messages = typeof messages;

interface Scalars {
  readonly string: string;
  readonly bytes: Uint8Array;
  readonly int32: number;
  readonly int64: bigint;
  readonly uint64: bigint;
  readonly float: number;
  readonly double: number;
}

type ValueOf<T> = T extends keyof Scalars ? Scalars[T] : T extends MessageName ? Message<T> : never;

/** A message as plain data: repeated fields are lists, fields that did not come are undefined. */
export type Message<N extends MessageName> = {
  readonly [F in keyof Messages[N]]: Messages[N][F] extends readonly [number, infer T, 'many']
    ? readonly ValueOf<T>[]
    : Messages[N][F] extends readonly [number, infer T]
      ? ValueOf<T> | undefined
      : never;
};

type DraftOf<T> = T extends keyof Scalars ? Scalars[T] : T extends MessageName ? MessageDraft<T> : never;

/** A message to be written: fields that are left out are not in the bytes. */
export type MessageDraft<N extends MessageName> = {
  readonly [F in keyof Messages[N]]?:
    | (Messages[N][F] extends readonly [number, infer T, 'many']
        ? readonly DraftOf<T>[]
        : Messages[N][F] extends readonly [number, infer T]
          ? DraftOf<T>
          : never)
    | undefined;
};

/** The kinds of attributes that are read, by the number in `Attribute.type`. */
export const attributeKinds = {
  1: 'f',
  2: 'i',
  3: 's',
  4: 't',
  5: 'g',
  6: 'floats',
  7: 'ints',
  8: 'strings',
  9: 'tensors',
  10: 'graphs',
  11: 'sparseTensor',
} as const;
