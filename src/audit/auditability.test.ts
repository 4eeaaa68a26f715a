import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { auditability } from './auditability.ts';
import { celSpec, ruleFor, samplePolicy } from './testing/sample-policies.ts';

const condition = (expression: string): object => ({ matchConditions: [{ name: 'c', expression }] });
const CREATE = { rules: [ruleFor('pods', { operations: ['CREATE'] })] };
const UPDATE = { rules: [ruleFor('pods', { operations: ['UPDATE'] })] };
const PARAMETERS = {
  parameters: {
    from: { resource: { apiVersion: 'v1', kind: 'ConfigMap', name: 'limits' } },
    overridable: ['validations'],
    settingsExpression: "{'validations': params.data.validations}",
  },
};
const WASM = { module: 'file:///m.wasm', settings: {} };

/** The reason why a policy is not auditable; the operations of its rules where it is. */
function answer(spec: object, hasCluster = true): string {
  const found = auditability(samplePolicy('p', spec), hasCluster);
  return 'refusal' in found
    ? found.refusal.reason
    : [
        ...found.match.rules.map(({ operations }) => operations.join('+')),
        ...found.refusals.map(({ reason }) => reason),
      ].join(' ');
}

describe('a policy', () => {
  const cases: readonly (readonly [title: string, spec: object, answer: string])[] = [
    ['reads the object', celSpec('object.spec.hostPID == false'), 'CREATE+UPDATE'],
    [
      'names the user in a text only',
      celSpec("object.metadata.name != 'request.userInfo' // request.userInfo"),
      'CREATE+UPDATE',
    ],
    ['reads the user, and has parameters', celSpec("request.userInfo.username != 'x'", PARAMETERS), 'UserInfo'],
    ['may read what parameters say, for updates', celSpec('true', { ...PARAMETERS, ...UPDATE }), 'Operation'],
    ['reads the user', celSpec("request.userInfo.username != 'x'"), 'UserInfo'],
    [
      'reads the user in a variable',
      celSpec('variables.ok', {
        settings: {
          variables: [{ name: 'ok', expression: "request.userInfo.username == 'x'" }],
          validations: [{ expression: 'variables.ok' }],
        },
      }),
      'UserInfo',
    ],
    [
      'reads the user in a message',
      celSpec('true', {
        settings: { validations: [{ expression: 'false', messageExpression: 'request.userInfo.username' }] },
      }),
      'UserInfo',
    ],
    [
      'reads the user in a match condition',
      celSpec('true', condition("!request.userInfo.username.startsWith('system:')")),
      'UserInfo',
    ],
    ['asks what the user may do', celSpec("authorizer.group('').resource('pods').check('get').allowed()"), 'UserInfo'],
    ['asks for the right of the request', celSpec("authorizer.requestResource.check('get').allowed()"), 'UserInfo'],
    ['reads the old object', celSpec('oldObject == null || object.spec == oldObject.spec'), 'OldObject'],
    ['reads the old object, for creations', celSpec('oldObject == null', CREATE), 'CREATE'],
    ['reads the operation', celSpec("request.operation == 'CREATE'"), 'Operation'],
    ['reads the operation, for creations', celSpec("request.operation == 'CREATE'", CREATE), 'CREATE'],
    ['excludes deletions', celSpec('true', condition("request.operation != 'DELETE'")), 'CREATE+UPDATE'],
    [
      'excludes deletions by a list',
      celSpec('true', condition("request.operation in ['UPDATE', 'CREATE']")),
      'CREATE+UPDATE',
    ],
    [
      'excludes updates by a list',
      celSpec('true', condition("request.operation in ['CREATE', 'DELETE']")),
      'Operation',
    ],
    ['compares the operation with a field', celSpec('request.operation == object.metadata.name'), 'Operation'],
    ['reads the options', celSpec('has(request.options)'), 'Request'],
    ['reads the object in the request', celSpec('request.object.spec.hostPID == false'), 'CREATE+UPDATE'],
    ['reads the old object in the request', celSpec('request.oldObject == null'), 'OldObject'],
    ['reads the uid of the request', celSpec("request.uid != ''"), 'Request'],
    ['reads the whole request', celSpec('request == request'), 'UserInfo'],
    ['reads the name of the request', celSpec("request.name != 'x' && request.namespace != 'y'"), 'CREATE+UPDATE'],
    ['is for updates', celSpec('object.spec.hostPID == false', UPDATE), 'CREATE'],
    ['is for updates and reads the old object', celSpec('object == oldObject', UPDATE), 'OldObject'],
    ['is for deletions', celSpec('true', { rules: [ruleFor('pods', { operations: ['DELETE'] })] }), 'Operation'],
    [
      'is for a subresource',
      celSpec('true', { rules: [ruleFor('pods/exec', { operations: ['CONNECT'] })] }),
      'Subresource',
    ],
    [
      'is for a subresource, too',
      celSpec('true', { rules: [ruleFor('pods'), ruleFor('pods/exec', { operations: ['CONNECT'] })] }),
      'CREATE+UPDATE Subresource',
    ],
    ['is for pods and all of their subresources', celSpec('true', { rules: [ruleFor('pods/*')] }), 'CREATE+UPDATE'],
    ['is not to be audited', celSpec('true', { backgroundAudit: false }), 'BackgroundAuditDisabled'],
    ['is in monitor mode', celSpec('true', { mode: 'monitor' }), 'CREATE+UPDATE'],
    ['is a module', celSpec('true', WASM), 'CREATE+UPDATE'],
    ['is a module for updates', celSpec('true', { ...WASM, ...UPDATE }), 'Operation'],
    [
      'exempts users from levels',
      celSpec('true', {
        module: 'builtin:pod-security',
        settings: { enforce: 'baseline', exemptions: { usernames: ['ci'] } },
      }),
      'UserInfo',
    ],
    [
      'enforces levels',
      celSpec('true', { module: 'builtin:pod-security', settings: { enforce: 'baseline' } }),
      'CREATE+UPDATE',
    ],
    [
      'has constraints for updates',
      celSpec('true', {
        settings: {
          matchConstraints: { resourceRules: [ruleFor('pods', { operations: ['UPDATE'] })] },
          validations: [{ expression: 'true' }],
        },
      }),
      'Operation',
    ],
  ];
  for (const [title, spec, expected] of cases) {
    it(`that ${title}: ${expected}`, () => assert.equal(answer(spec), expected));
  }

  it('that reads a cluster needs one', () => {
    const spec = celSpec('true', { contextAwareResources: [{ apiVersion: 'v1', kind: 'Service' }] });
    assert.deepEqual([answer(spec), answer(spec, false)], ['CREATE+UPDATE', 'NoCluster']);
  });

  it('says what it takes for granted, if nobody knows what its module reads', () => {
    const found = auditability(samplePolicy('p', celSpec('true', WASM)), true);
    assert.match('assumes' in found ? (found.assumes ?? '') : '', /requests of no user to create them/);
  });

  it('says which expression reads what', () => {
    const found = auditability(samplePolicy('p', celSpec("request.userInfo.username != 'x'")), true);
    assert.equal(
      'refusal' in found ? found.refusal.message : '',
      'spec.settings.validations[0].expression reads request.userInfo.username: existing objects do not say who sends a request',
    );
  });
});
