// What is there before any part of Sinter that comes by `import()` (lazy.ts). Empty here: in a bundled page `package.json` puts
// page/methods.ts in its place, from which all is reached that a page has from the start. So bundlers see, of every module
// that parts share with it, that it is reached by all of them, and put these into one file, not into one for each set of parts.

export {};
