// Node only: files by their paths. Loaded by a dynamic import and mapped to nothing in
// package.json's `browser`, so that no page's bundler meets a Node module.

export { readFile, writeFile } from 'node:fs/promises';
