import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { CallContext, CallLimits } from '../guests/call.ts';
import { compileModule } from '../instrumentation/compile.ts';
import type { SandboxOptions } from '../instrumentation/compile.ts';
import { Sandbox } from '../guests/sandbox.ts';
import type { HostImports } from '../guests/sandbox.ts';
import { wat } from './wat.ts';

const ROOT = join(import.meta.dirname, '../../..');

/** Memory limit of test guests. */
export const TEST_MEMORY_BYTES = 64 * 1024 * 1024;

/** The bytes of a fixture, by its path below test/fixtures/guests without `.wasm`. */
export function fixture(name: string): Uint8Array {
  return readFileSync(join(ROOT, 'test/fixtures/guests', `${name}.wasm`));
}

/** The bytes of an example's policy. */
export function example(name: string): Uint8Array {
  return readFileSync(join(ROOT, 'examples', name, 'policy.wasm'));
}

/** A sandbox for a module, given as text or bytes. */
export function sandboxOf(
  source: string | Uint8Array,
  isolation: SandboxOptions['isolation'] = 'restore',
  imports: HostImports = {},
): Sandbox {
  const bytes = typeof source === 'string' ? wat(source) : source;
  return new Sandbox(compileModule(bytes, { memoryLimitBytes: TEST_MEMORY_BYTES, isolation }), {
    imports: () => imports,
  });
}

/** A call context that collects the log. */
export function contextOf(
  limits: Partial<CallLimits> = {},
  hostCall?: CallContext['hostCall'],
): CallContext & { lines: string[] } {
  const lines: string[] = [];
  return {
    limits: { fuel: 1_000_000_000, answerBytes: 1024 * 1024, ...limits },
    hostCall:
      hostCall ??
      (() => {
        throw new Error('no host capabilities in this test');
      }),
    log: (text) => void lines.push(text),
    lines,
  };
}
