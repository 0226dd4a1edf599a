// A curve drawn with characters: braille cells hold 2 × 4 dots each, so a terminal shows eight
// times its resolution.

/** Bits of a braille cell by row and column (Unicode 2800). */
const dots = [
  [0x01, 0x08],
  [0x02, 0x10],
  [0x04, 0x20],
  [0x40, 0x80],
] as const;

/** Values in order, left to right, with the highest and the lowest marked at the side. */
export function plot(values: readonly number[], width = 64, height = 12): string {
  const finite = values.filter((value) => Number.isFinite(value));
  if (finite.length === 0) return '';
  const [low, high] = [Math.min(...finite), Math.max(...finite)];
  const span = high - low || 1;
  const cells = Array.from({ length: height }, () => new Uint8Array(width));
  const put = (x: number, y: number): void => {
    const row = Math.min(height - 1, Math.floor(y / 4));
    const column = Math.min(width - 1, Math.floor(x / 2));
    cells[row]![column]! |= dots[y % 4]![(x % 2) as 0 | 1];
  };
  const [right, bottom] = [2 * width - 1, 4 * height - 1];
  const yOf = (value: number): number => Math.round((1 - (value - low) / span) * bottom);
  const last = values.length - 1;
  let before: number | undefined;
  for (let x = 0; x <= right; x++) {
    // Between two values the curve is a straight line.
    const at = last === 0 ? 0 : (x * last) / right;
    const [from, to] = [values[Math.floor(at)]!, values[Math.ceil(at)]!];
    const value = from + (to - from) * (at - Math.floor(at));
    if (!Number.isFinite(value)) {
      before = undefined;
      continue;
    }
    const y = yOf(value);
    for (let step = Math.min(y, before ?? y); step <= Math.max(y, before ?? y); step++) put(x, step);
    before = y;
  }
  const side = Math.max(high.toFixed(2).length, low.toFixed(2).length);
  const lines = cells.map((row, i) => {
    const mark = i === 0 ? high.toFixed(2) : i === height - 1 ? low.toFixed(2) : '';
    const drawn = [...row].map((bits) => String.fromCodePoint(0x2800 + bits)).join('');
    return `${mark.padStart(side)} ┤${drawn}`;
  });
  return [...lines, `${' '.repeat(side)} └${'─'.repeat(width)}`].join('\n');
}
