// Messages from bytes and to bytes: a walk over the wire by the table of schema.ts. Malformed bytes
// become a ParseError here.

import { BinaryReader, BinaryWriter, WireType } from '@bufbuild/protobuf/wire';
import { ParseError, SinterError } from '../errors.ts';
import { usualLimits } from './budget.ts';
import {
  messages,
  type MessageDraft,
  type MessageField,
  type Message,
  type MessageName,
  type ProtoScalar,
} from './schema.ts';

/**
 * Graphs in attributes of graphs nest; a file that nests deeper than this is not one that a tool
 * wrote.
 */
const deepest = 100;

const wireTypes = {
  string: WireType.LengthDelimited,
  bytes: WireType.LengthDelimited,
  int32: WireType.Varint,
  int64: WireType.Varint,
  uint64: WireType.Varint,
  float: WireType.Bit32,
  double: WireType.Bit64,
} as const satisfies Record<ProtoScalar, WireType>;

/** Decodes one message. Throws E_FORMAT at malformed bytes. */
export function decode<N extends MessageName>(
  name: N,
  bytes: Uint8Array,
  what = 'onnx',
  mostNodes: number = usualLimits.maxNodes,
): Message<N> {
  try {
    const room = { nodes: mostNodes, messages: perNode * mostNodes };
    return readMessage(name, new BinaryReader(bytes), bytes.length, 0, room) as Message<N>;
  } catch (error) {
    if (error instanceof SinterError) throw error;
    const problem = error instanceof Error ? error.message : String(error);
    throw new ParseError('E_FORMAT', what, `the bytes are no ${name} message: ${problem}`);
  }
}

/** Messages that a node may come with: attributes, tensors and types of values. */
const perNode = 16;

/** How many more messages may come: two bytes of a file make one, which takes some hundred. */
interface Room {
  nodes: number;
  messages: number;
}

type Fields = ReadonlyMap<number, readonly [name: string, field: MessageField]>;

const fieldsOf = new Map<MessageName, Fields>(
  Object.entries(messages).map(([name, fields]) => [
    name as MessageName,
    new Map(
      Object.entries(fields as Readonly<Record<string, MessageField>>).map(([key, field]) => [
        field[0],
        [key, field],
      ]),
    ),
  ]),
);

function readMessage(
  name: MessageName,
  reader: BinaryReader,
  end: number,
  depth: number,
  room: Room,
): object {
  room.messages -= 1;
  if (name === 'Node') room.nodes -= 1;
  if (room.messages < 0 || room.nodes < 0)
    throw new SinterError(
      'E_LIMIT',
      'onnx: the file has more nodes than the budget\n  try: loadOnnx(…, { maxNodes: Infinity }), if the model can be trusted',
    );
  if (depth > deepest) throw new RangeError(`messages nest deeper than ${deepest}`);
  const fields = fieldsOf.get(name)!;
  const out: Record<string, unknown> = {};
  for (const [key, [, , many]] of fields.values()) out[key] = many === undefined ? undefined : [];
  while (reader.pos < end) {
    const [number, wire] = reader.tag();
    const found = fields.get(number);
    if (found === undefined) {
      reader.skip(wire, number);
      continue;
    }
    const [key, [, type, many]] = found;
    if (many === undefined) out[key] = readOne(type, wire, reader, end, depth, room);
    else readMany(type, wire, reader, end, depth, room, out[key] as unknown[]);
  }
  if (reader.pos !== end) throw new RangeError(`${name} runs past its end`);
  return out;
}

function readMany(
  type: MessageField[1],
  wire: WireType,
  reader: BinaryReader,
  end: number,
  depth: number,
  room: Room,
  into: unknown[],
): void {
  const packed = isScalar(type) && wire === WireType.LengthDelimited && wireTypes[type] !== wire;
  if (!packed) {
    into.push(readOne(type, wire, reader, end, depth, room));
    return;
  }
  const until = length(reader, end);
  while (reader.pos < until) into.push(readScalar(type, reader));
  if (reader.pos !== until) throw new RangeError('a packed list runs past its end');
}

function readOne(
  type: MessageField[1],
  wire: WireType,
  reader: BinaryReader,
  end: number,
  depth: number,
  room: Room,
): unknown {
  const expected = isScalar(type) ? wireTypes[type] : WireType.LengthDelimited;
  if (wire !== expected) throw new RangeError(`wire type ${wire} where ${expected} belongs`);
  if (isScalar(type)) return readScalar(type, reader);
  const until = length(reader, end);
  return readMessage(type, reader, until, depth + 1, room);
}

function length(reader: BinaryReader, end: number): number {
  const until = reader.uint32() + reader.pos;
  if (until > end) throw new RangeError(`a length reaches ${until - end} bytes past the end`);
  return until;
}

function isScalar(type: MessageField[1]): type is ProtoScalar {
  return type in wireTypes;
}

function readScalar(type: ProtoScalar, reader: BinaryReader): string | number | bigint | Uint8Array {
  switch (type) {
    case 'string':
      return reader.string();
    case 'bytes':
      return reader.bytes();
    case 'int32':
      return reader.int32();
    case 'int64':
      return BigInt(reader.int64());
    case 'uint64':
      return BigInt(reader.uint64());
    case 'float':
      return reader.float();
    case 'double':
      return reader.double();
    default:
      return type satisfies never;
  }
}

/** The bytes of a message. */
export function encode<N extends MessageName>(name: N, draft: MessageDraft<N>): Uint8Array {
  const writer = new BinaryWriter();
  const fields: Readonly<Record<string, MessageField>> = messages[name];
  for (const [key, value] of Object.entries(draft)) {
    if (value === undefined) continue;
    const [number, type, many] = fields[key]!;
    const items: readonly unknown[] = many === undefined ? [value] : (value as readonly unknown[]);
    for (const item of items) writeOne(writer, number, type, item);
  }
  return writer.finish();
}

/** Numbers of a list are written one by one, which readers take as well as packed ones. */
function writeOne(writer: BinaryWriter, number: number, type: MessageField[1], item: unknown): void {
  if (!isScalar(type)) {
    writer.tag(number, WireType.LengthDelimited).bytes(encode(type, item as MessageDraft<typeof type>));
    return;
  }
  writer.tag(number, wireTypes[type]);
  switch (type) {
    case 'string':
      writer.string(item as string);
      return;
    case 'bytes':
      writer.bytes(item as Uint8Array);
      return;
    case 'int32':
      writer.int32(item as number);
      return;
    case 'int64':
      writer.int64(item as bigint);
      return;
    case 'uint64':
      writer.uint64(item as bigint);
      return;
    case 'float':
      writer.float(item as number);
      return;
    case 'double':
      writer.double(item as number);
      return;
    default:
      return type satisfies never;
  }
}
