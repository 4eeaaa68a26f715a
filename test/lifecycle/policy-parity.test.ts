// Policies that share webhooks see the same requests as with a webhook each. Random policies and requests pass through the
// webhook matcher of the embedded API server, and through the evaluation of a policy server.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { admissionReview, type Invocation } from '../../src/apiserver/embedded/admission/admission-review.ts';
import { attributesOf, renamed, type RequestAttributes } from '../../src/apiserver/embedded/admission/attributes.ts';
import { WebhookConditions } from '../../src/apiserver/embedded/admission/webhook-conditions.ts';
import { WebhookMatcher } from '../../src/apiserver/embedded/admission/webhook-matcher.ts';
import { type ConfiguredWebhook, webhooksOf } from '../../src/apiserver/embedded/admission/webhook.ts';
import type { AdmissionAttributes } from '../../src/apiserver/embedded/request/request.ts';
import type { ResourceDefinition } from '../../src/apiserver/index.ts';
import { PRODUCT_NAMESPACE, TestTable } from '../../src/engine/testing/bucket-table.ts';
import { ConfigurationCoverage } from '../../src/lifecycle/webhooks/configuration-coverage.ts';
import {
  standaloneConfiguration,
  webhookConfigurations,
  type WebhookSettings,
} from '../../src/lifecycle/webhooks/webhook-configurations.ts';
import type { WebhookConfiguration } from '../../src/lifecycle/webhooks/webhook-object.ts';
import {
  isOwnBucket,
  type JsonObject,
  type KubernetesObject,
  type MatchRule,
  type PolicyMatch,
} from '../../src/resources/index.ts';

/** Random worlds, and requests in each: with up to 14 policies each, some 15,000 comparisons. */
const WORLDS = 100;
const REQUESTS = 20;
const MAX_POLICIES = 14;

const SETTINGS: WebhookSettings = {
  policyServer: 'default',
  target: { url: 'https://localhost:8443', ca: 'PEM' },
  exemptNamespaces: ['kube-system'],
  identities: ['system:serviceaccount:portcullis:controller', 'system:serviceaccount:portcullis:policy-server-*'],
  productNamespace: PRODUCT_NAMESPACE,
};
const OURS = ['system:serviceaccount:portcullis:controller', 'system:serviceaccount:portcullis:policy-server-default'];
const COLLECTORS = [
  'system:serviceaccount:kube-system:generic-garbage-collector',
  'system:serviceaccount:kube-system:namespace-controller',
];
const USERS = ['ann', 'ben', 'ben', 'cid', 'cid', 'cid', 'cid', 'cid', 'cid', ...COLLECTORS, ...OURS];
const GUARDED = [
  'policies.kubewarden.io',
  'portcullis.dev',
  'coordination.k8s.io',
  'authentication.k8s.io',
  'authorization.k8s.io',
];
const PRIVILEGED = [
  'rbac.authorization.k8s.io',
  'policies.kubewarden.io',
  'portcullis.dev',
  'authentication.k8s.io',
  'authorization.k8s.io',
];

function definition(group: string, versions: readonly string[], kind: string, namespaced = true): ResourceDefinition[] {
  const resource = `${kind.toLowerCase()}s`;
  return versions.map((version) => ({ group, version, kind, resource, namespaced }) as ResourceDefinition);
}

const DEFINITIONS: readonly ResourceDefinition[] = [
  ...definition('', ['v1'], 'Pod'),
  ...definition('', ['v1'], 'Namespace', false),
  ...definition('', ['v1'], 'Node', false),
  ...definition('', ['v1'], 'Event'),
  ...definition('', ['v1'], 'ServiceAccount'),
  ...definition('rbac.authorization.k8s.io', ['v1'], 'Role'),
  ...definition('events.k8s.io', ['v1', 'v1beta1'], 'Event'),
  ...definition('apps', ['v1', 'v1beta2', 'v1beta1'], 'Deployment'),
  ...definition('example.com', ['v2', 'v1'], 'Widget'),
  ...definition('coordination.k8s.io', ['v1'], 'Lease'),
  ...definition('policies.kubewarden.io', ['v1'], 'ClusterAdmissionPolicie', false),
  ...definition('portcullis.dev', ['v1'], 'PolicyRevision'),
];

const NAMESPACES: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  shop: { tier: 'a' },
  bank: { tier: 'b', checked: 'yes' },
  'kube-system': {},
  [PRODUCT_NAMESPACE]: { tier: 'a' },
};

/** A reproducible source of numbers from 0 to below 1 (mulberry32). */
function randomNumbers(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

class Choice {
  readonly #random: () => number;

  constructor(seed: number) {
    this.#random = randomNumbers(seed);
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit);
  }

  chance(part: number): boolean {
    return this.#random() < part;
  }

  of<T>(list: readonly T[]): T {
    return list[this.below(list.length)]!;
  }

  some<T>(list: readonly T[], most = 2): readonly T[] {
    return [...new Set(Array.from({ length: 1 + this.below(most) }, () => this.of(list)))];
  }
}

function randomRule(choice: Choice): JsonObject {
  const resources = [
    'pods',
    'deployments',
    'widgets',
    'namespaces',
    'nodes',
    'events',
    'leases',
    'roles',
    'serviceaccounts/token',
    'clusteradmissionpolicies',
  ];
  const wild = ['*', '*', '*/*', '*/*', '*/*', '*/status', 'pods/*', 'deployments/scale', 'pods/log', 'pods/exec'];
  const groups = ['', 'apps', 'example.com', 'events.k8s.io', 'rbac.authorization.k8s.io'];
  return {
    operations: choice.chance(0.5) ? ['*'] : choice.some(['CREATE', 'UPDATE', 'DELETE', 'CONNECT'], 3),
    apiGroups: choice.chance(0.4) ? ['*'] : choice.chance(0.1) ? [choice.of(GUARDED)] : choice.some(groups, 4),
    apiVersions: choice.chance(0.4) ? ['*'] : choice.some(['v1', 'v1', 'v1', 'v2', 'v1beta1', 'v1beta2']),
    resources: choice.chance(0.6) ? [choice.of(wild)] : choice.some(resources, 4),
    ...(choice.chance(0.5) ? {} : { scope: choice.of(['*', 'Cluster', 'Namespaced']) }),
  } as unknown as JsonObject;
}

function randomSelector(choice: Choice, keys: readonly string[]): JsonObject {
  const key = choice.of(keys);
  return choice.of<JsonObject>([
    { matchLabels: { [key]: choice.of(['a', 'b', 'yes']) } },
    { matchExpressions: [{ key, operator: choice.of(['Exists', 'DoesNotExist']) }] },
    { matchExpressions: [{ key, operator: choice.of(['In', 'NotIn']), values: ['a', 'yes'] }] },
    {},
  ]);
}

const CONDITIONS: readonly string[] = [
  'request.userInfo.username != "ann"',
  'object == null || !has(object.metadata) || !has(object.metadata.labels)',
  'request.operation == "CREATE"',
  'request.resource.version == "v1"',
  'authorizer.group("").resource("pods").check("get").allowed()',
];

function randomPolicy(choice: Choice, name: string): Parameters<TestTable['add']>[0] {
  const namespace = choice.chance(0.5) ? choice.of(['shop', 'shop', 'bank', 'bank', PRODUCT_NAMESPACE]) : undefined;
  const isGroup = choice.chance(0.3);
  const spec: JsonObject = {
    rules: Array.from({ length: 1 + choice.below(3) }, () => randomRule(choice)),
    ...(choice.chance(0.5) ? {} : { failurePolicy: choice.of(['Fail', 'Ignore']) }),
    ...(choice.chance(0.7) ? {} : { matchPolicy: choice.of(['Exact', 'Equivalent']) }),
    ...(choice.chance(0.6) ? {} : { objectSelector: randomSelector(choice, ['app', 'checked']) }),
    ...(choice.chance(0.7)
      ? {}
      : {
          matchConditions: choice.some(CONDITIONS).map((expression, index) => ({ name: `c${index}`, expression })),
        }),
    timeoutSeconds: 2 + choice.below(20),
    ...(isGroup
      ? { policies: { member: { module: 'm.wasm' } }, expression: 'member()' }
      : { mutating: choice.chance(0.3) }),
    ...(namespace !== undefined || choice.chance(0.6)
      ? {}
      : { namespaceSelector: randomSelector(choice, ['tier', 'checked', 'kubernetes.io/metadata.name']) }),
    ...(namespace === undefined && choice.chance(0.15) ? { allowInsideAdmissionControllerNamespace: true } : {}),
    ...(choice.chance(0.15) ? { ownWebhook: true } : {}),
  };
  return { name, ...(namespace === undefined ? {} : { namespace }), spec };
}

function randomRequest(choice: Choice): AdmissionAttributes {
  const definition = choice.of(DEFINITIONS);
  const operation = choice.of(['CREATE', 'UPDATE', 'DELETE', 'CONNECT'] as const);
  const isNamespace = definition.kind === 'Namespace';
  const subresource =
    operation === 'CONNECT'
      ? 'exec'
      : choice.chance(0.8)
        ? undefined
        : choice.of(['status', 'scale', 'log', ...(definition.kind === 'ServiceAccount' ? ['token'] : [])]);
  const namespace = definition.namespaced
    ? choice.of(['shop', 'shop', 'bank', 'bank', ...Object.keys(NAMESPACES)])
    : undefined;
  const name = isNamespace ? choice.of(Object.keys(NAMESPACES)) : 'thing';
  const made = (): KubernetesObject => ({
    apiVersion: definition.group === '' ? definition.version : `${definition.group}/${definition.version}`,
    kind: definition.kind,
    metadata: {
      name,
      ...(namespace === undefined ? {} : { namespace }),
      ...(choice.chance(0.7) ? {} : { finalizers: choice.some(['a', 'b'], 2) }),
      ...(isNamespace
        ? { labels: { ...NAMESPACES[name], 'kubernetes.io/metadata.name': name } }
        : choice.chance(0.5)
          ? {}
          : { labels: { app: choice.of(['a', 'b']), ...(choice.chance(0.5) ? {} : { checked: 'yes' }) } }),
    },
  });
  return {
    user: { username: choice.of(USERS), groups: ['system:authenticated'] },
    operation,
    definition,
    subresource,
    namespace,
    name,
    object: operation === 'DELETE' ? null : made(),
    oldObject: operation === 'UPDATE' || operation === 'DELETE' ? made() : null,
    dryRun: choice.chance(0.2),
    options: {},
  };
}

const namespaceObjects = new Map(
  Object.entries(NAMESPACES).map(([name, labels]) => [
    name,
    {
      apiVersion: 'v1',
      kind: 'Namespace',
      metadata: { name, labels: { ...labels, 'kubernetes.io/metadata.name': name } },
    },
  ]),
);

function apiServer(): WebhookMatcher {
  const authorizer = {
    authorize: ({ user }: { user: { username: string } }) => ({ allowed: user.username === 'ben', reason: '' }),
  };
  return new WebhookMatcher({
    state: { get: (_type, _namespace, name) => namespaceObjects.get(name), list: () => [], revisionOf: () => 1 },
    definitions: () => DEFINITIONS,
    conditions: new WebhookConditions(authorizer),
    inVersion: (object, kind) => (object === null ? null : renamed(object, kind)),
  });
}

/** The exemptions of docs/enforcement.md, implemented once more. */
function isExempt({ namespace, rules, bucket }: PolicyMatch, attributes: RequestAttributes): boolean {
  const { resource, subresource } = attributes;
  const named = new Set(rules.flatMap(({ apiGroups }) => apiGroups));
  const isInNamespace = attributes.namespace !== '' && resource.resource !== 'namespaces';
  const isOwnRecord = resource.group === 'portcullis.dev';
  const isStatus = resource.group === 'policies.kubewarden.io' && subresource === 'status';
  return (
    isOfProduct(attributes) ||
    (namespace === undefined && SETTINGS.exemptNamespaces.includes(attributes.namespace)) ||
    (namespace !== undefined && (!isInNamespace || isExemptFromNamespaced(attributes))) ||
    isOwnRecord ||
    isStatus ||
    (GUARDED.includes(resource.group) && !(isOwnBucket(bucket) && named.has(resource.group)))
  );
}

/** Whether a request is for a privileged kind, or the deletion of an object by Kubernetes itself. */
function isExemptFromNamespaced({ resource, subresource, request }: RequestAttributes): boolean {
  const isToken = resource.group === '' && resource.resource === 'serviceaccounts' && subresource === 'token';
  const [before, after] = [request.oldObject, request.object].map((one) => new Set(one?.metadata.finalizers));
  const removes = after!.isSubsetOf(before!) && after!.size < before!.size;
  const isRemoval = request.operation === 'DELETE' || (request.operation === 'UPDATE' && removes);
  return PRIVILEGED.includes(resource.group) || isToken || (COLLECTORS.includes(request.user.username) && isRemoval);
}

/** Whether the product itself makes the request, in its namespace or for resources that it writes anywhere. */
function isOfProduct({ resource, namespace, request }: RequestAttributes): boolean {
  const isWritten = resource.resource === 'events' || resource.group === 'policies.kubewarden.io';
  return (
    OURS.includes(request.user.username) &&
    (isWritten || (namespace === PRODUCT_NAMESPACE && resource.resource !== 'namespaces'))
  );
}

/** Whether a rule can match no request: a cluster-scoped rule of a namespaced policy. */
function isNever({ namespace }: PolicyMatch): (rule: MatchRule) => boolean {
  return ({ scope }) => namespace !== undefined && scope === 'Cluster';
}

function webhooksIn(configurations: readonly WebhookConfiguration[]): readonly ConfiguredWebhook[] {
  return ['validating', 'mutating'].flatMap((kind) =>
    webhooksOf(
      kind as ConfiguredWebhook['kind'],
      configurations.filter((one) => one.kind.toLowerCase().startsWith(kind)),
    ),
  );
}

function versionOf({ resource }: Invocation): string {
  return `${resource.group}/${resource.version}`;
}

/** Random policies. The `seen…` methods return for one request the version that each policy sees, by its id. */
class World {
  readonly policies = new Map<string, PolicyMatch>();
  readonly #table: TestTable;
  readonly #matcher = apiServer();
  readonly #shared: readonly ConfiguredWebhook[];
  readonly #alone = new Map<string, ConfiguredWebhook>();

  constructor(choice: Choice) {
    this.#table = new TestTable();
    for (const [name, { metadata }] of namespaceObjects) {
      this.#table.namespaces.set(name, metadata.labels ?? {});
    }
    const count = 1 + choice.below(MAX_POLICIES);
    for (let index = 0; index < count; index += 1) {
      const { id, match } = this.#table.add(randomPolicy(choice, `p${index}`));
      this.policies.set(id, match);
      // A webhook for this policy alone, without exemptions.
      const alone = { ...SETTINGS, identities: [], exemptNamespaces: [] };
      const configuration = standaloneConfiguration(id, match, 'None', alone);
      this.#alone.set(id, webhooksIn([configuration])[0]!);
    }
    const { configurations, warnings } = webhookConfigurations([...this.policies.values()], SETTINGS);
    assert.deepEqual(warnings, []);
    const again = configurations.flatMap((one) => new ConfigurationCoverage(one).matches(SETTINGS));
    for (const covering of [configurations, webhookConfigurations(again, SETTINGS).configurations]) {
      const coverages = covering.map((one) => new ConfigurationCoverage(one));
      for (const [id, match] of this.policies) {
        assert.ok(coverages.some((one) => one.covers(match, SETTINGS)) || match.rules.every(isNever(match)), id);
      }
    }
    assert.ok(configurations.length <= 3);
    this.#shared = webhooksIn(configurations);
  }

  seenAlone(attributes: RequestAttributes): ReadonlyMap<string, string> {
    const seen = new Map<string, string>();
    for (const [id, webhook] of this.#alone) {
      const invocation = this.#matcher.invocationOf(webhook, attributes);
      if (invocation !== undefined && !isExempt(this.policies.get(id)!, attributes)) {
        seen.set(id, versionOf(invocation));
      }
    }
    return seen;
  }

  seenTogether(attributes: RequestAttributes): ReadonlyMap<string, string> {
    const seen = new Map<string, string>();
    const called = new Set<string>();
    for (const webhook of this.#shared) {
      const invocation = this.#matcher.invocationOf(webhook, attributes);
      if (invocation === undefined) {
        continue;
      }
      const bucket = webhook.target.url?.split('/').at(-1) ?? '';
      assert.ok(!called.has(bucket), `${bucket} is called twice`);
      called.add(bucket);
      const { object, oldObject } = attributes.request;
      const inVersion = (one: KubernetesObject | null): KubernetesObject | null =>
        one === null ? null : renamed(one, invocation.kind);
      const objects = { object: inVersion(object), oldObject: inVersion(oldObject) };
      const review = admissionReview('u', 'v1', attributes, invocation, objects);
      for (const { policy } of this.#table.evaluate(bucket, review as JsonObject).observations) {
        seen.set(policy, versionOf(invocation));
      }
    }
    return seen;
  }
}

describe('policies that share webhooks', () => {
  it('see the same requests, in the same versions, as with a webhook each, except exempt requests', (context) => {
    const seed = Number(process.env['PORTCULLIS_SEED'] ?? 20_261_121);
    let [count, seenCount] = [0, 0];
    for (let world = 0; world < WORLDS; world += 1) {
      const choice = new Choice(seed + world);
      const policies = new World(choice);
      for (let index = 0; index < REQUESTS; index += 1) {
        const request = randomRequest(choice);
        const attributes = attributesOf(request);
        const alone = policies.seenAlone(attributes);
        const together = policies.seenTogether(attributes);
        count += policies.policies.size;
        seenCount += alone.size;
        for (const [id, match] of policies.policies) {
          // A shared webhook may exempt all requests of the product, because of another one of its policies.
          const isProductExempt = OURS.includes(request.user.username) && !together.has(id);
          if (!isProductExempt && alone.get(id) !== together.get(id)) {
            assert.fail(
              `seed ${seed + world}: ${id} sees ${together.get(id) ?? 'nothing'}, expected ${alone.get(id) ?? 'nothing'}\n${JSON.stringify({ match, all: [...policies.policies.values()].filter(({ bucket }) => bucket === match.bucket), request }, null, 1)}`,
            );
          }
        }
      }
    }
    context.diagnostic(`${count} comparisons, in ${seenCount} of which the policy sees the request`);
    assert.ok(seenCount > count / 40, `${seenCount} of ${count}`);
  });
});
