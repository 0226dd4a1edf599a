// JPEG files before they are decoded (ITU-T T.81): the frame's size is held to the bytes that are
// there. Each block of 8 × 8 samples takes a bit of them at least.

import { ParseError } from '../../errors.ts';
import type { Allowance } from '../../io/allowance.ts';

function broken(problem: string): ParseError {
  return new ParseError('E_FORMAT', 'jpeg', problem);
}

/** Markers of frames: those with Huffman codes that decoders know, and the others. */
const known: ReadonlySet<number> = new Set([0xc0, 0xc1, 0xc2]);
const frames: ReadonlySet<number> = new Set([
  0xc0, 0xc1, 0xc2, 0xc3, 0xc5, 0xc6, 0xc7, 0xc9, 0xca, 0xcb, 0xcd, 0xce, 0xcf,
]);

/** Throws ParseError E_FORMAT where the file cannot hold the picture that it declares, E_LIMIT where that is too large. */
export function checkJpeg(bytes: Uint8Array, allowance: Allowance): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  let hasFrame = false;
  let at = 2;
  while (at + 4 <= bytes.length) {
    if (bytes[at] !== 0xff) throw broken(`byte ${at}: there is no marker`);
    const marker = bytes[at + 1]!;
    if (marker === 0xff) {
      at += 1;
      continue;
    }
    if (marker === 0xd9) break;
    const length = view.getUint16(at + 2);
    const end = at + 2 + length;
    if (length < 2 || end > bytes.length) throw broken(`byte ${at}: a segment runs past the end of the file`);
    if (frames.has(marker)) {
      if (hasFrame) throw broken('it has two frames');
      checkFrame(bytes.subarray(at + 4, end), marker, bytes.length, allowance);
      hasFrame = true;
    }
    at = marker === 0xda ? behindScan(bytes, end) : end;
  }
  if (!hasFrame) throw broken('it has no frame');
}

function checkFrame(frame: Uint8Array, marker: number, fileBytes: number, allowance: Allowance): void {
  if (!known.has(marker)) throw broken(`frames of the kind 0x${marker.toString(16)} are not read`);
  const [precision, h0 = 0, h1 = 0, w0 = 0, w1 = 0, count = 0] = frame;
  if (frame.length !== 6 + 3 * count) throw broken('its frame has another length');
  const [height, width] = [256 * h0 + h1, 256 * w0 + w1];
  if (precision !== 8 || height === 0 || width === 0 || ![1, 3, 4].includes(count))
    throw broken(`its frame is of ${count} × ${width} × ${height} samples of ${precision} bits`);
  const factors = Array.from({ length: count }, (_, i) => frame[7 + 3 * i]!).flatMap((byte) => [
    byte >> 4,
    byte & 15,
  ]);
  if (factors.some((factor) => factor < 1 || factor > 4))
    throw broken('its samples are not 1 to 4 times as many');
  allowance.spend(3 * width * height, `a picture of ${width} × ${height} pixels`);
  if (Math.ceil(width / 8) * Math.ceil(height / 8) > 8 * 16 * fileBytes)
    throw broken(`${fileBytes} bytes cannot hold a picture of ${width} × ${height} pixels`);
}

/** The first marker behind a scan's bits that is none of their own. */
function behindScan(bytes: Uint8Array, from: number): number {
  for (let at = from; ; at++) {
    at = bytes.indexOf(0xff, at);
    if (at < 0) return bytes.length;
    const next = bytes[at + 1] ?? 0;
    if (next !== 0 && next !== 0xff && !(next >= 0xd0 && next <= 0xd7)) return at;
  }
}
