// Rights of authors of namespaced policies, on the embedded cluster with its RBAC.
import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { pino } from 'pino';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { ApiError, type Cluster, KubernetesCluster, tokenCredentials } from '../../cluster/index.ts';
import { ensureLocalCertificates } from '../../control/certificates/index.ts';
import {
  ADMISSION_POLICIES,
  ADMISSION_POLICY_GROUPS,
  customResourceDefinition,
  knownKind,
  type KubernetesObject,
  OWN_KINDS,
  POLICY_REVISIONS,
  POLICY_UID_LABEL,
} from '../../resources/index.ts';
import { SharedCaches } from '../../runtime/index.ts';
import { AuthorRights } from './author-rights.ts';
import { MAX_REVIEWED_RESOURCES, neededRights } from './needed-rights.ts';
import { OwnKindsWebhook } from './own-kinds-webhook.ts';
import { ReviewBudget } from './review-budget.ts';
import { object, review } from './testing/validation-cases.ts';

const PRODUCT = 'portcullis';
const CONTROLLER = 'system:serviceaccount:portcullis:portcullis-controller';
const RBAC = 'rbac.authorization.k8s.io/v1';
const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] };
const MODULE = { module: 'builtin:cel', settings: { validations: [{ expression: 'true' }] } };
const FINALIZER = 'example.com/done';

const validating = (...rules: readonly object[]): object => ({
  ...MODULE,
  mutating: false,
  rules: rules.map((rule) => ({ ...RULE, ...rule })),
});
const mutating = (...rules: readonly object[]): object => ({ ...validating(...rules), mutating: true });
const grouped = (...rules: readonly object[]): object => ({
  rules: rules.map((rule) => ({ ...RULE, ...rule })),
  policies: { one: MODULE },
  expression: 'one()',
  message: 'no',
});

/** A policy on ConfigMaps that reads its validations from elsewhere. */
const withParameters = (from: object, settingsExpression = "{'validations': params.spec.rules}"): object => ({
  ...validating({ resources: ['configmaps'] }),
  parameters: { from, overridable: ['validations'], settingsExpression },
});
const PROFILE = { apiVersion: 'example.com/v1', kind: 'ToolProfile', name: 'profile' };
const CONFIG = { apiVersion: 'v1', kind: 'ConfigMap', name: 'rules' };
const SHELF = { apiVersion: 'example.com/v1', kind: 'Shelf', name: 'one' };

function definition(
  kind: string,
  plural: string,
  scope: 'Namespaced' | 'Cluster',
): { readonly metadata: object; readonly spec: object } {
  const schema = { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } };
  return {
    metadata: { name: `${plural}.example.com` },
    spec: {
      group: 'example.com',
      names: { kind, plural, singular: kind.toLowerCase() },
      scope,
      versions: [{ name: 'v1', served: true, storage: true, schema }],
    },
  };
}

const log = pino({ level: 'silent' });

describe('the author of a namespaced policy', () => {
  let folder: string;
  let cluster: EmbeddedCluster;
  let admin: Cluster;
  let stop: () => Promise<void>;
  let count = 0;

  const as = (username: string): Cluster => cluster.as({ username, groups: ['system:authenticated'] });
  const policy = (spec: object, metadata: object = {}): KubernetesObject => ({
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'policies' in spec ? 'AdmissionPolicyGroup' : 'AdmissionPolicy',
    metadata: { name: `p${(count += 1)}`, namespace: 'shop', ...metadata },
    spec,
  });
  const create = (user: Cluster, one: KubernetesObject): Promise<KubernetesObject> =>
    one.kind === 'AdmissionPolicy' ? user.create(ADMISSION_POLICIES, one) : user.create(ADMISSION_POLICY_GROUPS, one);

  async function make(kind: string, apiVersion: string, rest: object, metadata: object): Promise<void> {
    await admin.create(knownKind(apiVersion, kind), { apiVersion, kind, metadata, ...rest });
  }

  /** Lets a user do something in the namespace, and write policies there. */
  async function grant(user: string, rules: readonly object[]): Promise<void> {
    const metadata = { name: user, namespace: 'shop' };
    const policies = { apiGroups: ['policies.kubewarden.io'], resources: ['*'], verbs: ['*'] };
    await make('Role', RBAC, { rules: [policies, ...rules] }, metadata);
    await bind(user, { kind: 'Role', name: user });
  }

  async function bind(user: string, role: object): Promise<void> {
    await make(
      'RoleBinding',
      RBAC,
      {
        roleRef: { apiGroup: 'rbac.authorization.k8s.io', ...role },
        subjects: [{ apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: user }],
      },
      { generateName: `${user}-`, namespace: 'shop' },
    );
  }

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), 'portcullis-author-rights-'));
    const certificates = await ensureLocalCertificates(join(folder, 'pki'));
    cluster = await EmbeddedCluster.open();
    const groups = ['system:masters', 'system:authenticated'];
    admin = cluster.as({ username: 'admin', groups });
    for (const kind of OWN_KINDS) {
      await make('CustomResourceDefinition', 'apiextensions.k8s.io/v1', customResourceDefinition(kind), {});
    }
    for (const { metadata, ...rest } of [
      definition('ToolProfile', 'toolprofiles', 'Namespaced'),
      definition('Shelf', 'shelves', 'Cluster'),
    ] as const) {
      await make('CustomResourceDefinition', 'apiextensions.k8s.io/v1', rest, metadata);
    }
    await make('Namespace', 'v1', {}, { name: 'shop' });
    await grant('editor', []);
    await bind('editor', { kind: 'ClusterRole', name: 'edit' });
    await grant('reader', [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get'] }]);
    await grant('updater', [{ apiGroups: [''], resources: ['configmaps', 'pods/status'], verbs: ['get', 'update'] }]);
    const configMapsOnly = { apiGroups: [''], resources: ['configmaps'], verbs: ['get'] };
    const one = { apiGroups: ['example.com'], resources: ['toolprofiles'], resourceNames: ['profile'], verbs: ['get'] };
    await grant('profiler', [configMapsOnly, one]);
    await grant('replacer', [
      { apiGroups: [''], resources: ['pods'], verbs: ['create', 'update'] },
      { apiGroups: ['batch'], resources: ['jobs'], verbs: ['create', 'update'] },
    ]);
    await grant('owner', [{ apiGroups: ['*'], resources: ['*'], verbs: ['*'] }]);
    const controller = cluster.as({ username: CONTROLLER, groups });
    const caches = new SharedCaches({ cluster: controller, log });
    const ca = readFileSync(certificates.caFile, 'utf8');
    const options = { cluster: controller, caches, namespace: PRODUCT, ca, log, controllerUser: CONTROLLER };
    const webhook = new OwnKindsWebhook({
      ...options,
      host: '127.0.0.1',
      port: 0,
      tls: certificates,
      apiServers: ['127.0.0.1'],
    });
    const aborting = new AbortController();
    const running = [webhook.registration, caches, webhook].map((runnable) => runnable.start(aborting.signal));
    stop = async () => {
      aborting.abort();
      await Promise.all(running);
    };
    await webhook.registration.ready;
  });
  after(async () => {
    await stop();
    await cluster.close();
    rmSync(folder, { recursive: true });
  });

  const secrets = { resources: ['secrets'] };
  const configMaps = { resources: ['configmaps'] };
  const deployments = { apiGroups: ['apps'], resources: ['deployments', 'deployments/scale'] };

  for (const [user, what, spec] of [
    ['editor', 'reviews pods, Secrets and Deployments', validating({}, secrets, deployments)],
    ['editor', 'reviews them as a group', grouped({}, secrets, deployments)],
    ['editor', 'changes pods, Secrets and Deployments', mutating({}, secrets, deployments)],
    [
      'reader',
      'reviews ConfigMaps, whatever the version and operation',
      validating({ ...configMaps, apiVersions: ['*'], operations: ['*'] }),
    ],
    ['reader', 'reads parameters from a ConfigMap', withParameters({ resource: CONFIG })],
    ['profiler', 'reads the only parameters that it may', withParameters({ resource: PROFILE })],
    [
      'editor',
      'reads parameters from the namespace',
      withParameters({ namespace: { labels: ['team'] } }, "{'validations': [params.labels.team]}"),
    ],
    ['owner', 'reads parameters of a kind to come', withParameters({ resource: { ...PROFILE, kind: 'Later' } })],
    ['owner', 'changes pods and all their subresources', mutating({ resources: ['pods/*'] })],
    ['editor', 'changes pod templates of workloads', { ...mutating({}), podTemplates: 'Enforce' }],
    ['editor', 'reviews pod templates by a group', { ...grouped({}), podTemplates: 'Warn' }],
    ['owner', 'reviews one subresource of all resources', validating({ resources: ['*/scale'] })],
  ] as const) {
    it(`${what}, with the rights of the ${user}`, async () => {
      await create(as(user), policy(spec));
    });
  }

  for (const [user, what, spec, missing] of [
    [
      'reader',
      'reviews Secrets',
      validating(configMaps, secrets),
      [
        'spec.rules[1].resources[0]: Forbidden: user "reader" may not get secrets in the namespace "shop" [author-rights]',
      ],
    ],
    [
      'reader',
      'reviews Secrets in a group',
      grouped(secrets),
      [
        'spec.rules[0].resources[0]: Forbidden: user "reader" may not get secrets in the namespace "shop" [author-rights]',
      ],
    ],
    [
      'reader',
      'changes ConfigMaps',
      mutating(configMaps),
      [
        'spec.rules[0].resources[0]: Forbidden: user "reader" may not create, update configmaps in the namespace "shop" [author-rights]',
      ],
    ],
    [
      'updater',
      'changes ConfigMaps',
      mutating(configMaps),
      [
        'spec.rules[0].resources[0]: Forbidden: user "updater" may not create configmaps in the namespace "shop" [author-rights]',
      ],
    ],
    [
      'updater',
      'reviews pods with their statuses',
      validating({ resources: ['pods', 'pods/status'] }),
      [
        'spec.rules[0].resources[0]: Forbidden: user "updater" may not get pods in the namespace "shop" [author-rights]',
      ],
    ],
    [
      'editor',
      'changes a quota',
      mutating({ resources: ['resourcequotas'] }),
      [
        'spec.rules[0].resources[0]: Forbidden: user "editor" may not create, update resourcequotas in the namespace "shop" [author-rights]',
      ],
    ],
    [
      'replacer',
      'changes pods and the pod templates of workloads',
      { ...mutating({}), podTemplates: 'Warn' },
      [
        'deployments.apps',
        'statefulsets.apps',
        'daemonsets.apps',
        'replicasets.apps',
        'replicationcontrollers',
        'cronjobs.batch',
      ].map(
        (resource) =>
          `spec.podTemplates: Forbidden: user "replacer" may not create, update ${resource} in the namespace "shop" [author-rights]`,
      ),
    ],
    [
      'editor',
      'reviews all subresources of pods',
      validating({ resources: ['pods/*'] }),
      [
        'spec.rules[0].resources[0]: Forbidden: user "editor" may not get pods/* in the namespace "shop" [author-rights]',
      ],
    ],
    [
      'editor',
      'reviews kinds of another group',
      validating({ apiGroups: ['apps', 'example.com'], resources: ['deployments'] }),
      [
        'spec.rules[0].resources[0]: Forbidden: user "editor" may not get deployments.example.com in the namespace "shop" [author-rights]',
      ],
    ],
    [
      'reader',
      'reads parameters from an object of another kind',
      withParameters({ resource: PROFILE }),
      [
        'spec.parameters.from.resource: Forbidden: user "reader" may not get toolprofiles.example.com "profile" in the namespace "shop" [author-rights]',
      ],
    ],
    [
      'profiler',
      'reads parameters from another object of the kind',
      withParameters({ resource: { ...PROFILE, name: 'other' } }),
      [
        'spec.parameters.from.resource: Forbidden: user "profiler" may not get toolprofiles.example.com "other" in the namespace "shop" [author-rights]',
      ],
    ],
    [
      'reader',
      'reads parameters for members of a group',
      {
        ...grouped(configMaps),
        policies: { one: { ...withParameters({ resource: PROFILE }), rules: undefined, mutating: undefined } },
      },
      [
        'spec.policies[one].parameters.from.resource: Forbidden: user "reader" may not get toolprofiles.example.com "profile" in the namespace "shop" [author-rights]',
      ],
    ],
    [
      'reader',
      'reads parameters from the namespace',
      withParameters({ namespace: { labels: ['team'] } }, "{'validations': [params.labels.team]}"),
      [
        'spec.parameters.from.namespace: Forbidden: user "reader" may not get namespaces "shop" in the namespace "shop" [author-rights]',
      ],
    ],
    [
      'reader',
      'reads labels of the namespace beside parameters',
      withParameters({ resource: CONFIG }, "{'validations': [namespaceObject.metadata.labels.team]}"),
      [
        'spec.parameters.settingsExpression: Forbidden: user "reader" may not get namespaces "shop" in the namespace "shop" [author-rights]',
      ],
    ],
    [
      'profiler',
      'reads parameters of a kind to come',
      withParameters({ resource: { ...PROFILE, kind: 'Later' } }),
      [
        'spec.parameters.from.resource: Forbidden: user "profiler" may not get *.example.com "profile" in the namespace "shop": the cluster does not serve example.com/v1 Later [author-rights]',
      ],
    ],
    [
      'owner',
      'reads parameters of a cluster-scoped kind',
      withParameters({ resource: SHELF }),
      [
        'spec.parameters.from.resource: Forbidden: user "owner" may not get shelves.example.com "one" in the cluster [author-rights]',
      ],
    ],
  ] as const) {
    it(`is refused, who ${what}, without the rights of more than the ${user}`, async () => {
      await assert.rejects(create(as(user), policy(spec)), (error: unknown) => {
        assert.ok(error instanceof ApiError);
        assert.deepEqual([error.code, error.reason], [403, 'Forbidden']);
        assert.match(
          error.message,
          new RegExp(`is forbidden: user "${user}" lacks rights to what the policy matches or reads`),
        );
        assert.deepEqual(
          error.details?.causes?.map(({ field = '', message = '' }) => `${field}: ${message}`),
          missing,
        );
        return true;
      });
    });
  }

  it('is refused a policy on privileged kinds, whatever the rights', async () => {
    const roleBindings = { apiGroups: ['rbac.authorization.k8s.io'], resources: ['rolebindings'] };
    for (const user of [as('editor'), as('owner'), admin]) {
      await assert.rejects(create(user, policy(mutating(roleBindings))), { code: 422, message: /\[rule-privileged\]/ });
    }
  });

  it('is the user who changes the spec, and no one for other changes and deletions', async () => {
    const { metadata } = await create(admin, policy(mutating(secrets), { finalizers: [FINALIZER] }));
    const key = { namespace: 'shop', name: metadata.name ?? '' };
    const reader = as('reader');
    const patch = (user: Cluster, body: object): Promise<KubernetesObject> =>
      user.patch(ADMISSION_POLICIES, key, { type: 'merge', body: body as never });
    const spec = { spec: { settings: { validations: [{ expression: 'false' }] } } };
    await assert.rejects(patch(reader, spec), { code: 403, message: /may not create, update secrets/ });
    await patch(as('editor'), spec);
    await patch(reader, { metadata: { labels: { a: 'b' }, annotations: { a: 'b' } } });
    // The user of the change counts, not what the policy matched before.
    await patch(reader, { spec: { mutating: false, rules: [{ ...RULE, ...configMaps }] } });
    await reader.delete(ADMISSION_POLICIES, key);
    await patch(reader, { metadata: { finalizers: null } });
    await assert.rejects(reader.get(ADMISSION_POLICIES, key), { code: 404 });
  });

  describe('who restores a revision', () => {
    const ROLLBACK = 'portcullis.dev/rollback-to';
    const PIN = 'portcullis.dev/pin';
    const narrow = validating(configMaps);
    /** A policy on ConfigMaps, which an administrator narrowed: its first revision matches Secrets. */
    const key = { namespace: 'shop', name: 'narrowed' };
    const annotate = (user: Cluster, annotations: object, spec?: object): Promise<KubernetesObject> =>
      user.patch(ADMISSION_POLICIES, key, {
        type: 'merge',
        body: { metadata: { annotations }, ...(spec && { spec }) } as never,
      });

    async function revise(uid: string, revision: number, snapshot: object): Promise<void> {
      const name = `narrowed-${revision}`;
      const one = await cluster.as({ username: CONTROLLER, groups: ['system:masters'] }).create(POLICY_REVISIONS, {
        apiVersion: 'portcullis.dev/v1',
        kind: 'PolicyRevision',
        metadata: { name, namespace: PRODUCT, labels: { [POLICY_UID_LABEL]: uid } },
        spec: {
          policy: { apiVersion: 'policies.kubewarden.io/v1', kind: 'AdmissionPolicy', ...key, uid },
          policyId: 'kw.ap.shop.narrowed',
          policyServer: 'default',
          revision,
          policyGeneration: revision,
          snapshot: snapshot as never,
        },
      });
      const status = { state: 'Retired', order: revision };
      await cluster
        .as({ username: CONTROLLER, groups: ['system:masters'] })
        .update(POLICY_REVISIONS, { ...one, status }, { subresource: 'status' });
    }

    before(async () => {
      await make('Namespace', 'v1', {}, { name: PRODUCT });
      const { metadata } = await create(admin, policy(narrow, { name: key.name }));
      await revise(metadata.uid ?? '', 1, mutating(secrets));
      await revise(metadata.uid ?? '', 2, narrow);
      await revise(metadata.uid ?? '', 3, { ...narrow, mode: 'protect' });
    });

    for (const [what, annotations, field] of [
      ['by its number', { [ROLLBACK]: '1' }, ROLLBACK],
      ['by being the previous one, which it may become', { [ROLLBACK]: 'previous' }, ROLLBACK],
      ['by a pin', { [PIN]: '1' }, PIN],
    ] as const) {
      it(`${what} needs the rights of its author`, async () => {
        await assert.rejects(annotate(as('reader'), annotations), (error: unknown) => {
          assert.ok(error instanceof ApiError);
          assert.equal(error.code, 403);
          assert.deepEqual(
            error.details?.causes?.map((cause) => `${cause.field}: ${cause.message}`),
            [
              `metadata.annotations[${field}]: Forbidden: user "reader" may not create, update secrets in the namespace "shop": revision 1 matches or reads it [author-rights]`,
            ],
          );
          return true;
        });
        await annotate(as('editor'), annotations);
        await annotate(admin, { [field]: null });
      });
    }

    it('with rights to it needs no others', async () => {
      await annotate(as('reader'), { [ROLLBACK]: '2' });
      await annotate(as('reader'), { [ROLLBACK]: null, [PIN]: '3' });
      await annotate(as('reader'), { [PIN]: null });
    });

    it('together with a spec needs the rights to both', async () => {
      const { rules } = narrow as { readonly rules: object };
      await assert.rejects(annotate(as('reader'), { [ROLLBACK]: '1' }, { rules, timeoutSeconds: 5 }), { code: 403 });
    });

    it('by ending a pin, or by a number to come, needs the rights to the spec', async () => {
      await annotate(admin, { [PIN]: '2' }, validating(secrets));
      await assert.rejects(annotate(as('reader'), { [PIN]: null }), {
        code: 403,
        message:
          /\[portcullis\.dev\/pin\]: Forbidden: user "reader" may not get secrets .*: the spec matches or reads it/,
      });
      await assert.rejects(annotate(as('reader'), { [PIN]: '9' }), { code: 403 });
      // Other annotations are not looked at.
      await annotate(as('reader'), { a: 'b' });
      await annotate(admin, { [PIN]: null }, narrow);
    });

    it('is the controller without a check, which rolls back for the user who asked', async () => {
      await annotate(admin, { [ROLLBACK]: '1' });
      const controller = cluster.as({ username: CONTROLLER, groups: ['system:masters'] });
      await annotate(controller, { [ROLLBACK]: null }, mutating(secrets));
    });
  });

  it('gets an error that lists all missing rights, and may match so many resources only', async () => {
    const resources = Array.from({ length: MAX_REVIEWED_RESOURCES }, (_, index) => `things${index}`);
    await assert.rejects(create(as('reader'), policy(mutating({ resources }))), (error: unknown) => {
      assert.ok(error instanceof ApiError);
      assert.equal(error.details?.causes?.length, MAX_REVIEWED_RESOURCES);
      return true;
    });
    const tooMany = mutating({ resources: [...resources, 'one-more'] });
    for (const user of [as('reader'), admin]) {
      await assert.rejects(create(user, policy(tooMany)), { code: 403, message: /expected at most 64 resources/ });
    }
  });

  it('gets the error of the documentation', async () => {
    await grant('jane', []);
    await bind('jane', { kind: 'ClusterRole', name: 'view' });
    const page = readFileSync(new URL('../../../docs/policy-validation.md', import.meta.url), 'utf8');
    await assert.rejects(create(as('jane'), policy(mutating({}), { name: 'default-image' })), (error: Error) => {
      assert.ok(page.includes(`Error from server (Forbidden): ${error.message}\n`), error.message);
      return true;
    });
  });

  it('is refused while the rights cannot be checked', async () => {
    const namespaced = object('ap', validating({}));
    const needed = neededRights(namespaced['spec'] as never);
    const request = review('ap', namespaced, undefined, {
      namespace: 'shop',
      username: 'owner',
      userInfo: { username: 'owner' },
    });
    const caller = { address: '127.0.0.1', isApiServer: true };
    const options = { namespace: PRODUCT, budget: new ReviewBudget(), log };
    const refusalOf = (one: Cluster): Promise<ApiError | undefined> =>
      new AuthorRights({ ...options, cluster: one }).refusal(request, needed, [], caller);
    assert.equal(await refusalOf(admin), undefined);
    // Nothing listens there.
    const unreachable = new KubernetesCluster({ server: 'https://127.0.0.1:1', credentials: tokenCredentials('none') });
    const refusal = await refusalOf(unreachable);
    unreachable.close();
    assert.deepEqual([refusal?.code, refusal?.reason], [503, 'ServiceUnavailable']);
    assert.match(
      refusal?.message ?? '',
      /"one" was not accepted, because the rights of user "owner" could not be checked: the API server does not answer the controller\. Try again \[author-rights\]$/,
    );
  });
});

describe('the rights that a policy needs', () => {
  it('are found within limits, whatever its rules', () => {
    const many = Array.from({ length: 128 }, (_, index) => `a${index}`);
    const rules = Array.from({ length: 128 }, () => ({ apiGroups: many, resources: many }));
    assert.equal(neededRights({ mutating: true, rules }).resources.length, MAX_REVIEWED_RESOURCES + 1);
  });

  it('are all resources for a wildcard, and never those to privileged kinds', () => {
    const textsOf = (...rules: readonly object[]): readonly string[] =>
      neededRights({ mutating: false, rules: rules as never }).resources.map(
        ({ group, resource, subresource }) => `${group}:${resource}/${subresource}`,
      );
    assert.deepEqual(textsOf({ apiGroups: ['*'], resources: ['*/*'] }), ['*:*/*', '*:*/']);
    assert.deepEqual(textsOf({ apiGroups: ['', 'apps'], resources: ['*', '*/scale'] }), [
      ':*/',
      ':*/scale',
      'apps:*/',
      'apps:*/scale',
    ]);
    assert.deepEqual(
      textsOf({ apiGroups: ['', 'rbac.authorization.k8s.io'], resources: ['roles', 'serviceaccounts/token'] }),
      [':roles/'],
    );
    assert.deepEqual(textsOf({ apiGroups: 'apps', resources: [1] }, 'none' as never), []);
  });
});
