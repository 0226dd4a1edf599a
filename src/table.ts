// Plain text tables, numbers and quantities for terminals: columns as wide as their widest cell, no frame but a rule.

/** Rows under a heading, two spaces between columns; columns listed in `right` are set flush right. */
export function table(
  head: readonly string[],
  rows: readonly (readonly string[])[],
  right: readonly number[] = [],
): string {
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => (row[column] ?? '').length)),
  );
  const line = (cells: readonly string[]): string =>
    widths
      .map((width, column) => {
        const cell = cells[column] ?? '';
        return right.includes(column) ? cell.padStart(width) : cell.padEnd(width);
      })
      .join('  ')
      .trimEnd();
  return [line(head), widths.map((width) => '─'.repeat(width)).join('  '), ...rows.map(line)].join('\n');
}

/** `4.20 M`: three digits and a unit of thousands. */
export function showCount(n: number): string {
  return scaled(n, 1000, ['', 'k', 'M', 'G', 'T', 'P']);
}

/** `16.0 MiB`: three digits and a unit of 1024. */
export function showBytes(n: number): string {
  return scaled(n, 1024, ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB']);
}

function scaled(n: number, base: number, units: readonly string[]): string {
  let [value, power] = [n, 0];
  // Rounding must not show 1000 k where 1.00 M is meant.
  for (; value >= base - 0.5 && power < units.length - 1; power++) value /= base;
  const digits = power === 0 ? String(n) : value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
  return `${digits} ${units[power]!}`.trimEnd();
}
