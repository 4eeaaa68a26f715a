// README's paragraph on a stricter policy, on a cluster with Portcullis: preview, except, apply, and read what the auditor found.
import assert from 'node:assert/strict';
import { join } from 'node:path';
import { after, before, describe, it } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { ROOT } from '../cli/command.ts';
import { skipWithoutCluster } from '../cluster/binaries.ts';
import type { KubectlResult, KubernetesObject } from '../cluster/cluster.ts';
import { VALUES } from './install-case.ts';
import { InstallLab } from './install-lab.ts';

const NAMESPACE = 'bots';
const PODS = `/api/v1/namespaces/${NAMESPACE}/pods`;
const POLICY = '/apis/policies.kubewarden.io/v1/clusteradmissionpolicies/pinned-images';
const STRICTER = join(ROOT, 'examples', 'pinned-images', 'by-digest.yaml');
const DIGEST = `sha256:${'a'.repeat(64)}`;
/** API servers ask about exceptions from then on, after the creation of the guard. Milliseconds. */
const GUARDED_MS = 11_000;
const WEEK_MS = 7 * 86_400_000;

interface Result {
  readonly policy: string;
  readonly result: string;
  readonly resources: readonly { readonly name: string }[];
  readonly properties: Readonly<Record<string, string>>;
}

interface Preview {
  readonly groups: readonly {
    readonly change: string;
    readonly count: number;
    readonly example: { readonly name: string };
  }[];
}

function pod(name: string, image: string): object {
  return {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { namespace: NAMESPACE, name },
    spec: { containers: [{ name: 'main', image }] },
  };
}

const BOT = pod('bot', 'registry.example/bot:1.0');
const SITE = pod('site', 'registry.example/site:2.0');
const EXCEPTION = {
  apiVersion: 'portcullis.dev/v1',
  kind: 'PolicyException',
  metadata: { namespace: NAMESPACE, name: 'bot' },
  spec: {
    policies: [{ kind: 'ClusterAdmissionPolicy', name: 'pinned-images' }],
    objects: { kinds: [{ kind: 'Pod' }], names: ['bot'] },
    reason: 'its next release has a digest',
    expiresAt: `${new Date(Date.now() + WEEK_MS).toISOString().slice(0, -5)}Z`,
  },
};

describe('a stricter policy', { skip: skipWithoutCluster() }, () => {
  let lab: InstallLab;
  let installedAt = 0;

  before(async () => {
    lab = await InstallLab.start();
    await lab.install({ ...VALUES, auditor: { reports: 'openreports' } });
    installedAt = Date.now();
    await lab.running();
    await lab.rolledOut('portcullis-auditor');
    await lab.cluster.createNamespace(NAMESPACE);
    await lab.apply(...(await lab.example('pinned-images')));
    await lab.active('clusteradmissionpolicies', 'pinned-images');
    await lab.apply(BOT, SITE, pod('pinned', `registry.example/pinned@${DIGEST}`));
    const write = ['create', 'role', 'exceptions', '-n', NAMESPACE, '--resource=policyexceptions.portcullis.dev'];
    await lab.kubectl([...write, '--verb=get,create,update,patch']);
    for (const user of ['jane', 'olga']) {
      await lab.kubectl(['create', 'rolebinding', user, '-n', NAMESPACE, '--role=exceptions', `--user=${user}`]);
    }
    const exempt = ['--verb=exempt', '--resource=clusteradmissionpolicies.policies.kubewarden.io'];
    await lab.kubectl(['create', 'clusterrole', 'exempter', ...exempt, '--resource-name=pinned-images']);
    await lab.kubectl(['create', 'clusterrolebinding', 'exempter', '--clusterrole=exempter', '--user=olga']);
  });
  after(() => (lab as InstallLab | undefined)?.[Symbol.asyncDispose]());

  const except = (user: string): Promise<KubectlResult> =>
    lab.cluster.kubectl([`--as=${user}`, 'apply', '-f', '-'], { stdin: JSON.stringify(EXCEPTION) });

  /** Names of the pods that a preview says would be rejected. */
  async function rejectedInPreview(): Promise<readonly string[]> {
    const args = ['-f', STRICTER, '-n', NAMESPACE, '-o', 'json'];
    const { code, stdout, stderr } = await lab.command('rollout', 'preview', ...args);
    assert.equal(code, 1, stderr + stdout);
    const { groups } = JSON.parse(stdout) as Preview;
    return groups.map(({ change, count, example }) => `${change} ${count} ${example.name}`).toSorted();
  }

  async function results(): Promise<readonly Result[]> {
    const { items } = await lab.get<{ items: readonly { readonly results?: readonly Result[] }[] }>(
      `/apis/openreports.io/v1alpha1/namespaces/${NAMESPACE}/reports`,
    );
    return items.flatMap((report) => report.results ?? []);
  }

  const reported = (): Promise<readonly Result[]> =>
    lab.eventually('both pods in reports', async () => {
      const found = (await results()).toSorted((one, other) => one.result.localeCompare(other.result));
      assert.deepEqual(
        found.map(({ result, resources, properties }) => [result, resources[0]?.name, properties['exception']]),
        [
          ['fail', 'site', undefined],
          ['skip', 'bot', `${NAMESPACE}/bot`],
        ],
      );
      return found;
    });

  it('is previewed: existing pods that it would reject are named', async () => {
    assert.deepEqual(await rejectedInPreview(), ['newlyRejected 1 bot', 'newlyRejected 1 site']);
  });

  it('has an exception only by a user with the verb exempt, and the preview knows it', async () => {
    await sleep(Math.max(0, installedAt + GUARDED_MS - Date.now()));
    const { stderr } = await except('jane');
    assert.match(stderr, /user jane needs the verb exempt on .*"pinned-images"/);
    const { code, stderr: refusal } = await except('olga');
    assert.equal(code, 0, refusal);
    await lab.kubectl(['wait', 'pex/bot', '-n', NAMESPACE, '--for=condition=Ready', '--timeout=30s']);
    assert.deepEqual(await rejectedInPreview(), ['newlyRejected 1 site']);
  });

  it('rejects one of them, and admits the other again', async () => {
    await lab.kubectl(['apply', '-f', STRICTER]);
    await lab.active('clusteradmissionpolicies', 'pinned-images');
    await lab.eventually('the policy to reject', async () =>
      assert.match(await lab.answer(PODS, SITE), /site:2\.0: an image needs a digest/),
    );
    await lab.kubectl(['delete', 'pod', 'bot', '-n', NAMESPACE, '--force', '--grace-period=0']);
    assert.equal(await lab.answer(PODS, BOT), '201');
    await lab.apply(BOT);
  });

  it('has a failure and a skipped object in reports, in its status and in `portcullis findings`', async () => {
    await reported();
    await lab.eventually('status.audit', async () => {
      const { metadata, status } = await lab.get<
        KubernetesObject & { status: { audit?: { state: string; observedGeneration: number; counts: object } } }
      >(POLICY);
      const { state, observedGeneration } = status.audit ?? {};
      assert.deepEqual([state, observedGeneration], ['Complete', metadata['generation']], JSON.stringify(status));
    });
    const { code, stdout, stderr } = await lab.command('findings', '-n', NAMESPACE, '--policy', 'cap/pinned-images');
    assert.equal(code, 0, stderr + stdout);
    assert.match(stdout, /^cap\/pinned-images +fail +medium +Pod bots\/site /m);
    assert.match(stdout, /^cap\/pinned-images +skip \(bots\/bot\) +medium +Pod bots\/bot /m);
    assert.match(stdout, /^2 findings: 1 fail, 1 skip$/m);
  });

  it('says in the status of the exception that one object exists that it is for, and that a request used it', async () => {
    await lab.eventually('the exception to be known', async () => {
      const printed = await lab.kubectl(['get', 'pex', 'bot', '-n', NAMESPACE, '--no-headers']);
      assert.match(printed, /^bot +pinned-images +\w+ +\S+Z +1 +1 +\d+\w+ /);
    });
  });

  it('has its reports back after somebody deleted them', async () => {
    const identities = (found: readonly Result[]): readonly unknown[] =>
      found.map(({ properties }) => properties['resultID']);
    const stored = await reported();
    await lab.kubectl(['delete', 'reports.openreports.io', '--all', '-n', NAMESPACE]);
    assert.deepEqual(identities(await reported()), identities(stored));
  });
});
