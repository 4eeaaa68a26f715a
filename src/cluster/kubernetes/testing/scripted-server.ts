import { createServer } from 'node:http';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import type { ServerOptions } from 'node:https';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';

/** A request that a {@link ScriptedServer} received. */
interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
  /** Common name of the client's certificate. */
  readonly clientName: string | undefined;
}

export type Answerer = (request: SeenRequest, response: ServerResponse) => void;

/** A server with scripted responses, and its requests. */
export interface ScriptedServer {
  readonly url: string;
  readonly seen: readonly SeenRequest[];
}

/** Starts a server on a free port until the test ends; with TLS when `tls` is given. */
export async function scriptedServer(
  context: TestContext,
  answer: Answerer,
  tls?: ServerOptions,
): Promise<ScriptedServer> {
  const seen: SeenRequest[] = [];
  const listener = (request: IncomingMessage, response: ServerResponse): void => {
    void buffer(request)
      .then((body) => {
        const { method = '', url = '', headers, socket } = request;
        const certificate = 'getPeerCertificate' in socket ? (socket as PeerSocket).getPeerCertificate() : {};
        const one = { method, url, headers, body: body.toString(), clientName: certificate.subject?.CN };
        seen.push(one);
        answer(one, response);
      })
      // The request was interrupted.
      .catch(() => undefined);
  };
  const server = tls === undefined ? createServer(listener) : createTlsServer(tls, listener);
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  context.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`, seen };
}

interface PeerSocket {
  getPeerCertificate(): { readonly subject?: { readonly CN?: string } };
}

/** Responds with JSON. */
export function answerJson(
  response: ServerResponse,
  body: unknown,
  status = 200,
  headers: Readonly<Record<string, string>> = {},
): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  response.end(JSON.stringify(body));
}
