// What a network provider reports of NetworkPolicies: an example to copy. It needs Node.js 22.18 or newer, and nothing else:
//   node reporter.ts NAME        NAME of the NetworkPolicyProvider whose spec.reporter is this account
// In a pod it uses the service account; elsewhere KUBE_SERVER, KUBE_TOKEN_FILE and KUBE_CA_FILE. With --once it reports and ends.
import { readFileSync } from 'node:fs';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { createInterface } from 'node:readline';
import { setTimeout as sleep } from 'node:timers/promises';

const ACCOUNT = '/var/run/secrets/kubernetes.io/serviceaccount';
const { KUBE_SERVER, KUBE_TOKEN_FILE, KUBE_CA_FILE, KUBERNETES_SERVICE_HOST, KUBERNETES_SERVICE_PORT } = process.env;
const server = KUBE_SERVER ?? `https://${KUBERNETES_SERVICE_HOST}:${KUBERNETES_SERVICE_PORT}`;
const ca = readFileSync(KUBE_CA_FILE ?? `${ACCOUNT}/ca.crt`);
const tokenFile = KUBE_TOKEN_FILE ?? `${ACCOUNT}/token`;

const [provider = 'example'] = process.argv.slice(2);
const isOnce = process.argv.includes('--once');
/** The field manager, which the entry names, too. */
const REPORTER = 'example-reporter';
const VERSION = '1.0.0';
const OURS = '/apis/portcullis.dev/v1';
const POLICIES = '/apis/networking.k8s.io/v1/networkpolicies';
/** A fraction of spec.reporter.expireAfterSeconds, so that some heartbeats may fail. Milliseconds. */
const HEARTBEAT_MS = 60_000;
/** Milliseconds between two attempts. */
const RETRY_MS = 2_000;

interface Port {
  readonly protocol?: string;
  readonly port?: number | string;
  readonly endPort?: number;
}
interface Rule {
  readonly ports?: readonly Port[];
}
interface Policy {
  readonly metadata: { name: string; namespace: string; uid: string; generation: number; resourceVersion: string };
  readonly spec: { readonly ingress?: readonly Rule[]; readonly egress?: readonly Rule[] };
}
interface Condition {
  readonly type: string;
  readonly status: 'True' | 'False' | 'Unknown';
  readonly reason: string;
  readonly message: string;
  readonly observedGeneration: number;
  readonly lastTransitionTime: string;
}
interface Entry {
  readonly controllerName: string;
  readonly reporter?: string;
  readonly conditions?: readonly Condition[];
}
interface Status {
  readonly status?: { readonly providers?: readonly Entry[] };
}

class HttpError extends Error {
  readonly code: number;

  constructor(code: number, message: string) {
    super(message);
    this.code = code;
  }
}

function send(method: string, path: string, body?: object): Promise<IncomingMessage> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  // Tokens of service accounts are replaced every hour.
  const authorization = `Bearer ${readFileSync(tokenFile, 'utf8').trim()}`;
  const headers = { authorization, accept: 'application/json', 'content-type': 'application/apply-patch+yaml' };
  request(`${server}${path}`, { method, headers, ca }, resolve)
    .on('error', reject)
    .end(body && JSON.stringify(body));
  return promise;
}

async function call<Answer>(method: string, path: string, body?: object): Promise<Answer> {
  const response = await send(method, path, body);
  const text = (await response.setEncoding('utf8').toArray()).join('');
  const code = response.statusCode ?? 0;
  if (code >= 300) {
    throw new HttpError(code, `${method} ${path}: ${code} ${text.slice(0, 1000)}`);
  }
  return JSON.parse(text) as Answer;
}

/** Server-side apply. `force` takes over what the controller of Portcullis concluded before. */
function apply(path: string, object: object): Promise<unknown> {
  return call('PATCH', `${path}?fieldManager=${REPORTER}&force=true`, { apiVersion: 'portcullis.dev/v1', ...object });
}

/** Says that this program runs: without it, what it reported expires. */
async function heartbeat(): Promise<void> {
  const status = { renewTime: new Date().toISOString().replace(/\.\d+/, '') };
  const object = { kind: 'NetworkPolicyProvider', metadata: { name: provider }, status };
  await apply(`${OURS}/networkpolicyproviders/${provider}/status`, object);
}

/** What the data plane does with a policy. This one knows no ranges of ports: it allows the first one only. */
function judge({ spec }: Policy): { readonly feature?: object; readonly unsupported?: string } {
  for (const direction of ['ingress', 'egress'] as const) {
    for (const [rule, { ports = [] }] of (spec[direction] ?? []).entries()) {
      const index = ports.findIndex(({ endPort }) => endPort !== undefined);
      if (index !== -1) {
        const path = `spec.${direction}[${rule}].ports[${index}].endPort`;
        const feature = { type: 'EndPort', effect: 'FailClosed', evidence: 'Reported', paths: [path] };
        return { feature, unsupported: `only port ${ports[index]?.port} is allowed, not the range` };
      }
    }
  }
  return {};
}

async function report(policy: Policy, controllerName: string): Promise<void> {
  const { name, namespace, uid, generation } = policy.metadata;
  const path = `${OURS}/namespaces/${namespace}/networkpolicystatuses/${name}`;
  const identity = { kind: 'NetworkPolicyStatus', metadata: { name, namespace } };
  const current = await call<Status>('GET', path).catch(async (error: unknown) => {
    if (!(error instanceof HttpError && error.code === 404)) {
      throw error;
    }
    // The controller has not created it yet. It belongs to the policy, and is deleted with it.
    const owner = { apiVersion: 'networking.k8s.io/v1', kind: 'NetworkPolicy', name, uid };
    await apply(path, { ...identity, metadata: { ...identity.metadata, ownerReferences: [owner] }, spec: {} });
    return {} as Status;
  });
  const before = current.status?.providers?.find((entry) => entry.controllerName === controllerName);
  const old = before?.reporter === REPORTER ? before.conditions?.find(({ type }) => type === 'Accepted') : undefined;
  if (old?.observedGeneration === generation) {
    return;
  }
  const { feature, unsupported } = judge(policy);
  const status = unsupported === undefined ? 'True' : 'False';
  const condition = {
    status,
    reason: unsupported === undefined ? 'Accepted' : 'FeatureNotSupported',
    message: unsupported ?? 'the policy is implemented as written',
    observedGeneration: generation,
    lastTransitionTime: old?.status === status ? old.lastTransitionTime : new Date().toISOString().replace(/\.\d+/, ''),
  };
  const failed = { ...condition, type: 'PartialFailure', status: 'True' };
  const entry = {
    controllerName,
    name: provider,
    version: VERSION,
    reporter: REPORTER,
    conditions: [{ ...condition, type: 'Accepted' }, ...(unsupported === undefined ? [] : [failed])],
    ...(feature === undefined ? {} : { features: [{ ...condition, ...feature }] }),
  };
  await apply(`${path}/status`, { ...identity, status: { providers: [entry] } });
}

/** Reports all policies, then those that change, until the watch ends: what is missing by then is reported again. */
async function follow(controllerName: string): Promise<void> {
  const list = await call<{ metadata: { resourceVersion: string }; items: Policy[] }>('GET', POLICIES);
  for (const policy of list.items) {
    await report(policy, controllerName);
  }
  if (isOnce) {
    return;
  }
  const watch = await send('GET', `${POLICIES}?watch=1&timeoutSeconds=300&resourceVersion=${list.metadata.resourceVersion}`);
  for await (const line of createInterface({ input: watch })) {
    const { type, object } = JSON.parse(line) as { type: string; object: Policy };
    if (type === 'ADDED' || type === 'MODIFIED') {
      await report(object, controllerName);
    }
  }
}

async function beat(): Promise<never> {
  for (;;) {
    await heartbeat().catch((error: unknown) => console.error(error));
    await sleep(HEARTBEAT_MS);
  }
}

const declared = await call<{ spec: { reporter: { controllerName: string } } }>('GET', `${OURS}/networkpolicyproviders/${provider}`);
await heartbeat();
if (!isOnce) {
  void sleep(HEARTBEAT_MS).then(beat);
}
do {
  try {
    await follow(declared.spec.reporter.controllerName);
  } catch (error) {
    console.error(error instanceof Error ? error.message : error);
    process.exitCode = isOnce ? 1 : 0;
    await sleep(isOnce ? 0 : RETRY_MS);
  }
} while (!isOnce);
