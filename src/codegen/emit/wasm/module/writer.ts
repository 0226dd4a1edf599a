// Bytes of the binary format as they are written: numbers in LEB128 and little-endian, and parts
// behind their lengths. WebAssembly core specification, "Values".

export class ByteWriter {
  #bytes = new Uint8Array(4096);
  #length = 0;

  get bytes(): Uint8Array<ArrayBuffer> {
    return this.#bytes.slice(0, this.#length);
  }

  byte(value: number): void {
    if (this.#length === this.#bytes.length) this.#grow(1);
    this.#bytes[this.#length++] = value;
  }

  all(values: ArrayLike<number>): void {
    this.#grow(values.length);
    this.#bytes.set(values, this.#length);
    this.#length += values.length;
  }

  /** LEB128 of a number from 0 to 2³². */
  unsigned(value: number): void {
    let rest = value;
    while (rest > 127) {
      this.byte((rest % 128) | 0x80);
      rest = Math.floor(rest / 128);
    }
    this.byte(rest);
  }

  /** Signed LEB128 of 32 bits. */
  signed(value: number): void {
    let rest = value | 0;
    // The highest bit of the last byte's seven is the sign.
    while (rest < -64 || rest > 63) {
      this.byte((rest & 0x7f) | 0x80);
      rest >>= 7;
    }
    this.byte(rest & 0x7f);
  }

  /** The same of 64. */
  signedLong(value: bigint): void {
    let rest = value;
    while (rest < -64n || rest > 63n) {
      this.byte(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    this.byte(Number(rest & 0x7fn));
  }

  float(value: number): void {
    scratch.setFloat32(0, value, true);
    this.all(scratchBytes.subarray(0, 4));
  }

  double(value: number): void {
    scratch.setFloat64(0, value, true);
    this.all(scratchBytes);
  }

  word(value: number): void {
    scratch.setUint32(0, value, true);
    this.all(scratchBytes.subarray(0, 4));
  }

  text(value: string): void {
    const bytes = new TextEncoder().encode(value);
    this.unsigned(bytes.length);
    this.all(bytes);
  }

  /** Items behind their number. */
  list<T>(items: readonly T[], write: (item: T) => void): void {
    this.unsigned(items.length);
    items.forEach(write);
  }

  /** What `write` writes, behind the number of its bytes. */
  sized(write: () => void): void {
    const start = this.#length;
    write();
    const content = this.#bytes.slice(start, this.#length);
    this.#length = start;
    this.unsigned(content.length);
    this.all(content);
  }

  #grow(by: number): void {
    if (this.#length + by <= this.#bytes.length) return;
    const grown = new Uint8Array(2 * (this.#length + by));
    grown.set(this.#bytes);
    this.#bytes = grown;
  }
}

const scratch = new DataView(new ArrayBuffer(8));
const scratchBytes = new Uint8Array(scratch.buffer);
