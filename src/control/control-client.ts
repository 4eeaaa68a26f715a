// The controller's side of connections to control ports: HTTPS with certificates on both sides.
import { readFileSync } from 'node:fs';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { Agent, request } from 'node:https';
import type { RequestOptions } from 'node:https';
import { isIP } from 'node:net';
import { CONTROL_NAME } from './replica-protocol.ts';
import type { ControlTls } from './control-tls.ts';

/** Where a control port is. */
export interface ControlAddress {
  readonly host: string;
  readonly port: number;
}

/** The address that a PolicyServerReplica tells: `host:port`, `[::1]:port`; undefined when it is none. */
export function parseControlAddress(text: string): ControlAddress | undefined {
  const colon = text.lastIndexOf(':');
  const bracketed = text.slice(0, Math.max(colon, 0));
  const isBracketed = bracketed.startsWith('[') && bracketed.endsWith(']');
  const host = isBracketed ? bracketed.slice(1, -1) : bracketed;
  const isHost = isBracketed ? isIP(host) === 6 : isIP(host) === 4 || /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/i.test(host);
  const port = /^[0-9]{1,5}$/.test(text.slice(colon + 1)) ? Number(text.slice(colon + 1)) : 0;
  return isHost && port > 0 && port <= 0xffff ? { host, port } : undefined;
}

/** A connection that is not used for so long is closed. Milliseconds. */
const IDLE_MS = 30_000;

/**
 * Requests to one replica at once; others wait for one of them to end. What replicas take, so that sources which do not
 * answer keep few others waiting.
 */
const MAX_CONNECTIONS = 128;

/** An answer that is whole. */
export interface ControlAnswer {
  readonly status: number;
  readonly body: Buffer;
}

/** Calls control ports. Certificates are read for each call, so that new ones count for every connection made after them. */
export class ControlClient {
  readonly #tls: ControlTls;
  // Connections of different certificates are different ones to an agent.
  readonly #agent = new Agent({
    keepAlive: true,
    maxSockets: MAX_CONNECTIONS,
    timeout: IDLE_MS,
    scheduling: 'lifo',
  });

  constructor(tls: ControlTls) {
    this.#tls = tls;
  }

  /** Opens a connection of its own. Resolves with the answer's beginning. Rejects when there is none. */
  async open(address: ControlAddress, path: string, signal: AbortSignal): Promise<IncomingMessage> {
    const call = request({ ...this.#options(address, path), agent: false, signal });
    call.end();
    return answered(call, signal);
  }

  /**
   * Sends JSON and reads the answer.
   * @throws Error when there is none, or one of more than `maxBytes`
   */
  async post(
    address: ControlAddress,
    path: string,
    body: unknown,
    options: { readonly signal: AbortSignal; readonly maxBytes: number },
  ): Promise<ControlAnswer> {
    const bytes = Buffer.from(JSON.stringify(body));
    const headers = { 'content-type': 'application/json', 'content-length': bytes.length };
    const common = { ...this.#options(address, path), method: 'POST', headers, signal: options.signal };
    const kept = request({ ...common, agent: this.#agent });
    kept.end(bytes);
    let answer: IncomingMessage;
    try {
      answer = await answered(kept, options.signal);
    } catch (error) {
      if (!kept.reusedSocket || options.signal.aborted) {
        throw error;
      }
      // The other side has closed a connection that it had kept: that says nothing of itself.
      const anew = request({ ...common, agent: false });
      anew.end(bytes);
      answer = await answered(anew, options.signal);
    }
    return { status: answer.statusCode ?? 0, body: await wholeBody(answer, options.maxBytes) };
  }

  /** Closes the connections that are kept. */
  close(): void {
    this.#agent.destroy();
  }

  #options({ host, port }: ControlAddress, path: string): RequestOptions {
    const { certFile, keyFile, caFile } = this.#tls;
    // In one turn of the event loop: this process replaces such files in one, and a key is of use with its certificate only.
    const [cert, key, ca] = [certFile, keyFile, caFile].map((file) => readFileSync(file));
    return {
      host,
      port,
      path,
      cert,
      key,
      ca,
      minVersion: 'TLSv1.3',
      // Certificates of control ports are for what they are, wherever they are: this is what they are checked against. (With a
      // check of its own an agent keeps no connections.)
      servername: CONTROL_NAME,
    };
  }
}

function answered(call: ClientRequest, signal: AbortSignal): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    // A request that waits for a connection of its agent tells of its abort only when it gets one.
    const stop = (): void => reject(signal.reason);
    signal.addEventListener('abort', stop, { once: true });
    call.once('response', resolve);
    // Not once: a connection may fail again after its request has.
    call.on('error', reject);
    call.once('close', () => signal.removeEventListener('abort', stop));
  });
}

async function wholeBody(answer: IncomingMessage, maxBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of answer as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > maxBytes) {
      throw new RangeError(`expected an answer of at most ${maxBytes} bytes, got a longer one`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}
