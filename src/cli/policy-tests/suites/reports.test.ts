import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { stripVTControlCharacters } from 'node:util';
import fc from 'fast-check';
import { dataReport } from './data-report.ts';
import type { CaseResult, SuiteResult } from './suite-runner.ts';
import { checksText } from './report-formats.ts';
import { suiteChecks } from './suite-checks.ts';
import { exitCodeOf, summarize } from './summary.ts';
import { readTap } from './testing/tap-reader.ts';
import { parseXml } from './testing/xml-reader.ts';
import { textReport } from './text-report.ts';
import { terminalOutput } from '../../../values/index.ts';

function result(name: string, changes: Partial<CaseResult> = {}): CaseResult {
  const test = { name, line: 3, column: 5, at: 0, question: { kind: 'none' }, expect: {} } as const;
  return { test, status: 'passed', mismatches: [], log: [], durationMs: 1.5, ...changes };
}

function suite(name: string, cases: readonly CaseResult[], changes: Partial<SuiteResult> = {}): SuiteResult {
  return { name, file: `${name}/portcullis-test.yml`, cases, skipped: 0, notes: [], durationMs: 12.3456, ...changes };
}

const FAILED = result('fails', {
  status: 'failed',
  mismatches: [{ field: 'allowed', expected: 'true', actual: 'false' }],
});
const BROKEN = result('breaks', { status: 'error', error: 'the guest trapped' });
const junitReport = (suites: readonly SuiteResult[]): string => checksText(suiteChecks(suites), 'junit');
const UNREADABLE = suite('unreadable', [], { problem: 'f.yml:1:1 is not YAML\n  x' });

interface SarifLog {
  readonly runs: readonly [
    {
      readonly tool: { readonly driver: { readonly rules: readonly { readonly id: string }[] } };
      readonly results: readonly {
        readonly ruleIndex: number;
        readonly level: string;
        readonly locations: readonly { readonly physicalLocation?: { readonly region: object } }[];
      }[];
    },
  ];
}

describe('warnings about a policy', () => {
  const place = { file: 'policies/a.yaml', line: 4, column: 12 };
  const warning = { rule: 'type-check', field: 'settings', message: 'undefined field <x>' } as const;
  const warned = suite('warned', [result('passes')], { warnings: [{ ...warning, place }, warning] });

  it('are in the data of a suite that has some', () => {
    const { suites } = dataReport([warned, suite('other', [])]);
    assert.deepEqual(
      suites.map(({ warnings }) => warnings),
      [[{ ...warning, ...place }, warning], undefined],
    );
  });

  it('are output of the test suite in JUnit', () => {
    const elements = parseXml(junitReport([warned]));
    assert.deepEqual(
      elements.map(({ name }) => name),
      ['testsuites', 'testsuite', 'testcase', 'system-out'],
    );
    assert.equal(
      elements[3]?.text,
      'warning policies/a.yaml:4:12 settings: undefined field <x>\nwarning settings: undefined field <x>',
    );
  });

  it('are comments of TAP', () => {
    const comments: string[] = [];
    readTap(checksText(suiteChecks([warned]), 'tap'), comments);
    assert.deepEqual(comments, [
      'warning: policies/a.yaml:4:12 settings: undefined field <x>',
      'warning: settings: undefined field <x>',
    ]);
  });

  it('are annotations of GitHub at their places, and results of SARIF with a rule', () => {
    const checks = suiteChecks([warned]);
    assert.equal(
      checksText(checks, 'github'),
      '::warning file=policies/a.yaml,line=4,col=12,title=type-check of warned::settings: undefined field <x>\n' +
        '::warning title=type-check of warned::settings: undefined field <x>\n',
    );
    const { results, tool } = (JSON.parse(checksText(checks, 'sarif')) as SarifLog).runs[0];
    assert.deepEqual(
      results.map(({ ruleIndex, level }) => [tool.driver.rules[ruleIndex]?.id, level]),
      [
        ['type-check', 'warning'],
        ['type-check', 'warning'],
      ],
    );
    assert.deepEqual(results[0]?.locations[0]?.physicalLocation?.region, { startLine: 4, startColumn: 12 });
  });
});

describe('junitReport', () => {
  it('has a suite per file and a case per case, with what failed', () => {
    const text = junitReport([suite('a', [result('passes'), FAILED, BROKEN]), UNREADABLE]);
    assert.match(text, /^<\?xml version="1\.0" encoding="UTF-8"\?>\n<testsuites /);
    const elements = parseXml(text);
    const [root, first] = elements;
    assert.deepEqual(root?.attributes, { name: 'portcullis', tests: '4', failures: '1', errors: '2', time: '0.025' });
    assert.deepEqual(first?.attributes, {
      name: 'a',
      file: 'a/portcullis-test.yml',
      tests: '3',
      failures: '1',
      errors: '1',
      time: '0.012',
    });
    const names = elements.map(({ name }) => name);
    assert.deepEqual(names.slice(2), [
      'testcase',
      'testcase',
      'failure',
      'testcase',
      'error',
      'testsuite',
      'testcase',
      'error',
    ]);
    const failure = elements.find(({ name }) => name === 'failure');
    assert.equal(failure?.attributes['message'], 'allowed: expected true, got false');
    assert.match(failure?.text ?? '', /allowed\n {2}expected {2}true\n {2}got {7}false/);
    const errors = elements.filter(({ name }) => name === 'error');
    assert.deepEqual(
      errors.map(({ attributes }) => attributes['message']),
      ['the guest trapped', 'f.yml:1:1 is not YAML'],
    );
  });

  it('escapes everything, whatever a policy answers', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary' }), fc.string({ unit: 'grapheme' }), (actual, name) => {
        const mismatches = [{ field: 'message', expected: ']]><b attr="1">&amp;', actual }];
        const log = [{ policy: 'p', level: 'info', message: actual, fields: {} } as const];
        const elements = parseXml(junitReport([suite(name, [result(name, { status: 'failed', mismatches, log })])]));
        assert.equal(elements.length, 5);
        assert.match(elements.find((element) => element.name === 'failure')?.text ?? '', /\]\]><b attr="1">&amp;/);
      }),
    );
  });

  it('replaces what XML cannot hold', () => {
    const text = junitReport([suite('a', [result('\u0000\u001B\uFFFE\uD800 \u{1F512}')])]);
    assert.equal(parseXml(text)[2]?.attributes['name'], '\uFFFD\uFFFD\uFFFD\uFFFD \u{1F512}');
  });
});

describe('textReport', () => {
  const plain = (suites: readonly SuiteResult[]): string => textReport(suites, { color: false });

  it('ends in a table and a count', () => {
    const text = plain([
      suite('a', [result('x'), FAILED, BROKEN]),
      suite('b', [result('y')], { skipped: 2 }),
      UNREADABLE,
    ]);
    assert.match(
      text,
      /^SUITE +CASES +PASSED +FAILED +TIME\na +3 +1 +2 +12 ms\nb +1 +1 +0 +12 ms\nunreadable +- +- +- +-$/m,
    );
    assert.match(
      text,
      /\n✘ 2 of 4 cases passed, 1 failed, 1 without a verdict, 2 left out, 1 file could not be run in 37 ms\n$/,
    );
    assert.match(plain([suite('a', [result('x')])]), /\n✔ 1 of 1 case passed in 12 ms\n$/);
  });

  it('fits its table into a terminal', () => {
    const name = 'a-suite-'.repeat(10);
    const text = textReport([suite(name, [result('x')])], { color: false, width: 80 });
    const rows = text.split('\n').slice(0, 2);
    assert.match(rows.join('\n'), /^SUITE +CASES +PASSED +FAILED +TIME\na-suite-a-suite…\S* +1 +1 +0 +12 ms$/);
    assert.ok(
      rows.every((row) => row.length <= 80),
      text,
    );
  });

  it('says of each failure where it stands, what was expected and what came', () => {
    const text = plain([suite('a', [FAILED, BROKEN])]);
    assert.match(
      text,
      /^✘ a › fails {2}a\/portcullis-test\.yml:3:5\n {4}allowed\n {6}expected {2}true\n {6}got {7}false$/m,
    );
    assert.match(text, /^✘ a › breaks .*\n {4}error {2}the guest trapped$/m);
    assert.match(plain([UNREADABLE]), /✘ unreadable\/portcullis-test\.yml cannot be run\n {4}f\.yml:1:1 is not YAML/);
  });

  it('marks differences in colour only on request', () => {
    const diff = [
      { kind: 'expected', text: 'a' },
      { kind: 'actual', text: 'b' },
    ] as const;
    const failed = result('x', { status: 'failed', mismatches: [{ field: 'object', expected: '', actual: '', diff }] });
    const colored = terminalOutput(textReport([suite('a', [failed])], { color: true }));
    assert.ok(colored.includes('\u001B[31m- a\u001B[39m'));
    assert.ok(colored.includes('\u001B[32m+ b\u001B[39m'));
    assert.equal(stripVTControlCharacters(colored), plain([suite('a', [failed])]));
  });

  it('does not let a policy write to the terminal', () => {
    const mismatches = [{ field: 'message', expected: 'x', actual: '\u001B[2Jgone\u0007\rover' }];
    const text = plain([suite('a\u001B[2J', [result('n\nm', { status: 'failed', mismatches })])]);
    assert.doesNotMatch(text, /[^\P{Cc}\n]/u);
    assert.match(text, /✘ a › n m /);
  });
});

describe('dataReport', () => {
  it('says all that the others say', () => {
    const report = dataReport([suite('a', [result('x'), FAILED, BROKEN]), UNREADABLE]);
    assert.deepEqual(report.summary, {
      suites: 2,
      cases: 3,
      passed: 1,
      failed: 1,
      errors: 1,
      skipped: 0,
      problems: 1,
      durationMs: 24.691,
    });
    assert.deepEqual(report.suites[0]?.cases[1], {
      name: 'fails',
      line: 3,
      status: 'failed',
      mismatches: [{ field: 'allowed', expected: 'true', actual: 'false' }],
      durationMs: 1.5,
    });
    assert.equal(report.suites[1]?.problem, UNREADABLE.problem);
  });
});

describe('exitCodeOf', () => {
  it('is 0 when all passed, 1 when one did not, 2 when something could not be run, whatever else', () => {
    const code = (...suites: readonly SuiteResult[]): number => exitCodeOf(summarize(suites));
    assert.equal(code(suite('a', [result('x')])), 0);
    assert.equal(code(suite('a', [result('x'), FAILED])), 1);
    assert.equal(code(suite('a', [result('x'), BROKEN])), 1);
    assert.equal(code(suite('a', [FAILED]), UNREADABLE), 2);
  });
});
