// A policy server as a process of its own, for the benches: node serve.mjs '{"policiesFile":…}'; prints one JSON line
// with its addresses when it is ready, its memory for every line that it gets, and ends when its stdin does.
// Plain JavaScript on the built package: what is measured is what is published, without Node's TypeScript loader.
import { createInterface } from 'node:readline';
import { createLog } from '../dist/log/index.js';
import { PolicyServer } from '../dist/server/index.js';

const options = JSON.parse(process.argv[2] ?? '{}');
const server = new PolicyServer({ ...options, log: createLog({ level: 'silent' }) });
const started = performance.now();
const addresses = await server.start();
const say = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);
say({ ...addresses, startMs: performance.now() - started, upMs: performance.now(), rss: process.memoryUsage.rss() });
const lines = createInterface({ input: process.stdin });
lines.on('line', () => {
  globalThis.gc?.();
  say({ rss: process.memoryUsage.rss() });
});
lines.on('close', () => void server.stop().then(() => process.exit(0)));
