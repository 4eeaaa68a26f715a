// A load generator on node:https, as a second one beside autocannon; it uses more processor time. Runs as a process:
// node client.ts '{"url":…}' prints one JSON line.
import { readFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import type { LoadOptions, LoadResult } from './processes.ts';

const { url, bodyFile, connections, seconds } = JSON.parse(process.argv[2] ?? '{}') as LoadOptions;
const body = readFileSync(bodyFile);
const agent = new Agent({ keepAlive: true, maxSockets: connections, rejectUnauthorized: false });
const headers = { 'content-type': 'application/json', 'content-length': body.length };
const times: number[] = [];
let failed = 0;

/** Posts the body once and records the response time. */
function post(): Promise<void> {
  return new Promise((resolve) => {
    const started = performance.now();
    const sent = request(url, { agent, method: 'POST', headers }, (response) => {
      failed += response.statusCode === 200 ? 0 : 1;
      response.resume().on('end', () => {
        times.push(performance.now() - started);
        resolve();
      });
    });
    sent.on('error', () => {
      failed += 1;
      resolve();
    });
    sent.end(body);
  });
}

const end = performance.now() + seconds * 1000;
await Promise.all(
  Array.from({ length: connections }, async () => {
    while (performance.now() < end) {
      await post();
    }
  }),
);
times.sort((a, b) => a - b);
const at = (share: number): number => times[Math.floor(times.length * share)] ?? Number.NaN;
const result: LoadResult = {
  requests: times.length,
  perSecond: times.length / seconds,
  p50: at(0.5),
  p99: at(0.99),
  failed,
};
process.stdout.write(`${JSON.stringify(result)}\n`);
agent.destroy();
