// Who writes PolicyRevisions and PolicyServerReplicas in the cluster of `portcullis start`: as in an installation.
import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { ApiError, connectionAs, KubernetesCluster, loadKubeconfig } from '../../src/cluster/index.ts';
import { eventually } from '../cluster/eventually.ts';
import { StartedPortcullis } from './started.ts';

type Impersonation = Parameters<typeof connectionAs>[1];

const OWN = '/apis/portcullis.dev/v1/namespaces/portcullis';
const REVISIONS = `${OWN}/policyrevisions`;
const REPLICAS = `${OWN}/policyserverreplicas`;
const SERVER_LABEL = 'portcullis.dev/policy-server';
const account = (name: string): string => `system:serviceaccount:portcullis:${name}`;
const serviceAccounts = ['system:serviceaccounts', 'system:serviceaccounts:portcullis', 'system:authenticated'];
const AUDITOR: Impersonation = { user: account('portcullis-auditor'), groups: serviceAccounts };
const CONTROLLER: Impersonation = { user: account('portcullis-controller') };
/** A user to whom a wildcard of RBAC grants everything. */
const MALLORY: Impersonation = { user: 'mallory', groups: ['system:masters'] };

function revision(name: string): object {
  return {
    apiVersion: 'portcullis.dev/v1',
    kind: 'PolicyRevision',
    metadata: { name, labels: { [SERVER_LABEL]: 'default' } },
    spec: {
      policy: { apiVersion: 'policies.kubewarden.io/v1', kind: 'ClusterAdmissionPolicy', name: 'forged', uid: 'u' },
      policyId: 'kw.cap.forged',
      policyServer: 'default',
      revision: 1,
      policyGeneration: 1,
      snapshot: { module: 'builtin:cel' },
    },
  };
}

describe('the records of portcullis start', () => {
  let started: StartedPortcullis;
  before(async () => {
    started = await StartedPortcullis.start('--examples');
  });
  after(() => started[Symbol.asyncDispose]());

  /** The status code of a request, and the message of an error. */
  async function answer(user: Impersonation | undefined, method: string, path: string, body?: object): Promise<string> {
    const { connection } = await loadKubeconfig({ paths: [started.kubeconfig], env: {} });
    using cluster = new KubernetesCluster(user === undefined ? connection : connectionAs(connection, user));
    const contentType = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
    try {
      const { status } = await cluster.request(method, path, body === undefined ? {} : { body, contentType });
      return String(status);
    } catch (error) {
      assert.ok(error instanceof ApiError, String(error));
      return `${error.code} ${error.message}`;
    }
  }

  async function revisionNames(): Promise<readonly string[]> {
    const { stdout } = await started.portcullis(['get', 'policyrevisions', '-n', 'portcullis', '-o', 'json']);
    const { items } = JSON.parse(stdout) as { items: readonly { readonly metadata: { readonly name: string } }[] };
    return items.map(({ metadata }) => metadata.name).toSorted();
  }

  it('are revisions that nobody but the controller writes, not even an administrator', async () => {
    const existing = await revisionNames();
    const [first = ''] = existing;
    const one = `${REVISIONS}/${first}`;
    assert.match(first, /^kw\.cap\./);
    const owner = { apiVersion: 'v1', kind: 'ConfigMap', name: 'gone', uid: 'gone' };
    for (const user of [undefined, MALLORY]) {
      for (const [method, path, body, refusal] of [
        ['POST', REVISIONS, revision('kw.cap.forged-1'), /only the controller of Portcullis creates and deletes/],
        ['DELETE', one, undefined, /creates and deletes PolicyRevisions: change the policy instead/],
        ['DELETE', REVISIONS, undefined, /creates and deletes PolicyRevisions/],
        ['PATCH', `${one}/status`, { status: { state: 'Serving', order: 9 } }, /never their spec/],
        ['PATCH', one, { spec: { snapshot: { module: 'builtin:pod-security' } } }, /never their spec/],
        ['PATCH', one, { metadata: { labels: { [SERVER_LABEL]: null } } }, /never their spec/],
        ['PATCH', one, { metadata: { ownerReferences: [owner] } }, /change owners and finalizers/],
      ] as const) {
        const said = await answer(user, method, path, body);
        assert.match(said, /^422 /, `${method} ${path}: ${said}`);
        assert.match(said, refusal);
      }
    }
    assert.deepEqual(await revisionNames(), existing);
    assert.equal(await answer(MALLORY, 'PATCH', one, { metadata: { annotations: { note: 'looked at' } } }), '200');
  });

  it('have previews that the auditor alone writes, which has no other right', async () => {
    const [first = ''] = await revisionNames();
    const [one, status] = [`${REVISIONS}/${first}`, `${REVISIONS}/${first}/status`];
    const preview = { summary: '0', state: 'Complete', reason: 'Compared', message: 'forged', comparedWith: 7 };
    assert.equal(await answer(AUDITOR, 'PATCH', status, { status: { preview } }), '200');
    for (const user of [undefined, MALLORY, { ...AUDITOR, user: 'system:serviceaccount:shop:portcullis-auditor' }]) {
      assert.match(await answer(user, 'PATCH', status, { status: { preview: { summary: '1' } } }), /^(422|403) /);
    }
    assert.match(
      await answer(MALLORY, 'PATCH', status, { status: { preview: { summary: '1' } } }),
      /^422 .*only the controller/,
    );
    for (const change of [
      { state: 'Retired' },
      { modules: null },
      { order: 99, preview: { summary: '1' } },
      { warnings: [], preview: null },
      { preview: null, reason: 'Other' },
      { enforced: false },
    ]) {
      const said = await answer(AUDITOR, 'PATCH', status, { status: change });
      assert.match(said, /^422 .*only the controller of Portcullis changes/, JSON.stringify(change));
    }
    for (const [method, path, body] of [
      ['POST', REVISIONS, revision('kw.cap.forged-1')],
      ['DELETE', one, undefined],
      ['DELETE', REVISIONS, undefined],
      ['PATCH', one, { spec: { snapshot: { module: 'builtin:pod-security' } } }],
      ['PATCH', one, { metadata: { labels: { [SERVER_LABEL]: null } } }],
      ['PATCH', one, { metadata: { annotations: { note: 'mine' } } }],
      ['DELETE', `${REPLICAS}/local`, undefined],
      ['PATCH', `${REPLICAS}/local/status`, { status: {} }],
    ] as const) {
      assert.match(await answer(AUDITOR, method, path, body), /^403 /, `${method} ${path}`);
    }
  });

  it('can be removed in an emergency by impersonating the controller', async () => {
    assert.equal(await answer(CONTROLLER, 'POST', `${REVISIONS}?dryRun=All`, revision('kw.cap.forged-1')), '201');
  });

  it('are still written by the controller, and collected with their policy', async () => {
    const policy = 'cap/host-namespaces';
    const isOfPolicy = (name: string): boolean => name.includes('kw.cap.host-namespaces-');
    assert.ok((await revisionNames()).some(isOfPolicy));
    assert.equal((await started.portcullis(['delete', policy])).code, 0);
    await eventually(async () => assert.equal((await revisionNames()).some(isOfPolicy), false));
  });

  it('are replicas of which a pod of Portcullis writes only its own', async () => {
    const pod: Impersonation = {
      user: account('policy-server-default'),
      groups: serviceAccounts,
      extra: { 'authentication.kubernetes.io/pod-name': ['other'], 'authentication.kubernetes.io/pod-uid': ['u'] },
    };
    const said = await answer(pod, 'DELETE', `${REPLICAS}/local`);
    assert.match(said, /^422 .*only the PolicyServerReplica that has the name of its pod/);
  });
});
