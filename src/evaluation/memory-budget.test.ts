import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { it } from 'node:test';
import { promisify } from 'node:util';
import type { ModuleShape } from '../wasm/index.ts';
import type { CompiledPolicyModule } from './compiled-module.ts';
import { codeBytesOf } from './memory-budget.ts';

const ROOT = join(import.meta.dirname, '../..');
/** Resident memory comes and goes in pieces that have nothing to do with a module. */
const NOISE = 1.3;
/** A module that is counted for more than it can take keeps out others. */
const MOST_TOO_MUCH = 2.5;

for (const [language, example, copies] of [
  ['Rust', 'pod-privileged', 8],
  ['Rego', 'container-limits', 24],
  ['Go', 'image-registries', 3],
] as const) {
  it(`counts what the code of a module takes when all of it has run: ${language}`, { timeout: 120_000 }, async () => {
    const script = join(import.meta.dirname, 'testing/resident-code.ts');
    const file = join(ROOT, 'examples', example, 'policy.wasm');
    const flags = ['--no-wasm-lazy-compilation', '--expose-gc'];
    // One heap of the allocator: those of V8's compiler threads keep what they free.
    const env = { ...process.env, MALLOC_ARENA_MAX: '1' };
    const { stdout } = await promisify(execFile)(process.execPath, [...flags, script, file, `${copies}`], { env });
    const { residentBytes, shape } = JSON.parse(stdout) as { residentBytes: number; shape: ModuleShape };
    const counted = codeBytesOf({ mode: 'opa', compiled: { shape } } as CompiledPolicyModule);
    const shown = `${counted} bytes are counted, ${residentBytes} are resident`;
    assert.ok(counted * NOISE > residentBytes, shown);
    assert.ok(counted < residentBytes * MOST_TOO_MUCH, shown);
  });
}
