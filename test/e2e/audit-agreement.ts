// Compares the verdicts of an audit with those of requests to create the same objects, on a cluster with Portcullis.
import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { KubernetesObject } from '../cluster/cluster.ts';
import type { InstallLab } from './install-lab.ts';
import { AGREEMENT_NAMESPACES, agreementObjects, WIDGETS } from './audit-agreement-objects.ts';
import { AGREEMENT_POLICIES, CHANGES, EXAMPLES, NOT_AUDITABLE, SERVER_FIELDS } from './audit-agreement-policies.ts';

/** Requests under way at once. */
const AT_ONCE = 8;
const SERVED_TIMEOUT = '--timeout=30s';
const NOTICED_MS = 2_000;

interface AuditData {
  readonly results: readonly {
    readonly policy: string;
    readonly result: 'fail' | 'wouldChange' | 'error';
    readonly object: { readonly kind: string; readonly namespace?: string; readonly name: string };
  }[];
  readonly coverage: readonly {
    readonly policy: string;
    readonly kind?: {
      readonly group: string;
      readonly version: string;
      readonly resource: string;
      readonly kind: string;
      readonly namespaced: boolean;
    };
    readonly state: string;
    readonly reason?: string;
    readonly message?: string;
  }[];
}

/** What was compared. */
export interface Agreement {
  readonly objects: number;
  /** Requests that nothing rejected. */
  readonly admitted: number;
  /** Pairs of a policy and an object that both rejected. */
  readonly rejected: number;
  /** Pairs of a policy and an object that both would change. */
  readonly changed: number;
  /** One line for each pair that has another verdict. */
  readonly differences: readonly string[];
}

/** Creates objects, then policies, and compares. */
export async function agreement(lab: InstallLab, count: number): Promise<Agreement> {
  await lab.apply(WIDGETS);
  await lab.kubectl(['wait', '--for=condition=Established', 'crd', WIDGETS.metadata.name, SERVED_TIMEOUT]);
  for (const [name, labels] of Object.entries(AGREEMENT_NAMESPACES)) {
    await lab.cluster.createNamespace(name, labels);
  }
  await atOnce(agreementObjects(count), (object) => create(lab, object));
  await applyPolicies(lab);
  const { results, coverage } = await audited(lab);
  assert.deepEqual(
    coverage.filter(({ state }) => !['Scanned', 'NotAuditable', 'NotServed'].includes(state)),
    [],
  );
  assert.deepEqual(
    new Map(coverage.filter(({ state }) => state === 'NotAuditable').map(({ policy, reason }) => [policy, reason])),
    new Map(Object.entries(NOT_AUDITABLE)),
  );
  assert.deepEqual(
    results.filter(({ result }) => result === 'error'),
    [],
  );
  const kinds = new Map(coverage.flatMap(({ kind }) => (kind?.namespaced === true ? [[kind.kind, kind]] : [])));
  return await compared(lab, results, [...kinds.values()]);
}

async function create(lab: InstallLab, object: KubernetesObject): Promise<void> {
  const { status, body } = await lab.cluster.request<{ message?: string }>('POST', pathOf(object), object);
  assert.equal(status, 201, `${object.kind} ${object.metadata.name}: ${body.message ?? ''}`);
}

function pathOf({ apiVersion, kind, metadata }: KubernetesObject): string {
  const resource = `${kind.toLowerCase().replace(/y$/, 'ie').replace(/s$/, 'se')}s`;
  const root = apiVersion.includes('/') ? 'apis' : 'api';
  return `/${root}/${apiVersion}/namespaces/${metadata.namespace}/${resource}`;
}

/** Which fields that servers set are seen by an audit, and by the webhooks of a request to create: one line for each policy. */
export async function seenServerFields(lab: InstallLab): Promise<readonly string[]> {
  const namespace = 'play';
  const spec = { containers: [{ name: 'main', image: 'web:1' }] };
  const labels = { probe: 'yes', app: 'probe' };
  const metadata = { namespace, name: 'probe', labels };
  const workload = { replicas: 0, selector: { matchLabels: labels }, template: { metadata: { labels }, spec } };
  const objects: readonly KubernetesObject[] = [
    { apiVersion: 'v1', kind: 'Pod', metadata, spec },
    { apiVersion: 'v1', kind: 'Service', metadata, spec: { ports: [{ port: 80 }] } },
    { apiVersion: 'apps/v1', kind: 'Deployment', metadata, spec: workload },
  ];
  await atOnce(objects, (object) => create(lab, object));
  await lab.eventually('the node of the pod', async () => {
    const { spec: assigned } = await lab.get<KubernetesObject & { spec: { nodeName?: string } }>(
      `/api/v1/namespaces/${namespace}/pods/probe`,
    );
    assert.ok(assigned.nodeName);
  });
  await apply(
    lab,
    SERVER_FIELDS.map(({ policy }) => policy),
  );
  const { results } = await audited(lab);
  const requests = await Promise.all(
    objects.map(async (object) => (await askedToCreate(lab, pathOf(object), object)).verdicts),
  );
  return SERVER_FIELDS.map(({ policy }) => {
    const name = `cap/${policy.metadata.name}`;
    const isDenied = results.some((one) => one.policy === name);
    return `${name}: ${!isDenied} ${!requests.flat().includes(`fail ${name}`)}`;
  });
}

async function applyPolicies(lab: InstallLab): Promise<void> {
  const examples = await Promise.all(EXAMPLES.map((name) => lab.example(name)));
  await apply(lab, [...examples.flat().map((one) => protecting(one as KubernetesObject)), ...AGREEMENT_POLICIES]);
}

/** Applies policies, and waits until API servers ask about what each of them matches. */
async function apply(lab: InstallLab, policies: readonly KubernetesObject[]): Promise<void> {
  await lab.apply(...policies);
  for (const { kind, metadata } of policies) {
    await lab.active(`${kind.toLowerCase().replace(/y$/, 'ie')}s`, metadata.name ?? '', metadata.namespace);
  }
  // API servers notice a webhook configuration with a delay, and the last change of one is for the last policy.
  await sleep(NOTICED_MS);
}

/** Policies in monitor mode answer no request. */
function protecting(policy: KubernetesObject): KubernetesObject {
  return 'mode' in (policy['spec'] as object)
    ? { ...policy, spec: { ...(policy['spec'] as object), mode: 'protect' } }
    : policy;
}

async function audited(lab: InstallLab): Promise<AuditData> {
  const { code, stdout, stderr } = await lab.command('audit', '--include-secrets', '-o', 'json');
  const data = JSON.parse(stdout) as AuditData;
  assert.equal(code, 1, `${stderr}${JSON.stringify(data.coverage.filter(({ state }) => state !== 'Scanned'))}`);
  return data;
}

type Kind = NonNullable<AuditData['coverage'][number]['kind']>;

/** Compares all objects of some kinds in the namespaces, also those that controllers made. */
async function compared(lab: InstallLab, results: AuditData['results'], kinds: readonly Kind[]): Promise<Agreement> {
  const found = Map.groupBy(results, ({ object }) => objectKey(object.kind, object.namespace ?? '', object.name));
  const pairs: Compared[] = [];
  for (const { group, version, resource, kind } of kinds) {
    const apiVersion = group === '' ? version : `${group}/${version}`;
    for (const namespace of Object.keys(AGREEMENT_NAMESPACES)) {
      const path = `/${group === '' ? 'api' : 'apis'}/${apiVersion}/namespaces/${namespace}/${resource}`;
      const { items } = await lab.get<{ items: readonly KubernetesObject[] }>(path);
      await atOnce(items, async (item) => {
        const key = objectKey(kind, namespace, item.metadata.name ?? '');
        const verdicts = (found.get(key) ?? []).map(({ policy, result }) => `${result} ${shortName(policy)}`);
        pairs.push({ key, kind, verdicts, asked: await askedToCreate(lab, path, { ...item, apiVersion, kind }) });
      });
    }
  }
  const verdicts = pairs.flatMap(({ asked }) => asked.verdicts);
  return {
    objects: pairs.length,
    admitted: pairs.filter(({ asked }) => asked.isAdmitted).length,
    rejected: verdicts.filter((one) => one.startsWith('fail ')).length,
    changed: verdicts.filter((one) => one.startsWith('wouldChange ')).length,
    differences: differencesOf(pairs),
  };
}

/** An object, with what the audit and a request say. */
interface Compared {
  readonly key: string;
  readonly kind: string;
  readonly verdicts: readonly string[];
  readonly asked: Asked;
}

/**
 * Of several webhooks that reject a request, API servers name one. So of rejected requests only those verdicts are compared that the
 * webhook gave about any object of the kind; and whether anything rejects it.
 */
function differencesOf(pairs: readonly Compared[]): readonly string[] {
  const webhookOf = ({ kind, asked }: Compared): string => `${kind} ${asked.webhook}`;
  const given = new Map(
    [...Map.groupBy(pairs, webhookOf)].map(([webhook, some]) => [
      webhook,
      new Set(some.flatMap(({ asked }) => asked.verdicts)),
    ]),
  );
  return pairs.flatMap((pair) => {
    const { key, verdicts, asked } = pair;
    const comparable = asked.isAdmitted ? verdicts : verdicts.filter((one) => given.get(webhookOf(pair))?.has(one));
    const [audit, request] = [comparable, asked.verdicts].map((list) => list.toSorted().join(', '));
    const isSame = audit === request && (asked.isAdmitted || asked.verdicts.length > 0);
    return isSame ? [] : [`${key}: the audit has [${audit}], the request [${request}] ${asked.message}`];
  });
}

async function atOnce<T>(items: readonly T[], use: (item: T) => Promise<void>): Promise<void> {
  const open = items.values();
  const useSome = async (): Promise<void> => {
    for (const item of open) {
      await use(item);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, useSome));
}

function objectKey(kind: string, namespace: string, name: string): string {
  return `${kind} ${namespace}/${name}`;
}

/** As messages of requests name a policy: without its namespace, which is that of the request. */
function shortName(policy: string): string {
  const [kind, ...rest] = policy.split('/');
  return `${kind}/${rest.at(-1)}`;
}

/** What a request to create an object got. */
interface Asked {
  readonly isAdmitted: boolean;
  /** That rejected it; empty: none. */
  readonly webhook: string;
  readonly verdicts: readonly string[];
  readonly message: string;
}

/** Asked so often, a policy has time for its verdict on a busy machine, too. */
const MAX_ASKED = 5;
/** What a request gets instead of the verdict of a policy that was cut off. */
const CUT_OFF = /exceeded the allowed execution time/;

/** What a request to create the object with a fresh name gets, as a dry run, with a verdict of every policy. */
async function askedToCreate(lab: InstallLab, path: string, object: KubernetesObject): Promise<Asked> {
  for (let count = 1; ; count += 1) {
    const asked = await askedOnce(lab, path, object);
    if (count === MAX_ASKED || !CUT_OFF.test(asked.message)) {
      return asked;
    }
  }
}

async function askedOnce(lab: InstallLab, path: string, object: KubernetesObject): Promise<Asked> {
  const request = requestToCreate(object);
  const { status, body } = await lab.cluster.request<KubernetesObject & { message?: string }>(
    'POST',
    `${path}?dryRun=All`,
    request,
  );
  const { message = '' } = body;
  if (status === 201) {
    const changed = Object.entries(CHANGES).filter(([, isChanged]) => isChanged(request, body));
    return { isAdmitted: true, webhook: '', verdicts: changed.map(([policy]) => `wouldChange ${policy}`), message };
  }
  const denials = message.matchAll(/(?:denied the request: |policies: |; )(capg?\/[\w-]+|apg?\/[\w-]+)/g);
  const [, webhook = ''] = /admission webhook "([^"]+)"/.exec(message) ?? [];
  return { isAdmitted: false, webhook, verdicts: [...denials].map(([, policy = '']) => `fail ${policy}`), message };
}

/** Fields that API servers and controllers set, and that requests cannot or need not have. */
function requestToCreate({ status: _status, ...object }: KubernetesObject): KubernetesObject {
  const {
    uid: _uid,
    resourceVersion: _version,
    generation: _generation,
    managedFields: _fields,
    ...kept
  } = object.metadata;
  const { creationTimestamp: _created, ...metadata } = kept;
  const named = { ...object, metadata: { ...metadata, name: `${metadata.name?.slice(0, 40)}-fresh` } };
  switch (object.kind) {
    case 'Service':
      return withSpec(named, withoutAddresses);
    case 'Job':
      return withSpec(named, withoutSelector);
    case 'Pod':
      return withSpec(named, ({ nodeName: _node, ...spec }) => spec);
    default:
      return named;
  }
}

type Spec = Readonly<Record<string, unknown>>;

function withSpec(object: KubernetesObject, change: (spec: Spec) => Spec): KubernetesObject {
  return { ...object, spec: change(object['spec'] as Spec) };
}

function withoutAddresses({ clusterIP, clusterIPs: _all, healthCheckNodePort: _check, ...spec }: Spec): Spec {
  const ports = (spec['ports'] as readonly Spec[]).map(({ nodePort: _port, ...port }) => port);
  return { ...spec, ports, ...(clusterIP === 'None' ? { clusterIP } : {}) };
}

function withoutSelector({ selector: _selector, template, ...spec }: Spec): Spec {
  const { metadata: _labels, ...content } = template as Spec;
  return { ...spec, template: content };
}
