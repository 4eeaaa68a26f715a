import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { CallContext } from './call.ts';
import { compileModule } from '../instrumentation/compile.ts';
import { WasmError } from '../binary/errors.ts';
import type { WasmErrorCode } from '../binary/errors.ts';
import { OpaGuest, opaBuiltins } from './opa.ts';
import { parseRegoText, RegoObject, RegoSet, valuesEqual } from './opa/index.ts';
import type { RegoValue } from './opa/index.ts';

const FIXTURES = join(import.meta.dirname, '../../../test/fixtures/rego');
const MIB = 1024 * 1024;

function load(file: string): OpaGuest {
  const bytes = readFileSync(join(FIXTURES, file));
  return new OpaGuest(compileModule(bytes, { memoryLimitBytes: 256 * MIB, isolation: 'restore' }), opaBuiltins);
}

function context(options: { fuel?: number; answerBytes?: number; log?: (text: string) => void } = {}): CallContext {
  return {
    limits: { fuel: options.fuel ?? 1_000_000_000, answerBytes: options.answerBytes ?? MIB },
    hostCall: () => assert.fail('Rego has no host calls'),
    log: options.log ?? (() => {}),
  };
}

function fails(code: WasmErrorCode, message: RegExp): (error: unknown) => boolean {
  return (error) => {
    assert.ok(error instanceof WasmError, String(error));
    assert.equal(error.code, code, error.message);
    assert.match(error.message, message);
    return true;
  };
}

const policies = load('policies.wasm');

/** Each search of it in a text of letters compares many of them, and then fails. */
const NEAR = `${'a'.repeat(200_000)}b${'a'.repeat(200_000)}`;

function evaluate(entrypoint: string, input: unknown, data: unknown = {}, callContext = context()): unknown {
  const id = policies.entrypoints.get(`policies/${entrypoint}`) ?? assert.fail(entrypoint);
  const answer = policies.evaluate(id, JSON.stringify(input), JSON.stringify(data), callContext);
  const rows = JSON.parse(answer) as { result: unknown }[];
  return rows[0]?.result;
}

describe('builtins return what OPA returns', () => {
  const golden = JSON.parse(readFileSync(join(FIXTURES, 'golden.json'), 'utf8')) as [string, string | null][];
  const results = new Map<string, RegoValue>();
  for (const file of ['golden-0.wasm', 'golden-1.wasm']) {
    const answer = load(file).evaluate(0, '{}', '{}', context({ fuel: 100_000_000_000, answerBytes: 16 * MIB }));
    const [row] = parseRegoText(answer) as readonly RegoObject[];
    for (const [key, value] of row!.get('result') as RegoObject) {
      results.set(key as string, typed(value));
    }
  }

  const byBuiltin = Map.groupBy(golden.entries(), ([, [call]]) => call.slice(0, call.indexOf('(')));
  for (const [builtin, cases] of byBuiltin) {
    test(`${builtin}: ${cases.length} calls`, () => {
      for (const [index, [call, expected]] of cases) {
        const actual = results.get(String(index));
        const wanted = expected === null ? undefined : typed(parseRegoText(expected));
        const same = actual !== undefined && wanted !== undefined ? valuesEqual(actual, wanted) : actual === wanted;
        assert.ok(same, `${call}: expected ${expected}, got ${printed(actual)}`);
      }
    });
  }
});

/** Expected values are pairs of type and value, because JSON has no sets. */
function typed(pair: RegoValue): RegoValue {
  const [type, value = null] = pair as readonly RegoValue[];
  return type === 'set' ? new RegoSet(value as readonly RegoValue[]) : value;
}

function printed(value: RegoValue | undefined): string {
  return JSON.stringify(value, (_, item: unknown) => (item instanceof RegoObject ? [...item] : item)) ?? 'undefined';
}

test('docs/rego-builtins.md lists exactly the supported builtins', () => {
  const document = readFileSync(join(import.meta.dirname, '../../../docs/rego-builtins.md'), 'utf8');
  const section = document.slice(
    document.indexOf('## Supported builtins'),
    document.indexOf('## Unsupported builtins'),
  );
  const listed = Array.from(section.matchAll(/^\| `([^`]+)`/gm), ([, name]) => name);
  assert.deepEqual(listed, [...opaBuiltins.keys()].sort());
});

/** Builtins that current OPA compiles into modules; older modules import them from the host. */
describe('builtins of older modules', () => {
  const cases: readonly (readonly [string, string, string | undefined])[] = [
    ['json.is_valid', '["{\\"a\\": [1]}"]', 'true'],
    ['json.is_valid', '["{a: 1}"]', 'false'],
    ['json.is_valid', '[1]', 'false'],
    ['regex.is_valid', '["a(b"]', 'false'],
    ['regex.is_valid', '["a+"]', 'true'],
    ['regex.match', '["^a+$", "aaa"]', 'true'],
    ['regex.find_all_string_submatch_n', '["a(x*)b", "-axxb-ab-", -1]', '[["axxb", "xx"], ["ab", ""]]'],
    ['strings.reverse', '["añ😀"]', '"😀ña"'],
    ['strings.replace_n', '[{"a": "1", "ab": "2", "": "-"}, "xab"]', '"-x-1-b-"'],
    ['object.keys', '[{"a": 1, 2: 3}]', '{"a", 2}'],
    ['object.union_n', '[[{"a": {"b": 1}}, {"a": {"c": 2}, "d": 3}]]', '{"a": {"b": 1, "c": 2}, "d": 3}'],
    ['array.reverse', '[[1, 2, 3]]', '[3, 2, 1]'],
    ['numbers.range', '[3, 1]', '[3, 2, 1]'],
    ['internal.print', '[[{"a"}, {1, 2}, set()]]', 'true'],
    // OPA 1.22 looks elements up in the array before the earlier operations; RFC 6902 does not.
    [
      'json.patch',
      '[[[1], [2]], [{"op": "add", "path": "/0", "value": 0}, {"op": "add", "path": "/2/0", "value": 3}]]',
      '[0, [1], [3, 2]]',
    ],
    // OPA 1.22 does not return from this call.
    ['semver.compare', '["1.0.0-99999999999999999999", "1.0.0-100000000000000000000"]', '-1'],
    // OPA 1.22 crashes.
    ['json.patch', '[{}, [{"op": "remove", "path": ""}]]', undefined],
  ];
  for (const [name, operands, expected] of cases) {
    test(`${name}(${operands.slice(1, -1)})`, () => {
      const log: string[] = [];
      const result = opaBuiltins.get(name)!(parseRegoText(operands) as readonly RegoValue[], {
        nowNs: 0n,
        randomResults: new Map(),
        patterns: new Map(),
        charge: () => {},
        log: (text) => log.push(text),
      });
      if (expected === undefined) {
        assert.equal(result, undefined);
      } else {
        assert.ok(valuesEqual(result ?? null, parseRegoText(expected)), printed(result));
      }
      assert.deepEqual(log, name === 'internal.print' ? ['a 1 <undefined>', 'a 2 <undefined>'] : []);
    });
  }
});

describe('policies', () => {
  const pod = (image: string): unknown => ({
    request: { object: { metadata: { labels: { team: 'x' } }, spec: { containers: [{ name: 'c', image }] } } },
  });
  const settings = { registry: 'registry.example/', labels: ['team'] };

  test('use input and data', () => {
    assert.deepEqual(evaluate('main', pod('registry.example/app'), settings), {
      response: { allowed: true, status: { message: '' } },
    });
    assert.deepEqual(evaluate('main', pod('other/app'), { ...settings, labels: ['team', 'owner'] }), {
      response: {
        allowed: false,
        status: {
          message: 'container "c" uses image other/app, which is not from registry.example/, label "owner" is missing',
        },
      },
    });
  });

  test('return a list of violations', () => {
    const review = { object: { spec: { containers: [{ name: 'a' }, { name: 'b', resources: { limits: {} } }] } } };
    assert.deepEqual(evaluate('violation', { review }), [{ msg: 'container a has no limits' }]);
  });

  test('use fuel for what a builtin reads and returns, also for one that charges nothing itself', () => {
    const fuelOf = (operand: string, result: string): number => {
      const bytes = readFileSync(join(FIXTURES, 'policies.wasm'));
      const compiled = compileModule(bytes, { memoryLimitBytes: 256 * MIB, isolation: 'restore' });
      const guest = new OpaGuest(compiled, new Map([...opaBuiltins, ['sprintf', () => result]]));
      const input = { builtin: 'sprintf', operands: [operand, []] };
      guest.evaluate(guest.entrypoints.get('policies/hostile') ?? -1, JSON.stringify(input), '{}', context());
      return guest.fuelUsed;
    };
    const long = 'a'.repeat(100_000);
    const least = fuelOf('a', 'a');
    assert.ok(fuelOf('a', long) - least >= 20 * long.length);
    assert.ok(fuelOf(long, 'a') - least >= 20 * long.length);
  });

  test('an undefined entrypoint returns an empty result set', () => {
    const id = policies.entrypoints.get('policies/hostile') ?? -1;
    assert.equal(policies.evaluate(id, '{}', '{}', context()), '[]');
  });

  test('keep no state between evaluations', () => {
    const [first, second] = [evaluate('chance', {}), evaluate('chance', {})] as Record<string, unknown[]>[];
    for (const answer of [first, second]) {
      assert.equal(answer?.['numbers']?.[0], answer?.['numbers']?.[1]);
      assert.equal(answer?.['uuids']?.[0], answer?.['uuids']?.[1]);
      assert.notEqual(answer?.['uuids']?.[0], answer?.['uuids']?.[2]);
      assert.equal(answer?.['times']?.[0], answer?.['times']?.[1]);
    }
    assert.notEqual(first?.['uuids']?.[0], second?.['uuids']?.[0]);
    assert.equal(evaluate('main', {}, settings) !== undefined, true);
    const fuel = (): number => {
      evaluate('main', pod('other/app'), settings);
      return policies.fuelUsed;
    };
    assert.equal(fuel(), fuel());
  });

  test('keep every digit of large numbers', () => {
    const operands = '["%v %d %v", [1152921504606846976, 18446744073709551617, 0.1]]';
    const id = policies.entrypoints.get('policies/hostile') ?? -1;
    const answer = policies.evaluate(id, `{"builtin": "sprintf", "operands": ${operands}}`, '{}', context());
    assert.equal(answer, '[{"result":"1152921504606846976 18446744073709551617 0.1"}]');
  });

  test('log, up to a limit', () => {
    const lines: string[] = [];
    const log = (text: string): void => {
      lines.push(text);
    };
    evaluate('chatty', { lines: ['a note'] }, {}, context({ log }));
    assert.deepEqual(lines, ['a note']);
    evaluate(
      'chatty',
      { lines: Array.from({ length: 100 }, (_, index) => `${index} ${'x'.repeat(9000)}`) },
      {},
      context({ log }),
    );
    assert.ok(lines.join('').length < 100_000, `${lines.join('').length} characters`);
  });
});

describe('refuses', () => {
  test('a module that needs unavailable builtins, naming all of them', () => {
    assert.throws(
      () => load('unavailable.wasm').start(),
      fails('builtin-missing', /crypto\.x509\.parse_certificates, http\.send; http\.send .*no network/),
    );
  });

  test('a module that is not Rego', () => {
    const empty = Uint8Array.of(0, 0x61, 0x73, 0x6d, 1, 0, 0, 0);
    const compiled = compileModule(empty, { memoryLimitBytes: MIB, isolation: 'fresh' });
    assert.throws(() => new OpaGuest(compiled, opaBuiltins), fails('export-missing', /not a Rego policy/));
  });

  test('an unsupported ABI version', () => {
    const bytes = readFileSync(join(FIXTURES, 'policies.wasm'));
    // The version is the only global of this form: i32, immutable, i32.const 1, end.
    const at = bytes.indexOf(Uint8Array.of(0x7f, 0, 0x41, 1, 0x0b, 0x7f, 0, 0x41, 3, 0x0b));
    bytes[at + 3] = 2;
    const compiled = compileModule(bytes, { memoryLimitBytes: 64 * MIB, isolation: 'restore' });
    const guest = new OpaGuest(compiled, opaBuiltins);
    assert.throws(() => guest.start(), fails('abi-unsupported', /expected 1, got 2/));
  });

  test('documents that are not JSON', () => {
    assert.throws(
      () => policies.evaluate(0, '{', '{}', context()),
      fails('guest-error', /cannot parse the document input/),
    );
    assert.throws(
      () => policies.evaluate(0, '{}', '', context()),
      fails('guest-error', /cannot parse the document data/),
    );
    assert.throws(
      () => policies.evaluate(0, '{1, 2}', '{}', context()),
      fails('guest-error', /cannot parse the document input/),
    );
  });

  test('an answer above the limit', () => {
    assert.throws(
      () => evaluate('main', {}, {}, context({ answerBytes: 10 })),
      fails('answer-too-large', /at most 10/),
    );
  });

  test('an entrypoint that does not exist', () => {
    assert.throws(() => policies.evaluate(1000, '{}', '{}', context()), fails('trap', /entrypoint/));
  });
});

describe('survives', () => {
  const attacks: readonly { name: string; code: WasmErrorCode; entrypoint: string; input: unknown }[] = [
    { name: 'a loop', code: 'out-of-fuel', entrypoint: 'loop', input: {} },
    { name: 'rules that contradict each other', code: 'trap', entrypoint: 'clash', input: { one: true, two: true } },
    hostile('a huge width', 'out-of-fuel', 'sprintf', '%999999[1]d'.repeat(100), [1]),
    hostile('a huge precision', 'out-of-fuel', 'sprintf', '%.999999[1]f'.repeat(100), [1.5]),
    hostile('a replacement that grows', 'out-of-fuel', 'regex.replace', 'a'.repeat(10_000), 'a', '$0'.repeat(10_000)),
    hostile('searches that start over and over', 'out-of-fuel', 'regex.split', '(a.*b)|a', 'a'.repeat(30_000)),
    hostile('a pattern of too many groups', 'out-of-fuel', 'regex.split', '(a?)'.repeat(2000), 'a'.repeat(100)),
    hostile('aliases that multiply', 'out-of-fuel', 'yaml.unmarshal', billionLaughs()),
    hostile('a network of all addresses', 'out-of-fuel', 'net.cidr_expand', '::/0'),
    hostile(
      'patterns that match nearly everywhere',
      'out-of-fuel',
      'strings.replace_n',
      { [`${'a'.repeat(10_000)}b`]: 'x' },
      'a'.repeat(100_000),
    ),
    hostile('a graph with exponentially many paths', 'out-of-fuel', 'graph.reachable_paths', ladder(60), ['n0']),
  ];
  for (const { name, code, entrypoint, input } of attacks) {
    test(`${name}: ${code}`, () => {
      assert.throws(() => evaluate(entrypoint, input, {}, context({ fuel: 100_000_000 })), fails(code, /./));
      assert.deepEqual(evaluate('violation', { review: {} }), [], 'the next evaluation works');
    });
  }

  const bounded: readonly (readonly [string, string, ...unknown[]])[] = [
    ['a width that Go refuses', 'sprintf', '%999999999d', [1]],
    ['operands of the wrong type', 'sprintf', 1, 2],
    ['a pattern that backtracks elsewhere', 'regex.replace', `${'a'.repeat(20_000)}!`, '^(a+)+$', 'x'],
    ['a pattern that multiplies', 'regex.split', '((((a{1000}){1000}){1000}){1000})', 'a'],
    ['a long pattern', 'regex.split', '(a?)'.repeat(100_000), 'a'],
    ['a pattern of many groups', 'regex.split', '(a?)'.repeat(300), 'aaaa'],
    ['a giant exponent', 'units.parse', '1e999999'],
    ['a patch that is none', 'json.patch', { a: 1 }, [{ op: 'add' }]],
    ['a value that contains itself', 'yaml.unmarshal', '&a [*a]'],
    ['deep YAML', 'yaml.unmarshal', '['.repeat(100_000)],
    ['a text that nearly has the part', 'indexof_n', 'a'.repeat(1_000_000), NEAR],
    ['a text that nearly has the part', 'strings.count', 'a'.repeat(1_000_000), NEAR],
    ['a text that nearly has the part', 'strings.split_n', 'a'.repeat(1_000_000), NEAR, 2],
    ['many objects', 'object.union_n', Array.from({ length: 10_000 }, (_, i) => ({ [`k${i}`]: i }))],
    ['a number of many digits', 'yaml.is_valid', '9'.repeat(1_000_000)],
    ['a layout of many names', 'time.parse_ns', 'Jan'.repeat(30_000), 'Jan'.repeat(30_000)],
    ['deep values', 'object.subset', nested(500), nested(500)],
    [
      'many patterns',
      'strings.replace_n',
      Object.fromEntries(Array.from({ length: 500 }, (_, i) => [`k${i}`, 'v'])),
      'k'.repeat(5000),
    ],
  ];
  for (const [name, builtin, ...operands] of bounded) {
    test(`${name}: ${builtin}`, { timeout: 60_000 }, () => {
      assert.doesNotThrow(() => evaluate('hostile', { builtin, operands }));
    });
  }

  test('values nested deeper than the limit of builtins', () => {
    const deep = '['.repeat(1500) + ']'.repeat(1500);
    const input = `{"builtin": "object.subset", "operands": [${deep}, ${deep}]}`;
    const id = policies.entrypoints.get('policies/hostile') ?? -1;
    assert.throws(() => policies.evaluate(id, input, '{}', context()), fails('guest-error', /nested deeper/));
  });

  test('deeply nested input', () => {
    const input = `${'['.repeat(1_000_000)}${']'.repeat(1_000_000)}`;
    assert.throws(() => policies.evaluate(0, input, '{}', context()), WasmError);
  });
});

function hostile(name: string, code: WasmErrorCode, builtin: string, ...operands: readonly unknown[]) {
  return { name, code, entrypoint: 'hostile', input: { builtin, operands } };
}

function billionLaughs(): string {
  const lines = Array.from({ length: 40 }, (_, i) => `a${i + 1}: &a${i + 1} [*a${i}, *a${i}]`);
  return `a0: &a0 lol\n${lines.join('\n')}\n`;
}

/** Two edges from every rung to the next. */
function ladder(rungs: number): Record<string, string[]> {
  const graph: Record<string, string[]> = {};
  for (let rung = 0; rung < rungs; rung += 1) {
    graph[`n${rung}`] = [`l${rung}`, `r${rung}`];
    graph[`l${rung}`] = graph[`r${rung}`] = [`n${rung + 1}`];
  }
  return graph;
}

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let level = 0; level < depth; level += 1) {
    value = [value];
  }
  return value;
}
