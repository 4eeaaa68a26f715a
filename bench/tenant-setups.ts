// Ways to enforce the same pod configuration in the namespaces of tenants: what bench/tenants.ts compares.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseYaml } from '../src/values/yaml/index.ts';
import { type NewObject, POLICIES_API, type Scene } from './scene.ts';

/** The label of namespaces of tenants. */
export const TENANT_LABEL = { tenancy: 'tool' };
/** The annotation with the user id of a tenant. */
export const UID_ANNOTATION = 'toolforge.example.com/uid';
/** User ids of tenants begin here. */
const FIRST_UID = 50_000;

const PODS = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE' as const] };
const VALIDATING_POLICIES = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
const BINDINGS = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';

const ALL_POLICIES = `/apis/${POLICIES_API}/admissionpolicies`;

/** API servers read bindings once a second. Milliseconds. */
const NATIVE_POLL_MS = 1_000;
/** Time until one has read them all. Milliseconds. */
const NATIVE_MS = 120_000;

/** One way to enforce it. */
export interface Setup {
  readonly title: string;
  /** The namespace of a tenant by its number. */
  readonly namespace: (tenant: number) => string;
  /** Enforces it for the first `tenants` tenants. */
  readonly install?: (scene: Scene, tenants: number) => Promise<void>;
  readonly uninstall?: (scene: Scene, tenants: number) => Promise<void>;
}

export const tenantNamespace = (tenant: number): string => `tool-${tenant}`;
export const uidOf = (tenant: number): number => FIRST_UID + tenant;

/** Namespaces that only the bare webhooks see, and that nothing sees. */
export const BARE_NAMESPACES = 50;
const bareNamespace = (tenant: number): string => `bare-${tenant % BARE_NAMESPACES}`;
const freeNamespace = (tenant: number): string => `free-${tenant % BARE_NAMESPACES}`;

/** The policy of examples/toolforge, which has parameters. */
const [EXAMPLE] = parseYaml(readFileSync(new URL('../examples/toolforge/policy.yaml', import.meta.url), 'utf8')) as [
  { readonly spec: Readonly<Record<'module' | 'mutating' | 'rules', unknown>> & { readonly settings: object } },
];

/** One policy whose settings come from an annotation of the namespace. */
const PARAMETERISED: NewObject = { path: `/apis/${POLICIES_API}/clusteradmissionpolicies`, object: EXAMPLE };

/** The same policy with the settings of one tenant. */
const ownPolicy = (tenant: number): NewObject => {
  const { module, mutating, rules, settings } = EXAMPLE.spec;
  const uid = uidOf(tenant);
  return {
    path: `/apis/${POLICIES_API}/namespaces/${tenantNamespace(tenant)}/admissionpolicies`,
    object: {
      apiVersion: POLICIES_API,
      kind: 'AdmissionPolicy',
      metadata: { name: 'pods', namespace: tenantNamespace(tenant) },
      spec: { module, mutating, rules, settings: { ...settings, runAsUser: uid, runAsGroup: uid, fsGroup: uid } },
    },
  };
};

/** The part of the profile that expressions of Kubernetes can check. They cannot set defaults. */
const NATIVE_POLICY = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicy',
  metadata: { name: 'tools' },
  spec: {
    paramKind: { apiVersion: 'v1', kind: 'ConfigMap' },
    matchConstraints: { resourceRules: [PODS] },
    validations: [
      {
        expression:
          "object.spec.?securityContext.?runAsUser.orValue(int(params.data['uid'])) == int(params.data['uid'])",
      },
      {
        expression: "object.spec.?securityContext.?fsGroup.orValue(int(params.data['uid'])) == int(params.data['uid'])",
      },
      { expression: 'object.spec.containers.all(c, !c.?securityContext.?privileged.orValue(false))' },
    ],
  },
};

const binding = (namespace: string): object => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata: { name: namespace },
  spec: {
    policyName: NATIVE_POLICY.metadata.name,
    validationActions: ['Deny'],
    matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': namespace } } },
    paramRef: { name: 'profile', namespace: namespace, parameterNotFoundAction: 'Deny' },
  },
});

const profileMap = (tenant: number): NewObject => ({
  path: `/api/v1/namespaces/${tenantNamespace(tenant)}/configmaps`,
  object: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'profile' }, data: { uid: String(uidOf(tenant)) } },
});

const tenantsUpTo = (tenants: number): readonly number[] => Array.from({ length: tenants }, (_, index) => index);

export const NO_POLICY: Setup = { title: 'no policy', namespace: freeNamespace };
export const BARE: Setup = { title: 'two bare webhooks', namespace: bareNamespace };

export const PARAMETERS: Setup = {
  title: 'one policy with parameters',
  namespace: tenantNamespace,
  install: async (scene) => {
    await scene.create([PARAMETERISED]);
    await scene.active(PARAMETERISED.path, 1);
  },
  uninstall: async (scene) => {
    await scene.cluster.expect('DELETE', `${PARAMETERISED.path}/tool-pods`);
    await scene.gone(PARAMETERISED.path);
  },
};

export const POLICIES: Setup = {
  title: 'an AdmissionPolicy per tenant',
  namespace: tenantNamespace,
  install: async (scene, tenants) => {
    await scene.create(tenantsUpTo(tenants).map(ownPolicy));
    await scene.active(ALL_POLICIES, tenants);
  },
  uninstall: async (scene, tenants) => {
    await scene.remove(tenantsUpTo(tenants).map((tenant) => `${ownPolicy(tenant).path}/pods`));
    await scene.gone(ALL_POLICIES);
  },
};

export const NATIVE: Setup = {
  title: 'a binding of a ValidatingAdmissionPolicy per tenant',
  namespace: tenantNamespace,
  install: async (scene, tenants) => {
    await scene.create(tenantsUpTo(tenants).map(profileMap));
    await scene.create(
      tenantsUpTo(tenants).map((tenant) => ({ path: BINDINGS, object: binding(tenantNamespace(tenant)) })),
    );
    await nativeDenies(scene, tenants - 1, true);
  },
  uninstall: async (scene, tenants) => {
    await scene.remove(tenantsUpTo(tenants).map((tenant) => `${BINDINGS}/${tenantNamespace(tenant)}`));
    await nativeDenies(scene, tenants - 1, false);
    await scene.remove(tenantsUpTo(tenants).map((tenant) => `${profileMap(tenant).path}/profile`));
  },
};

/** Waits until the API server denies pods of root, and no others, in the namespace of a tenant; or until it denies none. */
async function nativeDenies({ cluster }: Scene, tenant: number, denies: boolean): Promise<void> {
  const isDenied = async (runAsUser: number): Promise<boolean> => {
    const spec = { containers: [{ name: 'main', image: 'registry.example/tool:1' }], securityContext: { runAsUser } };
    const path = `/api/v1/namespaces/${tenantNamespace(tenant)}/pods?dryRun=All`;
    return (await cluster.request('POST', path, { metadata: { name: 'asked' }, spec })).status !== 201;
  };
  const deadline = performance.now() + NATIVE_MS;
  while ((await isDenied(0)) !== denies || (await isDenied(uidOf(tenant)))) {
    if (performance.now() > deadline) {
      throw new Error(`the ValidatingAdmissionPolicy ${denies ? 'does not deny' : 'still denies'} tenant ${tenant}`);
    }
    await sleep(NATIVE_POLL_MS);
  }
  // The bindings that were written at the same time.
  await sleep(2 * NATIVE_POLL_MS);
}

/** Registers the bare webhooks and a ValidatingAdmissionPolicy that matches nothing, and creates the namespaces of those and of no policy. */
export async function prepareBaselines(scene: Scene): Promise<void> {
  const names = tenantsUpTo(BARE_NAMESPACES);
  await scene.create([
    ...names.map((index) => namespaceObject(freeNamespace(index), {})),
    ...names.map((index) => namespaceObject(bareNamespace(index), { bench: 'bare' })),
  ]);
  // Once a policy has no binding, the API server stops to watch its parameters, and does not begin again (1.34).
  await scene.create([
    { path: VALIDATING_POLICIES, object: NATIVE_POLICY },
    { path: BINDINGS, object: binding('nowhere') },
  ]);
  const url = await scene.startBareWebhook();
  const label = { bench: 'bare' };
  await scene.registerWebhook('bare-patch', { kind: 'mutating', url: `${url}/patch`, rules: [PODS], label });
  await scene.registerWebhook('bare', { kind: 'validating', url, rules: [PODS], label });
}

/** Creates the namespaces and service accounts of tenants `from` to `to`, without the last. */
export async function addTenants(scene: Scene, from: number, to: number): Promise<void> {
  const tenants = tenantsUpTo(to).slice(from);
  await scene.create(
    tenants.map((tenant) =>
      namespaceObject(tenantNamespace(tenant), TENANT_LABEL, { [UID_ANNOTATION]: String(uidOf(tenant)) }),
    ),
  );
  await scene.create(
    tenants.map((tenant) => ({
      path: `/api/v1/namespaces/${tenantNamespace(tenant)}/serviceaccounts`,
      object: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } },
    })),
  );
}

function namespaceObject(
  name: string,
  labels: Readonly<Record<string, string>>,
  annotations: Readonly<Record<string, string>> = {},
): NewObject {
  return {
    path: '/api/v1/namespaces',
    object: { apiVersion: 'v1', kind: 'Namespace', metadata: { name, labels, annotations } },
  };
}
