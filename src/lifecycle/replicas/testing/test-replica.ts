// A replica that sends the messages of a test, over the real protocol.
import { readFileSync } from 'node:fs';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Server } from 'node:https';
import type { AddressInfo, Socket } from 'node:net';
import { CONTROL_PROTOCOL } from '../../../control/index.ts';
import type { ControlTls, PrevalidationRequest, ReplicaMessage, RevisionReport } from '../../../control/index.ts';

/** Heartbeat interval of a test replica. Milliseconds. */
const TEST_ALIVE_MS = 30;

export interface TestReplicaOptions {
  readonly name: string;
  readonly tls: ControlTls;
  readonly reports?: readonly RevisionReport[];
  /** First messages of a stream. Default: hello and all reports. */
  readonly opening?: (replica: TestReplica) => readonly (ReplicaMessage | string)[];
}

/** The response to POST /prevalidate; undefined breaks the connection. */
type Prevalidate = (request: PrevalidationRequest) => { readonly status?: number; readonly body: unknown } | undefined;

export class TestReplica implements AsyncDisposable {
  readonly name: string;
  readonly instance: string = crypto.randomUUID();
  reports: readonly RevisionReport[];
  /** Whether it sends nothing more. */
  isSilent = false;
  /** Number of streams opened so far. */
  opened = 0;
  /** Number of connections so far. */
  connections = 0;
  readonly prevalidated: PrevalidationRequest[] = [];
  prevalidate: Prevalidate = ({ metadata }) => ({
    body: { ok: true, modules: [{ name: metadata.name, module: 'builtin:cel', digest: 'builtin:cel@1' }] },
  });
  readonly #server: Server;
  readonly #sockets = new Set<Socket>();
  readonly #streams = new Set<ServerResponse>();
  readonly #opening: (replica: TestReplica) => readonly (ReplicaMessage | string)[];
  readonly #timer: NodeJS.Timeout;

  private constructor({ name, tls, reports = [], opening = greeting }: TestReplicaOptions) {
    this.name = name;
    this.reports = reports;
    this.#opening = opening;
    this.#server = createServer({ ...secrets(tls), requestCert: true, rejectUnauthorized: true }, (request, response) =>
      this.#answer(request, response),
    );
    this.#server.on('connection', (socket: Socket) => {
      this.connections += 1;
      this.#sockets.add(socket);
      socket.on('error', () => undefined).on('close', () => this.#sockets.delete(socket));
    });
    this.#timer = setInterval(() => this.send({ type: 'alive' }), TEST_ALIVE_MS);
  }

  static async start(options: TestReplicaOptions, port = 0): Promise<TestReplica> {
    const replica = new TestReplica(options);
    await new Promise<void>((resolve) => replica.#server.listen(port, '127.0.0.1', resolve));
    return replica;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get address(): string {
    return `127.0.0.1:${this.port}`;
  }

  /** Sends messages on all streams. */
  send(...messages: readonly (ReplicaMessage | string)[]): void {
    for (const stream of this.#streams) {
      this.#write(stream, messages);
    }
  }

  /** Sends changed reports, and stores them. */
  report(revisions: readonly RevisionReport[], gone: readonly string[] = []): void {
    const kept = this.reports.filter(({ name }) => !gone.includes(name) && !revisions.some((one) => one.name === name));
    this.reports = [...kept, ...revisions];
    this.send({ type: 'report', revisions, gone, isComplete: false });
  }

  /** Breaks all connections. */
  disconnect(): void {
    for (const socket of this.#sockets) {
      socket.destroy();
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    clearInterval(this.#timer);
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.disconnect();
    await closed;
  }

  #write(stream: ServerResponse, messages: readonly (ReplicaMessage | string)[]): void {
    if (!this.isSilent) {
      stream.write(messages.map((one) => (typeof one === 'string' ? one : `${JSON.stringify(one)}\n`)).join(''));
    }
  }

  #answer(request: IncomingMessage, response: ServerResponse): void {
    if (request.method === 'GET' && request.url === '/stream') {
      this.opened += 1;
      this.#streams.add(response);
      response.on('close', () => this.#streams.delete(response));
      response.writeHead(200, { 'content-type': 'application/x-ndjson' });
      response.flushHeaders();
      this.#write(response, this.#opening(this));
      return;
    }
    let text = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
    request.on('end', () => {
      const body = JSON.parse(text) as PrevalidationRequest;
      this.prevalidated.push(body);
      const answer = this.prevalidate(body);
      if (answer === undefined) {
        request.socket.destroy();
        return;
      }
      response.writeHead(answer.status ?? 200, { 'content-type': 'application/json' });
      response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body));
    });
  }
}

export function hello({ name, instance }: Pick<TestReplica, 'name' | 'instance'>): ReplicaMessage {
  return { type: 'hello', protocol: CONTROL_PROTOCOL, replica: name, instance, version: '0.0.0' };
}

function greeting(replica: TestReplica): readonly ReplicaMessage[] {
  return [hello(replica), { type: 'report', revisions: replica.reports, gone: [], isComplete: true }];
}

/** A report of a revision of the policy. */
export function reportOf(policy: string, revision: number, state: RevisionReport['state'] = 'Serving'): RevisionReport {
  return { name: `${policy}-${revision}`, uid: `uid-${policy}-${revision}`, policy, revision, state };
}

function secrets({ certFile, keyFile, caFile }: ControlTls): { cert: Buffer; key: Buffer; ca: Buffer } {
  return { cert: readFileSync(certFile), key: readFileSync(keyFile), ca: readFileSync(caFile) };
}
