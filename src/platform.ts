// Names of platforms that public declarations mention, as empty interfaces: where a program's own libraries
// declare them (lib.dom, @types/node, @webgpu/types), these merge with theirs, and where none does, the
// declarations stand without. So types of the package check with any `lib`, and `skipLibCheck: false`.

declare global {
  interface AbortSignal {}
  interface Blob {}
  interface URL {}
  interface HTMLCanvasElement {}
  interface HTMLImageElement {}
  interface HTMLVideoElement {}
  interface ImageBitmap {}
  interface OffscreenCanvas {}
  interface VideoFrame {}
  interface GPUBuffer {}
  interface GPUDevice {}
  interface GPUQueue {}
  namespace WebAssembly {
    interface Memory {}
  }
}

/** Where a file lies. */
export type FileLocation = string | URL;

/** What a page draws on. */
export type Canvas = HTMLCanvasElement | OffscreenCanvas;

/** The memory of a WebAssembly module. */
export type WasmMemory = WebAssembly.Memory;
