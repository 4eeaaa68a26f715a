// `portcullis rollout preview` on files, on a cluster with the rights of two users, and on a cluster that serves policies.
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
  type KubernetesObject,
  POLICY_REVISIONS,
  POLICY_SERVER_LABEL,
  POLICY_UID_LABEL,
} from '../../src/resources/index.ts';
import { eventually } from '../cluster/eventually.ts';
import { createLoopbackCertificate } from '../cluster/loopback-certificate.ts';
import { example } from '../server/harness.ts';
import { type CommandResult, portcullis } from './command.ts';
import { StartedPortcullis } from './started.ts';

const SERVING = 'test/fixtures/preview/serving.yaml';
const STRICTER = 'test/fixtures/preview/stricter.yaml';
const OBJECTS = 'test/fixtures/preview/objects.yaml';

interface Report {
  readonly policy: string;
  readonly old: string;
  readonly before: string;
  readonly after: string;
  readonly isComplete: boolean;
  readonly counts: Readonly<Record<string, Readonly<Record<string, number>>>>;
  readonly groups: readonly {
    readonly change: string;
    readonly subject: string;
    readonly count: number;
    readonly guard?: string;
    readonly message?: string;
    readonly example: { readonly name: string; readonly patch?: string };
  }[];
  readonly coverage: readonly {
    readonly policy: string;
    readonly state: string;
    readonly reason?: string;
    readonly kind?: { readonly resource: string };
    readonly missingRule?: object;
  }[];
}

const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE', 'UPDATE'] };

function policy(spec: object, name = 'p', kind = 'ClusterAdmissionPolicy'): object {
  const rest = { mutating: false, rules: [RULE], ...spec };
  return { apiVersion: 'policies.kubewarden.io/v1', kind, metadata: { name }, spec: rest };
}

function cel(expression: string, more: object = {}): object {
  return { module: 'builtin:cel', settings: { validations: [{ expression, message: 'no' }] }, ...more };
}

function pod(name: string, image: string, namespace = 'shop', metadata: object = {}): object {
  const spec = { containers: [{ name: 'main', image }] };
  return { apiVersion: 'v1', kind: 'Pod', metadata: { name, namespace, ...metadata }, spec };
}

const OURS = "object.spec.containers.all(c, c.image.startsWith('ours/'))";

describe('portcullis rollout preview', () => {
  let folder = '';
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'portcullis-preview-'));
  });
  after(() => rm(folder, { recursive: true }));

  async function file(name: string, ...items: readonly object[]): Promise<string> {
    const path = join(folder, `${name}.json`);
    await writeFile(path, JSON.stringify({ apiVersion: 'v1', kind: 'List', items }));
    return path;
  }

  const preview = (...args: readonly string[]): Promise<CommandResult> => portcullis(['rollout', 'preview', ...args]);

  /** The report on versions and objects that are in no cluster. */
  async function compared(
    old: readonly object[],
    changed: readonly object[],
    objects: readonly object[],
  ): Promise<Report & Pick<CommandResult, 'code'>> {
    const [from, to, existing] = [
      await file('old', ...old),
      await file('new', ...changed),
      await file('objects', ...objects),
    ];
    const { code, stdout, stderr } = await preview('-f', to, '--from', from, '--objects', existing, '-o', 'json');
    assert.equal(stderr, '');
    return { ...(JSON.parse(stdout) as Report), code };
  }

  const changes = ({ groups }: Report): readonly string[] =>
    groups.map(({ change, subject, count, example: { name } }) => `${change} ${subject} ${count} ${name}`);

  it('has the same groups and the same exit code in every format', async () => {
    for (const format of ['table', 'markdown', 'json', 'yaml']) {
      const args = ['-f', STRICTER, '--from', SERVING, '--objects', OBJECTS, '-o', format];
      const { code, stdout, stderr } = await preview(...args);
      assert.deepEqual([code, stderr], [1, ''], format);
      for (const text of ['argocd-repo-server', 'nightly', 'take images from registry.example', 'Argo CD']) {
        assert.ok(stdout.includes(text), `${format}: ${text}`);
      }
    }
  });

  it('takes nothing as rejected that an exception is for', async () => {
    const exception = {
      apiVersion: 'portcullis.dev/v1',
      kind: 'PolicyException',
      metadata: { name: 'legacy', namespace: 'shop' },
      spec: {
        policies: [{ kind: 'ClusterAdmissionPolicy', name: 'p' }],
        objects: { kinds: [{ kind: 'Pod' }], names: ['legacy'] },
        reason: 'its image moves next week',
        expiresAt: new Date(Date.now() + 86_400_000).toISOString().replace(/\.\d+Z/, 'Z'),
      },
    };
    const pods = [pod('legacy', 'theirs/web'), pod('other', 'theirs/web')];
    const without = await compared([policy(cel('true'))], [policy(cel(OURS))], pods);
    assert.deepEqual(without.counts['objects'], { newlyRejected: 2 });
    const report = await compared([policy(cel('true'))], [policy(cel(OURS))], [...pods, exception]);
    assert.deepEqual(report.counts['objects'], { newlyRejected: 1, unchanged: 1 });
    assert.deepEqual(changes(report), ['newlyRejected objects 1 other']);
  });

  it('fails for what --fail-on says', async () => {
    const base = ['-f', STRICTER, '--from', SERVING, '--objects', OBJECTS];
    const codes = async (...args: readonly string[]): Promise<number | null> => (await preview(...base, ...args)).code;
    assert.equal(await codes('--fail-on', 'never'), 0);
    assert.equal(await codes('--fail-on', 'guarded'), 1);
    assert.equal((await preview('-f', SERVING, '--from', STRICTER, '--objects', OBJECTS)).code, 0);
    const loosened = ['-f', SERVING, '--from', STRICTER, '--objects', OBJECTS, '--fail-on', 'change'];
    assert.equal((await preview(...loosened)).code, 1);
  });

  it('names what is wrong with its files and arguments', async () => {
    const [twice, entry] = [
      await file('two', policy(cel('true'), 'a'), policy(cel('true'), 'b')),
      join(folder, 'p.yml'),
    ];
    await writeFile(entry, 'p: {module: "builtin:cel", settings: {}}\n');
    const where = ['--from', SERVING, '--objects', OBJECTS];
    for (const [args, code, text] of [
      [['-f', OBJECTS, ...where], 1, /objects\.yaml has no policy\n/],
      [['-f', twice, ...where], 2, /has 2 policies: expected POLICY with one of them\nIt has cap\/a, cap\/b\./],
      [['cap/other', '-f', STRICTER, ...where], 1, /has no policy "cap\/other"\nIt has cap\/image-sources\./],
      [['cap/a', '-f', twice, ...where], 1, /serving\.yaml has no policy "cap\/a"\nIt has cap\/image-sources\./],
      [['-f', entry, ...where], 1, /expected a manifest of a policy, got the entry p of a policies file/],
      [['-f', join(folder, 'nothing.yaml'), ...where], 1, /nothing\.yaml cannot be read/],
      [['--from', SERVING, '--objects', OBJECTS, '--fail-on', 'x'], 2, /'--fail-on <what>' argument 'x' is invalid/],
    ] as const) {
      const result = await preview(...args);
      assert.match(result.stderr, text);
      assert.deepEqual([result.code, result.stdout], [code, '']);
    }
    const found = await preview(
      'clusteradmissionpolicy.policies.kubewarden.io/image-sources',
      '-f',
      STRICTER,
      ...where,
    );
    assert.equal(found.code, 1, found.stderr);
    assert.match(found.stdout, /^cap\/image-sources: /);
  });

  it('compares modules of WebAssembly, groups, and policies that change objects', async () => {
    const labels = (...wanted: readonly string[]): object =>
      policy({ module: example('required-labels'), settings: { labels: wanted } });
    const owned = pod('owned', 'a', 'shop', { labels: { owner: 'me' } });
    const wasm = await compared([labels('owner')], [labels('owner', 'team')], [owned, pod('bare', 'a')]);
    assert.deepEqual(changes(wasm), ['newlyRejected objects 1 owned', 'messageChanged objects 1 bare']);
    const group = (expression: string): object =>
      policy(
        { expression, message: 'none', policies: { ours: cel(OURS), never: cel('false') }, mutating: undefined },
        'p',
        'ClusterAdmissionPolicyGroup',
      );
    const groups = await compared([group('ours() || never()')], [group('ours() && never()')], [pod('a', 'ours/a')]);
    assert.deepEqual(changes(groups), ['newlyRejected objects 1 a']);
    const seccomp = (settings: object): object =>
      policy({ module: example('default-seccomp'), settings, mutating: true });
    const never = policy(cel('true'));
    const mutated = await compared([never], [seccomp({})], [pod('a', 'a')]);
    assert.deepEqual([changes(mutated), mutated.code], [['newlyMutated objects 1 a'], 0]);
    assert.match(mutated.groups[0]?.example.patch ?? '', /RuntimeDefault/);
    const other = await compared(
      [seccomp({})],
      [seccomp({ profile: 'Localhost', localhostProfile: 'a' })],
      [pod('a', 'a')],
    );
    assert.deepEqual(changes(other), ['mutationChanged objects 1 a']);
    const back = await compared([seccomp({})], [never], [pod('a', 'a')]);
    assert.deepEqual(changes(back), ['noLongerMutated objects 1 a']);
  });

  it('compares levels of Pod Security, and the mode of a policy', async () => {
    const level = (enforce: string): object => policy({ module: 'builtin:pod-security', settings: { enforce } });
    const levels = await compared([level('baseline')], [level('restricted')], [pod('a', 'a')]);
    assert.deepEqual(changes(levels), ['newlyRejected objects 1 a']);
    const mode = (one: string): object => policy(cel(OURS, { mode: one }));
    const enforced = await compared([mode('monitor')], [mode('protect')], [pod('a', 'a'), pod('b', 'ours/b')]);
    assert.deepEqual(changes(enforced), ['newlyRejected objects 1 a']);
    const monitored = await compared([mode('protect')], [mode('monitor')], [pod('a', 'a')]);
    assert.deepEqual([changes(monitored), monitored.code], [['newlyAdmitted objects 1 a'], 0]);
  });

  it('compares parameters, also where the policy stays as it is', async () => {
    const limited = policy({
      module: 'builtin:cel',
      settings: { variables: [{ name: 'prefix', expression: "'none/'" }], validations: [] },
      parameters: {
        from: { resource: { apiVersion: 'v1', kind: 'ConfigMap', name: 'limits' } },
        overridable: ['validations'],
        notFound: 'Allow',
        settingsExpression:
          "{'validations': [{'expression': 'object.spec.containers.all(c, c.image.startsWith(\"' + params.data.prefix + '\"))', 'message': 'no'}]}",
      },
    });
    const limits = (prefix: string): object => ({
      apiVersion: 'v1',
      kind: 'ConfigMap',
      metadata: { name: 'limits', namespace: 'shop' },
      data: { prefix },
    });
    const found = await compared(
      [limited, limits('')],
      [limited, limits('ours/')],
      [pod('a', 'a'), pod('b', 'ours/b')],
    );
    assert.deepEqual([changes(found), found.code], [['newlyRejected objects 1 a'], 1], JSON.stringify(found.coverage));
  });

  it("compares Kubernetes' own policies by their bindings", async () => {
    const apiVersion = 'admissionregistration.k8s.io/v1';
    const vap = {
      apiVersion,
      kind: 'ValidatingAdmissionPolicy',
      metadata: { name: 'v' },
      spec: { matchConstraints: { resourceRules: [RULE] }, validations: [{ expression: OURS, message: 'no' }] },
    };
    const binding = (...actions: readonly string[]): object => ({
      apiVersion,
      kind: 'ValidatingAdmissionPolicyBinding',
      metadata: { name: 'v' },
      spec: { policyName: 'v', validationActions: actions },
    });
    const system = pod('proxy', 'a', 'kube-system');
    const found = await compared([vap, binding('Audit')], [vap, binding('Deny')], [pod('a', 'a'), system]);
    assert.deepEqual(changes(found), ['newlyRejected objects 1 proxy', 'newlyRejected objects 1 a']);
    assert.equal(found.groups[0]?.guard, 'Kubernetes');
    const paths = [await file('vap', vap), await file('binding', binding('Deny')), await file('before', vap)];
    const [changed = '', bound = '', unbound = ''] = paths;
    const existing = await file('objects', pod('a', 'a'));
    const args = ['-f', changed, '--binding', bound, '--from', unbound, '--objects', existing];
    const result = await preview(...args);
    assert.equal(result.code, 1, result.stderr);
    assert.match(result.stdout, /^newly rejected +1 +Pod shop\/a +no$/m);
  });

  it('knows agents of network providers, Flux, and namespaces by themselves', async () => {
    const agent = {
      apiVersion: 'apps/v1',
      kind: 'DaemonSet',
      metadata: { name: 'cilium', namespace: 'network' },
      spec: {
        selector: { matchLabels: { app: 'cilium' } },
        template: {
          metadata: { labels: { app: 'cilium' } },
          spec: { hostNetwork: true, containers: [{ name: 'cilium-agent', image: 'quay.io/cilium/cilium:v1.18.0' }] },
        },
      },
    };
    const flux = pod('source', 'flux', 'tools', { labels: { 'app.kubernetes.io/part-of': 'flux' } });
    const found = await compared([policy(cel('true'))], [policy(cel(OURS))], [agent, flux, pod('a', 'a')]);
    assert.deepEqual(
      found.groups.map(({ guard, example: { name } }) => [name, guard]),
      [
        ['source', 'Flux'],
        ['cilium', 'the network provider (cilium)'],
        ['a', undefined],
      ],
    );
  });

  it('is not clean where existing objects do not say enough, or a version cannot be loaded', async () => {
    const byUser = policy(cel("request.userInfo.username == 'x'"));
    const strict = policy(cel(OURS));
    const unknown = await compared([strict], [byUser], [pod('a', 'a')]);
    assert.deepEqual([unknown.code, unknown.after, unknown.isComplete], [3, 'unknown', false]);
    const before = await compared([byUser], [strict], [pod('a', 'a')]);
    assert.deepEqual([before.code, before.before, changes(before)], [1, 'unknown', ['newlyRejected objects 1 a']]);
    const paths = [await file('new', byUser), await file('old', strict), await file('objects', pod('a', 'a'))];
    const [changed = '', from = '', existing = ''] = paths;
    const text = await preview('-f', changed, '--from', from, '--objects', existing);
    assert.match(text.stdout, /^cap\/p: .*\n\nNothing is known of what it would change: /);
    const lost = policy({ ...cel('true'), module: 'file:///does/not/exist.wasm' });
    const failed = await compared([strict], [lost], [pod('a', 'a')]);
    assert.deepEqual([failed.code, failed.coverage[0]?.reason], [3, 'NotLoaded']);
  });

  it('judges recorded requests as they were sent: operation, user and old object', async () => {
    const request = (operation: string, username: string, more: object): object => ({
      apiVersion: 'admission.k8s.io/v1',
      kind: 'AdmissionReview',
      request: {
        uid: 'u',
        kind: { group: '', version: 'v1', kind: 'Pod' },
        resource: { group: '', version: 'v1', resource: 'pods' },
        name: 'web',
        namespace: 'shop',
        operation,
        userInfo: { username },
        ...more,
      },
    });
    const [web, changed] = [pod('web', 'ours/web:1'), pod('web', 'ours/web:2')];
    const recorded = await file(
      'requests',
      request('CREATE', 'root', { object: web }),
      request('CREATE', 'deployer', { object: web }),
      { ...request('UPDATE', 'root', { object: changed, oldObject: web }), apiVersion: 'admission.k8s.io/v1beta1' },
      request('DELETE', 'root', { oldObject: web }),
      request('CREATE', 'root', { object: web, subResource: 'eviction' }),
    );
    const rules = [{ ...RULE, operations: ['*'] }];
    const wanted = [
      "request.operation != 'CREATE' || request.userInfo.username == 'root'",
      "request.operation != 'UPDATE' || object.spec.containers[0].image == oldObject.spec.containers[0].image",
      "request.operation != 'DELETE' || oldObject.metadata.name != 'web'",
    ].map((one) => `(${one})`);
    const files = [
      await file('to', policy(cel(wanted.join(' && '), { rules }))),
      await file('from', policy(cel('true', { rules }))),
      await file('no-objects', pod('other', 'ours/other')),
    ];
    const [to = '', from = '', existing = ''] = files;
    const args = ['-f', to, '--from', from, '--objects', existing, '--requests', recorded];
    const { stdout, code } = await preview(...args, '-o', 'json');
    const report = JSON.parse(stdout) as Report;
    assert.deepEqual(report.counts['requests'], { newlyRejected: 3, unchanged: 2 }, stdout);
    assert.deepEqual(changes(report), [
      'newlyRejected requests 1 web',
      'newlyRejected requests 1 web',
      'newlyRejected requests 1 web',
    ]);
    // Of existing objects nothing is known.
    assert.equal(code, 3);
    const text = await preview(...args);
    assert.match(text.stdout, /^request newly rejected +1 +UPDATE Pod shop\/web +no$/m);
    const wrong = await preview('-f', to, '--from', from, '--objects', existing, '--requests', existing);
    assert.match(wrong.stderr, /request 1 is no AdmissionReview/);
  });

  it('compares objects of a mebibyte', async () => {
    const large = pod('large', 'a', 'shop', { annotations: { text: 'x'.repeat(1 << 20) } });
    const found = await compared([policy(cel('true'))], [policy(cel(OURS))], [large]);
    assert.deepEqual(changes(found), ['newlyRejected objects 1 large']);
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
      const create = (apiVersion: string, kind: string, object: object): Promise<KubernetesObject> =>
        admin.create(knownKind(apiVersion, kind), { apiVersion, kind, metadata: {}, ...object });
      for (const kind of [CLUSTER_ADMISSION_POLICIES, POLICY_REVISIONS]) {
        await admin.create(
          knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition'),
          customResourceDefinition(kind),
        );
      }
      for (const name of ['shop', 'portcullis']) {
        await create('v1', 'Namespace', { metadata: { name } });
      }
      await create('v1', 'Pod', pod('web', 'other/web'));
      const applied = await admin.create(CLUSTER_ADMISSION_POLICIES, policy(cel('true'), 'images') as never);
      const revision = {
        apiVersion: 'portcullis.dev/v1',
        kind: 'PolicyRevision',
        metadata: {
          name: 'kw.cap.images-1',
          namespace: 'portcullis',
          labels: { [POLICY_UID_LABEL]: applied.metadata.uid ?? '', [POLICY_SERVER_LABEL]: 'default' },
        },
        spec: {
          policy: {
            apiVersion: 'policies.kubewarden.io/v1',
            kind: 'ClusterAdmissionPolicy',
            name: 'images',
            uid: applied.metadata.uid ?? '',
          },
          policyId: 'kw.cap.images',
          policyServer: 'default',
          revision: 1,
          policyGeneration: 1,
          snapshot: { ...cel(OURS), mutating: false, rules: [RULE] },
        },
      };
      const stored = await admin.create(POLICY_REVISIONS, revision);
      await admin.update(
        POLICY_REVISIONS,
        { ...stored, status: { state: 'Serving', order: 1, stateSince: '2026-01-01T00:00:00Z' } },
        { subresource: 'status' },
      );
      const group = 'rbac.authorization.k8s.io';
      const rules = [
        { apiGroups: [''], resources: ['pods'], verbs: ['list'] },
        { apiGroups: ['policies.kubewarden.io'], resources: ['clusteradmissionpolicies'], verbs: ['get'] },
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

    const as = (user: keyof typeof TOKENS, ...args: readonly string[]): Promise<CommandResult> =>
      preview('--kubeconfig', join(folder, user), ...args);

    it('compares with what serves: a file, and the spec that is applied', async () => {
      const path = await file('changed', policy(cel('false'), 'images'));
      const file1 = await as('admin', '-f', path, '-n', 'shop', '-o', 'json');
      const report = JSON.parse(file1.stdout) as Report;
      assert.deepEqual([report.old, report.counts['objects'], file1.code], ['revision 1', { stillRejected: 1 }, 0]);
      const pending = await as('admin', 'cap/images', '-n', 'shop');
      assert.match(pending.stdout, /^cap\/images: revision 1 → the spec that is applied\n/);
      assert.match(pending.stdout, /^newly admitted +1 +Pod shop\/web +no$/m);
      const unknown = await as('admin', 'cap/images', '--from', '7');
      assert.match(unknown.stderr, /has no revision 7\nThese are kept: 1\./);
    });

    it('leaves out what the installed controller exempts, and says when that is not known', async () => {
      const path = await file('fresh', policy(cel(OURS), 'fresh'));
      const unknown = await as('reader', '-f', path, '-n', 'shop');
      assert.match(
        unknown.stderr,
        /note: deployment\/portcullis-controller in namespace portcullis may not be read: .* kube-system/,
      );
      const missing = await as('admin', '-f', path, '-n', 'shop');
      assert.match(missing.stderr, /portcullis-controller in namespace portcullis does not exist/);
      assert.match(missing.stdout, /^newly rejected +1 +Pod shop\/web/m);
      const containers = [{ name: 'controller', image: 'c', args: ['--exempt-namespaces=kube-system,shop'] }];
      const labels = { app: 'c' };
      const deployments = knownKind('apps/v1', 'Deployment');
      await cluster.admin.create(deployments, {
        apiVersion: 'apps/v1',
        kind: 'Deployment',
        metadata: { name: 'portcullis-controller', namespace: 'portcullis' },
        spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
      });
      const found = await as('admin', '-f', path, '-n', 'shop');
      await cluster.admin.delete(deployments, { name: 'portcullis-controller', namespace: 'portcullis' });
      assert.deepEqual([found.stderr.includes('note:'), found.code], [false, 0], found.stdout);
    });

    it('takes all that a policy rejects as new which is not in the cluster', async () => {
      const path = await file('fresh', policy(cel(OURS), 'fresh'));
      const { code, stdout } = await as('admin', '-f', path, '-n', 'shop');
      assert.match(stdout, /^cap\/fresh: not in the cluster → /);
      assert.match(stdout, /^newly rejected +1 +Pod shop\/web +no$/m);
      assert.equal(code, 1);
    });

    it('is incomplete with the rights that are missing, which come first, and has what could be read', async () => {
      const path = await file('fresh', policy(cel(OURS), 'fresh'));
      const { code, stdout } = await as('reader', '-f', path);
      assert.equal(code, 3, stdout);
      assert.match(stdout, /^cap\/fresh: .*\n\nThis is not all: /);
      assert.match(stdout, /^newly rejected +\d+ +.*Pod /m);
      assert.match(stdout, /^new +\S+ and \d+ more +Forbidden|^new .*Forbidden/m);
      assert.match(stdout, /^ {4}- replicasets$/m);
    });

    it('reads the old version in the status of the policy where reading revisions is forbidden, or says that it is not known', async () => {
      const unknown = await as('reader', 'cap/images');
      assert.match(
        unknown.stderr,
        /it is not known which revision of \S+ serves\nIt needs the verb list on policyrevisions/,
      );
      assert.equal(unknown.code, 1);
      const { admin } = cluster;
      const listed = await admin.create(CLUSTER_ADMISSION_POLICIES, policy(cel('true'), 'listed') as never);
      const spec = JSON.stringify({ ...cel(OURS), mutating: false, rules: [RULE] });
      const revision = {
        revision: 1,
        state: 'Serving',
        since: '2026-01-01T00:00:00Z',
        cause: 'new',
        digests: [],
        spec,
      };
      const status = { servingRevision: 1, revisions: [revision] };
      await admin.update(CLUSTER_ADMISSION_POLICIES, { ...listed, status }, { subresource: 'status' });
      const found = await as('reader', 'cap/listed', '-n', 'shop');
      assert.match(found.stdout, /^cap\/listed: revision 1 → the spec that is applied\n/);
      assert.match(found.stdout, /^newly admitted +1 +Pod shop\/web +no$/m);
      assert.match(
        found.stderr,
        /note: you lack the verb list on policyrevisions\.portcullis\.dev: revision 1 is the one in the status/,
      );
    });

    it("compares Kubernetes' own policies with those of the cluster", async () => {
      const apiVersion = 'admissionregistration.k8s.io/v1';
      const { admin } = cluster;
      const vap = {
        apiVersion,
        kind: 'ValidatingAdmissionPolicy',
        metadata: { name: 'v' },
        spec: {
          matchConstraints: { resourceRules: [{ ...RULE, operations: ['CREATE'] }] },
          validations: [{ expression: OURS, message: 'not ours' }],
        },
      };
      const binding = (...validationActions: readonly string[]): KubernetesObject => ({
        apiVersion,
        kind: 'ValidatingAdmissionPolicyBinding',
        metadata: { name: 'v' },
        spec: { policyName: 'v', validationActions },
      });
      await admin.create(knownKind(apiVersion, 'ValidatingAdmissionPolicy'), vap);
      await admin.create(knownKind(apiVersion, 'ValidatingAdmissionPolicyBinding'), binding('Audit'));
      const denying = await as('admin', 'vap/v', '--binding', await file('deny', binding('Deny')), '-n', 'shop');
      assert.match(denying.stdout, /^vap\/v: applied → /);
      assert.match(denying.stdout, /^newly rejected +1 +Pod shop\/web +not ours$/m);
      const changed = await as('admin', '-f', await file('vap', vap), '-n', 'shop');
      assert.equal(changed.code, 0, changed.stderr);
      assert.match(changed.stdout, /^1 object: 1 unchanged$/m);
    });
  });

  it('compares with the revision that a policy server has', async () => {
    await using started = await StartedPortcullis.start();
    const run = (...args: readonly string[]): Promise<CommandResult> => started.portcullis(args);
    const apply = async (object: object): Promise<void> => {
      const { code, stderr } = await started.portcullis(['apply', '-f', '-'], JSON.stringify(object));
      assert.equal(code, 0, stderr);
    };
    await apply(pod('web', 'other/web', 'default'));
    await apply(policy(cel('true'), 'images'));
    assert.equal((await run('rollout', 'status', 'cap/images', '--timeout', '20s')).code, 0);
    const same = await run('rollout', 'preview', 'cap/images', '-n', 'default');
    assert.equal(same.code, 0, same.stderr + same.stdout);
    assert.match(same.stdout, /^cap\/images: revision 1 → the spec that is applied\n/);
    const path = await file('strict', policy(cel(OURS), 'images'));
    const strict = await run('rollout', 'preview', '-f', path, '-n', 'default');
    assert.equal(strict.code, 1, strict.stderr + strict.stdout);
    assert.match(strict.stdout, /^newly rejected +1 +Pod default\/web +no$/m);
    await apply(policy(cel(OURS), 'images'));
    assert.equal((await run('rollout', 'status', 'cap/images', '--timeout', '20s')).code, 0);
    const back = await run('rollout', 'preview', 'cap/images', '--from', '1', '-n', 'default');
    assert.match(back.stdout, /^newly rejected +1 +Pod default\/web +no$/m);
    // The auditor has said the same, in the revision.
    await eventually(
      async () => {
        const { stderr } = await run('rollout', 'status', 'cap/images', '--timeout', '20s');
        assert.match(stderr, /^note: what revision 2 changes for existing objects: 1 newly rejected .*revision 1\)/m);
      },
      { timeoutMs: 60_000 },
    );
    const revisions = await run('get', 'policyrevisions', '-n', 'portcullis');
    assert.match(revisions.stdout, /NEWLY REJECTED[^]*images-1 .* 0 +\S+$[^]*images-2 .* 1 +\S+$/m);
  });
});
