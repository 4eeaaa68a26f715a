import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  complianceMessage,
  complianceState,
  customComplianceMessage,
  failedCustomMessage,
  MAX_MESSAGE_LENGTH,
  noTemplatesMessage,
  resultBatches,
  templateCondition,
  withInterval,
} from './compliance-message.ts';
import type { ObjectResult } from './compliance-message.ts';
import { REASONS } from './compliance-reasons.ts';

const COMPLIANT: ReadonlySet<string> = new Set([
  REASONS.found,
  REASONS.created,
  REASONS.updated,
  REASONS.deleted,
  REASONS.absent,
]);

function result(namespace: string, names: readonly string[], reason: string, message?: string): ObjectResult {
  return {
    namespace,
    names,
    isCompliant: COMPLIANT.has(reason),
    reason,
    ...(message === undefined ? {} : { message }),
  };
}

interface Case {
  readonly when: string;
  readonly resource?: string;
  readonly results: readonly ObjectResult[];
  readonly reason: string;
  readonly message: string;
}

const NO_NAMESPACE = 'has no namespace specified from the policy namespaceSelector nor the object metadata';
const MUST_HAVE = 'K8s does not have a `must have` object';

const CASES: readonly Case[] = [
  {
    when: 'one object is as specified',
    results: [result('a', ['x'], REASONS.found)],
    reason: 'K8s `must have` object already exists',
    message: 'pods [x] found as specified in namespace a',
  },
  {
    when: 'a cluster-scoped object is as specified',
    resource: 'namespaces',
    results: [result('', ['x'], REASONS.found)],
    reason: 'K8s `must have` object already exists',
    message: 'namespaces [x] found as specified',
  },
  {
    when: 'one object is as specified in two namespaces',
    results: [result('b', ['x'], REASONS.found), result('a', ['x'], REASONS.found)],
    reason: 'K8s `must have` object already exists',
    message: 'pods [x] found as specified in namespaces: a, b',
  },
  {
    when: 'other objects are as specified in each namespace',
    results: [result('a', ['z'], REASONS.found), result('b', ['x'], REASONS.found)],
    reason: 'K8s `must have` object already exists',
    message: 'pods [z] found as specified in namespace a; pods [x] found as specified in namespace b',
  },
  {
    when: 'one object was created',
    results: [result('a', ['x'], REASONS.created)],
    reason: 'K8s creation success',
    message: 'pods [x] was created successfully in namespace a',
  },
  {
    when: 'one object was created and one exists',
    results: [result('a', ['x'], REASONS.created), result('b', ['x'], REASONS.found)],
    reason: 'K8s `must have` object already exists; K8s creation success',
    message: 'pods [x] found as specified in namespace b; pods [x] was created successfully in namespace a',
  },
  {
    when: 'one of two objects is missing',
    results: [result('a', ['x'], REASONS.found), result('b', ['x'], REASONS.notFound)],
    reason: MUST_HAVE,
    message: 'pods [x] not found in namespace b',
  },
  {
    when: 'an object differs',
    results: [result('a', ['x'], REASONS.mismatch)],
    reason: MUST_HAVE,
    message: 'pods [x] found but not as specified in namespace a',
  },
  {
    when: 'an unwanted object exists',
    results: [result('a', ['x'], REASONS.unwanted)],
    reason: 'K8s has a `must not have` object',
    message: 'pods [x] found in namespace a',
  },
  {
    when: 'an unwanted object does not exist',
    results: [result('a', ['x'], REASONS.absent)],
    reason: 'K8s `must not have` object already missing',
    message: 'pods [x] missing as expected in namespace a',
  },
  {
    when: 'an object was deleted',
    results: [result('a', ['x'], REASONS.deleted)],
    reason: 'K8s deletion success',
    message: 'pods [x] was deleted successfully in namespace a',
  },
  {
    when: 'a template is wrong',
    results: [result('', [''], REASONS.noNamespace, `namespaced object of kind Pod ${NO_NAMESPACE}`)],
    reason: 'K8s missing namespace',
    message: `namespaced object of kind Pod ${NO_NAMESPACE}`,
  },
  {
    when: 'several objects differ in each namespace',
    results: [result('a', ['y', 'x'], REASONS.mismatch), result('b', ['v', 'w'], REASONS.mismatch)],
    reason: MUST_HAVE,
    message:
      'pods [x, y] found but not as specified in namespace a; pods [v, w] found but not as specified in namespace b',
  },
  {
    when: 'several things are wrong',
    results: [
      result('a', ['x'], REASONS.noNamespace, `namespaced object x of kind Pod ${NO_NAMESPACE}`),
      result('b', ['x'], REASONS.invalidDefinition, 'Decoding error'),
    ],
    reason: 'K8s decode object definition error; K8s missing namespace',
    message: `Decoding error; namespaced object x of kind Pod ${NO_NAMESPACE}`,
  },
  {
    when: 'an object was updated',
    results: [result('a', ['x'], REASONS.updated)],
    reason: 'K8s update success',
    message: 'pods [x] was updated successfully in namespace a',
  },
  {
    when: 'nothing matches a template without a name',
    results: ['n1', 'n2', 'n3'].map((namespace) => result(namespace, [], REASONS.notFound)),
    reason: MUST_HAVE,
    message: 'pods not found in namespaces: n1, n2, n3',
  },
  {
    when: 'a selector finds several objects of a namespace',
    results: [result('a', ['y'], REASONS.found), result('a', ['x'], REASONS.found)],
    reason: 'K8s `must have` object already exists',
    message: 'pods [x, y] found as specified in namespace a',
  },
  {
    when: 'a selector finds objects of which some have one name in several namespaces',
    results: [
      result('a', ['x'], REASONS.mismatch),
      result('b', ['x'], REASONS.mismatch),
      result('b', ['x2'], REASONS.mismatch),
    ],
    reason: MUST_HAVE,
    message:
      'pods [x2] found but not as specified in namespace b; pods [x] found but not as specified in namespaces: a, b',
  },
  {
    when: 'objects are missing and different',
    results: [result('b', ['x'], REASONS.mismatch), result('a', ['x'], REASONS.notFound)],
    reason: `${MUST_HAVE}; ${MUST_HAVE}`,
    message: 'pods [x] not found in namespace a; pods [x] found but not as specified in namespace b',
  },
];

describe('the condition of an object template', () => {
  for (const { when, resource = 'pods', results, reason, message } of CASES) {
    it(`when ${when}`, () => {
      const isCompliant = results.every((one) => one.isCompliant);
      for (const order of [results, results.toReversed()]) {
        assert.deepEqual(templateCondition(resource, order), { isCompliant, reason, message });
      }
    });
  }

  it('says that a policy will not be evaluated again', () => {
    const note = 'This policy will not be evaluated again due to spec.evaluationInterval';
    const condition = { isCompliant: true, reason: '', message: 'm' };
    assert.equal(withInterval(condition, { compliant: 'never' }).message, `m. ${note}.compliant being set to "never".`);
    const violation = { ...condition, isCompliant: false };
    assert.equal(
      withInterval(violation, { noncompliant: 'never' }).message,
      `m. ${note}.noncompliant being set to "never".`,
    );
    assert.equal(withInterval(violation, { compliant: 'never', noncompliant: '10s' }), violation);
  });

  it('has a limited message', () => {
    const names = Array.from({ length: 10_000 }, (_, index) => `name-${index}`);
    const { message } = templateCondition('pods', [result('a', names, REASONS.notFound)]);
    assert.equal(message.length, MAX_MESSAGE_LENGTH);
    assert.match(message, /\.\.\.\[truncated\]$/);
  });
});

describe('the message of a policy', () => {
  const ok = { isCompliant: true, reason: '', message: 'pods [x] found as specified' };
  const bad = { isCompliant: false, reason: '', message: 'pods [y] not found' };

  it('has a part for each template', () => {
    assert.equal(complianceMessage([ok]), 'Compliant; notification - pods [x] found as specified');
    assert.equal(
      complianceMessage([bad, ok]),
      'NonCompliant; violation - pods [y] not found; notification - pods [x] found as specified',
    );
    assert.equal(complianceMessage([]), 'ComplianceState is still unknown');
    assert.equal(complianceState([]), undefined);
    assert.equal(noTemplatesMessage('p'), 'p contains no object templates to check, and thus has no violations');
  });

  it('begins with the state also when the user writes it', () => {
    assert.equal(customComplianceMessage('Compliant', 'fine'), 'Compliant; fine');
    assert.equal(customComplianceMessage('Compliant', 'Compliant; fine'), 'Compliant; fine');
    assert.equal(customComplianceMessage('NonCompliant', 'Compliant; x'), 'NonCompliant; Compliant; x');
    assert.equal(
      failedCustomMessage('Compliant; x', 'boom'),
      'Compliant; x (failure processing the custom message: boom)',
    );
  });

  it('is limited', () => {
    const message = customComplianceMessage('Compliant', '😀'.repeat(4_000));
    assert.ok(message.length <= MAX_MESSAGE_LENGTH && message.isWellFormed());
  });
});

describe('the batches of results', () => {
  it('report what was wrong before what was done, each with what was right all the time', () => {
    const [missing, created, found] = [
      result('a', ['x'], REASONS.notFound),
      result('a', ['x'], REASONS.created),
      result('b', ['x'], REASONS.found),
    ] as const;
    assert.deepEqual(resultBatches([[missing, created], [found]]), [[missing], [created, found]]);
    assert.deepEqual(resultBatches([[found]]), [[found]]);
    assert.deepEqual(resultBatches([]), []);
  });
});
