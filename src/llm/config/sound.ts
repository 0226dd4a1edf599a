// What a configuration has to be for a decoder to be built of it.

import type { ModelConfig } from './config.ts';
import type { ConfigFields } from './fields.ts';

/** The window of each layer: `size` where `has` says so; none of any where there is no size. */
export function windowsOf(
  layers: number,
  size: number | undefined,
  has: (layer: number) => boolean,
): readonly (number | undefined)[] {
  return Array.from({ length: layers }, (_, i) =>
    size !== undefined && size > 0 && has(i) ? size : undefined,
  );
}

/** The configuration, if its sizes go together. Throws ParseError where they do not. */
export function checked(fields: ConfigFields, config: ModelConfig): ModelConfig {
  const { heads, keyHeads, headSize, rope, experts, width, hidden, windows } = config;
  const whole = Object.entries({ width, hidden, heads, keyHeads, headSize });
  for (const [name, value] of whole) {
    if (!Number.isSafeInteger(value) || value < 1)
      throw fields.fail(`${name} must be a whole number, got ${value}`);
  }
  if (heads % keyHeads !== 0) {
    throw fields.fail(`${heads} heads of queries are no multiple of ${keyHeads} heads of keys`);
  }
  if (rope.dims % 2 !== 0 || rope.dims > headSize) {
    throw fields.fail(
      `rope turns ${rope.dims} elements of heads of ${headSize}: expected an even number, at most that`,
    );
  }
  if (experts !== undefined && experts.used > experts.count) {
    throw fields.fail(`tokens are given to ${experts.used} of ${experts.count} experts`);
  }
  const odd = windows.find((size) => size !== undefined && !Number.isSafeInteger(size));
  if (odd !== undefined) throw fields.fail(`a window must be a whole number, got ${odd}`);
  return config;
}
