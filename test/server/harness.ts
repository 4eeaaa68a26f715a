// A policy server for tests, used through its two ports, policies file and data folder. Also reviews, and a source of
// modules that can misbehave.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer, request as httpRequest, type Server } from 'node:http';
import { Agent, request as httpsRequest, type RequestOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import {
  type Addresses,
  PolicyServer,
  type PolicyServerOptions,
  type ServedPolicyStatus,
} from '../../src/server/index.ts';
import { createLog } from '../../src/log/index.ts';
import { ensureLocalCertificates, type LocalCertificates } from '../../src/control/certificates/index.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
/**
 * Limit of {@link until} and of a server's start: conditions take milliseconds, but on a busy machine the policies of a test may take
 * minutes to load. Less than a file of tests may take.
 */
const UNTIL_MS = 300_000;

/** The text of a policies file, or its entries by id. */
export type Policies = string | Readonly<Record<string, unknown>>;

/** Options of a test server. */
export interface TestServerOptions extends Partial<Omit<PolicyServerOptions, 'policiesFile' | 'dataDir' | 'log'>> {
  readonly policies: Policies;
  /** Folder of an earlier server, for restarts. Default: a new one, removed with the server. */
  readonly folder?: TestFolder;
  /** Return before every policy has served or failed once; await `started` instead. Default: wait. */
  readonly isLoading?: boolean;
}

/** An HTTP answer. */
export interface HttpAnswer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly text: string;
  /** The parsed body; undefined when it is not JSON. */
  readonly json: unknown;
}

/** The `response` of an answer to a review. */
export interface ReviewResponse {
  readonly uid: string;
  readonly allowed: boolean;
  readonly patchType?: string;
  readonly patch?: string;
  readonly status?: {
    readonly message?: string;
    readonly code?: number;
    readonly details?: { readonly causes: readonly { readonly field?: string; readonly message?: string }[] };
  };
  readonly auditAnnotations: Readonly<Record<string, string>> | null;
  readonly warnings: readonly string[] | null;
}

/** Options of {@link TestServer.post}. */
export interface PostOptions {
  readonly agent?: Agent;
  readonly headers?: Readonly<Record<string, string>>;
  readonly method?: string;
  readonly tls?: Pick<RequestOptions, 'ca' | 'cert' | 'key' | 'rejectUnauthorized'>;
}

/** A temporary folder with a policies file, certificates and a data folder. */
export class TestFolder implements AsyncDisposable {
  readonly path: string;
  readonly certificates: LocalCertificates;

  private constructor(path: string, certificates: LocalCertificates) {
    this.path = path;
    this.certificates = certificates;
  }

  static async create(): Promise<TestFolder> {
    const path = await mkdtemp(join(tmpdir(), 'portcullis-server-'));
    return new TestFolder(path, await ensureLocalCertificates(join(path, 'pki')));
  }

  get policiesFile(): string {
    return join(this.path, 'policies.yml');
  }

  get dataDir(): string {
    return join(this.path, 'data');
  }

  get ca(): Buffer {
    return readFileSync(this.certificates.caFile);
  }

  /** Replaces the policies file atomically, like editors and the kubelet. */
  async write(policies: Policies): Promise<void> {
    const temporary = `${this.policiesFile}.new`;
    await writeFile(temporary, typeof policies === 'string' ? policies : JSON.stringify(policies, null, 2));
    await rename(temporary, this.policiesFile);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await rm(this.path, { recursive: true, force: true });
  }
}

/** A running policy server, from {@link startServer}. */
export class TestServer implements AsyncDisposable {
  readonly folder: TestFolder;
  readonly server: PolicyServer;
  /** Resolves with the server's start. */
  readonly started: Promise<Addresses>;
  /** All log lines. */
  readonly log: Readonly<Record<string, unknown>>[];
  readonly #ownsFolder: boolean;
  readonly #agent: Agent;
  #addresses: Addresses | undefined;

  constructor(folder: TestFolder, options: TestServerOptions, ownsFolder: boolean) {
    const { policies: _policies, folder: _folder, isLoading: _isLoading, ...rest } = options;
    const { certFile, keyFile } = folder.certificates;
    this.folder = folder;
    this.log = [];
    const destination = { write: (line: string) => void this.log.push(JSON.parse(line) as Record<string, unknown>) };
    this.server = new PolicyServer({
      port: 0,
      operationsPort: 0,
      workers: 2,
      readyWaitMs: UNTIL_MS,
      tls: { certFile, keyFile },
      ...rest,
      // A replica gets its policies from a cluster.
      ...(rest.replica === undefined ? { policiesFile: folder.policiesFile } : {}),
      dataDir: folder.dataDir,
      log: createLog({ level: 'debug', destination: destination as unknown as NodeJS.WritableStream }),
    });
    this.#ownsFolder = ownsFolder;
    this.#agent = new Agent({ keepAlive: true, ca: folder.ca });
    this.started = this.server.start().then((addresses) => (this.#addresses = addresses));
    // Awaited by tests that need it.
    this.started.catch(() => undefined);
  }

  get addresses(): Addresses {
    assert.ok(this.#addresses, 'the server has not started');
    return this.#addresses;
  }

  /** The admission port. */
  get port(): number {
    return Number(new URL(this.addresses.admission).port);
  }

  /** Sends a review and returns the response; fails when the answer is not one. */
  async review(
    id: string,
    review: unknown,
    options: PostOptions & { readonly route?: string } = {},
  ): Promise<ReviewResponse> {
    const answer = await this.post(`/${options.route ?? 'validate'}/${id}`, JSON.stringify(review), options);
    assert.equal(answer.status, 200, answer.text);
    return (answer.json as { response: ReviewResponse }).response;
  }

  /** Sends bytes to a path of the admission port. */
  async post(path: string, body: string | Uint8Array, options: PostOptions = {}): Promise<HttpAnswer> {
    return await exchange(httpsRequest, new URL(path, this.addresses.admission), body, {
      method: options.method ?? 'POST',
      agent: options.agent ?? this.#agent,
      headers: {
        'content-type': 'application/json',
        'content-length': String(Buffer.byteLength(body)),
        ...options.headers,
      },
      ...options.tls,
    });
  }

  /** Gets a path of the operations port. */
  async get(path: string, method = 'GET'): Promise<HttpAnswer> {
    return await exchange(httpRequest, new URL(path, this.addresses.operations), '', { method, agent: false });
  }

  /** The status of a policy from the operations port. */
  async status(id: string): Promise<ServedPolicyStatus> {
    const answer = await this.get(`/policies/${encodeURIComponent(id)}`);
    assert.equal(answer.status, 200, answer.text);
    return answer.json as ServedPolicyStatus;
  }

  /** The status of the policies file from the operations port. */
  async source(): Promise<{ path: string; loadedAt: string | null; error: string | null }> {
    return ((await this.get('/policies')).json as { source: Awaited<ReturnType<TestServer['source']>> }).source;
  }

  /** The value of one sample of /metrics; 0 when it is missing. Labels in any order. */
  async metric(name: string, labels: Readonly<Record<string, string>> = {}): Promise<number> {
    const { text } = await this.get('/metrics');
    const lines = text.split('\n').filter((line) => line.startsWith(`${name}{`) || line.startsWith(`${name} `));
    const wanted = Object.entries(labels).map(([key, value]) => `${key}="${value}"`);
    return lines
      .filter((line) => wanted.every((pair) => line.includes(pair)))
      .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
  }

  /** Replaces the policies file. */
  async write(policies: Policies): Promise<void> {
    await this.folder.write(policies);
  }

  /** Waits for a status of a policy, and returns it. */
  async reaches(id: string, wanted: Partial<ServedPolicyStatus>): Promise<ServedPolicyStatus> {
    let status: ServedPolicyStatus | undefined;
    await until(
      async () => {
        const answer = await this.get(`/policies/${encodeURIComponent(id)}`);
        status = answer.status === 200 ? (answer.json as ServedPolicyStatus) : undefined;
        return Object.entries(wanted).every(([key, value]) => status?.[key as keyof ServedPolicyStatus] === value);
      },
      () => `${id} to be ${JSON.stringify(wanted)}, last ${JSON.stringify(status)}`,
    );
    assert.ok(status);
    return status;
  }

  async stop(): Promise<void> {
    this.#agent.destroy();
    await this.server.stop();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop();
    if (this.#ownsFolder) {
      await this.folder[Symbol.asyncDispose]();
    }
  }
}

/** Starts a policy server; `await using` stops it. */
export async function startServer(options: TestServerOptions): Promise<TestServer> {
  const folder = options.folder ?? (await TestFolder.create());
  await folder.write(options.policies);
  const server = new TestServer(folder, options, options.folder === undefined);
  if (options.isLoading !== true) {
    try {
      await server.started;
    } catch (error) {
      await server[Symbol.asyncDispose]();
      throw error;
    }
  }
  return server;
}

/** Waits for a condition. */
export async function until(predicate: () => boolean | Promise<boolean>, what: () => string = String): Promise<void> {
  const deadline = performance.now() + UNTIL_MS;
  while (!(await predicate())) {
    assert.ok(performance.now() < deadline, `waited ${UNTIL_MS} ms for ${what()}`);
    await sleep(10);
  }
}

function exchange(
  send: typeof httpsRequest | typeof httpRequest,
  url: URL,
  body: string | Uint8Array,
  options: RequestOptions,
): Promise<HttpAnswer> {
  const { promise, resolve, reject } = Promise.withResolvers<HttpAnswer>();
  const request = send(url, options, (response) => {
    const chunks: Buffer[] = [];
    response.on('data', (chunk: Buffer) => chunks.push(chunk));
    response.on('error', reject);
    response.on('end', () => {
      const text = Buffer.concat(chunks).toString();
      resolve({ status: response.statusCode ?? 0, headers: response.headers, text, json: parsed(text) });
    });
  });
  request.on('error', reject);
  request.end(body);
  return promise;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Reference of a guest of test/fixtures/guests. */
export function guest(name: string): string {
  return `file://${join(root, 'test/fixtures/guests', `${name}.wasm`)}`;
}

/** Reference of an example module. */
export function example(name: string): string {
  return `file://${join(root, 'examples', name, 'policy.wasm')}`;
}

/** The module's bytes, from the fixtures or the examples. */
export function moduleBytes(reference: string): Promise<Buffer> {
  return readFile(fileURLToPath(reference));
}

/** A module that behaves alike and has other bytes: one more custom section, with a name of less than 126 bytes. */
export function moduleVariant(module: Uint8Array, name: string): Buffer {
  const text = Buffer.from(name);
  return Buffer.concat([module, Buffer.from([0, text.length + 2, 1, 0x76]), text]);
}

/** An AdmissionReview in test data, with the fields that tests read. */
export interface Review {
  readonly request: {
    readonly uid: string;
    readonly namespace?: string;
    readonly operation: string;
    readonly object: unknown;
    readonly [key: string]: unknown;
  };
  readonly [key: string]: unknown;
}

/** A review from the examples: `exampleReview('required-labels', 'rejected')`. */
export function exampleReview(name: string, request: string): Review {
  return JSON.parse(readFileSync(join(root, 'examples', name, 'requests', `${request}.json`), 'utf8')) as Review;
}

let reviews = 0;

/** A review with a uid of its own, of a pod or of another object. */
export function review(request: Readonly<Record<string, unknown>> = {}): Review {
  reviews += 1;
  const base = exampleReview('required-labels', 'rejected');
  return {
    ...base,
    request: { ...base.request, uid: `00000000-0000-4000-8000-${String(reviews).padStart(12, '0')}`, ...request },
  };
}

/** A review whose object contains the answer of the guest `scripted-answer`. */
export function scripted(script: Readonly<Record<string, unknown>>): Review {
  return review({ object: script });
}

/** A policy that requires a label, and rejects with a message that names it, which identifies the version. */
export function requires(label: string, rest: Readonly<Record<string, unknown>> = {}): Record<string, unknown> {
  return { module: example('required-labels'), settings: { labels: [label] }, ...rest };
}

/** The label in the rejection of a {@link requires} policy. */
export function requiredLabel(response: ReviewResponse): string | undefined {
  return /has no label "([^"]*)"/.exec(response.status?.message ?? '')?.[1];
}

/** Behaviour of a module source. */
export type SourceBehaviour =
  | { readonly kind: 'serve'; readonly bytes: Uint8Array }
  | { readonly kind: 'status'; readonly status: number }
  /** Closes every connection at once. */
  | { readonly kind: 'down' }
  /** Accepts requests and never answers. */
  | { readonly kind: 'hang' }
  | { readonly kind: 'redirect-loop' }
  /** Announces a larger size than it sends. */
  | { readonly kind: 'truncate'; readonly bytes: Uint8Array };

/** A web server with one module that can misbehave. */
export class ModuleSource implements AsyncDisposable {
  behaviour: SourceBehaviour;
  requests = 0;
  readonly #server: Server;

  private constructor(behaviour: SourceBehaviour) {
    this.behaviour = behaviour;
    this.#server = createServer((request, response) => {
      this.requests += 1;
      const now = this.behaviour;
      switch (now.kind) {
        case 'serve':
          response.end(now.bytes);
          break;
        case 'status':
          response.writeHead(now.status).end('no');
          break;
        case 'down':
          request.socket.destroy();
          break;
        case 'hang':
          break;
        case 'redirect-loop':
          response.writeHead(302, { location: `/${this.requests}.wasm` }).end();
          break;
        case 'truncate':
          response.writeHead(200, { 'content-length': now.bytes.length });
          response.write(now.bytes.subarray(0, now.bytes.length / 2), () => request.socket.destroy());
          break;
        default:
          now satisfies never;
      }
    });
  }

  static async start(behaviour: SourceBehaviour): Promise<ModuleSource> {
    const source = new ModuleSource(behaviour);
    await new Promise<void>((resolve) => source.#server.listen(0, '127.0.0.1', resolve));
    return source;
  }

  /** `127.0.0.1:PORT` */
  get host(): string {
    return `127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get url(): string {
    return `http://${this.host}/policy.wasm`;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise<void>((resolve) => this.#server.close(() => resolve()));
  }
}
