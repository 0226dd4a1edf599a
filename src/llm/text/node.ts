// Node only: finds optional packages. Mapped to nothing in package.json's `browser`.

export { importFrom, resolveFromProject } from '../../runtime/packages.ts';
