// The routes of a port: which path is answered by what.
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { sendError } from './http-body.ts';

/** A request, and its response. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** What follows the path of the route, decoded; empty for a route without a final `/`. */
  readonly rest: string;
}

/** What answers the paths of a port. A path that ends in `/` covers all paths that begin with it. */
export type Routes = Readonly<Record<string, (exchange: Exchange) => void>>;

/** The handler of a port whose routes are read: GET and HEAD. Bodies are not read. */
export function routed(routes: Routes): RequestListener {
  const table = new Map(Object.entries(routes));
  const prefixes = [...table.keys()].filter((path) => path.endsWith('/'));
  return (request, response) => {
    request.resume();
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD');
      sendError(response, 405, `expected GET, got ${request.method ?? 'no method'}`);
      return;
    }
    const [path = '/'] = (request.url ?? '/').split('?', 1);
    const route = table.has(path) ? path : prefixes.find((prefix) => path.startsWith(prefix));
    const answer = route === undefined ? undefined : table.get(route);
    if (route === undefined || answer === undefined) {
      sendError(response, 404, `no such path: expected one of ${[...table.keys()].join(', ')}`);
    } else {
      answer({ request, response, rest: decoded(path.slice(route.length)) });
    }
  };
}

/** `/livez`, and `/readyz`. @param notReady why the process is not ready; undefined when it is */
export function probeRoutes(notReady: () => string | undefined): Routes {
  return {
    '/livez': ({ response }) => sendText(response, 200, 'ok\n'),
    '/readyz': ({ response }) => {
      const reason = notReady();
      sendText(response, reason === undefined ? 200 : 503, reason === undefined ? 'ok\n' : `not ready: ${reason}\n`);
    },
  };
}

/** Answers with a text. */
export function sendText(response: ServerResponse, status: number, text: string): void {
  const length = Buffer.byteLength(text);
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': length });
  response.end(text);
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
