// Evaluates the same admission policies in a real kube-apiserver and here. Verdicts and messages must be equal.
import assert from 'node:assert/strict';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import type { CelAuthorizer } from '../../src/cel/index.ts';
import {
  admissionRequest,
  evaluateManifests,
  loadManifests,
  type LoadedManifests,
  type ManifestVerdict,
  problemText,
} from '../../src/engine/cel-policy/index.ts';
import type { JsonObject } from '../../src/engine/index.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import { ADMIN, type ApiResponse, type Cluster, startCluster } from '../cluster/cluster.ts';
import { eventually } from '../cluster/eventually.ts';
import {
  EXPRESSIONS,
  generatedExpressions,
  INVALID,
  type MutationCase,
  MUTATIONS,
  POLICIES,
  type PolicyCase,
  THING,
} from './cel-differential-corpus.ts';

/** The version of the API server. */
const KUBERNETES_VERSION = 34;
const NAMESPACE = 'diff';
const PARALLEL = 12;
/** Number of generated expressions, and their seed. Set CEL_GENERATED and CEL_SEED to try others. */
const { CEL_GENERATED = '150', CEL_SEED = '1' } = process.env;
const GROUP = '/apis/admissionregistration.k8s.io';

interface Status {
  readonly message: string;
  readonly reason: string;
  readonly code: number;
  readonly details?: { readonly causes?: readonly { readonly field?: string; readonly message?: string }[] };
}

/** Runs a task for each item, some in parallel. Returns the results in the order of the items. */
async function each<Item, Result>(items: readonly Item[], task: (item: Item) => Promise<Result>): Promise<Result[]> {
  const results: Result[] = [];
  let next = 0;
  const worker = async (): Promise<void> => {
    while (next < items.length) {
      const index = next++;
      results[index] = await task(items[index] as Item);
    }
  };
  await Promise.all(Array.from({ length: PARALLEL }, worker));
  return results;
}

function rulesFor(resource: 'configmaps' | 'things' | 'deployments', id: string): JsonObject {
  const group = { configmaps: '', things: 'example.test', deployments: 'apps' }[resource];
  return {
    objectSelector: { matchLabels: { case: id } },
    resourceRules: [
      { apiGroups: [group], apiVersions: ['v1'], operations: ['CREATE', 'UPDATE'], resources: [resource] },
    ],
  };
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** A policy with its binding, and the object of the request. */
interface Case {
  readonly id: string;
  /** The title in messages of a failed test. */
  readonly title: string;
  readonly policy: JsonObject;
  readonly binding: JsonObject;
  readonly object: JsonObject;
  readonly resource: 'configmaps' | 'things' | 'deployments';
  readonly user: string;
  readonly operation?: 'UPDATE' | 'DELETE';
}

function validatingCase(
  id: string,
  parts: Omit<Case, 'id' | 'policy' | 'binding'> & { readonly spec: object; readonly bindingSpec?: object },
): Case {
  const apiVersion = 'admissionregistration.k8s.io/v1';
  const { spec, bindingSpec, ...rest } = parts;
  return {
    ...rest,
    id,
    policy: {
      apiVersion,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: id },
      spec: { matchConstraints: rulesFor(parts.resource, id), ...spec },
    },
    binding: {
      apiVersion,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: `${id}-binding` },
      spec: { policyName: id, validationActions: ['Deny'], ...bindingSpec },
    },
  };
}

function expressionCase(expression: string, index: number): Case {
  const id = `expression-${index}`;
  const variables = [
    { name: 'other', expression: '41' },
    { name: 'broken', expression: 'object.spec.missing' },
    { name: 'value', expression },
  ];
  // Values are compared as text in messages. An expression without a text fails, and its error is compared.
  const validations = [
    { expression: "'%s'.format([variables.value]) == '~'", messageExpression: "'%s'.format([variables.value])" },
  ];
  const metadata = { ...THING.metadata, namespace: NAMESPACE, labels: { ...THING.metadata.labels, case: id } };
  const object = { ...THING, metadata } as unknown as JsonObject;
  return validatingCase(id, {
    title: expression,
    resource: 'things',
    object,
    user: ADMIN,
    spec: { variables, validations },
  });
}

function configMap(id: string, data: object = {}, labels: object = {}): JsonObject {
  const metadata = { name: id, namespace: NAMESPACE, labels: { case: id, ...labels } };
  // An API server drops an empty map before it evaluates policies.
  const content = Object.keys(data).length === 0 ? {} : { data };
  return { apiVersion: 'v1', kind: 'ConfigMap', metadata, ...content } as JsonObject;
}

function policyCase({ name, spec, binding, data, labels, user, operation }: PolicyCase): Case {
  const id = `policy-${name}`;
  const object = configMap(id, data, labels);
  const rest = { title: name, resource: 'configmaps', object, user: user ?? ADMIN } as const;
  const bound = binding === undefined ? {} : { bindingSpec: binding };
  if (operation === undefined) {
    return validatingCase(id, { ...rest, spec, ...bound });
  }
  const constraints = rulesFor('configmaps', id) as { resourceRules: JsonObject[] };
  constraints.resourceRules = constraints.resourceRules.map((rule) => ({ ...rule, operations: [operation] }));
  return validatingCase(id, { ...rest, operation, spec: { matchConstraints: constraints, ...spec }, ...bound });
}

function deployment(id: string): JsonObject {
  return {
    apiVersion: 'apps/v1',
    kind: 'Deployment',
    metadata: { name: 'web', namespace: NAMESPACE, labels: { case: id } },
    spec: {
      replicas: 2,
      selector: { matchLabels: { app: 'web' } },
      template: {
        metadata: { labels: { app: 'web' } },
        spec: { containers: [{ name: 'main', image: 'example.com/pause:1' }] },
      },
    },
  };
}

function mutationCase({ name, patches = [], configurations = [], spec, data, on }: MutationCase): Case {
  const id = `mutation-${name}`;
  const apiVersion = 'admissionregistration.k8s.io/v1beta1';
  const resource = on ?? 'configmaps';
  const mutations = [
    ...patches.map((expression) => ({ patchType: 'JSONPatch', jsonPatch: { expression } })),
    ...configurations.map((expression) => ({
      patchType: 'ApplyConfiguration',
      applyConfiguration: { expression },
    })),
  ];
  return {
    id,
    title: name,
    resource,
    user: ADMIN,
    object: on === undefined ? configMap(id, data ?? { a: 'x' }) : deployment(id),
    policy: {
      apiVersion,
      kind: 'MutatingAdmissionPolicy',
      metadata: { name: id },
      spec: { matchConstraints: rulesFor(resource, id), reinvocationPolicy: 'Never', mutations, ...spec },
    },
    binding: {
      apiVersion,
      kind: 'MutatingAdmissionPolicyBinding',
      metadata: { name: `${id}-binding` },
      spec: { policyName: id },
    },
  };
}

const USERS: Readonly<Record<string, readonly string[]>> = {
  [ADMIN]: ['system:masters', 'system:authenticated'],
  alice: ['system:authenticated'],
};

const OPTIONS = { CREATE: 'CreateOptions', UPDATE: 'UpdateOptions', DELETE: 'DeleteOptions' } as const;
const METHODS = { CREATE: 'POST', UPDATE: 'PUT', DELETE: 'DELETE' } as const;

/** The `request` variable, as an API server sets it. */
function requestOf({ object, resource, user, operation: given }: Case): JsonObject {
  const operation = given ?? 'CREATE';
  const [group = '', version = ''] = textOf(object.apiVersion).includes('/')
    ? textOf(object.apiVersion).split('/')
    : ['', textOf(object.apiVersion)];
  const kind = { group, version, kind: textOf(object.kind) };
  const id = { group, version, resource };
  return {
    uid: 'x',
    kind,
    resource: id,
    requestKind: kind,
    requestResource: id,
    name: textOf((object.metadata as JsonObject).name),
    namespace: NAMESPACE,
    operation,
    userInfo: { username: user, groups: [...(USERS[user] ?? [])] },
    object: operation === 'DELETE' ? null : object,
    oldObject: operation === 'CREATE' ? null : object,
    dryRun: true,
    options: { kind: OPTIONS[operation], apiVersion: 'meta.k8s.io/v1', dryRun: ['All'] },
  };
}

/** Decides like RBAC in this cluster: the admin has all rights, others have none of those that the test checks. */
const RBAC: CelAuthorizer = {
  authorize: ({ user }) => ({ isAllowed: user.groups?.includes('system:masters') === true, reason: '' }),
};

function pathOf({ resource, object, operation }: Case): string {
  const version = textOf(object.apiVersion);
  const root = version.includes('/') ? `/apis/${version}` : `/api/${version}`;
  const name = operation === undefined ? '' : `/${textOf((object.metadata as JsonObject).name)}`;
  return `${root}/namespaces/${NAMESPACE}/${resource}${name}?dryRun=All`;
}

/** The texts of the warnings of a response. */
function warningsOf({ headers }: ApiResponse<unknown>): string[] {
  const header = headers.warning;
  const text = Array.isArray(header) ? header.join(', ') : (header ?? '');
  return Array.from(text.matchAll(/299 - ("(?:[^"\\]|\\.)*")/gu), ([, quoted]) => JSON.parse(quoted ?? '""') as string);
}

/** The outcome of a request, in the API server and here. */
interface Outcome {
  readonly message: string;
  readonly code: number;
  readonly reason: string;
  readonly warnings: readonly string[];
  /** The fields that mutations can change, if the request was allowed. */
  readonly object?: unknown;
}

/** Sorts the keys, as API servers do. */
function sorted(value: unknown): JsonObject {
  return Object.fromEntries(Object.entries((value ?? {}) as JsonObject).sort(([a], [b]) => (a < b ? -1 : 1)));
}

function shown(object: JsonObject): unknown {
  const { labels = {}, annotations = {} } = object.metadata as JsonObject;
  const spec = object.spec as { replicas?: number; template?: { spec: JsonObject } } | undefined;
  const pod = spec?.template?.spec;
  const containers = (pod?.containers as JsonObject[] | undefined)?.map(({ name, image, env }) => ({
    name,
    image,
    ...(env === undefined ? {} : { env }),
  }));
  const { data = {}, immutable = null } = object;
  const grace = pod?.terminationGracePeriodSeconds ?? 30;
  return {
    labels: sorted(labels),
    annotations: sorted(annotations),
    data: sorted(data),
    immutable,
    replicas: spec?.replicas,
    containers,
    grace,
  };
}

function theirs(response: ApiResponse<JsonObject>): Outcome {
  const warnings = warningsOf(response);
  if (response.status < 400) {
    return { message: '', code: 200, reason: '', warnings, object: shown(response.body) };
  }
  const { message, reason, code } = response.body as unknown as Status;
  return { message, code, reason, warnings };
}

function ours(verdict: ManifestVerdict, object: JsonObject): Outcome {
  const { warnings } = verdict;
  return verdict.allowed
    ? { message: '', code: 200, reason: '', warnings, object: shown((verdict.patchedObject as JsonObject) ?? object) }
    : { message: verdict.message ?? '', code: verdict.code ?? 0, reason: verdict.reason ?? '', warnings };
}

interface AuditEvent {
  readonly objectRef: { readonly name?: string };
  readonly annotations?: Readonly<Record<string, string>>;
}

/** The name of the object of an audit event, and the audit annotations of policies. */
function annotationsIn({ objectRef, annotations = {} }: AuditEvent): [name: string, annotations: JsonObject] {
  const own = Object.entries(annotations).filter(([key]) => !key.includes('k8s.io/') || key.startsWith('validation.'));
  return [objectRef.name ?? '', Object.fromEntries(own)];
}

/**
 * The part of a problem that is compared. Of a syntax error it is only the position, because the generated parser of API servers
 * lists its tokens, and errors that follow from the first one.
 */
function comparable(problem: string): string {
  return problem.replace(/( Syntax error): [^]*/u, '$1');
}

describe('admission policies here and in a kube-apiserver', { skip: skipWithoutCluster() }, () => {
  const expressions = [...EXPRESSIONS, ...generatedExpressions(Number(CEL_GENERATED), Number(CEL_SEED))].map(
    expressionCase,
  );
  const policies = POLICIES.map(policyCase);
  const mutations = MUTATIONS.map(mutationCase);
  const invalid = INVALID.map((spec, index) => {
    const id = `invalid-${index}`;
    const title = JSON.stringify(spec);
    return validatingCase(id, { title, resource: 'configmaps', object: configMap(id), user: ADMIN, spec });
  });
  const all = [...expressions, ...policies, ...mutations, ...invalid];
  /** The errors of the API server for policies that it rejected. */
  const refused = new Map<string, Status>();
  let cluster: Cluster;
  /** The folder of the audit log. */
  let folder: string;
  let loaded: LoadedManifests;
  /** The policies that the API server rejected, as loaded here. */
  let unusable: LoadedManifests;

  async function post(path: string, body: JsonObject): Promise<ApiResponse<JsonObject>> {
    return cluster.request<JsonObject>('POST', path, body);
  }

  async function createPolicies(): Promise<void> {
    await each(all, async ({ id, policy, binding }) => {
      const plural =
        policy.kind === 'MutatingAdmissionPolicy' ? 'mutatingadmissionpolicies' : 'validatingadmissionpolicies';
      const group = `${GROUP}/${textOf(policy.apiVersion).split('/')[1]}`;
      const created = await post(`${group}/${plural}`, policy);
      if (created.status >= 400) {
        refused.set(id, created.body as unknown as Status);
        return;
      }
      const kind = plural.replace('policies', 'policybindings');
      await cluster.expect('POST', `${group}/${kind}`, binding);
    });
  }

  async function createObjects(): Promise<JsonObject[]> {
    await cluster.expect('POST', '/api/v1/namespaces', {
      metadata: { name: NAMESPACE, labels: { team: 'red' }, annotations: { note: 'n' } },
    });
    await cluster.createNamespace('diff-params');
    const params = [
      { namespace: NAMESPACE, name: 'param-one', data: { expected: 'x' } },
      { namespace: 'diff-params', name: 'param-one', data: { expected: 'y' } },
      { namespace: NAMESPACE, name: 'limit-a', labels: { limits: 'yes' }, data: { limit: '5' } },
      { namespace: NAMESPACE, name: 'limit-b', labels: { limits: 'yes' }, data: { limit: '7' } },
    ].map(({ data, ...metadata }) => ({ apiVersion: 'v1', kind: 'ConfigMap', metadata, data }));
    const existing = policies.filter(({ operation }) => operation !== undefined).map(({ object }) => object);
    await each([...params, ...existing], async (param) => {
      const { namespace } = param.metadata as { namespace: string };
      await cluster.expect('POST', `/api/v1/namespaces/${namespace}/configmaps`, param);
    });
    const rbac = '/apis/rbac.authorization.k8s.io/v1';
    const role = { metadata: { name: 'maps' }, rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['*'] }] };
    await cluster.expect('POST', `${rbac}/namespaces/${NAMESPACE}/roles`, role);
    await cluster.expect('POST', `${rbac}/namespaces/${NAMESPACE}/rolebindings`, {
      metadata: { name: 'maps' },
      roleRef: { apiGroup: 'rbac.authorization.k8s.io', kind: 'Role', name: 'maps' },
      subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'alice' }],
    });
    await cluster.expect('POST', '/apis/apiextensions.k8s.io/v1/customresourcedefinitions', {
      metadata: { name: 'things.example.test' },
      spec: {
        group: 'example.test',
        scope: 'Namespaced',
        names: { kind: 'Thing', plural: 'things' },
        versions: [
          {
            name: 'v1',
            served: true,
            storage: true,
            schema: {
              openAPIV3Schema: {
                type: 'object',
                properties: { spec: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } },
              },
            },
          },
        ],
      },
    });
    return params;
  }

  /** Waits until the API server enforces the policies that were created last. */
  async function untilEnforced(): Promise<void> {
    const probes = ['reason-invalid', 'quotes', 'param', 'param-selector'].map((name) => `policy-${name}`);
    const last = [expressions[0], expressions.findLast(({ id }) => !refused.has(id))].flatMap((one) => one ?? []);
    for (const probe of [...policies.filter(({ id }) => probes.includes(id)), ...last]) {
      await eventually(
        async () => {
          const { status, body } = await post(pathOf(probe), probe.object);
          assert.equal(status, 422, `${probe.id}: ${JSON.stringify(body)}`);
          assert.doesNotMatch(textOf(body.message), /not yet synced|failed to configure/u);
        },
        { timeoutMs: 30_000 },
      );
    }
    const mutation = mutations.find(({ id }) => id === 'mutation-number') as Case;
    await eventually(
      async () => {
        const { body } = await post(pathOf(mutation), mutation.object);
        assert.equal((body.spec as JsonObject | undefined)?.replicas, 4, JSON.stringify(body.message));
      },
      { timeoutMs: 30_000 },
    );
  }

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-audit-'));
    const auditPolicy = join(folder, 'audit.yaml');
    const rules = [{ level: 'Metadata', namespaces: [NAMESPACE], omitStages: ['RequestReceived'] }, { level: 'None' }];
    await writeFile(auditPolicy, JSON.stringify({ apiVersion: 'audit.k8s.io/v1', kind: 'Policy', rules }));
    cluster = await startCluster({
      users: { alice: {} },
      apiServerArgs: [
        '--feature-gates=MutatingAdmissionPolicy=true',
        '--runtime-config=admissionregistration.k8s.io/v1beta1=true',
        `--audit-policy-file=${auditPolicy}`,
        `--audit-log-path=${join(folder, 'audit.log')}`,
      ],
    });
    const params = await createObjects();
    await createPolicies();
    const namespace = await cluster.expect('GET', `/api/v1/namespaces/${NAMESPACE}`);
    const taken = all.filter(({ id }) => !refused.has(id)).flatMap(({ policy, binding }) => [policy, binding]);
    const options = { kubernetesVersion: KUBERNETES_VERSION };
    loaded = loadManifests([...taken, ...params, namespace], options);
    const others = all.filter(({ id }) => refused.has(id)).flatMap(({ policy, binding }) => [policy, binding]);
    unusable = loadManifests(others, options);
    await untilEnforced();
  });
  after(async () => {
    // Undefined when the start failed.
    await (cluster as Cluster | undefined)?.stop();
    await rm(folder, { recursive: true, force: true });
  });

  it('take the same policies', () => {
    assert.deepEqual(
      loaded.problems.map((problem) => `${problem.manifest} ${problemText(problem)}`),
      [],
    );
    assert.equal(refused.size > INVALID.length / 2, true);
  });

  it('say the same of policies that cannot be used', () => {
    const differences = [...refused].flatMap(([id, { details }]) => {
      const expected = (details?.causes ?? []).map(({ field, message }) => `${field}: ${message}`).sort();
      const actual = unusable.problems
        .filter(({ manifest }) => manifest.endsWith(`/${id}`))
        // API servers have no hints.
        .map((problem) => problemText(problem).replaceAll(/\n = .*/gu, ''))
        .sort();
      const isSame = JSON.stringify(expected.map(comparable)) === JSON.stringify(actual.map(comparable));
      const title = all.find((one) => one.id === id)?.title ?? '';
      return isSame ? [] : [{ title, expected, actual }];
    });
    assert.deepEqual(differences, []);
  });

  for (const [name, cases] of Object.entries({ expressions, policies, mutations })) {
    it(`give the same answers: ${name}`, async () => {
      const taken = cases.filter(({ id }) => !refused.has(id));
      const differences = await each(taken, async (one) => {
        const { title, object, user } = one;
        const operation = one.operation ?? 'CREATE';
        const body = operation === 'DELETE' ? undefined : object;
        const answer = await cluster.request<JsonObject>(METHODS[operation], pathOf(one), body, { user });
        const expected = theirs(answer);
        const request = admissionRequest(requestOf(one));
        const actual = ours(evaluateManifests(loaded, request, { authorizer: RBAC }), object);
        return JSON.stringify(expected) === JSON.stringify(actual) ? [] : [{ title, expected, actual }];
      });
      assert.deepEqual(differences.flat(), []);
    });
  }

  it('note the same in the audit log', async () => {
    const cases = policies.filter(({ id, operation }) => !refused.has(id) && operation === undefined);
    const noted = await eventually(async () => {
      const events = (await readFile(join(folder, 'audit.log'), 'utf8')).trimEnd().split('\n');
      const found = new Map(events.map((line) => annotationsIn(JSON.parse(line) as AuditEvent)));
      assert.ok(cases.every(({ id }) => found.has(id)));
      return found;
    });
    const differences = cases.flatMap((one) => {
      const request = admissionRequest(requestOf(one));
      const actual = evaluateManifests(loaded, request, { authorizer: RBAC }).auditAnnotations;
      const expected = noted.get(one.id);
      return JSON.stringify(sorted(expected)) === JSON.stringify(sorted(actual))
        ? []
        : [{ title: one.title, expected, actual }];
    });
    assert.deepEqual(differences, []);
    assert.ok(noted.size > 0 && cases.some(({ id }) => Object.keys(noted.get(id) ?? {}).length > 0));
  });
});
