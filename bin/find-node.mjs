// Finds a Node that can run Portcullis, and how to start it. Plain JavaScript that Node 20 understands: it runs before the version is known.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';

/** The oldest Node that has all of what is used: type stripping, multi-memory WebAssembly, node:sqlite. */
export const MINIMUM_NODE = [24, 15];

/** Flags that V8 applies only when the process starts; docs/performance.md has the figures. */
export const NODE_FLAGS = [
  // Each thread collects its own garbage alone. V8 would give parts of each collection to helper threads, at the cost of others: while
  // one worker made instances of WebAssembly modules, the helpers took half of two processors.
  '--single-threaded-gc',
  // Half of the space for new objects of the main thread, in MiB. V8 would let it grow to 128 MiB in all. Where it is small and
  // hundreds of requests wait, most of what they hold is copied again and again. Other threads have less: src/threads/start-thread.ts.
  '--max-semi-space-size=16',
];

function isRecent(version) {
  const [major, minor] = version.split('.').map(Number);
  return major > MINIMUM_NODE[0] || (major === MINIMUM_NODE[0] && minor >= MINIMUM_NODE[1]);
}

/** The path of a recent enough Node: the running one, or else the copy that npm installed for this platform; undefined when there is none. */
export function findNode() {
  if (isRecent(process.versions.node)) {
    return process.execPath;
  }
  const platform = process.platform === 'win32' ? 'win' : process.platform;
  try {
    const manifest = createRequire(import.meta.url).resolve(`node-${platform}-${process.arch}/package.json`);
    const binary = join(dirname(manifest), 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
    return existsSync(binary) ? binary : undefined;
  } catch {
    return undefined;
  }
}
