// Ways to enforce the same pod configuration in the namespaces of tenants: what bench/tenants.ts compares.
import { readFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseYaml } from '../src/values/yaml/index.ts';
import { type NewObject, POLICIES_API, type Scene } from './scene.ts';

/** The label of namespaces of tenants. */
const TENANT_LABEL = { tenancy: 'tool' };
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
  /**
   * Labels of its pods. Webhooks and policies select pods by them, so that setups alternate in the same namespaces: where pods are
   * created affects what one costs.
   */
  readonly labels: Readonly<Record<string, string>>;
  /** Enforces it for the first `tenants` tenants. */
  readonly install?: (scene: Scene, tenants: number) => Promise<void>;
  readonly uninstall?: (scene: Scene, tenants: number) => Promise<void>;
}

export const tenantNamespace = (tenant: number): string => `tool-${tenant}`;
export const uidOf = (tenant: number): number => FIRST_UID + tenant;

const LABELS = {
  none: { enforcement: 'none' },
  bare: { enforcement: 'bare' },
  parameters: { enforcement: 'parameters' },
  policies: { enforcement: 'policies' },
  native: { enforcement: 'native' },
} as const satisfies Readonly<Record<string, Setup['labels']>>;

/** The policy of examples/toolforge, which has parameters. */
const [EXAMPLE] = parseYaml(readFileSync(new URL('../examples/toolforge/policy.yaml', import.meta.url), 'utf8')) as [
  { readonly spec: Readonly<Record<'module' | 'mutating' | 'rules', unknown>> & { readonly settings: object } },
];

/** One policy whose settings come from an annotation of the namespace. */
const PARAMETERISED: NewObject = {
  path: `/apis/${POLICIES_API}/clusteradmissionpolicies`,
  object: { ...EXAMPLE, spec: { ...EXAMPLE.spec, objectSelector: { matchLabels: LABELS.parameters } } },
};

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
      spec: {
        module,
        mutating,
        rules,
        objectSelector: { matchLabels: LABELS.policies },
        settings: { ...settings, runAsUser: uid, runAsGroup: uid, fsGroup: uid },
      },
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
    matchConstraints: { resourceRules: [PODS], objectSelector: { matchLabels: LABELS.native } },
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

export const NO_POLICY: Setup = { title: 'no policy', labels: LABELS.none };
export const BARE: Setup = { title: 'two bare webhooks', labels: LABELS.bare };

export const PARAMETERS: Setup = {
  title: 'one policy with parameters',
  labels: LABELS.parameters,
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
  labels: LABELS.policies,
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
  labels: LABELS.native,
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
    return (
      (await cluster.request('POST', path, { metadata: { name: 'asked', labels: LABELS.native }, spec })).status !== 201
    );
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

/** Registers the bare webhooks, and a ValidatingAdmissionPolicy that matches nothing. */
export async function prepareBaselines(scene: Scene): Promise<void> {
  // Once a policy has no binding, the API server stops to watch its parameters, and does not begin again (1.34).
  await scene.create([
    { path: VALIDATING_POLICIES, object: NATIVE_POLICY },
    { path: BINDINGS, object: binding('nowhere') },
  ]);
  const url = await scene.startBareWebhook();
  const objectSelector = { matchLabels: LABELS.bare };
  await scene.registerWebhook('bare-patch', { kind: 'mutating', url: `${url}/patch`, rules: [PODS], objectSelector });
  await scene.registerWebhook('bare', { kind: 'validating', url, rules: [PODS], objectSelector });
}

/** Creates the namespaces of tenants `from` to `to`, without the last, with what tenants usually get. */
export async function addTenants(scene: Scene, from: number, to: number): Promise<void> {
  const tenants = tenantsUpTo(to).slice(from);
  await scene.create(tenants.map(namespaceObject));
  await scene.create(tenants.flatMap((tenant) => [serviceAccount(tenant), limitRange(tenant)]));
}

const namespaceObject = (tenant: number): NewObject => ({
  path: '/api/v1/namespaces',
  object: {
    apiVersion: 'v1',
    kind: 'Namespace',
    metadata: {
      name: tenantNamespace(tenant),
      labels: TENANT_LABEL,
      annotations: { [UID_ANNOTATION]: String(uidOf(tenant)) },
    },
  },
});

const serviceAccount = (tenant: number): NewObject => ({
  path: `/api/v1/namespaces/${tenantNamespace(tenant)}/serviceaccounts`,
  object: { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name: 'default' } },
});

/**
 * Without one, the API server lists the LimitRanges of the namespace for a pod, unless it did in the last 30 seconds (1.34): a pod
 * then costs more the more namespaces take turns, whatever enforces policies.
 */
const limitRange = (tenant: number): NewObject => ({
  path: `/api/v1/namespaces/${tenantNamespace(tenant)}/limitranges`,
  object: {
    apiVersion: 'v1',
    kind: 'LimitRange',
    metadata: { name: 'tool' },
    spec: { limits: [{ type: 'Container', default: { cpu: '500m' }, max: { memory: '8Gi' } }] },
  },
});
