import assert from 'node:assert/strict';
import { after, before, describe, it } from 'node:test';
import { EmbeddedCluster } from '../../apiserver/index.ts';
import { ApiError, type Cluster } from '../../cluster/index.ts';
import { createLog } from '../../log/index.ts';
import {
  type AdmissionPolicySpec,
  CLUSTER_ADMISSION_POLICIES,
  customResourceDefinition,
  knownKind,
} from '../../resources/index.ts';
import { PolicyTypeChecks } from './policy-type-checks.ts';

const DEFINITIONS = knownKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition');
const RULE = { apiGroups: [''], apiVersions: ['v1'], resources: ['pods'], operations: ['CREATE'] };

function specOf(more: object): AdmissionPolicySpec {
  return {
    module: 'builtin:cel',
    mutating: false,
    rules: [RULE],
    settings: {},
    ...more,
  } as unknown as AdmissionPolicySpec;
}

const settings = (expression: string): object => ({ settings: { validations: [{ expression }] } });

describe('checks of policies against a cluster', () => {
  const log = createLog({ level: 'silent' });
  const ended = new AbortController();
  let cluster: EmbeddedCluster;
  let user: Cluster;
  let checks: PolicyTypeChecks;
  before(async () => {
    cluster = await EmbeddedCluster.open({});
    user = cluster.as({ username: 'admin', groups: ['system:masters'] });
    checks = new PolicyTypeChecks({ cluster: user, log });
    void checks.start(ended.signal);
  });
  after(async () => {
    ended.abort();
    await cluster.close();
  });

  it('tell the expressions that do not fit the schemas which it publishes', async () => {
    assert.deepEqual(await checks.check(specOf(settings('object.spec.hostNetwok')), ''), {
      unserved: [],
      warnings: [
        {
          field: 'spec.settings.validations[0].expression',
          message: "undefined field 'hostNetwok' at 1:12, in v1 Pod: did you mean 'hostNetwork'?",
          isCertain: true,
        },
      ],
      expressions: 1,
      kinds: ['v1 Pod'],
    });
  });

  it('include members of groups, and match conditions of every module', async () => {
    const member = { module: 'builtin:cel', ...settings('has(object.spec.nodNam)') };
    const { warnings } = await checks.check(
      {
        rules: [RULE],
        policies: { a: member, b: { module: 'builtin:pod-security', settings: {} } },
        expression: 'a()',
        matchConditions: [{ name: 'x', expression: 'object.metadata.nam == "a"' }],
      } as unknown as AdmissionPolicySpec,
      '',
    );
    assert.deepEqual(
      warnings.map(({ field }) => field),
      ['spec.matchConditions[0].expression', 'spec.policies[a].settings.validations[0].expression'],
    );
  });

  it('are certain for groups that deny every request whatever their other members say', async () => {
    const broken = { module: 'builtin:cel', ...settings('object.spec.hostNetwok == false') };
    const typed = { module: 'builtin:cel', ...settings('object.spec.priority > "5"') };
    const fine = { module: 'builtin:pod-security', settings: {} };
    const certain = async (expression: string): Promise<number> => {
      const spec = { rules: [RULE], policies: { broken, typed, fine, more: fine }, expression };
      const { warnings } = await checks.check(spec as unknown as AdmissionPolicySpec, '');
      return warnings.filter(({ isCertain }) => isCertain).length;
    };
    for (const expression of ['broken()', 'fine() && broken()', '(fine() || more()) && (broken() || typed())']) {
      assert.equal(await certain(expression), 2, expression);
    }
    for (const expression of ['fine() || broken()', '!broken() && fine()', 'broken() != fine()', 'fine() && more()']) {
      assert.equal(await certain(expression), 0, expression);
    }
  });

  it('include expressions for parameters, whatever the module', async () => {
    const parameters = {
      from: { resource: { apiVersion: 'v1', kind: 'ConfigMap', name: 'limits' } },
      overridable: ['limit'],
      settingsExpression: "{'limit': params.dat.limit, 'name': namespaceObject.metadata.name}",
    };
    const message = "undefined field 'dat' at 1:17, in v1 ConfigMap: did you mean 'data'?";
    const module = { module: 'ghcr.io/example/limits:v1', parameters };
    const { warnings, kinds } = await checks.check(specOf(module), '');
    assert.deepEqual(warnings, [{ field: 'spec.parameters.settingsExpression', message }]);
    assert.ok(kinds.includes('v1 ConfigMap'));
    const group = { rules: [RULE], policies: { a: module }, expression: 'a()' } as unknown as AdmissionPolicySpec;
    assert.deepEqual((await checks.check(group, '')).warnings, [
      { field: 'spec.policies[a].parameters.settingsExpression', message },
    ]);
  });

  it('know a kind as soon as it is installed', async () => {
    const { group, version, resource } = CLUSTER_ADMISSION_POLICIES;
    const rules = [{ ...RULE, apiGroups: [group], apiVersions: [version], resources: [resource] }];
    const spec = specOf({ rules, ...settings('object.spec.modul != ""') });
    const before_ = await checks.check(spec, '');
    assert.deepEqual(before_.unserved, [
      { field: 'spec.rules[0].apiGroups', message: `the cluster serves no API group "${group}"` },
    ]);
    assert.deepEqual(before_.warnings, []);
    const definition = customResourceDefinition(CLUSTER_ADMISSION_POLICIES);
    await user.create(DEFINITIONS, definition);
    const { unserved, warnings } = await checks.check(spec, '');
    assert.deepEqual(unserved, []);
    assert.match(warnings[0]?.message ?? '', /undefined field 'modul' .*did you mean 'module'/u);
  });

  it('give a reason instead of an error', async () => {
    const refused = new ApiError(403, 'Forbidden', 'no discovery');
    const unreadable = { discovery: { resources: () => Promise.reject(refused), find: () => Promise.reject(refused) } };
    const { skipped, isTransient } = await new PolicyTypeChecks({ cluster: unreadable, log }).check(specOf({}), '');
    assert.deepEqual(
      [skipped, isTransient],
      ['it could not be compared with what the cluster serves: no discovery', true],
    );
    for (const broken of [{}, { rules: [{}] }, { rules: 'x' }]) {
      assert.notEqual(
        (await checks.check(broken as unknown as AdmissionPolicySpec, '')).skipped,
        undefined,
        JSON.stringify(broken),
      );
    }
  });

  it('are bounded: neither rules nor expressions hold the controller', async () => {
    const many = Array.from({ length: 1_000 }, (_, index) => `r${index}`);
    assert.match(
      (await checks.check(specOf({ rules: [{ ...RULE, resources: many }] }), '')).skipped ?? '',
      /expected at most 500/u,
    );
    const rules = [{ ...RULE, resources: ['pods', 'services', 'secrets', 'nodes', 'configmaps', 'namespaces'] }];
    const validations = Array.from({ length: 20_000 }, () => ({
      expression: 'object.metadata.name != "a" && object.metadata.labels.all(k, k != "x")',
    }));
    const hasty = new PolicyTypeChecks({ cluster: user, log }, 100);
    void hasty.start(ended.signal);
    assert.match(
      (await hasty.check(specOf({ rules, settings: { validations } }), '')).skipped ?? '',
      /it took too long/u,
    );
    assert.deepEqual((await hasty.check(specOf(settings('true')), '')).warnings, []);
  });
});
