// `portcullis audit` on files, on standard input, and on a cluster with the rights of two users.
import assert from 'node:assert/strict';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { EmbeddedCluster, Gateway, kubeconfigText } from '../../src/apiserver/index.ts';
import { customResourceDefinition, CLUSTER_ADMISSION_POLICIES, knownKind } from '../../src/resources/index.ts';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';
import { type CommandResult, portcullis } from './command.ts';

const POLICIES = 'test/fixtures/audit/policies.yaml';
const OBJECTS = 'test/fixtures/audit/objects.yaml';
const FORMATS = ['table', 'json', 'yaml', 'markdown', 'junit', 'sarif', 'github'];

interface ReportData {
  readonly summary: { readonly findings: number; readonly incomplete: number };
  readonly results: readonly {
    readonly policy: string;
    readonly line?: number;
    readonly object: { readonly name: string };
  }[];
  readonly coverage: readonly { readonly policy: string; readonly state: string; readonly reason?: string }[];
}

function policy(name: string, spec: object): object {
  const { apiVersion, kind } = { apiVersion: 'policies.kubewarden.io/v1', kind: 'ClusterAdmissionPolicy' };
  return { apiVersion, kind, metadata: { name }, spec: { mutating: false, ...spec } };
}

const rule = (resource: string): object => ({
  apiGroups: [''],
  apiVersions: ['v1'],
  resources: [resource],
  operations: ['CREATE'],
});
const cel = (expression: string): object => ({
  module: 'builtin:cel',
  settings: { validations: [{ expression, message: 'no' }] },
});

describe('portcullis audit', () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-audit-'));
  });
  after(() => rm(folder, { recursive: true }));

  async function withPolicies(objects: readonly object[], ...args: readonly string[]): Promise<CommandResult> {
    const file = join(folder, 'policies.json');
    await writeFile(file, JSON.stringify({ apiVersion: 'v1', kind: 'List', items: objects }));
    return await portcullis(['audit', '-p', file, ...args]);
  }

  it('has the same findings and the same exit code in every format', async () => {
    for (const format of FORMATS) {
      const { code, stdout, stderr } = await portcullis(['audit', '-p', POLICIES, '-f', OBJECTS, '-o', format]);
      assert.deepEqual([code, stderr], [1, ''], format);
      for (const found of ['shop/debug', 'shop/web', 'say which team it belongs to']) {
        assert.ok(
          stdout.includes(format === 'json' || format === 'yaml' ? found.replace('shop/', '') : found),
          `${format}: ${found}`,
        );
      }
      assert.ok(!stdout.includes('shop/api'), format);
    }
  });

  it('says where in a file an object is, and reads standard input', async () => {
    const { stdout } = await portcullis(['audit', '-p', POLICIES, '-f', OBJECTS, '-o', 'json']);
    const { results } = JSON.parse(stdout) as ReportData;
    assert.deepEqual(
      results.map(({ object, line }) => [object.name, line]),
      [
        ['web', 11],
        ['debug', 1],
        ['web', 27],
      ],
    );
    const pod = {
      apiVersion: 'v1',
      kind: 'Pod',
      metadata: { name: 'x' },
      spec: { containers: [{ name: 'a', image: 'a:latest' }] },
    };
    const piped = await portcullis(['audit', '-p', POLICIES, '-f', '-', '-n', 'play'], { stdin: JSON.stringify(pod) });
    assert.equal(piped.code, 1);
    assert.match(piped.stdout, /^cap\/pinned-images +fail +Pod play\/x +pin the version of each image$/m);
  });

  it('fails for what --fail-on says', async () => {
    const base = ['audit', '-p', POLICIES, '-f', OBJECTS];
    const codes = async (...args: readonly string[]): Promise<number | null> =>
      (await portcullis([...base, ...args])).code;
    assert.equal(await codes('--fail-on', 'never'), 0);
    assert.equal(await codes('--policy', 'cap/team-label', '--fail-on', 'protect'), 0);
    assert.equal(await codes('--policy', 'team-label'), 1);
    assert.equal(await codes('--policy', 'not-by-hand'), 0);
    assert.equal(await codes('--policy', 'not-by-hand', '--fail-on', 'not-auditable'), 1);
    assert.equal(await codes('--policy', 'nobody'), 1);
    assert.equal(await codes('-n', 'shop', '-A'), 2);
  });

  it('is not clean where a policy cannot be loaded, or gives no verdict', async () => {
    const gone = policy('gone', { module: 'file:///does/not/exist.wasm', settings: {}, rules: [rule('pods')] });
    const missing = await withPolicies([gone], '-f', OBJECTS);
    assert.equal(missing.code, 3);
    assert.match(missing.stdout, /^cap\/gone +pods +Failed +NotLoaded +/m);
    const errs = policy('errs', {
      ...cel('object.spec.nothing == 1'),
      rules: [rule('pods')],
      matchConditions: [{ name: 'c', expression: 'object.spec.nothing == 1' }],
    });
    const failed = await withPolicies([errs], '-f', OBJECTS, '--fail-on', 'never');
    assert.equal(failed.code, 3);
    assert.match(failed.stdout, /^cap\/errs +pods +Partial +NotJudged +the policy gave no verdict on 2 of 2 objects$/m);
  });

  it('takes parameters and namespaces from files; those of others are not known', async () => {
    const selecting = policy('selecting', {
      ...cel('false'),
      rules: [rule('pods')],
      namespaceSelector: { matchLabels: { tier: 'prod' } },
    });
    const unknown = await withPolicies([selecting], '-f', OBJECTS);
    assert.equal(unknown.code, 3);
    assert.match(unknown.stdout, /Cannot find v1\/Namespace named "shop"/);
    const namespace = { apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'shop', labels: { tier: 'prod' } } };
    const known = await withPolicies([selecting, namespace], '-f', OBJECTS);
    assert.equal(known.code, 1);
    assert.match(known.stdout, /2 findings$/m);
  });

  it('does not judge by policies of the API server, and says so', async () => {
    const vap = {
      apiVersion: 'admissionregistration.k8s.io/v1',
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'v' },
      spec: { matchConstraints: { resourceRules: [rule('pods')] }, validations: [{ expression: 'false' }] },
    };
    const { code, stdout } = await withPolicies([vap], '-f', OBJECTS);
    assert.equal(code, 0);
    assert.match(stdout, /^vap\/v +\* +NotAuditable +OtherKind /m);
  });

  describe('in a cluster', () => {
    const TOKENS = { admin: 'admin-token', reader: 'reader-token' } as const;
    let cluster: EmbeddedCluster;
    let gateway: Gateway;
    before(async () => {
      const tls = await createLoopbackCertificate();
      cluster = await EmbeddedCluster.open({
        tokens: [
          { token: TOKENS.admin, user: { username: 'admin', groups: ['system:masters', 'system:authenticated'] } },
          { token: TOKENS.reader, user: { username: 'reader', groups: ['system:authenticated'] } },
        ],
      });
      const { authenticator, admin } = cluster;
      gateway = new Gateway({ cluster, authenticator, tls, onError: (error) => console.error(error) });
      const { url } = await gateway.start({ port: 0 });
      for (const [name, token] of Object.entries(TOKENS)) {
        await writeFile(join(folder, name), kubeconfigText({ server: url, ca: tls.cert, token, name }), {
          mode: 0o600,
        });
      }
      const create = async (apiVersion: string, kind: string, object: object): Promise<void> => {
        await admin.create(knownKind(apiVersion, kind), { apiVersion, kind, metadata: {}, ...object });
      };
      await admin.create(
        knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition'),
        customResourceDefinition(CLUSTER_ADMISSION_POLICIES),
      );
      await admin.create(
        CLUSTER_ADMISSION_POLICIES,
        policy('both', { ...cel('false'), rules: [rule('pods'), rule('configmaps')] }) as never,
      );
      await create('v1', 'ConfigMap', { metadata: { name: 'web', namespace: 'default' } });
      const containers = [{ name: 'web', image: 'web:1' }];
      await create('v1', 'Pod', { metadata: { name: 'web', namespace: 'default' }, spec: { containers } });
      const group = 'rbac.authorization.k8s.io';
      const rules = [
        { apiGroups: [''], resources: ['configmaps'], verbs: ['list'] },
        { apiGroups: ['policies.kubewarden.io'], resources: ['clusteradmissionpolicies'], verbs: ['list'] },
      ];
      await create(`${group}/v1`, 'ClusterRole', { metadata: { name: 'reader' }, rules });
      const roleRef = { apiGroup: group, kind: 'ClusterRole', name: 'reader' };
      const subjects = [{ apiGroup: group, kind: 'User', name: 'reader' }];
      await create(`${group}/v1`, 'ClusterRoleBinding', { metadata: { name: 'reader' }, roleRef, subjects });
    });
    after(async () => {
      await gateway.stop();
      await cluster[Symbol.asyncDispose]();
    });

    const audit = (user: keyof typeof TOKENS, ...args: readonly string[]): Promise<CommandResult> =>
      portcullis(['audit', '--kubeconfig', join(folder, user), ...args]);

    it('judges its objects by its policies', async () => {
      const { code, stdout } = await audit('admin', '-o', 'json');
      const { results, coverage } = JSON.parse(stdout) as ReportData;
      assert.equal(code, 1);
      assert.deepEqual(
        results.map(({ policy: name, object }) => `${name} ${object.name}`).filter((text) => text.endsWith(' web')),
        ['cap/both web', 'cap/both web'],
      );
      assert.ok(
        coverage.filter(({ policy: name }) => name === 'cap/both').every(({ state }) => state === 'Scanned'),
        stdout,
      );
      const some = await audit('admin', 'pods', '-n', 'default');
      assert.match(some.stdout, /1 policy, 1 kind, 1 object: 1 finding$/m);
    });

    it('is incomplete with the right that is missing, and has the findings of all other kinds', async () => {
      const { code, stdout } = await audit('reader', '-n', 'default');
      assert.equal(code, 3, stdout);
      assert.match(stdout, /^cap\/both +fail +ConfigMap default\/web +no$/m);
      assert.match(stdout, /^cap\/both +pods in default +Forbidden +Forbidden +pods is forbidden/m);
      assert.match(stdout, /^- apiGroups:\n    - ''\n  resources:\n    - pods\n  verbs:\n    - list$/m);
    });

    it('leaves nothing of a progress in a pipe', async () => {
      assert.equal((await audit('admin')).stderr, '');
    });
  });
});
