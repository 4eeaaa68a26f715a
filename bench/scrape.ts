// What a scrape of /metrics costs reviews, and how large the page and the process become, when anybody sends reviews of ever new
// kinds and namespaces. Reviews at a steady rate, each time from when it was due, with and without scrapes one after the other.
// Usage: npm run bench -- scrape [SECONDS [REVIEWS]]
import { Agent, get, request } from 'node:http';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { NODE_FLAGS } from '../bin/find-node.mjs';
import { VARIABLES } from '../tools/image/image-config.ts';
import { LineProcess, machine, printTable } from './processes.ts';
import { review } from './review.ts';
import { quantile } from './scene.ts';

const seconds = Number(process.argv[2] ?? 10);
const reviews = Number(process.argv[3] ?? 100_000);
/** Reviews a second while times are measured. */
const RATE = 200;
/** Connections that fill the page. */
const CONNECTIONS = 16;
/** Policies: with one only, the page has as many series. */
const POLICIES = 20;

const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'));
const agent = new Agent({ keepAlive: true });
const text = JSON.stringify(review());
/** A review of a kind and namespace of its own. */
const numbered = (index: number): Buffer =>
  Buffer.from(text.replaceAll('"Pod"', `"Kind${index}"`).replaceAll('"namespace":"shop"', `"namespace":"n${index}"`));

interface Addresses {
  readonly admission: string;
  readonly operations: string;
}

function send(url: string, body: Buffer): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  request(url, { agent, method: 'POST', headers }, (response) => response.resume().on('end', resolve))
    .on('error', reject)
    .end(body);
  return promise;
}

async function fill({ admission }: Addresses): Promise<void> {
  const rest = Array.from({ length: reviews }, (_, index) => index).values();
  const worker = async (): Promise<void> => {
    for (const index of rest) {
      await send(`${admission}/validate/policy-${index % POLICIES}`, numbered(index));
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS }, worker));
}

/** Times of reviews in milliseconds. */
async function steady({ admission }: Addresses): Promise<readonly number[]> {
  const times: number[] = [];
  const pending: Promise<void>[] = [];
  const body = numbered(0);
  const began = performance.now();
  for (let index = 0; index < seconds * RATE; index += 1) {
    const due = began + (index * 1_000) / RATE;
    await sleep(Math.max(0, due - performance.now()));
    pending.push(send(`${admission}/validate/policy-0`, body).then(() => void times.push(performance.now() - due)));
  }
  await Promise.all(pending);
  return times;
}

interface Scrape {
  readonly bytes: number;
  readonly ms: number;
}

function scrape({ operations }: Addresses): Promise<Scrape> {
  const { promise, resolve, reject } = Promise.withResolvers<Scrape>();
  const began = performance.now();
  get(`${operations}/metrics`, { agent }, (response) => {
    let bytes = 0;
    response.on('data', (chunk: Buffer) => (bytes += chunk.length));
    response.on('end', () => resolve({ bytes, ms: performance.now() - began }));
  }).on('error', reject);
  return promise;
}

/** Scrapes one after the other until a measurement ends. */
async function scrapedMeanwhile(addresses: Addresses): Promise<readonly [readonly number[], readonly Scrape[]]> {
  const measuring = steady(addresses);
  let isOver = false;
  void measuring.finally(() => (isOver = true));
  const scrapes: Scrape[] = [];
  while (!isOver) {
    scrapes.push(await scrape(addresses));
  }
  return [await measuring, scrapes];
}

try {
  const policiesFile = join(folder, 'policies.yml');
  const policy = '  module: builtin:cel\n  settings: {validations: [{expression: "true"}]}\n';
  writeFileSync(policiesFile, Array.from({ length: POLICIES }, (_, index) => `policy-${index}:\n${policy}`).join(''));
  console.log(
    `\nscrape: ${RATE} reviews a second for ${seconds} s; ${reviews} reviews of kinds of their own; ${machine()}`,
  );
  const rows: string[][] = [];
  for (const [what, labelledNamespaces] of [
    ['default', undefined],
    ['a label for each namespace', 1_000_000],
  ] as const) {
    const options = {
      policiesFile,
      dataDir: join(folder, what),
      port: 0,
      operationsPort: 0,
      workers: 2,
      labelledNamespaces,
    };
    const server = new LineProcess('./serve.mjs', [JSON.stringify(options)], NODE_FLAGS, VARIABLES);
    const addresses = JSON.parse(await server.line()) as Addresses;
    const row = async (
      name: string,
      measure: () => Promise<readonly [readonly number[], readonly Scrape[]]>,
    ): Promise<void> => {
      const [times, scrapes] = await measure();
      server.send('memory');
      const { rss } = JSON.parse(await server.line()) as { rss: number };
      const last = scrapes.at(-1);
      rows.push([
        what,
        name,
        quantile(times, 0.5).toFixed(1),
        quantile(times, 0.99).toFixed(1),
        Math.max(...times).toFixed(1),
        String(scrapes.length),
        last === undefined ? '' : (last.bytes / 2 ** 20).toFixed(2),
        last === undefined
          ? ''
          : quantile(
              scrapes.map(({ ms }) => ms),
              0.5,
            ).toFixed(0),
        (rss / 2 ** 20).toFixed(0),
      ]);
    };
    await row('empty page, no scrape', async () => [await steady(addresses), []]);
    await row('empty page, scrapes', () => scrapedMeanwhile(addresses));
    await fill(addresses);
    await row('full page, no scrape', async () => [await steady(addresses), []]);
    await row('full page, scrapes', () => scrapedMeanwhile(addresses));
    await server.end();
  }
  printTable(
    ['namespaces', 'what', 'p50 ms', 'p99 ms', 'longest ms', 'scrapes', 'page MiB', 'scrape ms', 'RSS MiB'],
    rows,
  );
} finally {
  agent.destroy();
  rmSync(folder, { recursive: true, force: true });
}
