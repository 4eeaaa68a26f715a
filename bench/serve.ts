// A policy server as a process of its own, for the benches: node serve.ts '{"policiesFile":…}'; prints one JSON line
// with its addresses when it is ready, ends when its stdin does, and prints its memory whenever a line arrives.
import { createInterface } from 'node:readline';
import type * as Server from '../src/server/index.ts';

// What is measured is what is published: the built JavaScript (bench/main.ts builds it first).
const { createLog, PolicyServer } = (await import(
  new URL('../dist/server/index.js', import.meta.url).href
)) as typeof Server;
const options = JSON.parse(process.argv[2] ?? '{}') as Omit<Server.PolicyServerOptions, 'log'>;
const server = new PolicyServer({ ...options, log: createLog({ level: 'silent' }) });
const started = performance.now();
const addresses = await server.start();
const say = (value: unknown): void => void process.stdout.write(`${JSON.stringify(value)}\n`);
say({ ...addresses, startMs: performance.now() - started, upMs: performance.now(), rss: process.memoryUsage.rss() });
const lines = createInterface({ input: process.stdin });
lines.on('line', () => {
  globalThis.gc?.();
  say({ rss: process.memoryUsage.rss() });
});
lines.on('close', () => void server.stop().then(() => process.exit(0)));
