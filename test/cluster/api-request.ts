// One request to the API server of a cluster.
import { type Agent, request as httpsRequest } from 'node:https';

/** A response of the API server. A status of 400 or more is no exception. */
export interface ApiResponse<T = KubernetesObject> {
  readonly status: number;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  /** The parsed JSON. For other content types (`/readyz`, `/metrics`) the text, with `T = string`. */
  readonly body: T;
}

/** A Kubernetes object, with the fields that tests read. */
export interface KubernetesObject {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name?: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
    readonly [key: string]: unknown;
  };
  readonly [key: string]: unknown;
}

/** The media types of a request and its response. */
export interface RequestForm {
  /** The media type of the body. Default: JSON; for PATCH a JSON merge patch. */
  readonly contentType?: string;
  /** Another representation of the response, such as a table. Default: JSON. */
  readonly accept?: string;
  /** The user that the request is made as, by impersonation. Default: the one with the token. */
  readonly impersonate?: string;
}

/** Sends a request. Resolves with the response, whatever its status. */
export function requestApi<T>(
  method: string,
  url: URL,
  body: unknown,
  options: RequestForm & { readonly agent: Agent; readonly token: string },
): Promise<ApiResponse<T>> {
  const payload = body === undefined ? undefined : Buffer.from(JSON.stringify(body));
  const contentType = options.contentType ?? (method === 'PATCH' ? 'application/merge-patch+json' : 'application/json');
  const { promise, resolve, reject } = Promise.withResolvers<ApiResponse<T>>();
  const outgoing = httpsRequest(
    url,
    {
      method,
      agent: options.agent,
      headers: {
        authorization: `Bearer ${options.token}`,
        accept: options.accept ?? 'application/json, */*;q=0.5',
        ...(options.impersonate === undefined ? {} : { 'impersonate-user': options.impersonate }),
        ...(payload === undefined ? {} : { 'content-type': contentType, 'content-length': payload.length }),
      },
    },
    (incoming) => {
      const chunks: Buffer[] = [];
      incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
      incoming.on('error', reject);
      incoming.on('end', () => {
        const text = Buffer.concat(chunks).toString();
        const isJson = incoming.headers['content-type']?.startsWith('application/json') === true;
        const parsed: unknown = isJson ? JSON.parse(text) : text;
        resolve({ status: incoming.statusCode ?? 0, headers: incoming.headers, body: parsed as T });
      });
    },
  );
  outgoing.on('error', reject);
  outgoing.end(payload);
  return promise;
}
