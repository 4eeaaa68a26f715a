// No false alarms: no policy in the documentation, the examples and the fixtures has a finding about what is probably not meant.
import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { lintManifest } from '../../engine/type-check/index.ts';
import { isJsonObject, type JsonObject, textOf } from '../../resources/index.ts';
import { documentedManifests } from '../../values/yaml/testing/documented-manifests.ts';
import { KINDS, review } from './testing/validation-cases.ts';
import { OwnKindsRules } from './own-kinds-rules.ts';

const RULES = new OwnKindsRules({ controllerUser: 'controller', modulesUrl: new URL('file:///modules/') });
/** Codes of findings that are no mistakes, and of those that need a whole cluster or policy. */
const OTHERS = /\[(?:builtin-module|settings|settings-rights|not-runnable|module-source|schema|keeps-namespace)\]$/;
/** Files with mistakes on purpose. */
const WRONG = /^test\/journey\/files\/(?:misnamed|plain-or-value|never)\.yaml$/;

/** Undefined for what is no policy. */
function findingsOf(manifest: JsonObject): readonly string[] | undefined {
  const kind = textOf(manifest['kind']);
  if (/^(?:Validating|Mutating)AdmissionPolicy$/.test(kind)) {
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
    const documented = documentedManifests([
      'README.md',
      'docs/**/*.md',
      'examples/**/*.{md,yaml,yml}',
      'test/**/*.{yaml,yml}',
    ]).filter(({ file }) => !WRONG.test(file));
    const checked = documented.flatMap(({ file, manifest }) => {
      const findings = findingsOf(manifest);
      return findings === undefined ? [] : [{ file, findings: findings.filter((text) => !OTHERS.test(text)) }];
    });
    assert.deepEqual(
      checked.flatMap(({ file, findings }) => findings.map((text) => `${file}: ${text}`)),
      [],
    );
    assert.ok(checked.length > 40, `checked ${checked.length} policies`);
  });
});
