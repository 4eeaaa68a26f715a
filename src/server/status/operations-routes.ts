// The routes of a policy server's operations port: /livez, /readyz, /readiness, /metrics, /policies.
import type { ServerResponse } from 'node:http';
import { probeRoutes, type Routes, sendError, sendJson, sendText } from '../../https/index.ts';
import type { MetricsEndpoint } from '../../metrics/index.ts';
import type { ServedPolicyStatus } from './served-policy-status.ts';

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
  readonly policies: readonly ServedPolicyStatus[];
  /** Memory that WebAssembly policies may hold, and what they are accounted for, the largest owners first. */
  readonly memory?: {
    readonly budgetBytes: number;
    readonly bytes: number;
    readonly owners: readonly { readonly owner: string; readonly bytes: number }[];
  };
}

export function operationsRoutes(view: OperationsView): Routes {
  return {
    ...probeRoutes(() => view.notReady()),
    // Kubewarden's name. As there, it does not include the state of policies.
    '/readiness': ({ response }) => sendText(response, 200, 'ok\n'),
    '/metrics': ({ request, response }) => void view.metrics.answer(request, response),
    '/policies': ({ response }) => sendJson(response, 200, `${JSON.stringify(view.policies(), null, 2)}\n`),
    '/policies/': ({ response, rest }) => sendPolicy(response, view, rest),
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
