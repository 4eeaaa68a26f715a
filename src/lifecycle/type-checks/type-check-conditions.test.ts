import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { Condition } from '../../resources/index.ts';
import { RESOURCES_SERVED, TYPE_CHECKED, typeCheckConditions } from './type-check-conditions.ts';
import type { TypeCheckReport } from './type-check-report.ts';

const GOOD: TypeCheckReport = { unserved: [], warnings: [], expressions: 2, kinds: ['v1 Pod', 'apps/v1 Deployment'] };
const WRONG = { field: 'spec.rules[0].resources[0]', message: 'the cluster serves no resource "pod"' };
const FIELD = { field: 'spec.settings.validations[0].expression', message: "undefined field 'x' at 1:8, in v1 Pod" };

function textsOf(report: TypeCheckReport | undefined, before?: readonly Condition[]): readonly string[] {
  return (typeCheckConditions(before, report, 3, 0) ?? []).map(
    ({ type, status, reason, message }) => `${type} ${status} ${reason}: ${message}`,
  );
}

describe('conditions about the kinds of the cluster', () => {
  it('are True when nothing is wrong', () => {
    assert.deepEqual(textsOf(GOOD), [
      `${RESOURCES_SERVED} True Served: the cluster serves what the rules match`,
      `${TYPE_CHECKED} True NoWarnings: no warnings for v1 Pod, apps/v1 Deployment`,
    ]);
  });

  it('are False with all problems and their fields', () => {
    assert.deepEqual(textsOf({ ...GOOD, unserved: [WRONG, WRONG], warnings: [FIELD] }), [
      `${RESOURCES_SERVED} False NotServed: ${WRONG.field}: ${WRONG.message}; ${WRONG.field}: ${WRONG.message}`,
      `${TYPE_CHECKED} False TypeWarnings: ${FIELD.field}: ${FIELD.message}`,
    ]);
    const many = Array.from({ length: 100 }, () => FIELD);
    assert.ok(textsOf({ ...GOOD, warnings: many }).every((text) => text.length < 1_200));
  });

  it('omit TypeChecked where there are no expressions', () => {
    const before = typeCheckConditions(undefined, { ...GOOD, warnings: [FIELD] }, 1, 0);
    assert.deepEqual(textsOf({ ...GOOD, expressions: 0 }, before), [
      `${RESOURCES_SERVED} True Served: the cluster serves what the rules match`,
    ]);
  });

  it('say why a policy was not checked, and keep what is known of its rules', () => {
    const before = typeCheckConditions(undefined, { ...GOOD, unserved: [WRONG] }, 1, 0);
    assert.deepEqual(textsOf({ ...GOOD, skipped: 'no answer' }, before), [
      `${RESOURCES_SERVED} False NotServed: ${WRONG.field}: ${WRONG.message}`,
      `${TYPE_CHECKED} Unknown NotChecked: no answer`,
    ]);
  });

  it('stay as they are before the first check', () => {
    const before = typeCheckConditions(undefined, GOOD, 1, 0);
    assert.equal(typeCheckConditions(before, undefined, 2, 1), before);
  });
});
