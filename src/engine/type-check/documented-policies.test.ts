// No false alarms: every policy in the documentation, the examples and the fixtures of Kubewarden's policies.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import type { AdmissionPolicySpec } from '../../resources/index.ts';
import { own, textOf } from '../../values/index.ts';
import { documentedManifests } from '../../values/yaml/testing/documented-manifests.ts';
import { isJsonObject, type JsonObject } from '../json-text.ts';
import {
  checkManifestTypes,
  checkPolicyTypes,
  describeTypeWarning,
  offlineKinds,
  subjectOfSpec,
  type TypeCheck,
} from './index.ts';

const KINDS = offlineKinds();

function checked(manifest: JsonObject): TypeCheck | undefined {
  const kind = textOf(own(manifest, 'kind'));
  if (/^(?:Validating|Mutating)AdmissionPolicy$/.test(kind)) {
    return checkManifestTypes(manifest, KINDS);
  }
  const spec = own(manifest, 'spec');
  return /AdmissionPolicy(?:Group)?$/.test(kind) && isJsonObject(spec) && Array.isArray(spec['rules'])
    ? checkPolicyTypes(subjectOfSpec(spec as unknown as AdmissionPolicySpec), KINDS)
    : undefined;
}

describe('documented policies', () => {
  it('have no warnings', () => {
    const checks = documentedManifests([
      'README.md',
      'docs/**/*.md',
      'examples/**/*.{md,yaml,yml}',
      'test/{registry,fixtures}/**/*.yaml',
    ]).flatMap(({ file, manifest }) => {
      const result = checked(manifest);
      return result === undefined ? [] : [{ file, result }];
    });
    assert.deepEqual(
      checks.flatMap(({ file, result }) => result.warnings.map((one) => `${file}: ${describeTypeWarning(one)}`)),
      [],
    );
    const expressions = checks.reduce((sum, { result }) => sum + result.expressions, 0);
    assert.ok(
      checks.length > 20 && expressions > 15,
      `checked ${expressions} expressions of ${checks.length} policies`,
    );
  });
});
