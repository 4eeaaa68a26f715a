// The operations port, plain HTTP: /livez, /readyz, /readiness, /metrics, /policies.
import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendError, sendJson } from '../../https/index.ts';
import type { MetricsEndpoint } from '../../metrics/index.ts';
import type { PolicyStatus } from './policy-status.ts';

/** Data of the operations port. */
export interface OperationsView {
  /** Why the server is not ready; undefined when it is. */
  notReady(): string | undefined;
  readonly metrics: Pick<MetricsEndpoint, 'answer'>;
  policies(): PoliciesView;
}

/** The answer of `GET /policies`. */
export interface PoliciesView {
  /** The policies file, and its error, if any. With an error, its previous content stays in effect. */
  readonly source: { readonly path: string; readonly loadedAt: string | null; readonly error: string | null };
  readonly policies: readonly PolicyStatus[];
  /** Memory that WebAssembly policies may hold, and what they are accounted for, the largest owners first. */
  readonly memory?: {
    readonly budgetBytes: number;
    readonly bytes: number;
    readonly owners: readonly { readonly owner: string; readonly bytes: number }[];
  };
}

/** The request handler of the operations port. */
export function operationsHandler(view: OperationsView): (request: IncomingMessage, response: ServerResponse) => void {
  return (request, response) => {
    const path = (request.url ?? '/').split('?', 1)[0] ?? '/';
    request.resume();
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      response.setHeader('allow', 'GET, HEAD');
      sendError(response, 405, `expected GET, got ${request.method ?? 'no method'}`);
      return;
    }
    switch (path) {
      case '/livez':
      // Kubewarden's name. As there, it does not include the state of policies.
      case '/readiness':
        sendText(response, 200, 'ok\n');
        break;
      case '/readyz': {
        const reason = view.notReady();
        sendText(response, reason === undefined ? 200 : 503, reason === undefined ? 'ok\n' : `not ready: ${reason}\n`);
        break;
      }
      case '/metrics':
        void view.metrics.answer(request, response);
        break;
      case '/policies':
        sendJson(response, 200, `${JSON.stringify(view.policies(), null, 2)}\n`);
        break;
      default:
        if (path.startsWith('/policies/')) {
          sendPolicy(response, view, decodeURIComponentSafe(path.slice('/policies/'.length)));
        } else {
          sendError(response, 404, 'no such path: expected /livez, /readyz, /metrics, /policies or /policies/{id}');
        }
    }
  };
}

function sendPolicy(response: ServerResponse, view: OperationsView, id: string): void {
  const policy = view.policies().policies.find((status) => status.id === id);
  if (policy === undefined) {
    sendError(response, 404, `unknown policy: ${id}`);
  } else {
    sendJson(response, 200, `${JSON.stringify(policy, null, 2)}\n`);
  }
}

function decodeURIComponentSafe(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function sendText(response: ServerResponse, status: number, text: string): void {
  const length = Buffer.byteLength(text);
  response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', 'content-length': length });
  response.end(text);
}
