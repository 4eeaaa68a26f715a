// Hot swap: the time until a change serves, failed requests and answers of older versions under load, and memory after many
// modules. Usage: npm run bench -- swaps [SWAPS] [MODULES]
import { readFileSync, renameSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { join } from 'node:path';
import { machine, median, printTable } from './processes.ts';
import { EXAMPLES, Setting } from './setting.ts';

const swaps = Number(process.argv[2] ?? 500);
const modules = Number(process.argv[3] ?? 2000);
const CONNECTIONS = 16;

const setting = new Setting();
const { caFile } = await setting.certificates();
const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS + 1, ca: readFileSync(caFile) });
const body = readFileSync(setting.reviewFile);

/** A policy whose message has the version. */
const policies = (version: number, module = `${EXAMPLES}/required-labels/policy.wasm`): string =>
  `versioned:\n  module: file://${module}\n  settings: {labels: [v${version}]}\n`;

function write(text: string): void {
  writeFileSync(`${setting.policiesFile}.new`, text);
  renameSync(`${setting.policiesFile}.new`, setting.policiesFile);
}

/** Sends one request. Returns the version that answered, or undefined when the request failed. */
function ask(url: string): Promise<number | undefined> {
  return new Promise((resolve) => {
    const post = request(
      `${url}/validate/versioned`,
      { agent, method: 'POST', headers: { 'content-type': 'application/json', 'content-length': body.length } },
      (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
        response.on('end', () => {
          const version = /has no label \\"v(\d+)\\"/.exec(text)?.[1];
          resolve(response.statusCode === 200 && version !== undefined ? Number(version) : undefined);
        });
      },
    );
    post.on('error', () => resolve(undefined));
    post.end(body);
  });
}

/** Waits until all answers of a series, long enough to reach every worker, have the version. */
async function untilServed(url: string, version: number): Promise<void> {
  for (let run = 0; run < 8; run += 1) {
    if ((await ask(url)) !== version) {
      run = -1;
    }
  }
}

async function latency(url: string): Promise<number[]> {
  const times: number[] = [];
  for (let version = 1; version <= 50; version += 1) {
    const started = performance.now();
    write(policies(version));
    await untilServed(url, version);
    times.push(performance.now() - started);
  }
  return times;
}

async function underLoad(url: string): Promise<{ answers: number; failed: number; mixed: number; seconds: number }> {
  let isRunning = true;
  write(policies(1000));
  await untilServed(url, 1000);
  let newest = 1000;
  const count = { answers: 0, failed: 0, mixed: 0, seconds: 0 };
  const clients = Array.from({ length: CONNECTIONS }, async () => {
    while (isRunning) {
      const seenBefore = newest;
      const version = await ask(url);
      count.answers += 1;
      count.failed += version === undefined ? 1 : 0;
      // An older version than one that had answered before the request was sent.
      count.mixed += version !== undefined && version < seenBefore ? 1 : 0;
      newest = Math.max(newest, version ?? 0);
    }
  });
  const started = performance.now();
  for (let version = 1001; version <= 1000 + swaps; version += 1) {
    write(policies(version));
    while (newest < version) {
      await new Promise((resolve) => setTimeout(resolve, 2));
    }
  }
  isRunning = false;
  await Promise.all(clients);
  return { ...count, seconds: (performance.now() - started) / 1000 };
}

/** Serves distinct modules one after the other. Returns resident memory after each tenth of them. */
async function memory(url: string, rss: () => Promise<number>): Promise<number[]> {
  const original = readFileSync(`${EXAMPLES}/pod-privileged/policy.wasm`);
  const small = readFileSync(`${EXAMPLES}/required-labels/policy.wasm`);
  const figures: number[] = [];
  for (let index = 0; index < modules; index += 1) {
    const file = join(setting.folder, `module-${index % 2}.wasm`);
    // A custom section makes each module distinct. Every tenth one is large.
    const large = index % 10 === 9;
    writeFileSync(file, Buffer.concat([large ? original : small, customSection(`n${index}`)]));
    const version = 100_000 + index;
    write(large ? `versioned:\n  module: file://${file}\n` : policies(version, file));
    if (large) {
      await new Promise((resolve) => setTimeout(resolve, 60));
    } else {
      await untilServed(url, version);
    }
    if ((index + 1) % Math.ceil(modules / 10) === 0) {
      figures.push(await rss());
    }
  }
  return figures;
}

function customSection(name: string): Buffer {
  const text = Buffer.from(name);
  return Buffer.concat([Buffer.from([0, text.length + 1, text.length]), text]);
}

try {
  const server = await setting.serve(policies(1000));
  console.log(`\nswaps: ${machine()}`);
  const times = await latency(server.admission);
  const load = await underLoad(server.admission);
  const rss = async (): Promise<number> => {
    server.process.send('rss');
    return (JSON.parse(await server.process.line()) as { rss: number }).rss / 2 ** 20;
  };
  const figures = modules === 0 ? [] : await memory(server.admission, rss);
  printTable(
    ['what', 'figure'],
    [
      ['change of the file to new verdict from every worker, p50', `${median(times).toFixed(0)} ms`],
      ['the same, slowest of 50', `${Math.max(...times).toFixed(0)} ms`],
      [
        `failed answers in ${swaps} swaps under load (${load.answers} answers in ${load.seconds.toFixed(0)} s)`,
        String(load.failed),
      ],
      ['answers older than one seen before', String(load.mixed)],
      [
        `resident memory over ${modules} swaps of distinct modules`,
        `${figures.map((mib) => mib.toFixed(0)).join(' ')} MiB`,
      ],
    ],
  );
} finally {
  agent.destroy();
  await setting.close();
}
