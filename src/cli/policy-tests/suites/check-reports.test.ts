import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import fc from 'fast-check';
import type { PolicyCheck, CheckReport } from './checks.ts';
import { checksText } from './report-formats.ts';
import { readTap } from './testing/tap-reader.ts';
import { parseXml } from './testing/xml-reader.ts';

function check(name: string, changes: Partial<PolicyCheck> = {}): PolicyCheck {
  const place = { file: 'deploy.yaml', line: 7 };
  const subject = `Pod ${name}`;
  return {
    name,
    subject,
    status: 'passed',
    rule: 'cap/a',
    message: '',
    details: '',
    output: [],
    place,
    durationMs: 1,
    ...changes,
  };
}

function reportOf(...checks: readonly PolicyCheck[]): CheckReport {
  const rules = [{ id: 'cap/a', description: 'policy a' }];
  return { groups: [{ name: 'deploy.yaml', file: 'deploy.yaml', checks, durationMs: 2 }], warnings: [], rules };
}

const EACH = reportOf(
  check('passes', { output: ['info seen'] }),
  check('warns', { status: 'warned', message: 'soon' }),
  check('fails', { status: 'failed', message: 'no', details: 'no\nat all' }),
  check('breaks', { status: 'error', message: 'trap', details: 'trap' }),
  check('skips', { status: 'skipped', message: 'no rule #1' }),
);

/** Texts that try to be more than text in one of the formats. */
const HOSTILE = fc.oneof(
  fc.string({ unit: 'binary' }),
  fc.constantFrom(
    'x\n::error file=a::b',
    'x # SKIP no',
    '# TODO \\# \\',
    'a\n  ...\nok 9 - b',
    ']]><testcase/>&amp;"',
    '\u001B[2J\u0007\u2028',
    'Bail out!\nBail out!',
    '---\n...',
  ),
);

describe('TAP', () => {
  it('has a test point for each check, with what is wrong', () => {
    assert.deepEqual(readTap(checksText(EACH, 'tap')), [
      { ok: true, description: 'deploy.yaml › passes', diagnostics: { output: ['info seen'] } },
      {
        ok: true,
        description: 'deploy.yaml › warns',
        diagnostics: { severity: 'warning', rule: 'cap/a', message: 'soon', at: { file: 'deploy.yaml', line: 7 } },
      },
      {
        ok: false,
        description: 'deploy.yaml › fails',
        diagnostics: {
          severity: 'fail',
          rule: 'cap/a',
          message: 'no',
          details: 'no\nat all',
          at: { file: 'deploy.yaml', line: 7 },
        },
      },
      {
        ok: false,
        description: 'deploy.yaml › breaks',
        diagnostics: { severity: 'fail', rule: 'cap/a', message: 'trap', at: { file: 'deploy.yaml', line: 7 } },
      },
      { ok: true, description: 'deploy.yaml › skips', skip: 'no rule #1' },
    ]);
  });

  it('has a plan without test points when there is nothing', () => {
    assert.deepEqual(readTap(checksText(reportOf(), 'tap')), []);
  });

  it('is as many test points as checks, whatever their texts', () => {
    fc.assert(
      fc.property(HOSTILE, HOSTILE, (name, message) => {
        const checks = (['failed', 'skipped', 'passed'] as const).map((status) =>
          check(name, { status, message, details: `${message}\n${message}`, output: [message] }),
        );
        const { groups, ...report } = reportOf(...checks);
        const warned = { ...report, groups: groups.map((group) => ({ ...group, warnings: [message] })) };
        const points = readTap(checksText(warned, 'tap'));
        assert.deepEqual(
          points.map(({ ok, skip }) => [ok, skip !== undefined]),
          [
            [false, false],
            [true, true],
            [true, false],
          ],
        );
      }),
    );
  });
});

describe('JUnit XML of checks', () => {
  it('has failures, errors and skipped cases; a warning has passed', () => {
    const [root, , ...cases] = parseXml(checksText(EACH, 'junit'));
    const { tests, failures, errors, skipped } = root?.attributes ?? {};
    assert.deepEqual([tests, failures, errors, skipped], ['5', '1', '1', '1']);
    assert.deepEqual(
      cases.map(({ name, attributes }) => `${name} ${attributes['name'] ?? attributes['message'] ?? ''}`.trim()),
      [
        'testcase passes',
        'system-out',
        'testcase warns',
        'testcase fails',
        'failure no',
        'testcase breaks',
        'error trap',
        'testcase skips',
        'skipped no rule #1',
      ],
    );
    assert.deepEqual(cases[0]?.attributes['line'], '7');
  });

  it('is well-formed, whatever the texts', () => {
    fc.assert(
      fc.property(HOSTILE, HOSTILE, (name, message) => {
        const failed = check(name, { status: 'failed', message, details: message, rule: name, output: [message] });
        assert.equal(parseXml(checksText(reportOf(failed), 'junit')).length, 5);
      }),
    );
  });
});

describe('annotations and SARIF of checks', () => {
  it('have what has not passed, with its place', () => {
    assert.equal(
      checksText(EACH, 'github'),
      '::error file=deploy.yaml,line=7,title=cap/a of Pod fails::no\n' +
        '::error file=deploy.yaml,line=7,title=cap/a of Pod breaks::trap\n' +
        '::warning file=deploy.yaml,line=7,title=cap/a of Pod warns::soon\n',
    );
    const { results } = (
      JSON.parse(checksText(EACH, 'sarif')) as { runs: [{ results: { level: string; ruleIndex: number }[] }] }
    ).runs[0];
    assert.deepEqual(
      results.map(({ level, ruleIndex }) => [level, ruleIndex]),
      [
        ['warning', 0],
        ['error', 0],
        ['error', 0],
      ],
    );
  });

  it('are one line and one result for each, whatever the texts', () => {
    fc.assert(
      fc.property(HOSTILE, HOSTILE, (name, message) => {
        const report = reportOf(check(name, { status: 'failed', message, rule: name, subject: name }));
        const text = checksText(report, 'github');
        assert.match(text, /^::error file=deploy\.yaml,line=7,title=[^\n:]*::[^\n]*\n$/);
        const { runs } = JSON.parse(checksText(report, 'sarif')) as { runs: [{ results: unknown[] }] };
        assert.equal(runs[0].results.length, 1);
      }),
    );
  });
});
