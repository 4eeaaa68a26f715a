// Client of control ports: HTTPS with certificates on both sides.
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import type { RequestOptions } from 'node:https';
import { isIP } from 'node:net';
import { readWholeFileSync } from '../files/index.ts';
import { CONTROL_NAME } from './replica-protocol.ts';
import type { ControlTls } from './control-tls.ts';

/** Host and port of a control port. */
export interface ControlAddress {
  readonly host: string;
  readonly port: number;
}

/** Parses the address of a PolicyServerReplica: `host:port` or `[::1]:port`. Undefined if it is invalid. */
export function parseControlAddress(text: string): ControlAddress | undefined {
  const colon = text.lastIndexOf(':');
  const bracketed = text.slice(0, Math.max(colon, 0));
  const isBracketed = bracketed.startsWith('[') && bracketed.endsWith(']');
  const host = isBracketed ? bracketed.slice(1, -1) : bracketed;
  const isHost = isBracketed ? isIP(host) === 6 : isIP(host) === 4 || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(host);
  const port = /^[0-9]{1,5}$/.test(text.slice(colon + 1)) ? Number(text.slice(colon + 1)) : 0;
  return isHost && port > 0 && port <= 0xffff ? { host, port } : undefined;
}

/** An unused connection is closed after this time. Milliseconds. */
const IDLE_MS = 30_000;

/**
 * Parallel requests to one replica; further ones wait. The limit of replicas for pre-validations, so that slow sources
 * delay few requests.
 */
const MAX_CONNECTIONS = 128;

/** A complete response. */
export interface ControlResponse {
  readonly status: number;
  readonly body: Buffer;
}

/** Calls control ports. Reads the certificates for each call, so that new connections use renewed ones. */
export class ControlClient {
  readonly #tls: ControlTls;
  // The agent keeps connections with different certificates apart.
  readonly #agent = new Agent({
    keepAlive: true,
    maxSockets: MAX_CONNECTIONS,
    timeout: IDLE_MS,
    scheduling: 'lifo',
  });

  constructor(tls: ControlTls) {
    this.#tls = tls;
  }

  /** Opens a new connection. Resolves with the response once its headers have arrived. */
  async open(address: ControlAddress, path: string, signal: AbortSignal): Promise<IncomingMessage> {
    const call = request({ ...this.#options(address, path), agent: false, signal });
    call.end();
    return responseOf(call, signal);
  }

  /**
   * Opens a new connection, and reads the response.
   * @throws Error when the connection fails or the response exceeds `maxBytes`
   */
  async get(
    address: ControlAddress,
    path: string,
    { signal, maxBytes }: { readonly signal: AbortSignal; readonly maxBytes: number },
  ): Promise<ControlResponse> {
    const response = await this.open(address, path, signal);
    return { status: response.statusCode ?? 0, body: await wholeBody(response, maxBytes) };
  }

  /**
   * Sends JSON and reads the response.
   * @throws Error when the connection fails or the response exceeds `maxBytes`
   */
  async post(
    address: ControlAddress,
    path: string,
    body: unknown,
    options: { readonly signal: AbortSignal; readonly maxBytes: number },
  ): Promise<ControlResponse> {
    const bytes = Buffer.from(JSON.stringify(body));
    const headers = { 'content-type': 'application/json', 'content-length': bytes.length };
    const common = { ...this.#options(address, path), method: 'POST', headers, signal: options.signal };
    const pooled = request({ ...common, agent: this.#agent });
    pooled.end(bytes);
    let response: IncomingMessage;
    try {
      response = await responseOf(pooled, options.signal);
    } catch (error) {
      if (!pooled.reusedSocket || options.signal.aborted) {
        throw error;
      }
      // The server may have closed a pooled connection just before: retry on a new one.
      const retry = request({ ...common, agent: false });
      retry.end(bytes);
      response = await responseOf(retry, options.signal);
    }
    return { status: response.statusCode ?? 0, body: await wholeBody(response, options.maxBytes) };
  }

  /** Closes all pooled connections. */
  close(): void {
    this.#agent.destroy();
  }

  #options({ host, port }: ControlAddress, path: string): RequestOptions {
    const { certFile, keyFile, caFile } = this.#tls;
    // Read synchronously, one after the other: this process replaces certificate and key together, and they must match.
    const [cert, key, ca] = [certFile, keyFile, caFile].map((file) => readWholeFileSync(file));
    return {
      host,
      port,
      path,
      cert,
      key,
      ca,
      minVersion: 'TLSv1.3',
      // Certificates of control ports are checked against this name, not the address. A checkServerIdentity function
      // would prevent the agent from keeping connections.
      servername: CONTROL_NAME,
    };
  }
}

function responseOf(call: ClientRequest, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // A request that waits for a connection of the agent reports its abort only when it gets one.
    const stop = (): void => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    call.once('response', resolve);
    // Not once: the connection may emit another error after the request failed.
    call.on('error', reject);
    call.once('close', () => signal.removeEventListener('abort', stop));
  });
}

async function wholeBody(response: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of response as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      throw new RangeError(`expected a response of at most ${maxBytes} bytes, got a longer one`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
