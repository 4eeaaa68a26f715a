import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as fc from 'fast-check';
import { EngineError } from '../values/errors.ts';
import { parsePolicies } from './policies-file.ts';
import type { PolicyProblem } from './policies-file.ts';
import { definitionHash, modulesOf, type ModuleUse, settingsHash } from './policy-definition.ts';

function problemsOf(text: string): readonly PolicyProblem[] {
  return parsePolicies(text, 'policies.yml').problems;
}

function failureOf(text: string): EngineError {
  try {
    parsePolicies(text, 'policies.yml');
  } catch (error) {
    assert.ok(error instanceof EngineError);
    return error;
  }
  return assert.fail('expected the file to be refused');
}

const FULL = `
psp:
  module: file:///policies/psp.wasm
  policyMode: monitor
  allowedToMutate: true
  settings: {allowed: [NET_ADMIN], nested: {limit: 012, on: yes, since: 2024-01-01}}
  contextAwareResources:
    - {apiVersion: v1, kind: Namespace}
  message: not here
  timeoutEvalSeconds: 5
  hostCapabilities: ["net/v1/*", "kubernetes/can_i", "*"]
  failurePolicy: Ignore
  namespacedName: {name: psp}
minimal:
  module: https://example.com/minimal.wasm
  settings:
group:
  expression: signed() && !(broken() || old())
  message: images must be signed
  namespacedName: {namespace: shop, name: group}
  policies:
    signed: {module: a.wasm, settings: {key: k}, timeoutEvalSeconds: 1}
    broken: {module: b.wasm}
    old: {module: a.wasm, hostCapabilities: [oci/*]}
`;

test('reads policies and groups with their defaults', () => {
  const { policies, problems } = parsePolicies(FULL, 'policies.yml');
  assert.deepEqual(problems, []);
  assert.deepEqual(policies, [
    {
      kind: 'policy',
      id: 'psp',
      mode: 'monitor',
      allowedToMutate: true,
      module: 'file:///policies/psp.wasm',
      settingsJson: '{"allowed":["NET_ADMIN"],"nested":{"limit":10,"true":true,"since":"2024-01-01"}}',
      contextAwareResources: [{ apiVersion: 'v1', kind: 'Namespace' }],
      timeoutEvalSeconds: 5,
      hostCapabilities: ['net/v1/*', 'kubernetes/can_i', '*'],
      message: 'not here',
      failurePolicy: 'Ignore',
    },
    {
      kind: 'policy',
      id: 'minimal',
      mode: 'protect',
      allowedToMutate: false,
      module: 'https://example.com/minimal.wasm',
      settingsJson: '{}',
      contextAwareResources: [],
      hostCapabilities: [],
      failurePolicy: 'Fail',
    },
    {
      kind: 'group',
      id: 'group',
      mode: 'protect',
      expression: 'signed() && !(broken() || old())',
      message: 'images must be signed',
      members: [
        {
          name: 'signed',
          module: 'a.wasm',
          settingsJson: '{"key":"k"}',
          contextAwareResources: [],
          timeoutEvalSeconds: 1,
          hostCapabilities: [],
        },
        { name: 'broken', module: 'b.wasm', settingsJson: '{}', contextAwareResources: [], hostCapabilities: [] },
        { name: 'old', module: 'a.wasm', settingsJson: '{}', contextAwareResources: [], hostCapabilities: ['oci/*'] },
      ],
      failurePolicy: 'Fail',
    },
  ]);
  assert.deepEqual(policies.map(modulesOf), [
    ['file:///policies/psp.wasm'],
    ['https://example.com/minimal.wasm'],
    ['a.wasm', 'b.wasm'],
  ]);
  assert.deepEqual(structuredClone(policies), policies);
});

test('pod templates are checked by policies and groups that say so', () => {
  const group = 'policies: {a: {module: x}}, expression: a(), message: denied';
  for (const [entry, expected] of [
    ['module: x', undefined],
    ['module: x, podTemplates: Ignore', undefined],
    ['module: x, podTemplates: Warn', 'Warn'],
    [`${group}, podTemplates: Enforce`, 'Enforce'],
  ] as const) {
    const [policy] = parsePolicies(`a: {${entry}}`, 'policies.yml').policies;
    assert.equal(policy?.podTemplates, expected);
  }
});

test('JSON gives the same definitions as YAML', () => {
  const { policies } = parsePolicies(FULL, 'policies.yml');
  const withSettings = ({ settingsJson, ...use }: ModuleUse): object => ({
    ...use,
    settings: JSON.parse(settingsJson) as unknown,
  });
  const entries = policies.map(({ id, ...definition }) =>
    definition.kind === 'policy'
      ? [id, { ...withSettings(definition), policyMode: definition.mode, kind: undefined, mode: undefined }]
      : [
          id,
          {
            policyMode: definition.mode,
            expression: definition.expression,
            message: definition.message,
            policies: Object.fromEntries(definition.members.map(({ name, ...member }) => [name, withSettings(member)])),
          },
        ],
  );
  const json = JSON.stringify(Object.fromEntries(entries), undefined, '\t');
  assert.deepEqual(parsePolicies(json, 'policies.json').policies, policies);
});

test('a byte order mark and Windows line ends are accepted', () => {
  const { policies } = parsePolicies('\uFEFFa:\r\n  module: x\r\n', 'policies.yml');
  assert.deepEqual(
    policies.map(({ id, kind }) => [id, kind]),
    [['a', 'policy']],
  );
});

test('a file with {} has no policies', () => {
  assert.deepEqual(parsePolicies('{}', 'policies.yml'), { policies: [], problems: [] });
});

for (const text of ['', ' \n', '\n# nothing yet\n', '---\n']) {
  test(`a file with ${JSON.stringify(text)} is refused, because it may be incomplete`, () => {
    assert.throws(() => parsePolicies(text, 'policies.yml'), {
      code: 'policies-file-wrong-shape',
      message: /is empty.*Write \{\}/,
    });
  });
}

for (const [text, code, message, line, column] of [
  ['a: {module: x}\nb: [1,\nc: }\n', 'policies-file-malformed', /policies\.yml:\d+:\d+ is not YAML/, 3, undefined],
  [
    'a: {module: x}\nb: {module: y}\na: {module: z}\n',
    'policies-file-malformed',
    /policies\.yml:3:1 names "a" twice/,
    3,
    1,
  ],
  [
    '{"a": {"module": "x"},\n "b": {},\n "a": {"module": "z"}}',
    'policies-file-malformed',
    /:3:2 names "a" twice/,
    3,
    2,
  ],
  ['"a b": {}\n"a b": {}\n', 'policies-file-malformed', /:2:1 names "a b" twice/, 2, 1],
  ['a:\n\t- x', 'policies-file-malformed', /is not YAML/, 2, undefined],
  ['a: !custom 1', 'policies-file-malformed', /unknown scalar tag/, 1, 4],
  [
    '- a\n- b',
    'policies-file-wrong-shape',
    /expected a mapping of policy ids to policies, got a list/,
    undefined,
    undefined,
  ],
  [
    'apiVersion: policies.kubewarden.io/v1\nkind: AdmissionPolicy\n---\nb: {}\n',
    'policies-file-wrong-shape',
    /has a manifest of the kind AdmissionPolicy: .* "portcullis start --policies"/,
    undefined,
    undefined,
  ],
  [
    '{"apiVersion": "v1", "kind": "List", "items": []}',
    'policies-file-wrong-shape',
    /has a manifest of the kind List: /,
    undefined,
    undefined,
  ],
  ['just text', 'policies-file-wrong-shape', /got a string/, undefined, undefined],
  ['a: {}\n---\nb: {}\n', 'policies-file-wrong-shape', /expected one YAML document, got 2/, undefined, undefined],
] as const) {
  test(`a file that is ${JSON.stringify(text.slice(0, 30))} is refused as a whole, with the position`, () => {
    const error = failureOf(text);
    assert.equal(error.code, code);
    assert.match(error.message, message);
    assert.equal(error.position?.line, line);
    if (column !== undefined) {
      assert.equal(error.position?.column, column);
    }
  });
}

const MODULE = 'module: x';
for (const [text, code, message, line, column, field] of [
  [
    `a:\n  ${MODULE}\n  modul: y`,
    'unknown-key',
    /unknown key "modul" in a policy: did you mean "module"\?/,
    3,
    3,
    'modul',
  ],
  [`a: {${MODULE}, allowToMutate: true}`, 'unknown-key', /did you mean "allowedToMutate"/, 1, 16, 'allowToMutate'],
  [`a: {${MODULE}, nonsense: 1}`, 'unknown-key', /expected one of module, /, 1, 16, 'nonsense'],
  ['a:\n  settings: {}', 'missing-key', /expected the key "module"/, 1, 1, ''],
  ['a: {module: ""}', 'invalid-value', /module: expected some text/, 1, 5, 'module'],
  ['a: {module: 5}', 'wrong-type', /module: expected text, got 5: put it in quotes/, 1, 5, 'module'],
  ['a: text', 'wrong-type', /expected a mapping with "module" or "policies", got "text"/, 1, 1, ''],
  ['a:', 'wrong-type', /got nothing/, 1, 1, ''],
  [`a/b: {${MODULE}}`, 'invalid-id', /no "\/"/, 1, 1, ''],
  [`"": {${MODULE}}`, 'invalid-id', /at least one character/, 1, 2, ''],
  [`${'x'.repeat(254)}: {${MODULE}}`, 'invalid-id', /at most 253 characters, got 254/, 1, 1, ''],
  [
    `a: {${MODULE}, policyMode: enforce}`,
    'invalid-value',
    /policyMode: expected protect or monitor, got "enforce"/,
    1,
    16,
    'policyMode',
  ],
  [
    `a: {${MODULE}, failurePolicy: fail}`,
    'invalid-value',
    /expected Fail or Ignore, got "fail"/,
    1,
    16,
    'failurePolicy',
  ],
  [
    `a: {${MODULE}, podTemplates: Deny}`,
    'invalid-value',
    /expected Ignore or Warn or Enforce, got "Deny"/,
    1,
    16,
    'podTemplates',
  ],
  [
    `a: {${MODULE}, allowedToMutate: "yes"}`,
    'wrong-type',
    /expected true or false, got "yes"/,
    1,
    16,
    'allowedToMutate',
  ],
  [`a: {${MODULE}, timeoutEvalSeconds: 0}`, 'invalid-value', /from 1 to 300, got 0/, 1, 16, 'timeoutEvalSeconds'],
  [`a: {${MODULE}, timeoutEvalSeconds: 1.5}`, 'invalid-value', /from 1 to 300, got 1.5/, 1, 16, 'timeoutEvalSeconds'],
  [`a: {${MODULE}, timeoutEvalSeconds: 301}`, 'invalid-value', /from 1 to 300/, 1, 16, 'timeoutEvalSeconds'],
  [`a: {${MODULE}, settings: [1]}`, 'wrong-type', /settings: expected a mapping, got a list/, 1, 16, 'settings'],
  [`a: {${MODULE}, settings: {k: .nan}}`, 'invalid-value', /expected a number that JSON has/, 1, 27, 'settings.k'],
  [
    `a: {${MODULE}, settings: {k: [1, 9007199254740993]}}`,
    'invalid-value',
    /last digits would be lost/,
    1,
    34,
    'settings.k.1',
  ],
  [`a: {${MODULE}, hostCapabilities: "*"}`, 'wrong-type', /expected a list/, 1, 16, 'hostCapabilities'],
  [
    `a: {${MODULE}, hostCapabilities: [net/*, oci*]}`,
    'invalid-value',
    /"net\/\*".*got "oci\*"/,
    1,
    42,
    'hostCapabilities.1',
  ],
  [
    `a: {${MODULE}, contextAwareResources: [{kind: Pod}]}`,
    'missing-key',
    /"apiVersion"/,
    1,
    40,
    'contextAwareResources.0',
  ],
  [`a: {${MODULE}, policies: {m: {${MODULE}}}}`, 'ambiguous-kind', /got both: remove one/, 1, 16, 'policies'],
  ['g: {expression: m(), message: x, policies: {}}', 'invalid-value', /1 to 64 members, got 0/, 1, 34, 'policies'],
  [`g: {expression: m(), policies: {m: {${MODULE}}}}`, 'missing-key', /"message"/, 1, 1, ''],
  [`g: {message: x, policies: {m: {${MODULE}}}}`, 'missing-key', /"expression"/, 1, 1, ''],
  ['g: {message: x, expression: m()}', 'missing-key', /"policies"/, 1, 1, ''],
  [
    `g: {message: x, expression: other(), policies: {m: {${MODULE}}}}`,
    'invalid-expression',
    /unknown member/,
    1,
    17,
    'expression',
  ],
  [`g: {message: x, expression: m() &&, policies: {m: {${MODULE}}}}`, 'invalid-expression', /\^$/, 1, 17, 'expression'],
  [
    `g: {message: x, expression: "true", policies: {m: {${MODULE}}}}`,
    'invalid-expression',
    /uses no member/,
    1,
    17,
    'expression',
  ],
  [
    `g: {message: x, expression: m(), policies: {m: {${MODULE}}, a-b: {${MODULE}}}}`,
    'invalid-member-name',
    /"a-b"/,
    1,
    61,
    'policies.a-b',
  ],
  [
    `g: {message: x, expression: m(), policies: {m: {${MODULE}}, in: {${MODULE}}}}`,
    'invalid-member-name',
    /CEL reserves/,
    1,
    61,
    'policies.in',
  ],
  [
    `g: {message: x, expression: m(), policies: {m: {${MODULE}, policyMode: protect}}}`,
    'unknown-key',
    /in a member of a group/,
    1,
    60,
    'policies.m.policyMode',
  ],
] as const) {
  test(`one mistake in one policy: ${text.slice(0, 60).replaceAll('\n', '\\n')}`, () => {
    const { policies, problems } = parsePolicies(`${text}\ngood: {module: fine.wasm}\n`, 'policies.yml');
    assert.deepEqual(
      policies.map(({ id }) => id),
      ['good'],
      'the other policy loads',
    );
    assert.equal(problems.length, 1, JSON.stringify(problems));
    const problem = problems[0]!;
    assert.match(problem.message, message);
    assert.deepEqual(
      { code: problem.code, line: problem.line, column: problem.column, field: problem.field },
      { code, line, column, field },
    );
  });
}

test('all mistakes in a policy are reported at once', () => {
  const codes = problemsOf('a: {modul: x, policyMode: 5, timeoutEvalSeconds: -1}').map(({ code }) => code);
  assert.deepEqual(codes.toSorted(), ['invalid-value', 'missing-key', 'unknown-key', 'wrong-type']);
});

test('aliases are expanded within limits', () => {
  const { policies } = parsePolicies('a: {module: x, settings: &s {k: [1]}}\nb: {module: x, settings: *s}\n', 'p');
  const [a, b] = policies;
  assert.ok(a?.kind === 'policy' && b?.kind === 'policy');
  assert.deepEqual([a.settingsJson, b.settingsJson], ['{"k":[1]}', '{"k":[1]}']);

  const levels = Array.from(
    { length: 5 },
    (_, n) => `  l${n + 1}: &l${n + 1} [${Array(10).fill(`*l${n}`).join(', ')}]`,
  );
  const bomb = `bomb:\n  module: x\n  settings:\n    l0: &l0 [1]\n${levels.map((line) => `  ${line}`).join('\n')}\ngood: {module: good.wasm}\n`;
  const parsed = parsePolicies(bomb, 'p');
  assert.deepEqual(
    parsed.policies.map(({ id }) => id),
    ['good'],
  );
  assert.match(parsed.problems[0]!.message, /after aliases are expanded/);
  assert.throws(
    () => parsePolicies('a: {module: x, settings: {y: &q [*q]}}', 'p'),
    /^EngineError: p:1:34 is not YAML: the alias \*q/,
  );
});

test('a key named __proto__ in settings is a key', () => {
  const { policies } = parsePolicies('a: {module: x, settings: {__proto__: {admin: true}}}', 'p');
  const [a] = policies;
  assert.ok(a?.kind === 'policy');
  assert.equal(a.settingsJson, '{"__proto__":{"admin":true}}');
});

test('a hash changes exactly with its input', () => {
  const [one, same, mode, settings] = parsePolicies(
    'a: {module: x, settings: {p: 1, q: 2}}\nb: {settings: {q: 2, p: 1}, module: x}\nc: {module: x, policyMode: monitor, settings: {p: 1, q: 2}}\nd: {module: x, settings: {p: 1, q: 3}}',
    'p',
  ).policies.map((definition) => ({ ...definition, id: 'id' }));
  assert.equal(definitionHash(one!), definitionHash(same!));
  assert.notEqual(definitionHash(one!), definitionHash(mode!));
  assert.equal(settingsHash(one!), settingsHash(mode!));
  assert.notEqual(settingsHash(one!), settingsHash(settings!));
  assert.match(definitionHash(one!), /^[0-9a-f]{64}$/);
});

test('limits hold', () => {
  assert.equal(failureOf(' '.repeat(16 * 1024 * 1024 + 1)).code, 'policies-file-too-large');
  const many = JSON.stringify(Object.fromEntries(Array.from({ length: 20_001 }, (_, n) => [`p${n}`, 1])));
  assert.match(failureOf(many).message, /at most 20000, got 20001/);
  assert.equal(failureOf('['.repeat(10_000)).code, 'policies-file-malformed');
  assert.equal(failureOf(`{"a":${'['.repeat(10_000)}${']'.repeat(10_000)}}`).code, 'policies-file-malformed');
});

test('the parser throws only EngineError for any text', () => {
  const word = fc.constantFrom(
    'a',
    'module',
    'settings',
    'policies',
    'expression',
    'message',
    ': ',
    ':',
    '\n',
    '\n  ',
    '- ',
    '{',
    '}',
    '[',
    ']',
    ', ',
    '&x ',
    '*x',
    '"',
    "'",
    '|',
    '!!int ',
    '1',
    '.inf',
    '<<',
    '~',
    '---',
    '\t',
    '#',
  );
  const text = fc.oneof(
    fc.array(word, { maxLength: 30 }).map((words) => words.join('')),
    fc.string(),
    fc.json(),
  );
  fc.assert(
    fc.property(text, (source) => {
      try {
        for (const problem of parsePolicies(source, 'p').problems) {
          assert.ok(problem.line >= 1 && problem.column >= 1);
        }
      } catch (error) {
        assert.ok(error instanceof EngineError, String(error));
      }
    }),
    { numRuns: 500 },
  );
});
