import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { checkPolicyTypes, offlineKinds, type TypeCheck } from './index.ts';

const KINDS = offlineKinds();
const rule = (group: string, resources: string): Parameters<typeof checkPolicyTypes>[0]['rules'][number] => ({
  apiGroups: [group],
  apiVersions: ['v1'],
  resources: resources.split(' '),
});
const PODS = [rule('', 'pods')];

/** The fields of the expressions that succeed for no object. */
function certain(settings: object, rules = PODS, conditions: readonly string[] = []): readonly string[] {
  const { warnings }: TypeCheck = checkPolicyTypes(
    {
      rules,
      conditions: conditions.map((expression) => ({ expression })),
      uses: [{ field: 'spec.settings', settings }],
    },
    KINDS,
  );
  return warnings.filter(({ isCertain }) => isCertain).map(({ field }) => field);
}

const isCertain = (expression: string, rules = PODS): boolean =>
  certain({ validations: [{ expression }] }, rules).length > 0;

describe('an expression that reads a field which the kind does not have', () => {
  for (const expression of [
    'object.spec.hostNetwok == false',
    '!object.spec.hostNetwok',
    'object.spec.containers.all(c, c.imag != "")',
    'object.spec.containers.all(c, has(c.image) && c.imag.startsWith("a"))',
    'object.spec.volumes.exists(v, v.hostPat == null)',
    '(object.spec.containers + object.spec.?initContainers.orValue([])).all(c, c.imag != "")',
    'has(object.spec.nodeName) && object.spec.hostNetwok',
    'object.spec.hostNetwok || object.spec.hostPid',
    'object.metadata.nam.startsWith("a") ? true : false',
    'has(object.spec.nodeName) ? object.spec.hostNetwok : object.spec.hostPid',
    'has(object.spek.nodeName)',
    'size(object.spec.containrs) > 0',
    'request.object.spec.hostNetwok == false',
    'oldObject.spec.hostNetwok == false',
    // Values of another type.
    'object.spec.priority == "high"',
    'object.metadata.name > 5',
    '!object.metadata.name',
    'object.spec.hostNetwork == "false"',
    'object.spec.priority.startsWith("1")',
    'object.spec.containers.all(c, c.image == 1)',
    'has(object.spec.priority) && object.spec.priority < "10"',
    'object.metadata.name == 1 || object.metadata.name == 2',
  ]) {
    it(`succeeds for no object: ${expression}`, () => assert.ok(isCertain(expression)));
  }

  for (const expression of [
    'has(object.spec.hostNetwok)',
    '!has(object.spec.hostNetwok) || object.spec.hostNetwok == false',
    'object.spec.?hostNetwok.orValue(false) == false',
    'object.?spec.hostNetwok.orValue(false) == false',
    'object.metadata.name == "a" || object.spec.hostNetwok == false',
    'object.spec.volumes.all(v, v.hostPat == null)',
    'object.spec.initContainers.all(c, c.imag != "")',
    'object.metadata.namespace == "a" ? object.spec.hostNetwok : true',
    'object.spec.containers.filter(c, c.imag == "").size() == 0',
    'object.spec.hostNetwork == false',
    'object.spec.priority != "high"',
    '!(object.spec.priority == "high")',
    'object.metadata.name == "a" || object.metadata.name == 1',
    'object.spec.priority == 10.0',
    'object.spec.containers[0].args == [1]',
    '(object.spec.priority == "high") == false',
    '[object.spec.priority] + ["a"] != []',
    'object.spec.priority in ["a"] ? false : true',
    'object.spec.containers.exists(c, c.ports.exists(p, p.containerPort == 80))',
    'object.spec.containers[0].ports[0].hostPort > 1',
    'false',
  ]) {
    it(`may succeed: ${expression}`, () => assert.ok(!isCertain(expression)));
  }

  it('counts for the variable where something uses it that decides', () => {
    const variables = [{ name: 'net', expression: 'object.spec.hostNetwok' }];
    const expression = 'variables.net == false';
    assert.deepEqual(certain({ variables, validations: [{ expression }] }), ['spec.settings.variables[0].expression']);
    assert.deepEqual(certain({ variables, validations: [{ expression: 'true' }] }), []);
    const messageExpression = 'string(object.spec.hostNetwok)';
    assert.deepEqual(certain({ validations: [{ expression: 'true', messageExpression }] }), []);
  });

  it('counts in conditions and mutations', () => {
    assert.deepEqual(certain({ validations: [{ expression: 'true' }] }, PODS, ['object.spec.hostNetwok']), [
      'spec.matchConditions[0].expression',
    ]);
    const expression = 'Object{metadata: Object.metadata{labels: {"a": object.spec.nodeNam}}}';
    const mutations = [{ patchType: 'ApplyConfiguration', applyConfiguration: { expression } }];
    assert.deepEqual(certain({ mutations }), ['spec.settings.mutations[0].applyConfiguration.expression']);
  });

  it('counts only if no kind has the field, and all kinds are those of Kubernetes', () => {
    const both = [...PODS, rule('apps', 'deployments')];
    assert.ok(!isCertain('object.spec.replicas > 1', both));
    assert.ok(isCertain('object.spec.replicaz > 1', both));
    assert.ok(!isCertain('object.spec.hostNetwok', [...PODS, rule('', 'pods/exec')]));
    assert.ok(!isCertain('object.spec.hostNetwok', [...PODS, rule('', '*')]));
  });
});
