import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { parsePodSecuritySettings } from './settings.ts';
import type { PodSecuritySettings } from './settings.ts';

function settingsOf(json: unknown): PodSecuritySettings {
  const { settings, problems } = parsePodSecuritySettings(json);
  assert.deepEqual(problems, undefined);
  return settings;
}

function problemsOf(json: unknown): readonly string[] {
  const { settings, problems } = parsePodSecuritySettings(json);
  assert.equal(settings, undefined);
  return problems.map(({ field, message }) => `${field}: ${message}`);
}

test('missing modes are privileged, except warn; workloads get warnings', () => {
  assert.deepEqual(settingsOf({ enforce: 'baseline' }), {
    enforce: { level: 'baseline', version: 'latest' },
    audit: { level: 'privileged', version: 'latest' },
    warn: undefined,
    exemptions: { usernames: new Set(), runtimeClasses: new Set(), namespaces: new Set() },
    workloads: 'warn',
  });
});

test('a mode is a level with its version beside it, or both in one mapping', () => {
  const flat = settingsOf({ enforce: 'restricted', 'enforce-version': 'v1.30', warn: 'baseline', audit: null });
  const nested = settingsOf({ enforce: { level: 'restricted', version: 'v1.30' }, warn: { level: 'baseline' } });
  assert.deepEqual(flat, nested);
  assert.deepEqual(flat.enforce, { level: 'restricted', version: 'v1.30' });
});

test("accepts the configuration of Kubernetes' admission plugin unchanged", () => {
  const settings = settingsOf({
    apiVersion: 'pod-security.admission.config.k8s.io/v1',
    kind: 'PodSecurityConfiguration',
    defaults: { enforce: 'baseline', 'enforce-version': 'v1.29', audit: 'restricted', warn: 'restricted' },
    exemptions: { usernames: ['system:admin'], runtimeClasses: ['kata.fc'], namespaces: ['kube-system'] },
  });
  assert.deepEqual(settings.enforce, { level: 'baseline', version: 'v1.29' });
  assert.deepEqual(settings.audit, { level: 'restricted', version: 'latest' });
  assert.ok(settings.exemptions.usernames.has('system:admin'));
  assert.ok(settings.exemptions.runtimeClasses.has('kata.fc'));
  assert.ok(settings.exemptions.namespaces.has('kube-system'));
});

for (const [json, ...expected] of [
  ['restricted', ': expected a mapping, got "restricted"'],
  [null, ': expected a mapping, got nothing'],
  [{}, ': expected at least one of enforce, audit and warn: without them nothing is checked'],
  [{ enforced: 'baseline' }, 'enforced: unknown key "enforced": did you mean "enforce"?'],
  [
    { enforce: 'baseline', enforceVersion: 'v1.1' },
    'enforceVersion: unknown key "enforceVersion": did you mean "enforce-version"?',
  ],
  [
    { enforce: 'baseline', exemptions: { user: ['a'] } },
    'exemptions.user: unknown key "user": expected one of usernames, runtimeClasses, namespaces',
  ],
  [{ enforce: 'strict' }, 'enforce: expected one of privileged, baseline, restricted, got "strict"'],
  [{ enforce: ['baseline'] }, 'enforce: expected one of privileged, baseline, restricted, got a list'],
  [{ enforce: {} }, 'enforce.level: expected one of privileged, baseline, restricted, got nothing'],
  [
    { defaults: { audit: { level: 'baseline', version: 1.3, more: 1 } } },
    'defaults.audit.more: unknown key "more": expected one of level, version',
    'defaults.audit.version: expected "latest" or a version such as "v1.30", got 1.3',
  ],
  [
    { enforce: 'baseline', 'enforce-version': '1.30' },
    'enforce-version: expected "latest" or a version such as "v1.30", got "1.30"',
  ],
  [
    { enforce: 'baseline', 'enforce-version': 'v1.01' },
    'enforce-version: expected "latest" or a version such as "v1.30", got "v1.01"',
  ],
  [{ 'warn-version': 'latest' }, 'warn-version: expected the level "warn" beside it, which is missing'],
  [
    { warn: { level: 'baseline' }, 'warn-version': 'latest' },
    'warn-version: expected the version once, got it in "warn" as well: remove one',
  ],
  [
    { enforce: 'baseline', defaults: { warn: 'baseline' } },
    'enforce: expected the modes either in "defaults" or at the top, got both: remove one',
  ],
  [{ enforce: 'baseline', workloads: 'deny' }, 'workloads: expected warn or enforce, got "deny"'],
  [{ enforce: 'baseline', kind: 'Pod' }, 'kind: expected PodSecurityConfiguration, got "Pod"'],
  [
    {
      enforce: 'baseline',
      exemptions: { usernames: ['a', 'a', ''], runtimeClasses: 'kata', namespaces: ['Kube', 'a.b', 7] },
    },
    'exemptions.usernames[1]: expected every name once, got "a" again',
    'exemptions.usernames[2]: expected a username, got ""',
    'exemptions.runtimeClasses: expected a list, got "kata"',
    'exemptions.namespaces[0]: expected the name of a namespace, got "Kube"',
    'exemptions.namespaces[1]: expected the name of a namespace, got "a.b"',
    'exemptions.namespaces[2]: expected the name of a namespace, got 7',
  ],
] as const) {
  test(`refuses ${JSON.stringify(json)}`, () => {
    assert.deepEqual(problemsOf(json), expected);
  });
}

test('any JSON gives settings or problems', () => {
  const key = fc.constantFrom(
    'enforce',
    'warn-version',
    'defaults',
    'exemptions',
    'usernames',
    'workloads',
    '__proto__',
  );
  fc.assert(
    fc.property(fc.jsonValue(), fc.dictionary(key, fc.jsonValue()), (value, object) => {
      for (const json of [value, object]) {
        const { settings, problems } = parsePodSecuritySettings(json);
        assert.notEqual(settings === undefined, problems === undefined || problems.length === 0);
      }
    }),
  );
});
