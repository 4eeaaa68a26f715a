// Ways to enforce the same pod configuration in the namespaces of tenants: what bench/tenants.ts compares.
import { setTimeout as sleep } from 'node:timers/promises';
import { type NewObject, POLICIES_API, type Scene } from './scene.ts';

/** The label of namespaces of tenants. */
export const TENANT_LABEL = { tenancy: 'tool' };
/** The annotation with the user id of a tenant. */
export const UID_ANNOTATION = 'tools.example.com/uid';
/** User ids of tenants begin here. */
const FIRST_UID = 50_000;

const PODS = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE' as const] };
const VALIDATING_POLICIES = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies';
const BINDINGS = '/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings';

/** API servers read policies and their parameters once a second. Milliseconds. */
const SETTLING_MS = 5_000;

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

/** The settings of a tenant; with parameters, those of all tenants. */
const profile = (uid: number): object => ({
  runAsUser: { rule: 'MustRunAs', ranges: [{ min: uid, max: uid }] },
  runAsGroup: { rule: 'MustRunAs', ranges: [{ min: uid, max: uid }] },
  fsGroup: { rule: 'MustRunAs', ranges: [{ min: uid, max: uid }] },
  requiredDropCapabilities: ['ALL'],
  volumes: ['configMap', 'downwardAPI', 'emptyDir', 'projected', 'secret', 'hostPath', 'persistentVolumeClaim'],
  allowedHostPaths: [{ pathPrefix: '/data/project' }, { pathPrefix: '/public/dumps', readOnly: true }],
});

const policySpec = (uid: number): object => ({
  module: 'builtin:pod-profile',
  mutating: true,
  rules: [PODS],
  settings: profile(uid),
});

const RANGE = "{'rule': 'MustRunAs', 'ranges': [{'min': int(params.uid), 'max': int(params.uid)}]}";

/** One policy whose settings come from an annotation of the namespace. */
const PARAMETERISED: NewObject = {
  path: `/apis/${POLICIES_API}/clusteradmissionpolicies`,
  object: {
    apiVersion: POLICIES_API,
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: 'tools' },
    spec: {
      ...policySpec(FIRST_UID),
      namespaceSelector: { matchLabels: TENANT_LABEL },
      parameters: {
        from: { namespace: { annotations: [UID_ANNOTATION] } },
        overridable: ['runAsUser', 'runAsGroup', 'fsGroup'],
        settingsExpression: `{'runAsUser': ${RANGE}, 'runAsGroup': ${RANGE}, 'fsGroup': ${RANGE}}`.replaceAll(
          'params.uid',
          `params.annotations['${UID_ANNOTATION}']`,
        ),
      },
    },
  },
};

const ownPolicy = (tenant: number): NewObject => ({
  path: `/apis/${POLICIES_API}/namespaces/${tenantNamespace(tenant)}/admissionpolicies`,
  object: {
    apiVersion: POLICIES_API,
    kind: 'AdmissionPolicy',
    metadata: { name: 'pods', namespace: tenantNamespace(tenant) },
    spec: policySpec(uidOf(tenant)),
  },
});

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

const binding = (tenant: number): object => ({
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingAdmissionPolicyBinding',
  metadata: { name: tenantNamespace(tenant) },
  spec: {
    policyName: NATIVE_POLICY.metadata.name,
    validationActions: ['Deny'],
    matchResources: { namespaceSelector: { matchLabels: { 'kubernetes.io/metadata.name': tenantNamespace(tenant) } } },
    paramRef: { name: 'profile', namespace: tenantNamespace(tenant), parameterNotFoundAction: 'Deny' },
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
    await scene.cluster.expect('DELETE', `${PARAMETERISED.path}/tools`);
  },
};

export const POLICIES: Setup = {
  title: 'an AdmissionPolicy per tenant',
  namespace: tenantNamespace,
  install: async (scene, tenants) => {
    await scene.create(tenantsUpTo(tenants).map(ownPolicy));
    await scene.active(`/apis/${POLICIES_API}/admissionpolicies`, tenants);
  },
  uninstall: async (scene, tenants) => {
    await scene.remove(tenantsUpTo(tenants).map((tenant) => `${ownPolicy(tenant).path}/pods`));
  },
};

export const NATIVE: Setup = {
  title: 'a binding of a ValidatingAdmissionPolicy per tenant',
  namespace: tenantNamespace,
  install: async (scene, tenants) => {
    await scene.create(tenantsUpTo(tenants).map(profileMap));
    await scene.create([
      { path: VALIDATING_POLICIES, object: NATIVE_POLICY },
      ...tenantsUpTo(tenants).map((tenant) => ({ path: BINDINGS, object: binding(tenant) })),
    ]);
    await sleep(SETTLING_MS);
  },
  uninstall: async (scene, tenants) => {
    await scene.remove([
      `${VALIDATING_POLICIES}/${NATIVE_POLICY.metadata.name}`,
      ...tenantsUpTo(tenants).flatMap((tenant) => [
        `${BINDINGS}/${tenantNamespace(tenant)}`,
        `${profileMap(tenant).path}/profile`,
      ]),
    ]);
    await sleep(SETTLING_MS);
  },
};

/** Registers the bare webhooks, and creates the namespaces of those and of no policy. */
export async function prepareBaselines(scene: Scene): Promise<void> {
  const names = tenantsUpTo(BARE_NAMESPACES);
  await scene.create([
    ...names.map((index) => namespaceObject(freeNamespace(index), {})),
    ...names.map((index) => namespaceObject(bareNamespace(index), { bench: 'bare' })),
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
