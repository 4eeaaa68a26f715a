// What the policies of one namespace cost the requests of another one: modules that take long to start, endless loops, both, and
// modules whose instances take much memory; and what a slow policy of the cluster costs the requests of another one. The
// product as `portcullis start` runs it, and reviews on its admission port.
// Usage: npm run bench -- neighbours [SECONDS [PART OF A SCENE'S NAME]]
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { Agent, request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { KubernetesCluster, loadKubeconfig } from '../src/cluster/index.ts';
import { parseMetadata, writeMetadata } from '../src/modules/index.ts';
import { startingModule } from '../src/wasm/testing/starting-module.ts';
import { smallerMemoryModule } from './hostile-modules.ts';
import { machine, printTable, residentMiB } from './processes.ts';
import { review } from './review.ts';
import { quantile } from './scene.ts';
import { EXAMPLES, GUESTS } from './setting.ts';
import { NODE_FLAGS } from '../bin/find-node.mjs';

const seconds = Number(process.argv[2] ?? 20);
const only = process.argv[3] ?? '';
const PROGRAM = fileURLToPath(new URL('../dist/cli/program/main.js', import.meta.url));
const POLICIES = '/apis/policies.kubewarden.io/v1';
const NAMESPACED_BUCKET = 'validating.fail.equivalent.namespaced.v1';
const CLUSTER_BUCKET = 'validating.fail.equivalent.cluster.v1';
/** Requests a second of the neighbour. */
const RATE = 200;
/** As webhooks ask by default. */
const TIMEOUT_SECONDS = 10;
const LOOPING_REQUESTS = 20;
/** Requests at once to the modules with large instances. */
const LARGE_REQUESTS = 4;
/** Of an instance that fills its memory: 12.5 MiB. The part of a namespace holds one of them, with its copy, in each thread. */
const LARGE_PAGES = 200;
/** Requests at once to the slow policy of the cluster, which takes some 100 ms for each. */
const SLOW_REQUESTS = 8;
/** Modules that are added in a scene. */
const MODULES = 6;
/** Turns of a start's loop. Most of what the fuel of a start allows: 1.2 s on an idle machine; and a tenth of it. */
const LONG_START = 800_000;
const SHORT_START = 80_000;

const folder = mkdtempSync(join(tmpdir(), 'portcullis-bench-'));
const agent = new Agent({ keepAlive: true, rejectUnauthorized: false });

function policyModule(turns: number, salt: number): Uint8Array {
  const metadata = parseMetadata({ protocolVersion: 'v1', executionMode: 'kubewarden-wapc', rules: [] });
  return writeMetadata(startingModule(turns, salt), metadata);
}

/** The product in a process of its own, with its own cluster. */
class Product implements AsyncDisposable {
  readonly #child: ChildProcess;
  readonly #cluster: KubernetesCluster;
  readonly admission: string;

  private constructor(child: ChildProcess, cluster: KubernetesCluster, admission: string) {
    this.#child = child;
    this.#cluster = cluster;
    this.admission = admission;
  }

  static async start(dataDir: string): Promise<Product> {
    const ports = ['--port', '0', '--operations-port', '0', '--cluster-port', '0'];
    const child = spawn(process.execPath, [...NODE_FLAGS, PROGRAM, 'start', ...ports, '--data-dir', dataDir], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'ignore'],
    });
    let output = '';
    const greeted = Promise.withResolvers<void>();
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      output += text;
      if (output.includes('Ctrl-C stops.')) {
        greeted.resolve();
      }
    });
    child.once('exit', () => greeted.reject(new Error(`it ended before it greeted:\n${output}`)));
    await greeted.promise;
    const [admission] = /https:\/\/\S+?:\d+(?=\/validate)/.exec(output) ?? [];
    if (admission === undefined) {
      throw new Error(`no admission port in the greeting:\n${output}`);
    }
    const { connection } = await loadKubeconfig({ paths: [join(dataDir, 'kubeconfig')], env: {} });
    return new Product(child, new KubernetesCluster(connection), admission);
  }

  get residentMiB(): number {
    return residentMiB(this.#child.pid ?? Number.NaN);
  }

  async create(path: string, body: object): Promise<void> {
    await this.#cluster.request('POST', path, { body });
  }

  /** The phases of the policies of a namespace, and how often each occurs. */
  async phases(namespace: string): Promise<string> {
    const path = `${POLICIES}/namespaces/${namespace}/admissionpolicies`;
    const { items } = (await (await this.#cluster.request('GET', path, {})).json()) as {
      items: { status?: { phase?: string } }[];
    };
    return [...Map.groupBy(items, ({ status }) => status?.phase ?? 'none')]
      .map(([phase, { length }]) => `${length} ${phase}`)
      .join(', ');
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#cluster[Symbol.dispose]();
    const exit = once(this.#child, 'exit');
    this.#child.kill('SIGKILL');
    await exit;
  }
}

/** Times of the requests of one measurement. Milliseconds. */
interface Times {
  readonly ms: readonly number[];
  /** Answers other than an admission, with the first message. */
  readonly failures: readonly string[];
}

/** Sends a review to a bucket. Returns what is wrong with the answer, if anything. */
function ask(admission: string, bucket: string, body: Buffer): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const headers = { 'content-type': 'application/json', 'content-length': body.length };
  const url = `${admission}/admit/${bucket}?timeout=${TIMEOUT_SECONDS}s`;
  request(url, { agent, method: 'POST', headers }, (response) => {
    let text = '';
    response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    response.on('end', () => resolve(text.includes('"allowed":true') ? undefined : text));
  })
    .on('error', (error) => resolve(error.message))
    .end(body);
  return promise;
}

function reviewIn(namespace: string): Buffer {
  return Buffer.from(JSON.stringify(review()).replaceAll('"namespace":"shop"', `"namespace":"${namespace}"`));
}

/** A review that the slow policy of the cluster is for, and the policies of pods are not. */
function serviceReview(): Buffer {
  const text = JSON.stringify(review()).replaceAll('"Pod"', '"Service"').replaceAll('"pods"', '"services"');
  return Buffer.from(text);
}

/** Sends requests of the neighbour at {@link RATE}; each time counts from when the request was due. */
async function neighbour(admission: string, bucket: string, forSeconds: number): Promise<Times> {
  const body = reviewIn('shop');
  const ms: number[] = [];
  const failures: string[] = [];
  const begun = performance.now();
  const pending: Promise<void>[] = [];
  for (let index = 0; index < forSeconds * RATE; index += 1) {
    const due = begun + (index * 1000) / RATE;
    await sleep(Math.max(0, due - performance.now()));
    pending.push(
      ask(admission, bucket, body).then((failure) => {
        ms.push(performance.now() - due);
        if (failure !== undefined) {
          failures.push(failure);
        }
      }),
    );
  }
  await Promise.all(pending);
  return { ms, failures };
}

/** A policy of a namespace, or of the cluster. */
function policy(namespace: string | undefined, name: string, module: string, resource = 'pods', settings = {}): object {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: namespace === undefined ? 'ClusterAdmissionPolicy' : 'AdmissionPolicy',
    metadata: { name, namespace },
    spec: {
      module: `file://./${module}`,
      mutating: false,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: [resource], operations: ['CREATE'] }],
      settings,
    },
  };
}

/** The same request, as many at once, until the signal. */
async function askAgain(request: () => Promise<unknown>, atOnce: number, signal: AbortSignal): Promise<void> {
  await Promise.all(
    Array.from({ length: atOnce }, async () => {
      while (!signal.aborted) {
        await request();
      }
    }),
  );
}

interface Scene {
  readonly name: string;
  /** Turns of the modules that start; absent: none is added. */
  readonly turns?: number;
  readonly isLooping?: boolean;
  /** Whether modules with large instances are added, and asked. */
  readonly isLarge?: boolean;
  /** Whether both policies are of the cluster, and the other one takes long for each review. */
  readonly isSlow?: boolean;
}

const SCENES: readonly Scene[] = [
  { name: 'alone' },
  { name: `${LOOPING_REQUESTS} requests at once to an endless loop`, isLooping: true },
  { name: `${MODULES} modules with a short start`, turns: SHORT_START },
  { name: 'the same beside the loop', turns: SHORT_START, isLooping: true },
  { name: `${MODULES} modules with a long start`, turns: LONG_START },
  { name: 'the same beside the loop', turns: LONG_START, isLooping: true },
  { name: `${LARGE_REQUESTS} requests at once to ${MODULES} modules with instances of 12 MiB`, isLarge: true },
  { name: `${SLOW_REQUESTS} requests at once to a slow policy, both of the cluster`, isSlow: true },
];

/** Runs the scene with a product of its own. Returns a row of the table. */
async function play(
  { name, turns, isLooping = false, isLarge = false, isSlow = false }: Scene,
  index: number,
): Promise<string[]> {
  await using product = await Product.start(join(folder, `data-${index}`));
  const { admission } = product;
  for (const namespace of ['shop', 'tenant']) {
    await product.create('/api/v1/namespaces', { apiVersion: 'v1', kind: 'Namespace', metadata: { name: namespace } });
  }
  const add = (...[namespace, ...rest]: Parameters<typeof policy>): Promise<void> => {
    const path = namespace === undefined ? 'clusteradmissionpolicies' : `namespaces/${namespace}/admissionpolicies`;
    return product.create(`${POLICIES}/${path}`, policy(namespace, ...rest));
  };
  await add(isSlow ? undefined : 'shop', 'labels', 'labels.wasm', 'pods', { labels: ['app.kubernetes.io/name'] });
  if (isSlow) {
    await add(undefined, 'slow', 'slow.wasm', 'services');
  } else if (!isLarge) {
    await add('tenant', 'loop', 'loop.wasm');
  }
  await sleep(1_500);
  const bucket = isSlow ? CLUSTER_BUCKET : NAMESPACED_BUCKET;
  await neighbour(admission, bucket, 2);
  const end = new AbortController();
  const again = (atOnce: number, body: Buffer): Promise<void> =>
    askAgain(() => ask(admission, bucket, body), atOnce, end.signal);
  const measured = neighbour(admission, bucket, seconds);
  const asking = isLooping ? again(LOOPING_REQUESTS, reviewIn('tenant')) : undefined;
  const askingSlow = isSlow ? again(SLOW_REQUESTS, serviceReview()) : undefined;
  for (let number = 0; turns !== undefined && number < MODULES; number += 1) {
    writeFileSync(join(folder, `start-${number}.wasm`), policyModule(turns, index * MODULES + number));
    await add('tenant', `start-${number}`, `start-${number}.wasm`, 'services');
  }
  for (let number = 0; isLarge && number < MODULES; number += 1) {
    writeFileSync(join(folder, `large-${number}.wasm`), smallerMemoryModule(LARGE_PAGES, number));
    await add('tenant', `large-${number}`, `large-${number}.wasm`);
  }
  const askingLarge = isLarge ? again(LARGE_REQUESTS, reviewIn('tenant')) : undefined;
  const { ms, failures } = await measured;
  end.abort();
  const phases = await product.phases('tenant');
  const mib = product.residentMiB;
  await Promise.all([asking, askingSlow, askingLarge]);
  if (failures[0] !== undefined) {
    console.error(`  ${name}: ${failures[0].slice(0, 300)}`);
  }
  return [
    name,
    quantile(ms, 0.5).toFixed(1),
    quantile(ms, 0.99).toFixed(0),
    Math.max(...ms).toFixed(0),
    `${failures.length} of ${ms.length}`,
    mib.toFixed(0),
    phases,
  ];
}

try {
  console.log(`\nneighbours: ${RATE} requests/s of a namespace, ${seconds} s each; ${machine()}`);
  copyFileSync(`${EXAMPLES}/required-labels/policy.wasm`, join(folder, 'labels.wasm'));
  copyFileSync(`${GUESTS}/loop-in-validate.wasm`, join(folder, 'loop.wasm'));
  copyFileSync(`${GUESTS}/slow.wasm`, join(folder, 'slow.wasm'));
  const rows: string[][] = [];
  for (const [index, scene] of SCENES.filter(({ name }) => name.includes(only)).entries()) {
    rows.push(await play(scene, index));
  }
  printTable(
    ['beside', 'p50 ms', 'p99 ms', 'longest ms', 'failed', 'resident MiB', 'policies of namespace tenant'],
    rows,
  );
} finally {
  agent.destroy();
  rmSync(folder, { recursive: true, force: true });
}
