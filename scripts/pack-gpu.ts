// Packs what a machine with a GPU and without network needs to test and time Sinter: Node, the built JavaScript of the library, the tests and
// the benchmarks, their figures, and the native addons. `npx tsx scripts/pack-gpu.ts --help` says how.

import { execFileSync, spawnSync } from 'node:child_process';
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';

const help = `usage: npx tsx scripts/pack-gpu.ts --out PATH [options]

Makes an archive for a GPU machine of this platform without network (glibc 2.34 or newer; the CUDA driver and NVRTC are its own).

  --out PATH    PATH.tar.gz, which unpacks into one folder; with --folder the folder itself
  --folder      no archive
  --xz          PATH.tar.xz, smaller and slower
  --webgpu      with Dawn, for the device webgpu
  --help        this text

There:
  tar xzf sinter-gpu.tar.gz && cd sinter-gpu
  ./run.sh devices                 what the machine has
  ./run.sh all --out DIR          all of the below, in some minutes, with a table (all --help)
  ./run.sh test  > test.json      as npm run test:gpu; options as there
  ./run.sh bench > bench.json     as npm run bench:gpu
  ./run.sh torch > torch.json     the same in PyTorch, where Python has it
  ./run.sh node FILE.js           anything else, with Node on the path
NVRTC_PATH, CUDA_HOME and SINTER_CUDA_DRIVER say where libraries lie that are not found. Under compute-sanitizer:
  SINTER_CUDA_OPTIONS=-lineinfo compute-sanitizer --tool memcheck ./run.sh test --family softmax,norm,matmul`;

const runner = `#!/bin/sh
# What was packed, run from any folder: ./run.sh devices | all | test | bench | torch | node, and options.
here=$(cd "$(dirname "$0")" && pwd)
PATH="$here/bin:$PATH"
export PATH
what=\${1:-devices}
[ $# -gt 0 ] && shift
case $what in
  devices) exec node "$here/src/cli/main.js" devices "$@" ;;
  all) exec node "$here/test/gpu/all.js" "$@" ;;
  test) exec node "$here/test/gpu/main.js" "$@" ;;
  bench) exec node "$here/bench/gpu.js" "$@" ;;
  torch) exec python3 "$here/bench/gpu-torch.py" "$@" ;;
  node) exec node "$@" ;;
  *) echo "run.sh: expected devices, all, test, bench, torch or node, not $what" >&2; exit 2 ;;
esac
`;

/** Folders of addons have such names. */
const platform = `${process.platform}-${process.arch}`;
const root = fileURLToPath(new URL('../', import.meta.url));

const { values } = parseArgs({
  options: {
    out: { type: 'string' },
    folder: { type: 'boolean' },
    xz: { type: 'boolean' },
    webgpu: { type: 'boolean' },
    help: { type: 'boolean' },
  },
});
if (values.help === true || values.out === undefined) {
  console.log(help);
  if (values.help !== true) process.exitCode = 1;
} else if (values.folder === true) {
  fill(path.resolve(values.out));
} else {
  const made = pack(path.resolve(values.out), values.xz === true);
  console.log(`${made}: ${(fs.statSync(made).size / 2 ** 20).toFixed(1)} MiB`);
}

/** The archive `out`.tar.gz or .tar.xz with one folder in it; gives its path. */
function pack(out: string, isSmall: boolean): string {
  const parent = fs.mkdtempSync(path.join(os.tmpdir(), 'sinter-pack-'));
  try {
    const name = path.basename(out);
    fill(path.join(parent, name));
    const archive = `${out}.tar.${isSmall ? 'xz' : 'gz'}`;
    fs.mkdirSync(path.dirname(out), { recursive: true });
    execFileSync('tar', [isSmall ? '-cJf' : '-czf', archive, '-C', parent, name]);
    return archive;
  } finally {
    fs.rmSync(parent, { recursive: true, force: true });
  }
}

function fill(folder: string): void {
  fs.mkdirSync(path.join(folder, 'bin'), { recursive: true });
  build(folder);
  // What bundles that are built there run with.
  const bundleRuntimes = path.join(root, 'scripts', 'bundle-runtimes.ts');
  const args = ['--import', 'tsx', bundleRuntimes, path.join(folder, 'src', 'bundle-runtimes')];
  execFileSync(process.execPath, args, { cwd: root, stdio: 'inherit' });
  const fixtures = path.join('test', 'fixtures', 'torch');
  fs.cpSync(path.join(root, fixtures), path.join(folder, fixtures), { recursive: true });
  const peer = path.join('bench', 'gpu-torch.py');
  fs.copyFileSync(path.join(root, peer), path.join(folder, peer));
  const node = path.join(folder, 'bin', 'node');
  fs.copyFileSync(fs.realpathSync(process.execPath), node);
  // Debug information is an eighth of it; a machine without `strip` packs it whole.
  spawnSync('strip', [node], { stdio: 'ignore' });
  for (const addon of ['koffi', `@koromix/koffi-${process.platform}-${process.arch}`])
    copyPackage(addon, folder);
  if (values.webgpu === true) copyPackage('webgpu', folder);
  const { version } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8')) as {
    version: string;
  };
  const scripts = {
    'test:gpu': 'bin/node test/gpu/main.js',
    'bench:gpu': 'bin/node bench/gpu.js',
  };
  const manifest = { name: 'sinter-gpu', version, private: true, type: 'module', scripts };
  fs.writeFileSync(path.join(folder, 'package.json'), `${JSON.stringify(manifest, undefined, 2)}\n`);
  fs.writeFileSync(path.join(folder, 'run.sh'), runner, { mode: 0o755 });
}

/** JavaScript of the library, of both commands, and of what they import. */
function build(folder: string): void {
  const config = path.join(folder, 'tsconfig.json');
  fs.writeFileSync(
    config,
    JSON.stringify({
      extends: path.join(root, 'tsconfig.json'),
      compilerOptions: {
        noEmit: false,
        rootDir: root,
        outDir: folder,
        typeRoots: [path.join(root, 'node_modules', '@types'), path.join(root, 'node_modules')],
        declaration: false,
        isolatedDeclarations: false,
        allowImportingTsExtensions: false,
        rewriteRelativeImportExtensions: true,
      },
      include: ['src', 'test/gpu/main.ts', 'test/gpu/all.ts', 'test/aot/perceptron.ts', 'bench/gpu.ts'].map(
        (part) => path.join(root, part),
      ),
    }),
  );
  try {
    const compiler = path.join(root, 'node_modules', 'typescript', 'bin', 'tsc');
    // Whether the types agree is `npm run check`'s business.
    execFileSync(process.execPath, [compiler, '-p', config, '--noCheck'], { cwd: root, stdio: 'inherit' });
  } finally {
    fs.rmSync(config);
  }
}

/** A package without what only its own build needs, and without addons of other platforms. */
function copyPackage(name: string, folder: string): void {
  const from = path.join(root, 'node_modules', name);
  if (!fs.existsSync(from)) throw new Error(`${name} is not installed here: npm ci`);
  const needless = new Set(['vendor', 'doc', 'cnoke.cjs', 'musl_x64', 'README.md', 'CHANGELOG.md']);
  fs.cpSync(fs.realpathSync(from), path.join(folder, 'node_modules', name), {
    recursive: true,
    filter: (file) => {
      const part = path.basename(file);
      return !needless.has(part) && (!/^(?:linux|darwin|win32)-/.test(part) || part === platform);
    },
  });
}
