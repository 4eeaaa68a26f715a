// Flux and Argo CD read from our status what is so: statuses that controllers wrote, read with kstatus and the Lua of Argo CD.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, it } from 'node:test';
import { load } from 'js-yaml';
import {
  ALL_KINDS,
  ANNOTATIONS,
  type JsonObject,
  keyOf,
  type KubernetesObject,
  type ObjectKey,
  GOVERNANCE_GROUP,
  POLICIES_GROUP,
  POLICY_SERVERS,
} from '../../src/resources/index.ts';
import { skipWithoutGitOpsHealth } from '../cluster/binaries.ts';
import { CHECK, GovernanceLab, type LabObject, policyOfChecks } from '../governance/governance-lab.ts';
import { kind, type Policy, PolicyLab } from '../lifecycle/policy-lab.ts';
import { example, ModuleSource } from '../server/harness.ts';
import { fluxHealth, type HealthExpressions } from './flux-expressions.ts';
import { toolHealth } from './health-program.ts';

/** The patch of Argo CD's ConfigMap. */
const { data: SCRIPTS } = load(readFileSync('deploy/argocd/health.yaml', 'utf8')) as { data: Record<string, string> };
const PAGE = readFileSync('docs/gitops.md', 'utf8');
const POLICIES = kind<Policy>('policies.kubewarden.io/v1', 'ClusterAdmissionPolicy');
const RULES = [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }];

const SCRIPT_KEY = 'resource.customizations.health.';

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
function scriptFor(group: string, name: string): string {
  return SCRIPTS[`${SCRIPT_KEY}${group}_${name}`] ?? assert.fail(`no script for ${name}`);
}

/** The expressions in the Kustomization of docs/gitops.md. */
function documentedExpressions(): readonly HealthExpressions[] {
  return yamlBlocks(PAGE).flatMap(
    (block) => (block as { spec?: { healthCheckExprs?: readonly HealthExpressions[] } }).spec?.healthCheckExprs ?? [],
  );
}

/** Whether the condition of an object is true. */
function isTrue(object: LabObject | undefined, type: string): boolean {
  return object?.status?.conditions?.some((one) => one.type === type && one.status === 'True') === true;
}

const isReady = (object: LabObject | undefined): boolean => isTrue(object, 'Ready');
const isStalled = (object: LabObject | undefined): boolean => isTrue(object, 'Stalled');

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
    const said = toolHealth(scriptFor(POLICIES_GROUP, POLICIES.kind), this.objects);
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
    const written = ALL_KINDS.filter((one) => [POLICIES_GROUP, GOVERNANCE_GROUP].includes(one.group));
    const keys = written.map((one) => `${SCRIPT_KEY}${one.group}_${one.kind}`);
    assert.deepEqual(Object.keys(SCRIPTS).toSorted(), keys.toSorted());
    assert.equal(new Set(Object.values(SCRIPTS)).size, 1);
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

  it('is what the status of governance policies says', async () => {
    await using lab = await GovernanceLab.start({ settings: { namespaces: ['policies'] } });
    const states = new States();
    const root = async (name: string, spec: JsonObject = {}): Promise<void> =>
      lab.apply(policyOfChecks(name, [`${name}-check`], { spec }));
    const checked = async (name: string, compliant: string): Promise<void> => {
      const check = { ...CHECK, name: `local-cluster/${name}-check` };
      await lab.appears(check);
      await lab.setStatus(check, { compliant });
    };
    const set = (name: string, policies: readonly string[]): JsonObject => ({
      apiVersion: 'policy.open-cluster-management.io/v1beta1',
      kind: 'PolicySet',
      metadata: { name, namespace: 'policies' },
      spec: { policies: [...policies] },
    });
    const inform = (name: string, data: JsonObject): JsonObject => ({
      apiVersion: 'policy.open-cluster-management.io/v1',
      kind: 'ConfigurationPolicy',
      metadata: { name, namespace: 'local-cluster' },
      spec: {
        remediationAction: 'inform',
        'object-templates': [
          {
            complianceType: 'musthave',
            objectDefinition: { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, namespace: 'default' }, data },
          },
        ],
      },
    });

    await root('compliant');
    await checked('compliant', 'Compliant');
    states.add(
      'a compliant Policy',
      await lab.reaches('policies/compliant', 'Compliant'),
      'Current',
      'Healthy',
      'Current',
    );
    const copy = await lab.reaches('local-cluster/policies.compliant', 'Compliant');
    states.add('its copy', copy, 'Current', 'Healthy', 'Current');

    await root('violated');
    await checked('violated', 'NonCompliant');
    const violated = await lab.reaches('policies/violated', 'NonCompliant');
    states.add('a Policy that is not compliant', violated, 'Current', 'Degraded', 'InProgress');

    const dependency = {
      apiVersion: 'policy.open-cluster-management.io/v1',
      kind: 'Policy',
      name: 'violated',
      namespace: 'policies',
      compliance: 'Compliant',
    };
    await root('waiting', { dependencies: [dependency] });
    states.add(
      'a Policy that waits',
      await lab.reaches('policies/waiting', 'Pending'),
      'InProgress',
      'Progressing',
      'InProgress',
    );

    await root('disabled', { disabled: true });
    const disabled = await lab.sees({ kind: 'Policy', name: 'policies/disabled' }, isReady);
    states.add('a disabled Policy', disabled, 'Current', 'Healthy', 'Current');

    await lab.apply({
      ...policyOfChecks('elsewhere', ['elsewhere']),
      metadata: { name: 'elsewhere', namespace: 'default' },
    });
    const elsewhere = await lab.sees({ kind: 'Policy', name: 'default/elsewhere' }, isStalled);
    states.add('a Policy in a namespace that does not count', elsewhere, 'Failed', 'Degraded', 'Failed');

    await lab.apply(set('calm', ['compliant']), set('mixed', ['compliant', 'violated']));
    const calm = { kind: 'PolicySet', name: 'policies/calm' };
    states.add('a PolicySet', await lab.sees(calm, isReady), 'Current', 'Healthy');
    const mixed = { kind: 'PolicySet', name: 'policies/mixed' };
    states.add('one with a violation', await lab.sees(mixed, isReady), 'Current', 'Degraded');

    await lab.apply(inform('absent', { a: '1' }));
    const absent = { kind: 'ConfigurationPolicy', name: 'local-cluster/absent' };
    states.add('a ConfigurationPolicy that only reports', await lab.sees(absent, isReady), 'Current', 'Degraded');

    await lab.stopControllers();
    await lab.merge({ kind: 'Policy', name: 'policies/compliant' }, { spec: { remediationAction: 'inform' } });
    const changed = await lab.get({ kind: 'Policy', name: 'policies/compliant' });
    states.add('a Policy that was changed just now', changed, 'InProgress', 'Progressing', 'InProgress');
    await root('unseen');
    const unseen = await lab.get({ kind: 'Policy', name: 'policies/unseen' });
    states.add('a Policy that no controller has seen', unseen, 'InProgress', 'Progressing', 'InProgress');
    states.check();
  });
});
