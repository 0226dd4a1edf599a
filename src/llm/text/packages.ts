// Optional packages that text needs: in Node they are found by name, in a page they are given.

import { TensorError } from '../../errors.ts';
import * as arg from '../../ir/arguments.ts';

// Described by what is used of them: declarations that named optional packages would not check without.
interface Known {
  readonly '@huggingface/tokenizers': {
    readonly Tokenizer: new (
      tokenizer: object,
      config: object,
    ) => {
      get_vocab(withAdded: boolean): Iterable<[text: string, id: number]>;
      encode(
        text: string,
        options: { readonly add_special_tokens: boolean },
      ): { readonly ids: readonly number[] };
    };
  };
  readonly '@huggingface/jinja': {
    readonly Template: new (source: string) => { render(items: Record<string, unknown>): string };
  };
}

/** The packages, for pages: `{ jinja: () => import('@huggingface/jinja') }`. */
export interface TextPackages {
  readonly tokenizers?: (() => Promise<Known['@huggingface/tokenizers']>) | undefined;
  readonly jinja?: (() => Promise<Known['@huggingface/jinja']>) | undefined;
}

/** What a codec is made with besides. */
export interface TextOptions {
  /** Optional packages, in pages; by default the installed ones. */
  readonly packages?: TextPackages | undefined;
}

/** The kind of the option `packages`: functions that load them, by the names that are known. */
export const textPackages: arg.Kind<TextPackages> = arg.settings<TextPackages>({
  tokenizers: arg.callable(),
  jinja: arg.callable(),
});

const takesOptions = arg.takes<(options?: TextOptions) => void>([
  'the options',
  arg.options<TextOptions>({ packages: textPackages }),
]);

/** The packages of these options. Throws E_VALUE for an option that is unknown or not what it must be. */
export function packagesOf(op: string, options: TextOptions): TextPackages {
  takesOptions(op, options);
  return options.packages ?? {};
}

/** A package. Throws E_UNSUPPORTED where it is not to be had. */
export async function optionalPackage<N extends keyof Known>(
  name: N,
  given: (() => Promise<Known[N]>) | undefined,
): Promise<Known[N]> {
  if (given !== undefined) return given();
  if (typeof process === 'undefined' || process.versions?.node === undefined) {
    const option = name === '@huggingface/jinja' ? 'jinja' : 'tokenizers';
    const hint = `packages: { ${option}: () => import('${name}') }`;
    throw new TensorError('E_UNSUPPORTED', 'text', `${name} is needed, and a page has to pass it`, hint);
  }
  const { importFrom, placeFor } = await import('../../packages/node.ts');
  return importFrom<Known[N]>(placeFor('text', name));
}
