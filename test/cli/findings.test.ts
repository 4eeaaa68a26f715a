// `portcullis findings` as a process, on a cluster in this process whose reports an auditor could have written.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { EmbeddedCluster, Gateway, kubeconfigText } from '../../src/apiserver/index.ts';
import {
  CLUSTER_ADMISSION_POLICIES,
  customResourceDefinition,
  knownKind,
  REPORT_FORMATS,
  reportDefinitions,
  POLICIES,
  unknownAudit,
} from '../../src/resources/index.ts';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';
import { type CommandResult, portcullis } from './command.ts';

const { reports: REPORTS, clusterReports: CLUSTER_REPORTS } = REPORT_FORMATS.openreports;
const TOKENS = { admin: 'admin-token', tenant: 'tenant-token', viewer: 'viewer-token' } as const;
const LABELS = { 'app.kubernetes.io/managed-by': 'portcullis', 'app.kubernetes.io/component': 'auditor' };
const DEFINITIONS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
const RBAC = 'rbac.authorization.k8s.io';

const hoursAgo = (hours: number): string => `${new Date(Date.now() - hours * 3_600_000).toISOString().slice(0, -5)}Z`;

const result = (
  policy: string,
  kind: string,
  namespace: string | undefined,
  name: string,
  changes: object = {},
): object => ({
  source: 'portcullis',
  policy,
  result: 'fail',
  resources: [{ apiVersion: kind === 'Deployment' ? 'apps/v1' : 'v1', kind, name, ...(namespace && { namespace }) }],
  message: `no ${name}`,
  properties: { resultID: `${policy}-${name}`, mode: 'protect', firstSeen: hoursAgo(48), lastSeen: hoursAgo(48) },
  ...changes,
});

const report = (
  namespace: string | undefined,
  name: string,
  results: readonly object[],
  labels: Readonly<Record<string, string>> = LABELS,
) => ({
  apiVersion: 'openreports.io/v1alpha1',
  kind: namespace === undefined ? 'ClusterReport' : 'Report',
  metadata: { name, ...(namespace && { namespace }), labels },
  source: 'portcullis',
  results,
});

const COMPLETE = {
  summary: '2',
  state: 'Complete',
  reason: 'Audited',
  message: 'all objects are judged',
  observedGeneration: 1,
  counts: { matched: 0, passed: 0, failed: 0, wouldChange: 0, unjudged: 0 },
  kinds: [],
};

interface Data {
  readonly findings: readonly { readonly policy: string; readonly object: { readonly name: string } }[];
}

describe('findings', () => {
  let folder: string;
  let cluster: EmbeddedCluster;
  let gateway: Gateway;

  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-findings-'));
    const tls = await createLoopbackCertificate();
    cluster = await EmbeddedCluster.open({
      tokens: Object.entries(TOKENS).map(([name, token]) => ({
        token,
        user: { username: name, groups: ['system:authenticated', ...(name === 'admin' ? ['system:masters'] : [])] },
      })),
    });
    const { authenticator } = cluster;
    gateway = new Gateway({ cluster, authenticator, tls, onError: (error) => console.error(error) });
    const { url } = await gateway.start({ port: 0 });
    for (const [name, token] of Object.entries(TOKENS)) {
      const text = kubeconfigText({ server: url, ca: tls.cert, token, name });
      await writeFile(join(folder, name), text, { mode: 0o600 });
    }
  });
  after(async () => {
    await gateway.stop();
    await cluster[Symbol.asyncDispose]();
    await rm(folder, { recursive: true });
  });

  const findings = (user: keyof typeof TOKENS, ...args: readonly string[]): Promise<CommandResult> =>
    portcullis(['findings', '--kubeconfig', join(folder, user), ...args]);
  const names = async (...args: readonly string[]): Promise<readonly string[]> => {
    const { stdout, stderr } = await findings('admin', '-o', 'json', ...args);
    assert.equal(stderr, '');
    return (JSON.parse(stdout) as Data).findings.map(({ policy, object }) => `${policy} ${object.name}`);
  };

  it('are not clean where nothing can be stored, and nothing was scanned', async () => {
    for (const kind of [CLUSTER_ADMISSION_POLICIES, POLICIES]) {
      await cluster.admin.create(DEFINITIONS, customResourceDefinition(kind));
    }
    const policy = {
      apiVersion: 'policies.kubewarden.io/v1',
      kind: 'ClusterAdmissionPolicy',
      metadata: { name: 'labels' },
      spec: {
        module: 'builtin:cel',
        mutating: false,
        rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
        settings: { validations: [{ expression: 'false' }] },
      },
    };
    await cluster.admin.create(CLUSTER_ADMISSION_POLICIES, policy);
    const { code, stdout } = await findings('admin');
    assert.equal(code, 3, stdout);
    assert.match(stdout, /^0 findings$/m);
    assert.match(stdout, /^Not read: the cluster has no kind Report of openreports\.io/m);
    assert.match(stdout, /^What was scanned is not known: no auditor has written status\.audit\. `portcullis audit`/m);
  });

  describe('in reports', () => {
    before(async () => {
      const { admin } = cluster;
      await admin.create(knownKind('v1', 'Namespace'), {
        apiVersion: 'v1',
        kind: 'Namespace',
        metadata: { name: 'policies' },
      });
      await admin.create(POLICIES, {
        apiVersion: 'policy.open-cluster-management.io/v1',
        kind: 'Policy',
        metadata: { namespace: 'policies', name: 'kafka' },
        spec: { disabled: false, 'policy-templates': [] },
      });
      for (const definition of reportDefinitions()) {
        await admin.create(DEFINITIONS, definition);
      }
      for (const name of ['shop', 'bank']) {
        await admin.create(knownKind('v1', 'Namespace'), { apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
      }
      const monitored = { mode: 'monitor', firstSeen: hoursAgo(1), lastSeen: hoursAgo(1), policyRevision: '7' };
      await admin.create(
        REPORTS,
        report('shop', 'portcullis-1', [
          result('cap/labels', 'Pod', 'shop', 'web', { severity: 'high', category: 'Ownership' }),
          result('cap/images', 'Deployment', 'shop', 'web', { result: 'warn', severity: 'low', properties: monitored }),
        ]),
      );
      await admin.create(REPORTS, report('bank', 'portcullis-1', [result('cap/labels', 'Pod', 'bank', 'web')]));
      await admin.create(REPORTS, report('bank', 'other', [result('theirs', 'Pod', 'bank', 'web')], {}));
      await admin.create(
        CLUSTER_REPORTS,
        report(undefined, 'portcullis-1', [result('cap/labels', 'Namespace', undefined, 'bank')]),
      );
      const create = (kind: string, object: object): Promise<unknown> =>
        admin.create(knownKind(`${RBAC}/v1`, kind), { apiVersion: `${RBAC}/v1`, kind, metadata: {}, ...object });
      const subjects = (name: string): object[] => [{ apiGroup: RBAC, kind: 'User', name }];
      const rules = [{ apiGroups: ['openreports.io'], resources: ['reports'], verbs: ['list'] }];
      const more = [
        { apiGroups: [''], resources: ['namespaces'], verbs: ['list'] },
        { apiGroups: ['policies.kubewarden.io'], resources: ['clusteradmissionpolicies'], verbs: ['list'] },
      ];
      await create('ClusterRole', { metadata: { name: 'reports' }, rules });
      await create('ClusterRole', { metadata: { name: 'more' }, rules: more });
      const roleRef = (name: string): object => ({ apiGroup: RBAC, kind: 'ClusterRole', name });
      const binding = { metadata: { name: 'reports', namespace: 'shop' } };
      await create('RoleBinding', {
        ...binding,
        roleRef: roleRef('reports'),
        subjects: [...subjects('tenant'), ...subjects('viewer')],
      });
      await create('ClusterRoleBinding', {
        metadata: { name: 'more' },
        roleRef: roleRef('more'),
        subjects: subjects('viewer'),
      });
      const stored = await admin.get(CLUSTER_ADMISSION_POLICIES, { name: 'labels' });
      await admin.update(
        CLUSTER_ADMISSION_POLICIES,
        { ...stored, status: { ...stored.status, audit: COMPLETE } },
        {
          subresource: 'status',
        },
      );
    });

    it('are listed for all namespaces, and all is known', async () => {
      const { code, stdout } = await findings('admin');
      assert.equal(code, 0, stdout);
      assert.equal(
        stdout,
        [
          'POLICY       RESULT           SEVERITY   OBJECT                AGE   MESSAGE',
          'cap/images   warn (monitor)   low        Deployment shop/web   60m   no web',
          'cap/labels   fail                        Namespace bank        2d    no bank',
          'cap/labels   fail                        Pod bank/web          2d    no web',
          'cap/labels   fail             high       Pod shop/web          2d    no web',
          '',
          '4 findings: 3 fail, 1 warn',
          'All objects are judged by 1 of 1 policy.',
          '',
        ].join('\n'),
      );
      const wide = await findings('admin', '-o', 'wide', '--policy', 'images');
      assert.match(wide.stdout, /^POLICY +RULE +RESULT +SEVERITY +CATEGORY +OBJECT +AGE +CHANGED +REVISION +MESSAGE$/m);
      assert.match(wide.stdout, /60m +60m +7 +no web$/m);
      assert.match(
        (await findings('admin', '-o', 'markdown')).stdout,
        /^\| cap\/labels \| fail \| high \| Pod shop\/web \|/m,
      );
    });

    it('are filtered by flags', async () => {
      assert.deepEqual(await names('deployment/web', '-n', 'shop', '--severity', 'low'), ['cap/images web']);
      assert.deepEqual(await names('--kind', 'ns,deployments', '--since', '2h', '--result', 'warn'), [
        'cap/images web',
      ]);
      assert.deepEqual(await names('namespace/bank', '--policy', 'labels'), ['cap/labels bank']);
      assert.deepEqual(await names('--all-sources', '--sort-by', 'age'), [
        'cap/labels bank',
        'cap/labels web',
        'cap/labels web',
        'theirs web',
        'cap/images web',
      ]);
    });

    it('fail on request', async () => {
      assert.equal((await findings('admin', '--fail-on', 'fail', '--kind', 'deployments')).code, 0);
      assert.equal((await findings('admin', '--fail-on', 'warn', '--kind', 'deployments')).code, 1);
    });

    it('are incomplete for a user who may not read all, which is said', async () => {
      const tenant = await findings('tenant', '-n', 'shop');
      assert.equal(tenant.code, 3);
      assert.match(tenant.stdout, /^cap\/labels +fail +high +Pod shop\/web/m);
      assert.match(tenant.stdout, /^cap +Unknown +Forbidden +you may not list clusteradmissionpolicies$/m);
      const viewer = await findings('viewer');
      assert.equal(viewer.code, 3);
      assert.match(viewer.stdout, /^Not read: .* of all namespaces: those of 1 of \d+ namespaces were read\.$/m);
      assert.match(viewer.stdout, /^Not read: you may not list clusterreports\.openreports\.io/m);
      assert.match(viewer.stdout, /^2 findings/m);
    });

    it('of a policy that is not scanned, or of none, are said to be so', async () => {
      const { admin } = cluster;
      const stored = await admin.get(CLUSTER_ADMISSION_POLICIES, { name: 'labels' });
      const audit = { ...COMPLETE, state: 'Pending', reason: 'NotScanned', message: 'objects are yet to be judged' };
      await admin.update(
        CLUSTER_ADMISSION_POLICIES,
        { ...stored, status: { ...stored.status, audit } },
        {
          subresource: 'status',
        },
      );
      const { code, stdout } = await findings('admin');
      assert.equal(code, 3);
      assert.match(stdout, /^cap\/labels +Pending +NotScanned +objects are yet to be judged$/m);
      assert.match(stdout, /^All objects are judged by 0 of 1 policy\.$/m);
      const empty = await findings('admin', '--policy', 'labels', '--kind', 'services');
      assert.equal(empty.code, 3);
      assert.match(empty.stdout, /^cap\/labels +Pending [^]*^0 findings\nAll objects are judged by 0 of 1 policy\.$/m);
    });

    it('are out of date while no auditor works, which is said once', async () => {
      const { admin } = cluster;
      const stored = await admin.get(CLUSTER_ADMISSION_POLICIES, { name: 'labels' });
      const audit = unknownAudit({ ...COMPLETE, state: 'Complete' }, 1, { since: Date.UTC(2026, 0, 1) });
      const body = { ...stored, status: { ...stored.status, audit } };
      await admin.update(CLUSTER_ADMISSION_POLICIES, body, { subresource: 'status' });
      const { code, stdout } = await findings('admin');
      assert.equal(code, 3);
      assert.match(
        stdout,
        /findings: .*\nWhat was scanned is not known: no auditor works: what was known is out of date \(since 2026-01-01T00:00:00Z\)\. `portcullis audit`/,
      );
    });

    it('of a policy that does not exist are an error that names the nearest one', async () => {
      for (const [policy, hint] of [
        ['cap/label', /there is no policy "cap\/label"\nDid you mean cap\/labels\?/],
        ['lables', /Did you mean labels\?/],
        ['netpol/suport', /Did you mean netpol\/support\?/],
        [
          'policy/policies/kafak',
          /there is no policy "policy\/policies\/kafak"\nDid you mean policy\/policies\/kafka\?/,
        ],
        ['kafak', /Did you mean kafka\?/],
      ] as const) {
        const { code, stdout, stderr } = await findings('admin', '--policy', policy);
        assert.deepEqual([code, stdout], [1, '']);
        assert.match(stderr, hint);
      }
      // It may be one that the user cannot see.
      const { code, stdout } = await findings('tenant', '-n', 'shop', '--policy', 'cap/label');
      assert.equal(code, 3, stdout);
      assert.match(stdout, /^cap +Unknown +Forbidden /m);
    });

    it('of policies whose findings come from statuses are not said to be all', async () => {
      for (const [name, policy] of [
        ['netpol/support', 'netpol/support'],
        ['policy/policies/kafka', 'policy/policies/kafka'],
        ['kafka', 'policy/policies/kafka'],
      ] as const) {
        const { code, stdout } = await findings('admin', '--policy', name);
        assert.equal(code, 3, stdout);
        assert.ok(stdout.includes(`${policy}   Unknown   NoCoverage`), stdout);
        assert.match(stdout, /^0 findings\nAll objects are judged by 0 of 1 policy\.$/m);
      }
    });

    it('refuse wrong arguments', async () => {
      for (const [args, message] of [
        [['web'], /expected TYPE\/NAME/],
        [['-A', '-n', 'shop'], /--all-namespaces/],
        [['--result', 'pass'], /one or more of fail, warn, error, skip/],
        [['--since', 'yesterday'], /expected a duration/],
        [['--kind', 'nothing'], /no resource type "nothing"/],
      ] as const) {
        const { code, stderr } = await findings('admin', ...args);
        assert.equal(code, 2, args.join(' '));
        assert.match(stderr, message);
      }
    });
  });
});
