// The time of one evaluation of a Rego policy: three rules on a review of 5 KB, once allowed and once denied with three builtin
// calls for messages; with a restored instance, and with a new instance for each evaluation.
//   node bench/rego.ts [evaluations per figure]
import { readFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { join } from 'node:path';
import { compileModule, createOpaGuest } from '../src/wasm/index.ts';
import type { CallContext, SandboxOptions } from '../src/wasm/index.ts';
import { review } from './review.ts';

const EVALUATIONS = Number(process.argv[2] ?? 10_000);
const MODULE = readFileSync(join(import.meta.dirname, '../test/fixtures/rego/policies.wasm'));
const MEMORY_LIMIT = 256 * 1024 * 1024;

const context: CallContext = {
  limits: { fuel: 2_000_000_000, answerBytes: 1 << 20 },
  hostCall: () => new Uint8Array(0),
  log: () => undefined,
};

const input = JSON.stringify(review());
const allowing = JSON.stringify({ registry: '', labels: [] });
const denying = JSON.stringify({ registry: 'registry.internal/', labels: ['missing'] });

function measure(name: string, isolation: SandboxOptions['isolation'], data: string): void {
  const guest = createOpaGuest(compileModule(MODULE, { memoryLimitBytes: MEMORY_LIMIT, isolation }));
  const entrypoint = guest.entrypoints.get('policies/main') ?? 0;
  const times = new Float64Array(EVALUATIONS);
  for (let index = -EVALUATIONS / 10; index < EVALUATIONS; index += 1) {
    const start = performance.now();
    guest.evaluate(entrypoint, input, data, context);
    if (index >= 0) {
      times[index] = (performance.now() - start) * 1000;
    }
  }
  times.sort();
  const at = (share: number): string => (times[Math.floor(share * (EVALUATIONS - 1))] ?? 0).toFixed(1).padStart(8);
  console.log(`${name.padEnd(24)} ${at(0.5)} ${at(0.99)} ${String(guest.fuelUsed).padStart(8)}`);
}

console.log(
  `Rego, 3 rules, review of ${input.length} bytes, ${EVALUATIONS} evaluations, load ${loadavg()[0]?.toFixed(1)}`,
);
console.log(`${'µs per evaluation'.padEnd(24)} ${'median'.padStart(8)} ${'p99'.padStart(8)} ${'fuel'.padStart(8)}`);
measure('allow, put back', 'restore', allowing);
measure('deny, put back', 'restore', denying);
measure('allow, fresh instance', 'fresh', allowing);
measure('deny, fresh instance', 'fresh', denying);
