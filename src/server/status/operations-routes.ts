// The routes of a policy server's operations port: /livez, /readyz, /readiness, /metrics, /policies.
import type { ServerResponse } from 'node:http';
import { probeRoutes, type Routes, sendError, sendJson, sendText } from '../../https/index.ts';
import type { MetricsEndpoint } from '../../metrics/index.ts';
import type { ServedPolicyStatus } from './served-policy-status.ts';

/** Data of the operations port. */
export interface OperationsData {
  /** Why the server is not ready; undefined when it is. */
  notReady(): string | undefined;
  readonly metrics: Pick<MetricsEndpoint, 'answer'>;
  policies(): PoliciesAnswer;
}

/** The answer of `GET /policies`. */
export interface PoliciesAnswer {
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

export function operationsRoutes(data: OperationsData): Routes {
  return {
    ...probeRoutes(() => data.notReady()),
    // Kubewarden's name. As there, it does not include the state of policies.
    '/readiness': ({ response }) => sendText(response, 200, 'ok\n'),
    '/metrics': ({ request, response }) => void data.metrics.answer(request, response),
    '/policies': ({ response }) => sendJson(response, 200, `${JSON.stringify(data.policies(), null, 2)}\n`),
    '/policies/': ({ response, rest }) => sendPolicy(response, data, rest),
  };
}

function sendPolicy(response: ServerResponse, data: OperationsData, id: string): void {
  const policy = data.policies().policies.find((status) => status.id === id);
  if (policy === undefined) {
    sendError(response, 404, `unknown policy: ${id}`);
  } else {
    sendJson(response, 200, `${JSON.stringify(policy, null, 2)}\n`);
  }
}
