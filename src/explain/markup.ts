// Text into markup: escaping, and the colours of WGSL.

/** Text as it may stand in an element or in a quoted attribute. */
export function escapeText(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;').replace(/"/g, '&quot;');
}

const keywords =
  /^(?:alias|break|case|const|const_assert|continue|continuing|default|diagnostic|discard|else|enable|fn|for|if|let|loop|override|requires|return|struct|switch|var|while|true|false)$/;
const types =
  /^(?:array|atomic|bool|f16|f32|i32|u32|vec[234][fiuh]?|mat[234]x[234][fh]?|ptr|function|private|workgroup|uniform|storage|read|write|read_write)$/;

/** Comment, attribute, number, or word with what follows it; everything else is punctuation. */
const token =
  /(\/\/[^\n]*)|(@\w+)|((?<![\w.])(?:0[xX][\da-fA-F]+|\d+\.?\d*(?:[eE][+-]?\d+)?)[iufh]?)|([A-Za-z_]\w*)(\s*\()?/g;

/**
 * WGSL with every token of a kind in a `span` of that kind: c(omment), a(ttribute), n(umber),
 * k(eyword), t(ype), f(unction).
 */
export function colouredWgsl(source: string): string {
  let out = '';
  let end = 0;
  const span = (kind: string, text: string): string => `<span class="${kind}">${escapeText(text)}</span>`;
  for (const found of source.matchAll(token)) {
    const [whole, comment, attribute, number, word, call] = found;
    out += escapeText(source.slice(end, found.index));
    end = found.index + whole.length;
    if (comment !== undefined) out += span('c', comment);
    else if (attribute !== undefined) out += span('a', attribute);
    else if (number !== undefined) out += span('n', number);
    else if (word !== undefined) {
      const kind = keywords.test(word) ? 'k' : types.test(word) ? 't' : call !== undefined ? 'f' : undefined;
      out += `${kind === undefined ? escapeText(word) : span(kind, word)}${call ?? ''}`;
    }
  }
  return out + escapeText(source.slice(end));
}
