import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { CallContext } from './call.ts';
import { compileModule } from './compile.ts';
import { OpaGuest, opaBuiltins } from './opa.ts';
import { parseRegoText, RegoObject, valuesEqual } from './opa/index.ts';
import type { RegoValue } from './opa/index.ts';

const FIXTURES = join(import.meta.dirname, '../../test/fixtures/rego');
const MIB = 1024 * 1024;

function load(file: string, builtins = opaBuiltins): OpaGuest {
  const bytes = readFileSync(join(FIXTURES, file));
  return new OpaGuest(compileModule(bytes, { memoryLimitBytes: 256 * MIB, isolation: 'restore' }), builtins);
}

function context(options: { fuel?: number; answerBytes?: number; log?: (text: string) => void } = {}): CallContext {
  return {
    limits: { fuel: options.fuel ?? 1_000_000_000, answerBytes: options.answerBytes ?? MIB },
    hostCall: () => assert.fail('Rego has no host calls'),
    log: options.log ?? (() => {}),
  };
}

describe('answers of OPA itself', () => {
  const golden = JSON.parse(readFileSync(join(FIXTURES, 'golden.json'), 'utf8')) as [string, string | null][];
  const answer = load('golden.wasm').evaluate(0, '{}', '{}', context({ fuel: 100_000_000_000, answerBytes: 16 * MIB }));
  const [row] = parseRegoText(answer) as readonly RegoValue[];
  const results = (row as RegoObject).get('result') as RegoObject;

  const byBuiltin = Map.groupBy(golden.entries(), ([, [call]]) => call.slice(0, call.indexOf('(')));
  for (const [builtin, cases] of byBuiltin) {
    test(builtin, () => {
      for (const [index, [call, expected]] of cases) {
        const actual = results.get(String(index));
        assert.ok(sameAnswer(actual, expected), `${call}: expected ${expected}, got ${printed(actual)}`);
      }
    });
  }
});

function sameAnswer(actual: RegoValue | undefined, expected: string | null): boolean {
  if (actual === undefined || expected === null) {
    return actual === undefined && expected === null;
  }
  return valuesEqual(actual, parseRegoText(expected));
}

function printed(value: RegoValue | undefined): string {
  return (
    JSON.stringify(value, (_, item: unknown) => (item instanceof RegoObject ? Object.fromEntries(item) : item)) ??
    'undefined'
  );
}
