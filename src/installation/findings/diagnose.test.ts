import assert from 'node:assert/strict';
import { before, describe, it } from 'node:test';
import type {
  AdmissionPolicyObject,
  JsonObject,
  KubernetesObject,
  NetworkPolicyProvider,
  PolicyIssue,
  PolicyServerObject,
} from '../../resources/index.ts';
import { policyServerObjectName } from '../../lifecycle/access-rules/index.ts';
import { type CertifiedKey, createAuthority, issueCertificate } from '../../https/index.ts';
import { defaultValues } from '../read-values.ts';
import { installObjects } from '../install-objects.ts';
import { AUDITOR, CONTROLLER } from '../objects/naming.ts';
import { installValues } from '../read-values.ts';
import { diagnose } from './diagnose.ts';
import type { Finding } from './finding.ts';
import type { Snapshot } from './snapshot.ts';

const DAY_MS = 24 * 3_600_000;
const NOW = Date.parse('2026-01-31T12:00:00Z');
const NAMESPACE = 'portcullis';
const context = { namespace: NAMESPACE, values: defaultValues('1.0.0') };

function withArguments(deployment: KubernetesObject, ...more: readonly string[]): KubernetesObject {
  const copy = structuredClone(deployment) as unknown as {
    spec: { template: { spec: { containers: { args: string[] }[] } } };
  };
  copy.spec.template.spec.containers[0]?.args.push(...more);
  return copy as unknown as KubernetesObject;
}

const governancePolicy = (status: object = {}): KubernetesObject => ({
  apiVersion: 'policy.open-cluster-management.io/v1',
  kind: 'Policy',
  metadata: { namespace: 'local-cluster', name: 'shop.one' },
  status,
});

const otherController = (name: string, replicas: number): KubernetesObject => ({
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: { namespace: 'open-cluster-management', name },
  spec: { replicas },
});

/** The part of Kubernetes' ClusterRole that lets users of a namespace write ConfigMaps. */
const EDIT = {
  apiVersion: 'rbac.authorization.k8s.io/v1',
  kind: 'ClusterRole',
  metadata: { name: 'edit' },
  rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['create', 'update'] }],
} as KubernetesObject;

/** Kubewarden, which runs beside Portcullis. */
const KUBEWARDEN = {
  apiVersion: 'apps/v1',
  kind: 'Deployment',
  metadata: {
    namespace: 'kubewarden',
    name: 'kubewarden-controller',
    labels: { 'app.kubernetes.io/name': 'kubewarden-controller' },
  },
  spec: { replicas: 1 },
} as KubernetesObject;

const KUBEWARDEN_WEBHOOK = {
  apiVersion: 'admissionregistration.k8s.io/v1',
  kind: 'ValidatingWebhookConfiguration',
  metadata: { name: 'clusterwide-two' },
  webhooks: [{ name: 'clusterwide-two.kubewarden.admission' }],
} as KubernetesObject;

/** A policy with parameters in ConfigMaps. */
function inConfigMaps({ spec, ...one }: AdmissionPolicyObject): AdmissionPolicyObject {
  const from = { resource: { apiVersion: 'v1', kind: 'ConfigMap', name: 'profile' } };
  return { ...one, spec: { ...spec, parameters: { from, overridable: ['a'], settingsExpression: '{}' } } } as never;
}

const UNKNOWN_PROVIDER: NetworkPolicyProvider = {
  apiVersion: 'portcullis.dev/v1',
  kind: 'NetworkPolicyProvider',
  metadata: { name: 'mine' },
  spec: { presence: 'Present' },
  status: {
    conditions: [
      {
        type: 'Stalled',
        status: 'True',
        reason: 'NotInCatalogue',
        message: 'x',
        lastTransitionTime: '2026-01-01T00:00:00Z',
      },
    ],
  },
};

type Change = (snapshot: Snapshot) => Partial<Snapshot>;

describe('the doctor', () => {
  let authority: CertifiedKey;
  let other: CertifiedKey;
  let healthy: Snapshot;

  const leaf = (by: CertifiedKey, fromDays: number, toDays: number): Promise<CertifiedKey> =>
    issueCertificate(by, {
      commonName: 'leaf',
      notBefore: new Date(NOW + fromDays * DAY_MS),
      notAfter: new Date(NOW + toDays * DAY_MS),
      usages: ['serverAuth'],
      dnsNames: ['policy-server-default.portcullis.svc'],
    });
  const secret = (name: string, { cert, key }: CertifiedKey, ca: string): KubernetesObject => {
    const texts = { 'tls.crt': cert, 'tls.key': key, 'ca.crt': ca };
    const data = Object.entries(texts).map(([file, text]) => [file, Buffer.from(text).toString('base64')]);
    return {
      apiVersion: 'v1',
      kind: 'Secret',
      metadata: { name, namespace: NAMESPACE },
      data: Object.fromEntries(data) as JsonObject,
    };
  };
  const configuration = (ca: string): KubernetesObject => ({
    apiVersion: 'admissionregistration.k8s.io/v1',
    kind: 'ValidatingWebhookConfiguration',
    metadata: { name: 'portcullis-default', labels: { 'app.kubernetes.io/managed-by': 'portcullis' } },
    webhooks: [
      {
        name: 'a.portcullis.dev',
        clientConfig: {
          service: { name: 'policy-server-default', namespace: NAMESPACE },
          caBundle: Buffer.from(ca).toString('base64'),
        },
      },
    ],
  });
  const policy = (phase: string, server = 'default'): AdmissionPolicyObject =>
    ({
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name: 'one', creationTimestamp: new Date(NOW - DAY_MS).toISOString() },
      spec: { policyServer: server, module: 'builtin:cel', mutating: false, rules: [] },
      status: {
        phase,
        conditions: [{ type: 'PolicyActive', status: 'False', reason: 'BadSettings', message: 'settings.a' }],
      },
    }) as unknown as AdmissionPolicyObject;

  const privileged = (namespace: string): AdmissionPolicyObject => {
    const { metadata, spec, ...one } = policy('Active');
    const rule = {
      operations: ['*'],
      apiGroups: ['rbac.authorization.k8s.io'],
      apiVersions: ['v1'],
      resources: ['roles'],
    };
    return { ...one, metadata: { ...metadata, namespace }, spec: { ...spec, rules: [rule] } } as never;
  };

  const atRisk = ({ status, ...one }: AdmissionPolicyObject): AdmissionPolicyObject => ({
    ...one,
    status: {
      ...status,
      conditions: [
        ...(status?.conditions ?? []),
        {
          type: 'ModulesKept',
          status: 'False',
          reason: 'TooFewCopies',
          message: '1 policy server and 0 controllers have its modules',
          lastTransitionTime: '2026-01-01T00:00:00Z',
        },
      ],
    },
  });
  const withIssue = ({ status, ...one }: AdmissionPolicyObject, issue: PolicyIssue): AdmissionPolicyObject => ({
    ...one,
    status: { ...status, issues: [issue] },
  });

  /** A policy for objects that the auditor may not read. */
  const unreadable = ({ status, ...one }: AdmissionPolicyObject): AdmissionPolicyObject => {
    const missingRule = { apiGroups: ['batch'], resources: ['jobs'], verbs: ['list'] };
    return { ...one, status: { ...status, audit: { kinds: [{ state: 'Forbidden', missingRule }] } } } as never;
  };

  const refused = (reason: string): AdmissionPolicyObject => {
    const { status, ...one } = policy('Degraded');
    const condition = { type: 'UpToDate', status: 'False', reason, message: 'would hold 300 MiB' };
    return { ...one, status: { ...status, conditions: [condition] } } as never;
  };

  const deviating = (name: string, ...all: readonly (readonly [policy: string, reason: string])[]): never =>
    ({
      metadata: { name, namespace: NAMESPACE },
      spec: { policyServer: 'default' },
      status: {
        deviations: all.map(([id, reason]) => ({
          policy: id,
          revision: 1,
          state: 'Failed',
          reason,
          message: `${reason} of ${id}`,
        })),
      },
    }) as never;

  const unenforced = (phase: string, agoMs: number): AdmissionPolicyObject => {
    const { status, ...one } = policy(phase);
    const lastTransitionTime = new Date(NOW - agoMs).toISOString();
    const enforced = { type: 'Enforced', status: 'False', reason: 'NotServedYet', message: '', lastTransitionTime };
    return { ...one, status: { ...status, conditions: [...(status?.conditions ?? []), enforced] } } as never;
  };

  before(async () => {
    const validity = { notBefore: new Date(NOW - 100 * DAY_MS), notAfter: new Date(NOW + 300 * DAY_MS) };
    authority = await createAuthority({ commonName: 'one', ...validity });
    other = await createAuthority({ commonName: 'another', ...validity });
    const certified = await leaf(authority, -30, 60);
    const objects = installObjects(context);
    const ofKind = (...kinds: string[]): readonly KubernetesObject[] =>
      objects.filter(({ kind }) => kinds.includes(kind));
    const deployment = ofKind('Deployment').map((one) => {
      const { replicas } = one['spec'] as { replicas: number };
      return {
        ...one,
        metadata: { ...one.metadata, generation: 1 },
        status: { observedGeneration: 1, replicas, updatedReplicas: replicas, availableReplicas: replicas },
      };
    });
    healthy = {
      namespace: NAMESPACE,
      now: NOW,
      version: { major: '1', minor: '34+', gitVersion: 'v1.34.4' },
      definitions: ofKind('CustomResourceDefinition'),
      namespaces: ofKind('Namespace'),
      deployments: deployment,
      leases: [
        {
          apiVersion: 'coordination.k8s.io/v1',
          kind: 'Lease',
          metadata: { name: CONTROLLER, namespace: NAMESPACE },
          spec: { holderIdentity: 'pod', leaseDurationSeconds: 15, renewTime: new Date(NOW - 5_000).toISOString() },
        },
      ],
      services: [
        { apiVersion: 'v1', kind: 'Service', metadata: { name: 'policy-server-default', namespace: NAMESPACE } },
      ],
      secrets: [
        secret('portcullis-ca', authority, authority.cert),
        ...[
          'portcullis-controller-webhook',
          'portcullis-controller-control',
          'policy-server-default-control',
          'policy-server-default-webhook',
        ].map((name) => secret(name, certified, authority.cert)),
      ],
      roles: ofKind('ClusterRole', 'Role'),
      bindings: ofKind('ClusterRoleBinding', 'RoleBinding'),
      guards: ofKind('ValidatingAdmissionPolicy', 'ValidatingAdmissionPolicyBinding'),
      configurations: [configuration(authority.cert)],
      policyServers: [
        {
          apiVersion: 'policies.kubewarden.io/v1',
          kind: 'PolicyServer',
          metadata: { name: 'default', generation: 1 },
          spec: { image: 'portcullis', replicas: 2 },
          status: {
            readyReplicas: 2,
            conditions: [{ type: 'Ready', status: 'True', observedGeneration: 1, reason: 'All', message: 'all' }],
          },
        } as unknown as PolicyServerObject,
      ],
      replicas: [],
      policies: [policy('Active')],
      governance: { policies: [], templates: [], denied: [] },
      networkProviders: [],
      unread: [],
    };
  });

  const codes = (change: Change = () => ({})): readonly string[] =>
    diagnose({ ...healthy, ...change(healthy) }, context).map(({ code, severity }) => `${severity} ${code}`);

  it('finds nothing in a working installation', () => {
    assert.deepEqual(codes(), []);
  });

  it('finds nothing of an auditor that is switched off', () => {
    const found = codes(({ deployments }) => ({
      deployments: deployments
        .filter(({ metadata }) => metadata.name !== AUDITOR)
        .map((one) => withArguments(one, '--auditor=false')),
      roles: healthy.roles.filter(({ metadata }) => !metadata.name?.startsWith(AUDITOR)),
    }));
    assert.deepEqual(found, []);
  });

  it('finds that the right to annotate NetworkPolicies is missing, or has no limit, where it is needed', () => {
    const found = codes(({ deployments }) => ({
      deployments: deployments.map((one) => withArguments(one, '--network-policy-annotation=write')),
    }));
    assert.deepEqual(
      found.filter((code) => code.includes('Rights')),
      ['error RightsMissing', 'warning RightsUnlimited'],
    );
  });

  const broken: Readonly<Record<string, Change>> = {
    'error ApiServerTooOld': () => ({ version: { major: '1', minor: '29', gitVersion: 'v1.29.0' } }),
    'error KindMissing': ({ definitions }) => ({ definitions: definitions.slice(1) }),
    'warning KindDiffers': ({ definitions: [first, ...others] }) => ({
      definitions: [{ ...first, spec: { versions: [{ name: 'v1', served: true, schema: {} }] } } as never, ...others],
    }),
    'warning NamespaceUnrestricted': ({ namespaces }) => ({
      namespaces: namespaces.map(({ metadata, ...one }) => ({ ...one, metadata: { ...metadata, labels: {} } })),
    }),
    'error ControllerMissing': () => ({ deployments: [], configurations: [] }),
    'error ControllerNotAvailable': ({ deployments }) => ({
      deployments: deployments.map((one) => ({ ...one, status: {} })),
    }),
    'warning AuditorMissing': ({ deployments }) => ({
      deployments: deployments.filter(({ metadata }) => metadata.name !== AUDITOR),
    }),
    'warning AuditorNotAvailable': ({ deployments }) => ({
      deployments: deployments.map((one) => (one.metadata.name === AUDITOR ? { ...one, status: {} } : one)),
    }),
    'warning AuditRightsMissing': () => ({ policies: [unreadable(policy('Active'))] }),
    'error WebhooksLeftBehind': () => ({ deployments: [] }),
    'error NoLeader': ({ leases }) => ({
      leases: leases.map((one) => ({
        ...one,
        spec: { ...(one['spec'] as object), renewTime: new Date(NOW - 120_000).toISOString() },
      })),
    }),
    'error RightsMissing': ({ roles }) => ({ roles: roles.map((role) => ({ ...role, rules: [] })) }),
    'warning RightsUnlimited': ({ guards }) => ({ guards: guards.slice(1) }),
    'error PolicyServerMissing': () => ({ policies: [policy('Pending', 'nowhere')] }),
    'error PolicyNotServing': () => ({ policies: [policy('Error')] }),
    'error PolicyNotEnforced': () => ({ policies: [unenforced('Error', 0)] }),
    'warning PolicyNotEnforced': () => ({ policies: [unenforced('Updating', 600_000)] }),
    'warning PolicyDegraded': () => ({ policies: [policy('Degraded')] }),
    'warning PolicyPending': () => ({ policies: [policy('Pending')] }),
    'warning ModulesNotKept': () => ({ policies: [atRisk(policy('Active'))] }),
    'warning PolicyMayReject': () => ({
      policies: [withIssue(policy('Active'), { reason: 'MayReject', severity: 'Warning', message: 'it may reject' })],
    }),
    'warning PolicyIssue': () => ({
      policies: [withIssue(policy('Active'), { reason: 'NotServed', severity: 'Warning', message: 'no such group' })],
    }),
    'error PolicyCannotWork': () => ({
      policies: [withIssue(policy('Active'), { reason: 'CannotMatch', severity: 'Error', message: 'no resource pod' })],
    }),
    'warning PolicyMemoryExceeded': () => ({ policies: [refused('MemoryExceeded')] }),
    'warning PolicyQuarantined': () => ({ replicas: [deviating('one', ['kw.ap.shop.p', 'Quarantined'])] }),
    'error RevisionRefused': () => ({ replicas: [deviating('one', ['kw.cap.p', 'RevisionMismatch'])] }),
    'warning ParametersWritable': ({ roles }) => ({
      policies: [inConfigMaps(policy('Active'))],
      roles: [...roles, EDIT],
    }),
    'warning PolicyRuleNeverMatches': () => ({ policies: [privileged('shop')] }),
    'error PolicyServerNotReady': ({ policyServers }) => ({
      policyServers: policyServers.map((server) => ({ ...server, status: {} })),
    }),
    'info TenantCapabilities': ({ policyServers }) => ({
      policyServers: policyServers.map(({ metadata, ...server }) => ({
        ...server,
        metadata: { ...metadata, annotations: { 'portcullis.dev/take-over': 'true' } },
      })),
    }),
    'warning TenantModules': ({ policyServers }) => ({
      policyServers: policyServers.map(({ metadata, ...server }) => ({
        ...server,
        metadata: { ...metadata, annotations: { 'portcullis.dev/tenant-modules': '*' } },
      })),
    }),
    'info PolicyServerForeign': ({ policyServers }) => ({
      policyServers: policyServers.map(({ metadata, ...server }) => ({
        ...server,
        metadata: { ...metadata, annotations: { 'portcullis.dev/take-over': 'false' } },
      })),
    }),
    'error WebhookServiceMissing': () => ({ services: [] }),
    'error WebhookCaMismatch': () => ({ configurations: [configuration(other.cert)] }),
    'error CertificateMissing': ({ secrets }) => ({ secrets: secrets.slice(1) }),
    'error CertificateUnreadable': ({ secrets }) => ({
      secrets: [
        ...secrets.slice(0, -1),
        secret('policy-server-default-webhook', { cert: 'nonsense', key: '' }, authority.cert),
      ],
    }),
    'error CertificateNotTrusted': ({ secrets }) => ({
      secrets: secrets.map((one) => ({
        ...one,
        data: { ...(one['data'] as object), 'ca.crt': Buffer.from(other.cert).toString('base64') },
      })),
    }),
    'warning GovernanceOff': ({ deployments, governance }) => ({
      deployments: deployments.map((one) => withArguments(one, '--governance=false')),
      governance: { ...governance, policies: [governancePolicy()] },
    }),
    'warning GovernanceStopped': ({ deployments }) => ({
      deployments: [...deployments, otherController('governance-policy-framework', 1)],
    }),
    'error ClusterNamespaceForeign': ({ namespaces }) => ({
      namespaces: [...namespaces, { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'local-cluster' } }],
    }),
    'error GovernanceAccountRights': ({ deployments }) => ({
      deployments: deployments.map((one) => withArguments(one, '--governance-account=mine')),
    }),
    'warning PolicyRightsMissing': ({ governance }) => ({
      governance: {
        ...governance,
        denied: [{ policy: 'local-cluster/one', right: { verb: 'list', group: '', resource: 'secrets' } }],
      },
    }),
    'warning NetworkProviderUnknown': () => ({ networkProviders: [UNKNOWN_PROVIDER] }),
    'info ExemptNamespaces': ({ deployments }) => ({
      deployments: deployments.map((one) => withArguments(one, '--exempt-namespaces=kube-system,ops')),
    }),
    'error NotInstalled': () => ({ definitions: [], deployments: [], configurations: [] }),
    'warning NotLookedAt': () => ({ unread: [{ what: 'pods', why: 'forbidden' }] }),
  };
  for (const [code, change] of Object.entries(broken)) {
    it(`finds ${code.split(' ')[1]}`, () => {
      assert.ok(codes(change).includes(code), codes(change).join(', '));
    });
  }

  it('has one finding for each cause', () => {
    const of = (change: Change): readonly string[] =>
      diagnose({ ...healthy, ...change(healthy) }, context).map(({ code, where }) => `${code} ${where}`);
    const forbidden = { why: 'x', isForbidden: true } as const;
    const named = (name: string): AdmissionPolicyObject => {
      const one = policy('Pending', 'nowhere');
      return { ...one, metadata: { ...one.metadata, name } };
    };
    assert.deepEqual(
      of(() => ({ definitions: [], deployments: [], configurations: [], policyServers: [], policies: [] })),
      ['NotInstalled cluster'],
    );
    assert.deepEqual(
      of(({ deployments }) => ({
        deployments: deployments.map((one) => ({ ...one, metadata: { ...one.metadata, namespace: 'policies' } })),
      })),
      [`NotInstalled namespace/${NAMESPACE}`],
    );
    assert.match(of(() => ({ definitions: [] })).join(), /^KindMissing \S+, \S+, \S+, \S+, \S+ and \d+ more$/);
    assert.deepEqual(
      of(() => ({ policies: ['a', 'b'].map(named) })),
      ['PolicyServerMissing clusteradmissionpolicy/a, clusteradmissionpolicy/b'],
    );
    assert.deepEqual(
      of(() => ({ unread: ['pods', 'secrets'].map((what) => ({ what, ...forbidden })) })),
      ['NotLookedAt pods, secrets'],
    );
    assert.deepEqual(
      of(({ deployments, policyServers }) => ({
        deployments: deployments.map((one) => (one.metadata.name === CONTROLLER ? { ...one, status: {} } : one)),
        policyServers: policyServers.map((one) => ({ ...one, status: {} })),
        leases: [],
        secrets: [],
      })),
      [`ControllerNotAvailable deployment/${CONTROLLER} -n ${NAMESPACE}`],
    );
  });

  it('names the owner, the policies and the replicas where there is too little memory, and what is in quarantine where', () => {
    const found = diagnose(
      {
        ...healthy,
        policies: [refused('MemoryExceeded')],
        replicas: [
          deviating('r1', ['kw.ap.shop.a', 'MemoryExceeded'], ['kw.ap.shop.b', 'MemoryExceeded']),
          deviating('r2', ['kw.ap.shop.a', 'MemoryExceeded'], ['kw.ap.bank.c', 'Quarantined'], ['kw.cap.d', 'Loading']),
        ],
      },
      context,
    ).filter(({ code }) => code === 'PolicyMemoryExceeded' || code === 'PolicyQuarantined');
    assert.deepEqual(
      found.map(({ code, where, message }) => [code, where, message]),
      [
        [
          'PolicyMemoryExceeded',
          'policyserver/default',
          'the policies of namespace shop would exceed the memory for policies on r1, r2, so it does not serve the newest revision of kw.ap.shop.a, kw.ap.shop.b: MemoryExceeded of kw.ap.shop.a',
        ],
        [
          'PolicyMemoryExceeded',
          'policyserver/default',
          'the cluster-wide policies would exceed the memory for policies, so it does not serve the newest revision of clusteradmissionpolicy/one: would hold 300 MiB',
        ],
        [
          'PolicyQuarantined',
          'kw.ap.bank.c',
          'its module is in quarantine on PolicyServer default on r2: Quarantined of kw.ap.bank.c',
        ],
      ],
    );
  });

  it('is content with another governance account that the controller may impersonate', () => {
    const role = {
      apiVersion: 'rbac.authorization.k8s.io/v1',
      kind: 'Role',
      metadata: { name: 'mine' },
      rules: [{ apiGroups: [''], resources: ['serviceaccounts'], resourceNames: ['mine'], verbs: ['impersonate'] }],
    };
    const found = codes(({ deployments, roles }) => ({
      deployments: deployments.map((one) => withArguments(one, '--governance-account=mine')),
      roles: [...roles, role],
    }));
    assert.deepEqual(found, []);
  });

  it('is patient with a policy on its way to be enforced', () => {
    assert.deepEqual(
      codes(() => ({ policies: [unenforced('Updating', 60_000)] })),
      [],
    );
  });

  it('reads the last of the arguments that say the same', () => {
    const found = (...more: string[]): readonly string[] =>
      codes(({ deployments }) => ({ deployments: deployments.map((one) => withArguments(one, ...more)) }));
    assert.ok(found('--degraded-policies=ignore').includes('warning DegradedPolicies'));
    assert.ok(found('--degraded-policies', 'reject').includes('info DegradedPolicies'));
    assert.ok(!found('--degraded-policies=ignore', '--degraded-policies=last-good').join().includes('Degraded'));
  });

  it('reports of governance nothing that is not there', () => {
    const others = otherController('config-policy-controller', 0);
    assert.deepEqual(
      codes(({ deployments }) => ({ deployments: [...deployments, others] })),
      [],
    );
    const off = ({ deployments }: Snapshot): Partial<Snapshot> => ({
      deployments: deployments.map((one) => withArguments(one, '--governance=false')),
      roles: healthy.roles.filter(({ metadata }) => metadata.name?.includes('governance') !== true),
      bindings: healthy.bindings.filter(({ metadata }) => metadata.name?.includes('governance') !== true),
    });
    assert.deepEqual(codes(off), []);
  });

  it('names the rights that a policy lacks, and the flag that grants them', () => {
    const account = 'system:serviceaccount:portcullis:portcullis-governance';
    const message = `x; secrets is forbidden: User "${account}" cannot list resource "secrets" in API group "" at the cluster scope`;
    const governance = {
      policies: [governancePolicy({ message: message.replace(account, 'jane') })],
      templates: [],
      denied: [{ policy: 'local-cluster/one', right: { verb: 'create', group: 'apps', resource: 'deployments' } }],
    };
    const reported = { ...governance, policies: [...governance.policies, governancePolicy({ deep: [{ message }] })] };
    const findings = diagnose({ ...healthy, governance: reported }, context).filter(({ code }) =>
      code.startsWith('PolicyRights'),
    );
    assert.deepEqual(
      findings.map(({ where, message: text }) => `${where}: ${text}`),
      [
        'policy one -n local-cluster: the governance account may not: create deployments.apps',
        'policy shop.one -n local-cluster: the governance account may not: list secrets',
      ],
    );
    assert.match(findings[0]?.action ?? '', /install --governance-role/);
  });

  it('finds a right to other names than those that the controller needs', () => {
    const roles = healthy.roles.map((role) =>
      role.kind === 'Role' && role.metadata.name === 'portcullis-controller-governance'
        ? {
            ...role,
            rules: [
              { apiGroups: [''], resources: ['serviceaccounts'], resourceNames: ['other'], verbs: ['impersonate'] },
            ],
          }
        : role,
    );
    const [found] = diagnose({ ...healthy, roles }, context);
    assert.equal(found?.message, 'portcullis-controller may not: impersonate serviceaccounts portcullis-governance');
  });

  it('finds a certificate with the key of another one', async () => {
    const [{ cert }, { key }] = [await leaf(authority, -30, 60), await leaf(authority, -30, 60)];
    const found = codes(({ secrets }) => ({
      secrets: [...secrets.slice(0, -1), secret('policy-server-default-webhook', { cert, key }, authority.cert)],
    }));
    assert.deepEqual(found, ['error CertificateUnreadable']);
  });

  it('distinguishes certificates that expired, expire soon, or are not valid yet', async () => {
    for (const [from, to, expected] of [
      [-90, -1, 'error CertificateExpired'],
      [-80, 5, 'warning CertificateExpiring'],
      [1, 90, 'error CertificateNotYetValid'],
    ] as const) {
      const certified = await leaf(authority, from, to);
      const found = codes(({ secrets }) => ({
        secrets: [...secrets.slice(0, -1), secret('policy-server-default-webhook', certified, authority.cert)],
      }));
      assert.deepEqual(found, [expected]);
    }
  });

  it('finds missing Secrets of all PolicyServers of ours, and of no others', () => {
    const found = (name: string, annotations: Readonly<Record<string, string>>): readonly string[] => {
      const snapshot = {
        ...healthy,
        policyServers: healthy.policyServers.map((server) => ({
          ...server,
          metadata: { ...server.metadata, name, annotations },
        })),
        policies: [],
      };
      return diagnose(snapshot, context).flatMap(({ code, objects }) => (code === 'CertificateMissing' ? objects : []));
    };
    assert.deepEqual(found('default', {}), []);
    assert.deepEqual(found('other', {}), [
      'secret/policy-server-other-webhook -n portcullis',
      'secret/policy-server-other-control -n portcullis',
    ]);
    assert.match(found('with.dots', {})[0] ?? '', /^secret\/policy-server-with-dots-[0-9a-f]{10}-webhook /);
    assert.deepEqual(found('other', { 'portcullis.dev/take-over': 'false' }), []);
  });

  it('needs no right to write Secrets when another program manages them', () => {
    const external = installObjects({
      namespace: NAMESPACE,
      values: installValues({ certificates: { mode: 'external' } }, '1.0.0', 'values.yaml'),
    });
    const roles = external.filter(({ kind }) => kind === 'ClusterRole' || kind === 'Role');
    const specOf = (name: string | undefined): unknown =>
      external.find(({ kind, metadata }) => kind === 'Deployment' && metadata.name === name)?.['spec'];
    const deployments = healthy.deployments.map((live) => ({ ...live, spec: specOf(live.metadata.name) }));
    assert.deepEqual(
      codes(() => ({ roles, deployments })),
      [],
    );
    assert.ok(codes(() => ({ roles })).includes('error RightsMissing'));
  });

  it('does not count the rights of a controller in another namespace', () => {
    const elsewhere = codes(({ bindings }) => ({
      bindings: bindings.map((one) => ({
        ...one,
        subjects: [{ kind: 'ServiceAccount', name: CONTROLLER, namespace: 'elsewhere' }],
      })),
    }));
    assert.ok(elsewhere.includes('error RightsMissing'), elsewhere.join());
  });

  it('finds the Deployment of a PolicyServer whose name has dots', () => {
    const found = codes(({ policyServers, deployments }) => ({
      policyServers: policyServers.map((server) => ({
        ...server,
        metadata: { ...server.metadata, name: 'with.dots', finalizers: ['kubewarden.io/finalizer'] },
      })),
      deployments: [
        ...deployments,
        {
          apiVersion: 'apps/v1',
          kind: 'Deployment',
          metadata: {
            name: policyServerObjectName('with.dots'),
            namespace: NAMESPACE,
            labels: { 'app.kubernetes.io/managed-by': 'portcullis', 'portcullis.dev/policy-server': 'with.dots' },
          },
        },
      ],
    }));
    assert.ok(!found.includes('info PolicyServerForeign'), found.join());
  });

  it('concludes nothing from objects that it may not list', () => {
    const hidden: Readonly<Record<string, readonly (keyof Snapshot)[]>> = {
      customresourcedefinitions: ['definitions'],
      namespaces: ['namespaces'],
      deployments: ['deployments'],
      leases: ['leases'],
      services: ['services'],
      secrets: ['secrets'],
      clusterroles: ['roles'],
      roles: ['roles'],
      clusterrolebindings: ['bindings'],
      rolebindings: ['bindings'],
      validatingadmissionpolicies: ['guards'],
      validatingadmissionpolicybindings: ['guards'],
      validatingwebhookconfigurations: ['configurations'],
      mutatingwebhookconfigurations: ['configurations'],
      policyservers: ['policyServers'],
      policyserverreplicas: ['replicas'],
      clusteradmissionpolicies: ['policies'],
      networkpolicyproviders: ['networkProviders'],
    };
    const besideKubewarden: Change = ({ deployments, configurations }) => ({
      deployments: [...deployments, KUBEWARDEN],
      configurations: [...configurations, KUBEWARDEN_WEBHOOK],
    });
    const afterKubewarden: Change = ({ configurations, policies }) => ({
      configurations: [...configurations, KUBEWARDEN_WEBHOOK],
      policies: policies.map((one) => ({ ...one, metadata: { ...one.metadata, name: 'two' } })),
    });
    for (const state of [() => ({}), besideKubewarden, afterKubewarden] satisfies Change[]) {
      const seen = { ...healthy, ...state(healthy) };
      const problem = ({ code, message }: Finding): string => `${code} ${message}`;
      const all = new Set(diagnose(seen, context).map(problem));
      for (const [what, fields] of Object.entries(hidden)) {
        const unread = [{ what, why: 'forbidden', isForbidden: true as const }];
        const less = { ...seen, ...Object.fromEntries(fields.map((field) => [field, []])), unread };
        const found = diagnose(less, context).filter((one) => one.code !== 'NotLookedAt' && !all.has(problem(one)));
        assert.deepEqual(found, [], what);
      }
    }
  });

  it('reports of kinds that it may not list nothing else', () => {
    const unread = ['customresourcedefinitions', 'deployments'].map((what) => ({ what, why: 'forbidden' }));
    const found = codes(() => ({ definitions: [], deployments: [], configurations: [], unread }));
    assert.deepEqual(new Set(found), new Set(['warning NotLookedAt']));
  });

  it('finds the policy of a Kubewarden webhook by the names of all versions of Kubewarden', () => {
    const of = (name: string, annotations = {}): KubernetesObject => ({
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingWebhookConfiguration',
      metadata: { name, annotations },
      webhooks: [{ name: `${name}.kubewarden.admission` }],
    });
    for (const one of [of('kw.cap.one'), of('clusterwide-one'), of('any', { kubewardenPolicyName: 'one' })]) {
      assert.deepEqual(
        codes(() => ({ configurations: [one] })),
        ['warning KubewardenWebhookLeft'],
      );
    }
    assert.deepEqual(
      codes(() => ({ configurations: [of('clusterwide-two')] })),
      ['error KubewardenWebhookLeft'],
    );
  });

  it('trusts the next and the previous CA as well', () => {
    assert.deepEqual(
      codes(() => ({ configurations: [configuration(other.cert + authority.cert)] })),
      [],
    );
  });
});
