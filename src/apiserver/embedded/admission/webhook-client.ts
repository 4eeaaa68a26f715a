import { Agent, request as httpsRequest } from 'node:https';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import { createSecureContext } from 'node:tls';
import { quote } from '../../../go/index.ts';
import { isJsonObject } from '../../../resources/index.ts';
import { errorText, parseJson } from '../../../values/index.ts';
import { transportMessage } from './transport-message.ts';
import type { Endpoint } from './webhook-target.ts';

/**
 * Largest response: a patch that replaces an object of 3 MiB, the limit of API servers, has 4 MiB in base64. The rest is for
 * warnings and a status. Bytes.
 */
export const MAX_RESPONSE_BYTES = 5 * 1024 * 1024;

/** Maximum number of connections to a webhook; further calls wait. A policy server evaluates a few dozen reviews at a time. */
const MAX_WEBHOOK_CONNECTIONS = 100;

/** Idle connections are closed after this time. Servers keep them for 60 s or more. Milliseconds. */
const IDLE_MS = 30_000;

const OK = 200;
const MULTIPLE_CHOICES = 300;
/** The text of client-go in place of an error body that it does not read. */
const UNKNOWN = 'unknown';

/** A request to a webhook. */
export interface WebhookCall {
  readonly endpoint: Endpoint;
  /** PEM. Empty: the CAs that Node.js trusts. */
  readonly caBundle: string;
  /** JSON. */
  readonly body: string;
  readonly timeoutSeconds: number;
  readonly signal: AbortSignal | undefined;
}

/** The client certificate of an API server, for webhooks that ask for one. PEM. */
export interface WebhookIdentity {
  readonly cert: string;
  readonly key: string;
}

/** Calls webhooks over HTTPS. Connections are kept for later calls. */
export class WebhookClient {
  readonly #identity: WebhookIdentity | undefined;
  /** By server name and CA bundle. */
  readonly #agents = new Map<string, Agent>();

  constructor(identity?: WebhookIdentity) {
    this.#identity = identity;
  }

  /** Closes all connections. Calls in flight fail. */
  close(): void {
    for (const agent of this.#agents.values()) {
      agent.destroy();
    }
    this.#agents.clear();
  }

  /** Closes idle connections. Calls in flight continue. */
  closeIdle(): void {
    for (const agent of this.#agents.values()) {
      for (const socket of Object.values(agent.freeSockets).flat()) {
        socket?.destroy();
      }
    }
    this.#agents.clear();
  }

  /**
   * Sends a review. Returns the response body, whether it is JSON or not.
   * @throws Error with an API server's message when the call fails
   */
  async post(call: WebhookCall): Promise<string> {
    call.signal?.throwIfAborted();
    const path = `${call.endpoint.path}?timeout=${call.timeoutSeconds}s`;
    const shown = `Post ${quote(call.endpoint.origin + path)}`;
    // AbortSignal.timeout would keep each call until its timeout, long after its answer.
    const limit = new AbortController();
    const stop = (): void => limit.abort();
    const timer = setTimeout(stop, call.timeoutSeconds * 1000);
    call.signal?.addEventListener('abort', stop, { once: true });
    try {
      return await this.#send(call, path, limit.signal);
    } catch (error) {
      call.signal?.throwIfAborted();
      if (error instanceof ResponseError) {
        throw error;
      }
      const why = limit.signal.aborted ? 'context deadline exceeded' : this.#describe(error, call.endpoint);
      throw new Error(`${shown}: ${why}`, { cause: error });
    } finally {
      clearTimeout(timer);
      call.signal?.removeEventListener('abort', stop);
    }
  }

  #describe(error: unknown, { address, serverName }: Endpoint): string {
    try {
      return transportMessage(error, { ...address(), serverName });
    } catch {
      // The Service does not exist, so there is no address.
      return errorText(error);
    }
  }

  async #send(call: WebhookCall, path: string, signal: AbortSignal): Promise<string> {
    for (let isFirst = true; ; isFirst = false) {
      const outgoing = this.#open(call, path, signal);
      try {
        return await responseText(outgoing, call.body);
      } catch (error) {
        // The server had closed the idle connection, so it has not processed the request.
        if (isFirst && outgoing.reusedSocket && isReset(error) && !signal.aborted) {
          continue;
        }
        throw error;
      }
    }
  }

  #open({ endpoint, caBundle, body }: WebhookCall, path: string, signal: AbortSignal): ClientRequest {
    const { host, port } = endpoint.address();
    return httpsRequest({
      method: 'POST',
      agent: this.#agent(caBundle, endpoint.serverName),
      host,
      port,
      path,
      signal,
      headers: {
        host: endpoint.origin.slice('https://'.length),
        accept: 'application/json, */*',
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(body),
      },
    });
  }

  #agent(caBundle: string, serverName: string): Agent {
    const key = `${serverName}\n${caBundle}`;
    const known = this.#agents.get(key);
    if (known !== undefined) {
      return known;
    }
    const agent = new Agent({
      keepAlive: true,
      scheduling: 'lifo',
      maxSockets: MAX_WEBHOOK_CONNECTIONS,
      timeout: IDLE_MS,
      // SNI must not be an IP address (RFC 6066, section 3).
      servername: isIP(serverName) === 0 ? serverName : '',
      // Made once: a context for each connection would parse the bundle again.
      secureContext: createSecureContext({
        // As in Go, a certificate of the bundle is trusted even if it is not a root CA.
        allowPartialTrustChain: true,
        ...(caBundle === '' ? {} : { ca: caBundle }),
        ...this.#identity,
      }),
    });
    this.#agents.set(key, agent);
    return agent;
  }
}

/** An HTTP error, or a body that is empty or too large. */
class ResponseError extends Error {
  override readonly name = 'ResponseError';
}

async function responseText(outgoing: ClientRequest, body: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  outgoing.on('response', resolve);
  outgoing.on('error', reject);
  outgoing.end(body);
  const incoming = await promise;
  const text = await readAll(incoming);
  const status = incoming.statusCode ?? 0;
  const contentType = incoming.headers['content-type'] ?? '';
  // Redirects are not followed, so that reviews are sent only to the configured URL.
  if (status < OK || status >= MULTIPLE_CHOICES) {
    throw new ResponseError(statusMessage(status, serverMessage(text, contentType)));
  }
  if (text === '') {
    throw new ResponseError(`0-length response with status code: ${status} and content type: ${contentType}`);
  }
  return text;
}

async function readAll(incoming: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of incoming as AsyncIterable<Buffer>) {
    size += chunk.length;
    if (size > MAX_RESPONSE_BYTES) {
      throw new ResponseError(`the answer is too large: expected at most ${MAX_RESPONSE_BYTES} bytes`);
    }
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString();
}

function isReset(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

/** The text of an error response: plain text, or the message of a Status. */
function serverMessage(body: string, contentType: string): string {
  if (contentType === '' || contentType.startsWith('text/')) {
    return body.trim();
  }
  try {
    const value: unknown = parseJson(body);
    const { kind, message } = isJsonObject(value) ? value : {};
    return kind === 'Status' && typeof message === 'string' ? message : UNKNOWN;
  } catch {
    return UNKNOWN;
  }
}

/** The message of client-go for an error response. */
function statusMessage(status: number, message: string): string {
  switch (status) {
    case 400:
      return 'the server rejected our request for an unknown reason';
    case 401:
      return 'the server has asked for the client to provide credentials';
    case 403:
      return message;
    case 404:
      return 'the server could not find the requested resource';
    case 405:
      return 'the server does not allow this method on the requested resource';
    case 409:
      return 'the server reported a conflict';
    case 429:
      return 'the server has received too many requests and has asked us to try again later';
    case 503:
      return message === UNKNOWN ? 'the server is currently unable to handle the request' : message;
    case 504:
      return 'the server was unable to return a response in the time allotted, but may still be processing the request';
    default:
      return status >= 500
        ? `an error on the server (${quote(message)}) has prevented the request from succeeding`
        : `the server responded with the status code ${status} but did not return more information`;
  }
}
