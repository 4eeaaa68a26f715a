// Dry-run creates of config maps at a steady rate, as a process. Each time counts from when the request was due, so that requests
// that wait for others count in full. An answer 429 is followed after its Retry-After, as client-go does. One in ten lacks a label, and
// must be rejected. For each line on stdin, prints the figures since the line before as a JSON line. Usage: node steady-load.ts
// '{"server":…}'
import { Agent, request } from 'node:https';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';
import { quantile } from './scene.ts';

export interface SteadyLoadOptions {
  readonly server: string;
  readonly ca: string;
  readonly authorization: string;
  readonly user: string;
  readonly namespace: string;
  /** Requests a second. */
  readonly rate: number;
}

/** Times in milliseconds. */
export interface SteadyLoadFigures {
  readonly asked: number;
  /** Answers other than the expected one, broken connections, timeouts. */
  readonly failed: number;
  readonly firstFailure?: string;
  /** Answers 429. */
  readonly retried: number;
  readonly p50: number;
  readonly p99: number;
  readonly longest: number;
}

const TIMEOUT_MS = 30_000;
const RETRY_MS = 1_000;
/** Fewer than the ten of client-go, so that a request ends. */
const MAX_RETRIES = 3;
/** Characters of an answer that is reported. */
const MAX_FAILURE_TEXT = 300;
/** Every so many requests, one must be rejected. */
const REJECTED_INTERVAL = 10;

const { server, ca, authorization, user, namespace, rate } = JSON.parse(process.argv[2] ?? '{}') as SteadyLoadOptions;
const url = `${server}/api/v1/namespaces/${namespace}/configmaps?dryRun=All`;
const agent = new Agent({ keepAlive: true, ca });
const bodies = [{}, { team: 'shop' }].map((labels) =>
  Buffer.from(
    JSON.stringify({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'asked', labels },
      data: { key: 'value' },
    }),
  ),
);

let times: number[] = [];
let failures: string[] = [];
let asked = 0;
let retried = 0;
const pending = new Set<Promise<void>>();

/** Sends a request, again if it was too many. Resolves with what is wrong with the answer, if anything. */
async function ask(isRejected: boolean): Promise<string | undefined> {
  for (let retry = 0; ; retry += 1) {
    const failure = await askOnce(isRejected);
    if (failure?.startsWith('429') !== true || retry === MAX_RETRIES) {
      return failure;
    }
    retried += 1;
    await sleep(RETRY_MS);
  }
}

function askOnce(isRejected: boolean): Promise<string | undefined> {
  const body = bodies[isRejected ? 0 : 1] ?? Buffer.alloc(0);
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const headers = {
    authorization,
    'impersonate-user': user,
    'content-type': 'application/json',
    'content-length': body.length,
  };
  const expected = (status: number | undefined, text: string): boolean =>
    isRejected ? (status ?? 0) >= 400 && text.includes('denied the request') : status === 201;
  const sent = request(url, { agent, method: 'POST', headers, timeout: TIMEOUT_MS }, (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    response.on('error', ({ message }) => resolve(message));
    response.on('end', () =>
      resolve(
        expected(response.statusCode, text) ? undefined : `${response.statusCode} ${text.slice(0, MAX_FAILURE_TEXT)}`,
      ),
    );
  });
  sent.on('timeout', () => sent.destroy(new Error(`no answer in ${TIMEOUT_MS / 1000} s`)));
  sent.on('error', ({ message }) => resolve(message));
  sent.end(body);
  return promise;
}

/** Sends a request, and records its time and failure. */
function send(due: number, index: number): void {
  asked += 1;
  const answered = ask(index % REJECTED_INTERVAL === 0).then((failure) => {
    times.push(performance.now() - due);
    if (failure !== undefined) {
      failures.push(failure);
    }
  });
  pending.add(answered);
  void answered.finally(() => pending.delete(answered));
}

/** The figures of all requests that were sent so far. */
async function figures(): Promise<SteadyLoadFigures> {
  await Promise.all(pending);
  const [firstFailure] = failures;
  const result = {
    asked,
    failed: failures.length,
    retried,
    ...(firstFailure === undefined ? {} : { firstFailure }),
    p50: quantile(times, 0.5),
    p99: quantile(times, 0.99),
    longest: Math.max(0, ...times),
  };
  [times, failures, asked, retried] = [[], [], 0, 0];
  return result;
}

let isEnded = false;
const lines = createInterface({ input: process.stdin });
lines.on('line', () => void figures().then((result) => process.stdout.write(`${JSON.stringify(result)}\n`)));
lines.on('close', () => {
  isEnded = true;
  agent.destroy();
});

const begun = performance.now();
for (let index = 0; !isEnded; index += 1) {
  const due = begun + (index * 1000) / rate;
  await sleep(Math.max(0, due - performance.now()));
  send(due, index);
}
