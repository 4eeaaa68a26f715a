// No false alarms: no policy in the documentation, the examples and the fixtures has a finding about what is probably not meant.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import {
  checkManifestTypes,
  checkPolicyTypes,
  describeTypeWarning,
  lintManifest,
  offlineKinds,
  type TypeCheck,
} from '../../engine/type-check/index.ts';
import { subjectOfSpec } from '../../engine/type-check/subject/index.ts';
import { type AdmissionPolicySpec, isJsonObject, type JsonObject, textOf } from '../../resources/index.ts';
import { documentedManifests } from './testing/documented-manifests.ts';
import { KINDS, review } from './testing/validation-cases.ts';
import { OwnKindsRules } from './own-kinds-rules.ts';

const SERVED = offlineKinds();
const RULES = new OwnKindsRules({ controllerUser: 'controller', modulesUrl: new URL('file:///modules/') });
/** Codes of findings that are no mistakes, and of those that need a whole cluster or policy. */
const OTHERS = /\[(?:builtin-module|settings|settings-rights|not-runnable|module-source|schema|keeps-namespace)\]$/;
/** Files with mistakes on purpose. */
const WRONG = /^test\/journey\/files\/(?:misnamed|mistyped|plain-or-value|never)\.yaml$/;

const KUBERNETES_POLICY = /^(?:Validating|Mutating)AdmissionPolicy$/;
const DOCUMENTED = documentedManifests([
  'README.md',
  'docs/**/*.md',
  'examples/**/*.{md,yaml,yml}',
  'test/**/*.{yaml,yml}',
]).filter(({ file }) => !WRONG.test(file));

/** Undefined for what is no policy. */
function typesOf(manifest: JsonObject): TypeCheck | undefined {
  const kind = textOf(manifest['kind']);
  if (KUBERNETES_POLICY.test(kind)) {
    return checkManifestTypes(manifest, SERVED);
  }
  const { spec } = manifest;
  return /AdmissionPolicy(?:Group)?$/.test(kind) && isJsonObject(spec) && Array.isArray(spec['rules'])
    ? checkPolicyTypes(subjectOfSpec(spec as unknown as AdmissionPolicySpec), SERVED)
    : undefined;
}

/** Undefined for what is no policy. */
function findingsOf(manifest: JsonObject): readonly string[] | undefined {
  const kind = textOf(manifest['kind']);
  if (KUBERNETES_POLICY.test(kind)) {
    return lintManifest(manifest).map(({ field, message, code }) => `${field}: ${message} [${code}]`);
  }
  const own = (['cap', 'ap', 'capg', 'apg'] as const).find((one) => KINDS[one][1] === kind);
  if (own === undefined || !isJsonObject(manifest['spec'])) {
    return undefined;
  }
  const { error, warnings } = RULES.validate(review(own, manifest));
  const causes = error?.details?.causes ?? [];
  return [...causes.map(({ field, message }) => `${field}: ${message}`), ...warnings];
}

describe('policies of the documentation, examples and fixtures', () => {
  it('have no findings about probable mistakes', () => {
    const checked = DOCUMENTED.flatMap(({ file, manifest }) => {
      const findings = findingsOf(manifest);
      return findings === undefined ? [] : [{ file, findings: findings.filter((text) => !OTHERS.test(text)) }];
    });
    assert.deepEqual(
      checked.flatMap(({ file, findings }) => findings.map((text) => `${file}: ${text}`)),
      [],
    );
    assert.ok(checked.length > 40, `checked ${checked.length} policies`);
  });

  it('have no warnings about types', () => {
    const checked = DOCUMENTED.flatMap(({ file, manifest }) => {
      const types = typesOf(manifest);
      return types === undefined ? [] : [{ file, types }];
    });
    assert.deepEqual(
      checked.flatMap(({ file, types }) => types.warnings.map((one) => `${file}: ${describeTypeWarning(one)}`)),
      [],
    );
    const expressions = checked.reduce((sum, { types }) => sum + types.expressions, 0);
    assert.ok(expressions > 15, `checked ${expressions} expressions of ${checked.length} policies`);
  });
});
