// Flux and Argo CD read from our status what is so: statuses that controllers wrote, read with kstatus and the Lua of Argo CD.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { load } from 'js-yaml';
import {
  ANNOTATIONS,
  keyOf,
  type KubernetesObject,
  type ObjectKey,
  OWN_KINDS,
  POLICIES_GROUP,
  POLICY_SERVERS,
} from '../../src/resources/index.ts';
import { skipWithoutGitOpsHealth } from '../cluster/binaries.ts';
import { kind, type Policy, PolicyLab } from '../lifecycle/policy-lab.ts';
import { example, ModuleSource } from '../server/harness.ts';
import { fluxHealth, type HealthExpressions } from './flux-expressions.ts';
import { toolHealth } from './health-program.ts';

/** The patch of Argo CD's ConfigMap. */
const { data: SCRIPTS } = load(readFileSync('deploy/argocd/health.yaml', 'utf8')) as { data: Record<string, string> };
const PAGE = readFileSync('docs/gitops.md', 'utf8');
const POLICIES = kind<Policy>('policies.kubewarden.io/v1', 'ClusterAdmissionPolicy');
const RULES = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];

/** What the tools should say: kstatus, Argo CD, and the expressions of docs/gitops.md where they are for the kind. */
type Expected = readonly [kstatus: string, argo: string, expressions?: string];

function policy(name: string, rest: Readonly<Record<string, unknown>> = {}): KubernetesObject {
  const settings = { labels: ['owner'] };
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name },
    spec: { module: example('required-labels'), settings, rules: RULES, mutating: false, ...rest },
  };
}

function policyServer(name: string): KubernetesObject {
  return {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'PolicyServer',
    metadata: { name },
    spec: { image: 'portcullis', replicas: 1 },
  };
}

/** The documents of a page that are YAML. */
function yamlBlocks(page: string): readonly unknown[] {
  return [...page.matchAll(/^```yaml\n(.*?)^```$/gmsu)].map(([, text = '']) => load(text));
}

/** The health script for a kind, under the key that Argo CD looks for. */
function scriptFor(name: string): string {
  return SCRIPTS[`resource.customizations.health.${POLICIES_GROUP}_${name}`] ?? assert.fail(`no script for ${name}`);
}

/** The expressions in the Kustomization of docs/gitops.md. */
function documentedExpressions(): readonly HealthExpressions[] {
  return yamlBlocks(PAGE).flatMap(
    (block) => (block as { spec?: { healthCheckExprs?: readonly HealthExpressions[] } }).spec?.healthCheckExprs ?? [],
  );
}

/** Objects in the states that they take, and what tools should say of each. */
class States {
  readonly objects: KubernetesObject[] = [];
  readonly #names: string[] = [];
  readonly #expected: Expected[] = [];

  add(name: string, object: KubernetesObject | undefined, ...expected: Expected): void {
    this.objects.push(object ?? assert.fail(name));
    this.#names.push(name);
    this.#expected.push(expected);
  }

  check(): void {
    const said = toolHealth(scriptFor(POLICIES.kind), this.objects);
    const expressions = documentedExpressions();
    const found = this.objects.map((object, index) => {
      const { kstatus, argo } = said[index] ?? assert.fail();
      const own = expressions.find((one) => one.kind === object.kind);
      const name = this.#names[index];
      return [name, kstatus.status, argo.status, ...(own === undefined ? [] : [fluxHealth(own, object)])];
    });
    assert.deepEqual(
      found,
      this.#names.map((name, index) => [name, ...(this.#expected[index] ?? [])]),
      JSON.stringify(said, null, 1),
    );
    for (const { argo } of said) {
      assert.notEqual(argo.message, '');
    }
  }
}

describe('health in GitOps tools', { skip: skipWithoutGitOpsHealth() }, () => {
  it('is read by one script, for all kinds that Git may contain', () => {
    const kinds = OWN_KINDS.filter(({ group }) => group === POLICIES_GROUP).map((one) => one.kind);
    assert.equal(new Set(kinds.map(scriptFor)).size, 1);
    assert.equal(Object.keys(SCRIPTS).length, kinds.length);
  });

  it('is what the status of policies and policy servers says', async () => {
    await using source = await ModuleSource.start({ kind: 'hang' });
    await using lab = await PolicyLab.start({ policyServerStatus: true });
    const states = new States();
    const annotate = async (key: ObjectKey, name: string, value: string): Promise<void> =>
      lab.merge(POLICIES, key, { metadata: { annotations: { [name]: value } } });
    const change = async (object: KubernetesObject, spec: object): Promise<void> =>
      lab.merge(POLICIES, keyOf(object), { spec });

    const active = policy('active');
    await lab.create(active);
    states.add('a policy that serves', await lab.reaches(active, 'Active'), 'Current', 'Healthy', 'Current');

    const monitor = policy('monitor', { mode: 'monitor' });
    await lab.create(monitor);
    states.add('one in monitor mode', await lab.reaches(monitor, 'Active'), 'Current', 'Healthy', 'Current');

    const wrong = policy('wrong', { settings: { labels: 7 } });
    await lab.create(wrong);
    states.add('one that never served', await lab.reaches(wrong, 'Error'), 'Failed', 'Degraded', 'Failed');

    const worse = policy('worse');
    await lab.create(worse);
    await lab.reaches(worse, 'Active');
    await change(worse, { settings: { labels: 7 } });
    states.add('one whose last spec failed', await lab.reaches(worse, 'Degraded'), 'Failed', 'Degraded', 'Failed');

    const refused = policy('refused', { sideEffects: 'Some' });
    await lab.create(refused);
    states.add('one whose webhook is refused', await lab.reaches(refused, 'Error'), 'Failed', 'Degraded', 'Failed');

    const unreachable = policy('unreachable', { module: 'https://127.0.0.1:1/policy.wasm' });
    await lab.create(unreachable);
    states.add(
      'one that is tried again',
      await lab.reaches(unreachable, 'Error'),
      'InProgress',
      'Progressing',
      'Failed',
    );

    const homeless = policy('homeless', { policyServer: 'nowhere' });
    await lab.create(homeless);
    const pending = await lab.reaches(homeless, 'Pending');
    states.add('one without a policy server', pending, 'InProgress', 'Progressing', 'InProgress');

    const held = policy('held');
    await lab.create(held);
    await lab.reaches(held, 'Active');
    await annotate(keyOf(held), ANNOTATIONS.pin, '1');
    await change(held, { settings: { labels: ['team'] } });
    states.add('one that is pinned', await lab.reaches(held, 'RolledBack'), 'Current', 'Suspended', 'InProgress');

    const lost = policy('lost');
    await lab.create(lost);
    await lab.reaches(lost, 'Active');
    await annotate(keyOf(lost), ANNOTATIONS.pin, '7');
    states.add('one pinned to nothing', await lab.reaches(lost, 'Degraded'), 'Failed', 'Degraded', 'Failed');

    const leaving = policy('leaving');
    const finalizers = ['example.com/slow'];
    await lab.create({ ...leaving, metadata: { ...leaving.metadata, finalizers } });
    await lab.reaches(leaving, 'Active');
    await lab.cluster.admin.delete(POLICIES, keyOf(leaving));
    const deleted = await lab.find(POLICIES, keyOf(leaving));
    states.add('one that is being deleted', deleted, 'Terminating', 'Progressing', 'InProgress');

    const isReady = (server: KubernetesObject | undefined, status: string): boolean =>
      JSON.stringify(server?.['status'] ?? {}).includes(`"Ready","status":"${status}"`);
    const served = await lab.sees(POLICY_SERVERS, { name: 'default' }, (found) => isReady(found, 'True'));
    states.add('a policy server with its replicas', served, 'Current', 'Healthy');
    await lab.create(policyServer('empty'));
    const empty = await lab.sees(POLICY_SERVERS, { name: 'empty' }, (found) => isReady(found, 'False'));
    states.add('one without a replica', empty, 'InProgress', 'Progressing');

    const slow = policy('slow');
    await lab.create(slow);
    await lab.reaches(slow, 'Active');
    await change(slow, { module: source.url });
    states.add('one on its way', await lab.reaches(slow, 'Updating'), 'InProgress', 'Progressing', 'InProgress');

    await lab.stopControllers();
    await change(active, { settings: { labels: ['team'] } });
    const stale = await lab.find(POLICIES, keyOf(active));
    states.add('one that was changed just now', stale, 'InProgress', 'Progressing', 'InProgress');
    for (const object of [policy('unseen'), policyServer('unseen')]) {
      const unseen = await lab.create(object);
      const expressions = object.kind === 'PolicyServer' ? [] : (['InProgress'] as const);
      states.add(`a ${object.kind} that no controller has seen`, unseen, 'InProgress', 'Progressing', ...expressions);
    }
    states.check();
  });
});
