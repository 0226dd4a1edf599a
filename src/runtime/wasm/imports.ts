// The memory that a kernel's module imports, declared as shared. Compiled modules declare an
// unshared memory: whether memory is shared is known only when a module is loaded, and its import
// must say the same. Modules of kernels import nothing but a memory of up to 4 GiB, which ends
// their import section, so that one bit has to be set. WebAssembly core specification, "Import
// Section"; threads proposal, "Limits".

const sectionOfImports = 2;
/** Flags of limits: a maximum follows, the memory is shared. */
const hasMaximum = 1;
const isShared = 2;
/** Limits from 0 to 65,536 pages: flags, a byte, and three in LEB128. */
const limits = [hasMaximum, 0x00, 0x80, 0x80, 0x04];

/**
 * The same module, importing its memory as a shared one. Bytes that are no kernel's module are
 * returned unchanged: the engine refuses them.
 */
export function withSharedMemory(module: Uint8Array): Uint8Array<ArrayBuffer> {
  const out = Uint8Array.from(module);
  for (let at = 8; at < out.length;) {
    const id = out[at];
    let size = 0;
    for (let place = 1; ; place *= 128) {
      const byte = out[++at] ?? 0;
      size += (byte & 0x7f) * place;
      if (byte < 0x80) break;
    }
    at += 1 + size;
    if (id !== sectionOfImports) continue;
    const start = at - limits.length;
    if (limits.some((byte, i) => out[start + i] !== byte)) break;
    out[start] = hasMaximum | isShared;
    break;
  }
  return out;
}
