import assert from 'node:assert/strict';
import { describe, it } from 'node:test';
import { githubAnnotations } from './github-annotations.ts';
import type { Problem } from './problem.ts';
import { escapeText } from '../junit-xml.ts';
import { sarifText } from './sarif.ts';

const RULES = [
  { id: 'EndPort', description: 'a range of ports' },
  { id: 'SCTP', description: 'the protocol SCTP' },
];
const WARNING: Problem = { rule: 'SCTP', level: 'warning', message: 'it is unknown', subject: 'shop/a' };
const ERROR: Problem = {
  rule: 'EndPort',
  level: 'error',
  message: 'allows 100%,\nnot: more',
  subject: 'shop/a,b',
  place: { file: 'my policies/a:b.yaml', line: 7 },
};

interface SarifLog {
  readonly version: string;
  readonly $schema: string;
  readonly runs: readonly {
    readonly tool: {
      readonly driver: { readonly name: string; readonly version: string; readonly rules: readonly object[] };
    };
    readonly results: readonly {
      readonly ruleId: string;
      readonly ruleIndex: number;
      readonly level: string;
      readonly message: { readonly text: string };
      readonly locations: readonly object[];
    }[];
  }[];
}

describe('problems as SARIF 2.1.0', () => {
  const sarif = (problems: readonly Problem[]) => JSON.parse(sarifText(problems, RULES)) as SarifLog;

  it('have what the format requires: a version, a run, a named tool, rules with ids, results with messages', () => {
    const { version, $schema, runs } = sarif([ERROR, WARNING]);
    assert.equal(version, '2.1.0');
    assert.match($schema, /\/sarif-schema-2\.1\.0\.json$/);
    assert.equal(runs.length, 1);
    const { driver } = runs[0]?.tool ?? assert.fail();
    assert.equal(driver.name, 'portcullis');
    assert.match(driver.version, /^\d+\.\d+\.\d+/);
    assert.deepEqual(driver.rules, [
      { id: 'EndPort', shortDescription: { text: 'a range of ports' } },
      { id: 'SCTP', shortDescription: { text: 'the protocol SCTP' } },
    ]);
    assert.deepEqual(
      runs[0]?.results.map(({ ruleId, ruleIndex, level, message }) => [ruleId, ruleIndex, level, message.text]),
      [
        ['EndPort', 0, 'error', 'allows 100%,\nnot: more'],
        ['SCTP', 1, 'warning', 'it is unknown'],
      ],
    );
  });

  it('have results also when there are none, since an absent list means that nothing was examined', () => {
    assert.deepEqual(sarif([]).runs[0]?.results, []);
  });

  it('name the file as a URI reference and the line, and the object', () => {
    const logicalLocations = [{ fullyQualifiedName: 'shop/a,b', kind: 'resource' }];
    const artifactLocation = { uri: 'my%20policies/a%3Ab.yaml' };
    const [first, second] = sarif([ERROR, WARNING]).runs[0]?.results ?? [];
    assert.deepEqual(first?.locations, [
      { physicalLocation: { artifactLocation, region: { startLine: 7 } }, logicalLocations },
    ]);
    assert.deepEqual(second?.locations, [{ logicalLocations: [{ fullyQualifiedName: 'shop/a', kind: 'resource' }] }]);
  });

  it('name a file outside of the working folder by a URL', () => {
    const { results } = sarif([{ ...ERROR, place: { file: '/elsewhere/a b.yaml', line: 1 } }]).runs[0] ?? assert.fail();
    assert.match(JSON.stringify(results), /"uri":"file:\/\/\/(?:[A-Z]:\/)?elsewhere\/a%20b\.yaml"/);
  });
});

describe('problems as annotations of GitHub Actions', () => {
  it('are commands, errors first, in which no message can end', () => {
    assert.equal(
      githubAnnotations([WARNING, ERROR]),
      '::error file=my policies/a%3Ab.yaml,line=7,title=EndPort of shop/a%2Cb::allows 100%25,%0Anot: more\n' +
        '::warning title=SCTP of shop/a::it is unknown\n',
    );
  });
});

describe('a text that controls a terminal or the direction of text', () => {
  const hostile = 'a\u001B[2J\u009B2J\u202Eb\u2066c\u007F';
  const controls = /(?!\n)[\p{Cc}\p{Bidi_Control}]/u;
  const problem: Problem = { ...ERROR, message: hostile, subject: hostile };

  it('is the same in SARIF for programs, and inert for people', () => {
    const text = sarifText([problem], RULES);
    assert.doesNotMatch(text, controls);
    assert.equal((JSON.parse(text) as SarifLog).runs[0]?.results[0]?.message.text, hostile);
  });

  it('is inert in annotations of GitHub and in JUnit XML', () => {
    assert.doesNotMatch(githubAnnotations([problem]), controls);
    assert.doesNotMatch(escapeText(hostile), controls);
  });
});
