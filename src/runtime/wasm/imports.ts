// The memory that a module imports, declared as shared. Compilers say nothing of threads: whether a memory is shared is known where a
// module is loaded, and the module must say it too. WebAssembly core specification, "Import Section"; threads proposal, "Limits".

/** Pages that 32-bit addresses reach; a memory may end sooner than its import says. */
const mostPages = 65_536;

const sectionOfImports = 2;
const importedFunction = 0;
const importedTable = 1;
const importedMemory = 2;
const importedGlobal = 3;
/** Flags of limits: a maximum follows, the memory is shared. */
const hasMaximum = 1;
const isShared = 2;

/** The same module, importing its memories as shared ones of up to 4 GiB. Throws an Error at bytes that are no module. */
export function withSharedMemory(module: Uint8Array): Uint8Array<ArrayBuffer> {
  if (module.length < 8) throw new Error('the module ends before its version');
  const reader = new Reader(module, 8);
  while (!reader.atEnd) {
    const start = reader.at;
    const id = reader.byte();
    const content = reader.bytes(reader.unsigned());
    if (id !== sectionOfImports) continue;
    const shared = sharedImports(new Reader(content, 0));
    const section = [id, ...unsigned(shared.length), ...shared];
    const out = new Uint8Array(start + section.length + module.length - reader.at);
    out.set(module.subarray(0, start));
    out.set(section, start);
    out.set(module.subarray(reader.at), start + section.length);
    return out;
  }
  return module.slice();
}

function sharedImports(reader: Reader): number[] {
  const count = reader.unsigned();
  const out = [...unsigned(count)];
  for (let i = 0; i < count; i++) {
    const start = reader.at;
    for (const _ of ['module', 'name']) reader.bytes(reader.unsigned());
    const kind = reader.byte();
    if (kind !== importedMemory) {
      skipType(kind, reader);
      out.push(...reader.since(start));
      continue;
    }
    out.push(...reader.since(start));
    const { minimum } = limits(reader);
    out.push(hasMaximum | isShared, ...unsigned(minimum), ...unsigned(mostPages));
  }
  return out;
}

function skipType(kind: number, reader: Reader): void {
  if (kind === importedFunction) reader.unsigned();
  else if (kind === importedTable) {
    reader.byte();
    limits(reader);
  } else if (kind === importedGlobal) reader.bytes(2);
  else throw new Error(`the module imports something of kind ${kind}`);
}

function limits(reader: Reader): { readonly minimum: number } {
  const flags = reader.byte();
  const minimum = reader.unsigned();
  if ((flags & hasMaximum) !== 0) reader.unsigned();
  return { minimum };
}

class Reader {
  readonly #bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  get atEnd(): boolean {
    return this.at >= this.#bytes.length;
  }

  byte(): number {
    const byte = this.#bytes[this.at];
    if (byte === undefined) throw new Error(`the module ends at byte ${this.at}, where more was to come`);
    this.at += 1;
    return byte;
  }

  bytes(count: number): Uint8Array {
    const end = this.at + count;
    if (end > this.#bytes.length)
      throw new Error(`the module ends at byte ${this.#bytes.length}, before ${end}`);
    this.at = end;
    return this.#bytes.subarray(end - count, end);
  }

  since(start: number): Uint8Array {
    return this.#bytes.subarray(start, this.at);
  }

  /** LEB128. */
  unsigned(): number {
    let value = 0;
    for (let place = 1; ; place *= 128) {
      const byte = this.byte();
      value += (byte & 0x7f) * place;
      if (byte < 0x80) return value;
    }
  }
}

function unsigned(value: number): number[] {
  const bytes: number[] = [];
  for (let rest = value; ; rest = Math.floor(rest / 128)) {
    if (rest < 128) return [...bytes, rest];
    bytes.push((rest % 128) | 0x80);
  }
}
