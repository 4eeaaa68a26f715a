// docs/builtin-cel.md: its manifests, one of each kind at least, do on the cluster of `portcullis start` what the page says; and
// its list of differences.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { load } from 'js-yaml';
import { MAX_KUBERNETES_VERSION } from '../../src/cel/environment.ts';
import { eventually } from '../cluster/eventually.ts';
import { type CommandResult, ROOT } from './command.ts';
import { StartedPortcullis, WITHOUT_AUDITOR } from './started.ts';

const page = readFileSync(join(ROOT, 'docs/builtin-cel.md'), 'utf8');

interface Manifest {
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

const manifests = [...page.matchAll(/^```yaml\n(apiVersion: policies\.kubewarden\.io\/.*?)^```/gms)].map(
  ([, text = '']) => ({ text, ...(load(text) as Manifest) }),
);

function succeeded({ code, stdout, stderr }: CommandResult): string {
  assert.equal(code, 0, stderr + stdout);
  return stdout;
}

describe('manifests of docs/builtin-cel.md', () => {
  let started: StartedPortcullis;
  before(async () => {
    started = await StartedPortcullis.start(WITHOUT_AUDITOR);
    succeeded(await started.kubectl(['create', 'namespace', 'shop']));
  });
  after(() => started[Symbol.asyncDispose]());

  /** Creates a Deployment as a dry run. Returns its label of the cost center, or the error. */
  const create = async (name: string, replicas: number, namespace: string, image = 'nginx'): Promise<string> => {
    const label = ['-o', 'jsonpath={.metadata.labels.cost-center}'];
    const flags = ['--image', image, '--replicas', String(replicas), '-n', namespace, '--dry-run=server', ...label];
    const { stdout, stderr } = await started.kubectl(['create', 'deployment', name, ...flags]);
    return stdout + stderr;
  };

  it('are of all kinds, and become active', async () => {
    assert.deepEqual(
      new Set(manifests.map(({ kind }) => kind)),
      new Set(['ClusterAdmissionPolicy', 'AdmissionPolicy', 'ClusterAdmissionPolicyGroup', 'AdmissionPolicyGroup']),
    );
    for (const { kind, metadata, text } of manifests) {
      succeeded(await started.kubectl(['apply', '-f', '-'], text));
      const namespace = metadata.namespace === undefined ? [] : ['-n', metadata.namespace];
      const wait = ['--for=condition=Ready', '--timeout=30s', ...namespace];
      succeeded(
        await started.kubectl(['wait', `${kind.toLowerCase()}.policies.kubewarden.io/${metadata.name}`, ...wait]),
      );
    }
  });

  it('validate and mutate as the page says', async () => {
    // On a busy machine, the first reviews may take longer than policies may.
    await eventually(async () => assert.equal(await create('test-web', 1, 'shop'), 'shop'));
    assert.equal(await create('web', 1, 'shop', `nginx@sha256:${'0'.repeat(64)}`), 'shop');
    assert.equal(await create('web', 1, 'default'), '');
    assert.match(await create('web', 1, 'shop'), /apg\/pinned-or-test: images need a digest, except in Deployments/);
    assert.match(await create('web', 3, 'default'), /: capg\/owned-or-small: a Deployment has an owner, or at most 2 /);
    assert.match(await create('web', 6, 'default'), /cap\/replica-limit: at most 5 replicas are allowed, got 6/);
  });

  it('read the parameter of the namespace', async () => {
    assert.equal(await create('test-web', 2, 'shop'), 'shop');
    succeeded(await started.kubectl(['create', 'configmap', 'limits', '--from-literal=replicas=1', '-n', 'shop']));
    await eventually(async () =>
      assert.match(await create('test-web', 2, 'shop'), /cap\/limit-of-namespace: this namespace allows 1 replicas/),
    );
    assert.equal(await create('test-web', 1, 'shop'), 'shop');
    assert.equal(await create('web', 2, 'default'), '');
  });

  it('differ from policies of an API server as the page says', async () => {
    assert.ok(page.includes(`All functions of Kubernetes 1.${MAX_KUBERNETES_VERSION} exist here`));
    const rule = { apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'], operations: ['CREATE'] };
    const policy = (settings: object): string =>
      JSON.stringify({
        apiVersion: 'policies.kubewarden.io/v1',
        kind: 'ClusterAdmissionPolicy',
        metadata: { name: 'differences' },
        spec: { module: 'builtin:cel', mutating: false, rules: [rule], settings },
      });
    const validations = [
      { expression: "request.uid == ''", message: 'request has a uid', reason: 'Forbidden' },
      { expression: 'request.object.spec.replicas == 0', message: 'request has the object', reason: 'Unauthorized' },
    ];
    const refused = await started.kubectl(['apply', '-f', '-'], policy({ validations, validationActions: ['Warn'] }));
    assert.match(refused.stderr, /spec\.settings\.validationActions: unknown key "validationActions"/);
    succeeded(await started.kubectl(['apply', '-f', '-'], policy({ validations })));
    succeeded(await started.kubectl(['wait', 'cap/differences', '--for=condition=Ready', '--timeout=30s']));
    const labels = { app: 'web' };
    const template = { metadata: { labels }, spec: { containers: [{ name: 'web', image: 'nginx' }] } };
    const spec = { replicas: 1, selector: { matchLabels: labels }, template };
    const deployment = { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'web' }, spec };
    await assert.rejects(started.create('apps/v1', 'namespaces/default/deployments', deployment), {
      code: 403,
      message:
        'admission webhook "validating.fail.equivalent.cluster.v1.portcullis.dev" denied the request: cap/differences: request has a uid; request has the object',
    });
  });
});
