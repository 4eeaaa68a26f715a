import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import { dump } from 'js-yaml';
import { CliError, EXIT } from '../../errors.ts';
import { readSuite } from './read-suite.ts';
import { describeMatcher } from './text-matcher.ts';

const POD = '{apiVersion: v1, kind: Pod}';
const POLICY = 'policy: {module: policy.wasm}';
const suite = (...cases: readonly string[]): string =>
  [POLICY, 'cases:', ...cases.map((text) => `  - ${text}`)].join('\n');

describe('readSuite', () => {
  it('reads several conditions on one text', () => {
    for (const written of ["[{contains: a}, {matches: '^b'}]", "{contains: a, matches: '^b'}"]) {
      const text = suite(`{name: a, object: ${POD}, expect: {allowed: false, message: ${written}}}`);
      const [one] = readSuite(text, 'f.yml').cases;
      assert.equal(one?.expect.message?.kind, 'all');
      assert.equal(describeMatcher(one.expect.message), 'a text that contains "a"\nand a text that matches ^b');
    }
  });

  it('keeps integers that a number would round', () => {
    const text = suite(
      '{name: a, object: {apiVersion: v1, kind: Pod, count: 9007199254740993}, expect: {allowed: true}}',
    );
    const [one] = readSuite(text, 'f.yml').cases;
    const object = { apiVersion: 'v1', kind: 'Pod', count: 9007199254740993n };
    assert.deepEqual(one?.question, { kind: 'objects', object: { value: object }, details: {} });
  });

  it('reads a policy, cases and what they expect', () => {
    const text = `
name: labels
policy: {module: policy.wasm, settings: settings.yml, executionMode: opa}
cases:
  - name: one
    settings: {a: 1}
    session: session.yml
    object: pod.yml
    user: {username: alice, groups: [dev]}
    namespace: shop
    expect:
      allowed: false
      message: exactly
      code: 403
      warnings: [{contains: part}, {matches: '^a.b$'}]
      auditAnnotations: {key: value}
      patch: []
`;
    const { name, subject, cases } = readSuite(text, 'x/portcullis-test.yml');
    assert.equal(name, 'labels');
    assert.deepEqual(subject, {
      kind: 'policy',
      entry: { module: 'policy.wasm' },
      settingsFile: { path: 'settings.yml', at: text.indexOf('settings: settings') },
      executionMode: 'opa',
    });
    const [one] = cases;
    assert.ok(one);
    assert.deepEqual([one.name, one.line, one.column], ['one', 5, 5]);
    assert.deepEqual(one.settings, { value: { a: 1 } });
    assert.equal(one.session?.path, 'session.yml');
    assert.deepEqual(one.question, {
      kind: 'objects',
      object: { path: 'pod.yml', at: text.indexOf('object:') },
      details: { user: { username: 'alice', groups: ['dev'] }, namespace: 'shop' },
    });
    const { message, warnings, auditAnnotations, ...rest } = one.expect;
    assert.deepEqual(rest, { allowed: false, code: 403, patch: [] });
    assert.deepEqual(message, { kind: 'equals', text: 'exactly' });
    assert.deepEqual(
      warnings?.map((matcher) => [matcher.kind, describeMatcher(matcher)]),
      [
        ['contains', 'a text that contains "part"'],
        ['matches', 'a text that matches ^a.b$'],
      ],
    );
    assert.deepEqual(auditAnnotations, { key: { kind: 'equals', text: 'value' } });
  });

  it('takes its name from its file, or from the folder of a file without one', () => {
    const text = suite(`{name: a, object: ${POD}, expect: {allowed: true}}`);
    assert.equal(readSuite(text, 'a/labels/portcullis-test.yml').name, 'labels');
    assert.equal(readSuite(text, 'a/labels/strict.portcullis-test.yaml').name, 'strict');
    assert.equal(readSuite(text, 'a/anything.yml').name, 'anything');
  });

  it('reads the other subjects', () => {
    const cases = `cases: [{name: a, object: ${POD}, expect: {allowed: true}}]`;
    const subjectOf = (policy: string): unknown => readSuite(`policy: ${policy}\n${cases}`, 'f.yml').subject;
    assert.deepEqual(subjectOf('{policiesFile: policies.yml, id: x}'), {
      kind: 'entry',
      file: { path: 'policies.yml', at: 9 },
      id: 'x',
    });
    assert.deepEqual(subjectOf('{manifests: [a.yml, {kind: Namespace}], kubernetesVersion: "1.30"}'), {
      kind: 'manifests',
      sources: [{ path: 'a.yml', at: 21 }, { value: { kind: 'Namespace' } }],
      kubernetesVersion: 30,
    });
    assert.deepEqual(subjectOf('policy.yaml'), { kind: 'manifests', sources: [{ path: 'policy.yaml', at: 0 }] });
    const chosen =
      '{manifests: [a.yml], name: cap/x, mode: protect, modules: {"https://x/y": z.wasm}, hostCapabilities: [net/*]}';
    assert.deepEqual(subjectOf(chosen), {
      kind: 'manifests',
      sources: [{ path: 'a.yml', at: 21 }],
      name: 'cap/x',
      mode: 'protect',
      modules: { 'https://x/y': { path: 'z.wasm', at: 68 } },
      hostCapabilities: ['net/*'],
    });
    const group = '{expression: a(), message: refused, policies: {a: {module: builtin:pod-security}}}';
    assert.equal((subjectOf(group) as { kind: string }).kind, 'policy');
  });

  it('puts defaults below what cases say, and nowhere else', () => {
    const text = `${POLICY}
defaults: {namespace: shop, user: alice, session: s.yml}
cases:
  - {name: a, object: ${POD}, namespace: other, expect: {allowed: true}}
  - {name: b, request: r.json, expect: {allowed: true}}
`;
    const [a, b] = readSuite(text, 'f.yml').cases;
    assert.deepEqual(a?.question.kind === 'objects' && a.question.details, {
      namespace: 'other',
      user: { username: 'alice' },
    });
    assert.equal(b?.question.kind, 'request');
    assert.equal(b.session?.path, 's.yml');
  });

  const faulty: readonly (readonly [what: string, text: string, message: RegExp])[] = [
    ['YAML that is none', 'policy: [\n', /^f\.yml:1:10 is not JSON or YAML: /],
    ['two documents', `${POLICY}\n---\n${POLICY}`, /holds 2 YAML documents/],
    ['a list', '[1]', /expected a mapping with "policy" and "cases", got a list/],
    ['an empty file', '', /got nothing/],
    ['no cases', POLICY, /expected "cases", a list of at least one case/],
    ['no policy', `cases: [{name: a, object: ${POD}, expect: {allowed: true}}]`, /expected the key "policy"/],
    [
      'an unknown key',
      suite(`{name: a, object: ${POD}, expect: {alowed: true}}`),
      /f\.yml:3:\d+ unknown key "alowed" in an expectation: did you mean "allowed"\?\n.*\n +\^/,
    ],
    [
      'an unknown key of the policy',
      'policy: {module: x.wasm, setings: {}}\ncases: []',
      /f\.yml:1:26 .*"setings".*did you mean "settings"/,
    ],
    ['a policy of no kind', 'policy: {modul: x}\ncases: []', /did you mean "module" by "modul"\?/],
    ['a policy of two kinds', 'policy: {module: x, manifests: [y]}\ncases: []', /got module and manifests/],
    [
      'a wrong type deep inside',
      'policy: {module: x, hostCapabilities: [1]}\ncases: []',
      /f\.yml:1:40 hostCapabilities: /,
    ],
    ['a case without a name', suite(`{object: ${POD}, expect: {allowed: true}}`), /expected the key "name"/],
    [
      'two cases of one name',
      suite(`{name: a, object: ${POD}, expect: {allowed: true}}`, `{name: a, object: ${POD}, expect: {allowed: true}}`),
      /f\.yml:4:6 cases: two cases are named "a"/,
    ],
    ['a case that asks nothing', suite('{name: a, expect: {allowed: true}}'), /has no request/],
    ['a case that expects nothing', suite(`{name: a, object: ${POD}}`), /expected the key "expect"/],
    [
      'an expectation without a verdict',
      suite(`{name: a, object: ${POD}, expect: {message: x}}`),
      /expected the key "allowed"/,
    ],
    [
      'a verdict of a policy that is not asked',
      suite(`{name: a, object: ${POD}, expect: {matched: false, allowed: true, message: x}}`),
      /a policy that does not match a request is not asked about it: remove allowed/,
    ],
    [
      'a match of no request',
      suite('{name: a, raw: 1, expect: {matched: true, allowed: true}}'),
      /only used with an admis/,
    ],
    [
      'host capabilities that are none',
      `policy: {manifests: [a.yml], hostCapabilities: [NET]}\ncases: [{name: a, object: ${POD}, expect: {matched: false}}]`,
      /expected a list of host capabilities, such as net/,
    ],
    ['two questions', suite(`{name: a, object: ${POD}, request: r.json, expect: {allowed: true}}`), /got several/],
    [
      'an old object beside a request',
      suite(`{name: a, oldObject: ${POD}, request: r.json, expect: {allowed: true}}`),
      /got several/,
    ],
    [
      'details of a whole request',
      suite('{name: a, request: r.json, user: alice, expect: {allowed: true}}'),
      /user: only used with object/,
    ],
    [
      'an UPDATE without an old object',
      suite(`{name: a, operation: UPDATE, object: ${POD}, expect: {allowed: true}}`),
      /UPDATE has object and oldObject/,
    ],
    [
      'a DELETE of a new object',
      suite(`{name: a, operation: DELETE, object: ${POD}, expect: {allowed: true}}`),
      /DELETE has oldObject/,
    ],
    [
      'a CREATE with an old object',
      suite(`{name: a, operation: CREATE, object: ${POD}, oldObject: ${POD}, expect: {allowed: true}}`),
      /CREATE has object, and no oldObject/,
    ],
    [
      'an operation that is none',
      suite(`{name: a, operation: PATCH, object: ${POD}, expect: {allowed: true}}`),
      /expected CREATE or UPDATE or DELETE or CONNECT, got "PATCH"/,
    ],
    [
      'rejected settings that answer',
      suite(`{name: a, object: ${POD}, expect: {settings: rejected}}`),
      /remove the request/,
    ],
    [
      'rejected settings with a verdict',
      suite('{name: a, expect: {settings: rejected, allowed: false}}'),
      /remove allowed/,
    ],
    [
      'a matcher that is none',
      suite(`{name: a, object: ${POD}, expect: {allowed: true, message: {contain: x}}}`),
      /did you mean "contains"\?/,
    ],
    [
      'a pattern that is none',
      suite(`{name: a, object: ${POD}, expect: {allowed: true, message: {matches: 'a('}}}`),
      /expected an RE2 pattern/,
    ],
    [
      'unchanged and changed',
      suite(`{name: a, object: ${POD}, expect: {allowed: true, unchanged: true, patch: []}}`),
      /contradicts patch/,
    ],
    [
      'unchanged: false',
      suite(`{name: a, object: ${POD}, expect: {allowed: true, unchanged: false}}`),
      /expected true/,
    ],
    [
      'a resource that is none',
      suite(`{name: a, object: ${POD}, resource: Pods, expect: {allowed: true}}`),
      /plural name of a resource/,
    ],
    ['a version without quotes', 'policy: {manifests: [a.yml], kubernetesVersion: 1.3}\ncases: []', /put it in quotes/],
    ['a number that JSON does not have', suite(`{name: a, raw: .nan, expect: {allowed: true}}`), /a finite number/],
  ];
  for (const [what, text, message] of faulty) {
    it(`refuses ${what}`, () => {
      assert.throws(
        () => readSuite(text, 'f.yml'),
        (error) => {
          assert.ok(error instanceof CliError);
          assert.match(error.message, message);
          return true;
        },
      );
    });
  }

  it('reports all problems at once, from top to bottom', () => {
    assert.throws(
      () => readSuite(suite('{name: a}', '{nme: b}'), 'f.yml'),
      (error) => {
        assert.ok(error instanceof CliError);
        assert.equal(error.exitCode, EXIT.usage);
        const lines = [...error.message.matchAll(/^f\.yml:(\d+)/gm)].map(([, line]) => Number(line));
        assert.ok(lines.length >= 4);
        assert.deepEqual(
          lines,
          lines.toSorted((a, b) => a - b),
        );
        return true;
      },
    );
  });

  it('does not expand what aliases multiply without end', () => {
    const levels = Array.from({ length: 12 }, (_, level) =>
      level === 0
        ? 'a0: &a0 [x, x, x, x, x, x, x, x, x, x]'
        : `a${level}: &a${level} [${`*a${level - 1}, `.repeat(10)}]`,
    );
    const text = `${POLICY}\ncases:\n  - name: bomb\n    raw:\n${levels.map((line) => `      ${line}`).join('\n')}\n    expect: {allowed: true}\n`;
    assert.throws(
      () => readSuite(text, 'f.yml'),
      /^CliError: f\.yml:10:\d+ the aliases up to \*a4 stand for more than 1000000 values/,
    );
  });

  it('throws nothing but errors for users, whatever the file says', () => {
    const key = fc.constantFrom(
      'policy',
      'cases',
      'name',
      'object',
      'expect',
      'module',
      'allowed',
      'defaults',
      '__proto__',
      'x',
    );
    const { value } = fc.letrec((tie) => ({
      value: fc.oneof(
        { maxDepth: 5 },
        fc.constantFrom<unknown>(null, true, 1, '', 'text', 'CREATE'),
        fc.array(tie('value'), { maxLength: 3 }),
        fc.dictionary(key, tie('value'), { maxKeys: 5 }),
      ),
    }));
    fc.assert(
      fc.property(value, (document) => {
        try {
          readSuite(dump(document), 'f.yml');
        } catch (error) {
          assert.ok(error instanceof CliError, String(error));
        }
      }),
      { numRuns: 500 },
    );
  });
});
