// Runs benches and prints their tables: npm run bench [-- NAME [ARG...]]. Without a name, runs all but the long ones.
import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** Each is a script; its first lines describe its arguments. */
const BENCHES = [
  'throughput',
  'swaps',
  'startup',
  'warm',
  'apply',
  'loop',
  'sandbox',
  'compiling',
  'rego',
  'cel',
  'start',
  'watch',
  'embedded',
  'rollout',
  'webhooks',
  'governance',
  'netpol',
  'neighbours',
  'scrape',
];
/** Run for up to twenty minutes, so only by name. */
const LONG_BENCHES = ['soak', 'churn', 'tenants', 'netpol-status', 'hostile', 'audit'];

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
