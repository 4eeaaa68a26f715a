// What the functions of modules cost V8's compilers, and memory and time of rewriting hostile modules. Prints the tables of
// docs/adr/0028-modules-are-bounded-before-they-are-compiled.md.
//   node bench/compiling.ts [FILE...]   other modules than those of the examples and fixtures
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { rewriteModule } from '../src/wasm/instrumentation/rewrite.ts';

const ROOT = join(import.meta.dirname, '..');
const MODULES = [
  'examples/pod-privileged/policy.wasm',
  'examples/image-registries/policy.wasm',
  'examples/required-labels/policy.wasm',
  'examples/container-limits/policy.wasm',
  'test/fixtures/rego/golden-0.wasm',
];
const MAX_PAGES = 16_384;
const HOSTILE = [
  { locals: 49_000, blocks: 'if', nesting: 800 },
  { locals: 5_000, blocks: 'if', sequence: 400 },
  { operands: 300, blocks: 'if', nesting: 20_000 },
  { blocks: 'loop', sequence: 2_000_000 },
  { stores: 90_000 },
];
const MIB = 1024 * 1024;

interface Compilation {
  readonly shape: unknown;
  readonly bytes: number;
  readonly peakBytes: number;
  readonly code: string;
}

const files = process.argv.slice(2);
const costs = (files.length > 0 ? files : MODULES.map((file) => join(ROOT, file))).map((file) => {
  const bytes = readFileSync(file);
  const tracked = rewriteModule(bytes, MAX_PAGES, true);
  const rewritten = typeof tracked === 'string' ? rewriteModule(bytes, MAX_PAGES, false) : tracked;
  return typeof rewritten === 'string'
    ? { file, rewritten }
    : { file, bytes: bytes.length, ...rewritten.largestCosts, doubts: rewritten.doubts?.functions.size ?? 0 };
});
console.table(costs);

const script = join(ROOT, 'src/wasm/testing/compile-hostile.ts');
const compilations = HOSTILE.map((shape) => {
  const { stdout } = spawnSync(process.execPath, [script, JSON.stringify(shape)], { encoding: 'utf8' });
  const { bytes, peakBytes, code } = JSON.parse(stdout) as Compilation;
  return { shape: JSON.stringify(shape), bytes, peakMiB: Math.round(peakBytes / MIB), code };
});
console.table(compilations);
