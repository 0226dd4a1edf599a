// `sinter/notation`: kernels written by what each element is. Needs the optional peer `ohm-js`.

export { kernel, type IndexKernel } from './kernel.ts';
