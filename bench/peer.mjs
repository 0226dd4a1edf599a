// Sinter for a driver that measures libraries beside each other: `OURS=<this file> node driver.mjs --peers ours-webgpu,…`.
// It runs in plain Node, so it takes what `npm run build` makes.

const built = new URL('../dist/cli/bench-peer.js', import.meta.url);

const { peers } = await import(built.href).catch((error) => {
  if (error?.code !== 'ERR_MODULE_NOT_FOUND') throw error;
  throw new Error(`${built.pathname} is not there: run \`npm run build\` first`, { cause: error });
});

export { peers };
