// Runs benches and prints their tables: npm run bench [-- NAME [ARG...]]; all of them but the long ones without a name.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Each is a script of its own; see its first lines for its arguments. */
const BENCHES = [
  'throughput',
  'swaps',
  'startup',
  'apply',
  'loop',
  'sandbox',
  'rego',
  'cel',
  'start',
  'watch',
  'embedded',
  'rollout',
  'webhooks',
];
/** Only by name: it takes twenty minutes. */
const LONG_BENCHES = ['soak'];

const [name, ...args] = process.argv.slice(2);
if (name !== undefined && ![...BENCHES, ...LONG_BENCHES].includes(name)) {
  console.error(`error: no bench ${name}; there are ${[...BENCHES, ...LONG_BENCHES].join(', ')}`);
  process.exit(2);
}
const build = spawnSync(process.execPath, [fileURLToPath(new URL('../tools/build.ts', import.meta.url))], {
  stdio: 'inherit',
});
let failed = build.status !== 0;
for (const bench of name === undefined ? BENCHES : [name]) {
  const script = fileURLToPath(new URL(`./${bench}.ts`, import.meta.url));
  if (existsSync(script)) {
    failed = spawnSync(process.execPath, [script, ...args], { stdio: 'inherit' }).status !== 0 || failed;
  }
}
process.exit(failed ? 1 : 0);
