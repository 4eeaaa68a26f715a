// Scenario 15: changes of a policy with thousands of tenants, of whom some have invalid parameters.
import assert from 'node:assert/strict';
import { type JsonObject, POLICY_REVISIONS } from '../../src/resources/index.ts';
import { kind, NAMESPACE as PRODUCT, type Policy, type RolloutLab } from './rollout-lab.ts';

const NAME = 'tenanted';
const LEVEL = 'example.com/level';
const CONFIG_MAP = kind('v1', 'ConfigMap');
const NAMESPACE = kind('v1', 'Namespace');

/** A way to give namespaces parameters. */
export interface TenantsSource {
  /** What policy servers need to read them, beyond namespaces. */
  readonly rules?: readonly object[];
  readonly from: object;
  /** The level in an expression. */
  readonly level: string;
  readonly set: (lab: RolloutLab, namespace: string, level: string) => Promise<void>;
}

export const ANNOTATIONS: TenantsSource = {
  from: { namespace: { annotations: [LEVEL] } },
  level: `params.annotations['${LEVEL}']`,
  set: async (lab, name, level) => {
    const body = { metadata: { annotations: { [LEVEL]: level } } };
    await lab.cluster.patch(NAMESPACE, { name }, { type: 'merge', body });
  },
};

export const OBJECTS: TenantsSource = {
  rules: [{ apiGroups: [''], resources: ['configmaps'], verbs: ['get', 'list', 'watch'] }],
  from: { resource: { apiVersion: 'v1', kind: 'ConfigMap', name: NAME } },
  level: 'params.data.level',
  set: async (lab, namespace, level) => {
    const metadata = { name: NAME, namespace };
    const body = { apiVersion: 'v1', kind: 'ConfigMap', metadata, data: { level } };
    const options = { fieldManager: 'tenant' };
    await lab.cluster.patch(CONFIG_MAP, metadata, { type: 'apply', body, force: true }, options);
  },
};

/** A tenant with invalid parameters stops no change; one that a change would break does, until its parameters change. */
export async function oneTenantStopsNobody(lab: RolloutLab, { rules, from, level, set }: TenantsSource): Promise<void> {
  if (rules !== undefined) {
    await lab.grant('replica', rules, undefined, NAME);
  }
  const [good, bad, loose] = ['good', 'bad', 'loose'].map((one) => `${NAME}-${one}`) as [string, string, string];
  const levels = { [good]: 'baseline', [bad]: 'nonsense', [loose]: 'privileged' };
  for (const [name, one] of Object.entries(levels)) {
    await lab.create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name } });
    await set(lab, name, one);
  }
  const policy: Policy = {
    apiVersion: 'policies.kubewarden.io/v1',
    kind: 'ClusterAdmissionPolicy',
    metadata: { name: NAME },
    spec: {
      module: 'builtin:pod-security',
      mutating: false,
      rules: [{ apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] }],
      parameters: { from, overridable: ['enforce'], settingsExpression: `{'enforce': ${level}}` },
      settings: {},
    },
  };
  const change = (spec: JsonObject): Promise<Policy> => lab.merge(NAME, { spec });
  const reaches = async (phase: string, serving: number): Promise<string> => {
    const reached = await lab.reaches(NAME, phase, ({ servingRevision }) => servingRevision === serving);
    return reached.status?.message ?? '';
  };

  // The first revision takes nothing from anybody.
  await lab.create(policy);
  await reaches('Active', 1);
  const named = await lab.reaches(NAME, 'Active', ({ conditions = [] }) =>
    conditions.some(({ type, status }) => type === 'ParametersValid' && status === 'False'),
  );
  assert.match(named.status?.message ?? '', new RegExp(`^revision 1 serves .*: ${bad} \\(`));

  // What serves refuses the invalid one already.
  await change({ timeoutSeconds: 7 });
  await reaches('Active', 2);

  // The next change takes something from a valid one.
  const strict = `${level} == 'privileged' ? {'enforce': 'none'} : {'enforce': ${level}}`;
  await change({ parameters: { settingsExpression: strict } });
  const refused = await reaches('Degraded', 2);
  assert.match(refused, new RegExp(`revision 3 failed: 1 of 3 namespaces would be refused .*: ${loose} \\(`));
  assert.match(refused, new RegExp(`invalid before, and not counted: 1 namespace \\(${bad}\\)`));
  assert.match(refused, /tried again when either changes/);

  // Data that change without helping leave it as it is; corrected data are enough.
  await set(lab, good, 'restricted');
  await lab.eventually(
    async () => {
      const { status } = await lab.cluster.get(POLICY_REVISIONS, { namespace: PRODUCT, name: `kw.cap.${NAME}-3` });
      assert.deepEqual([status?.state, status?.attempts], ['Failed', 2]);
    },
    () => 'the revision to be tried a second time',
  );
  await set(lab, loose, 'baseline');
  await reaches('Active', 3);
  await set(lab, bad, 'baseline');
  await lab.reaches(NAME, 'Active', ({ conditions = [] }) =>
    conditions.some(({ type, status }) => type === 'ParametersValid' && status === 'True'),
  );
  await lab.cluster.delete(kind('policies.kubewarden.io/v1', 'ClusterAdmissionPolicy'), { name: NAME });
  for (const name of [good, bad, loose]) {
    await lab.cluster.delete(NAMESPACE, { name });
    await lab.eventually(
      () => assert.rejects(lab.cluster.get(NAMESPACE, { name })),
      () => `namespace ${name} to be gone`,
    );
  }
}
