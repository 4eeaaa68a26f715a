import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  dns1035LabelProblems,
  dnsLabelProblems,
  dnsSubdomainProblems,
  labelValueProblems,
  pathSegmentProblems,
  qualifiedNameProblems,
} from './name-rules.ts';

const LABEL = /^a lowercase RFC 1123 label must consist of .*, regex used for validation is '\[a-z0-9\]\(\[-a-z0-9\]\*/;
const SUBDOMAIN = /^a lowercase RFC 1123 subdomain must consist of .* \(e\.g\. 'example\.com', regex used/;
const LABEL_1035 = /^a DNS-1035 label must consist of .* \(e\.g\. 'my-name', {2}or 'abc-123', regex used/;
const NAME_PART = /^name part must consist of .* \(e\.g\. 'MyName', {2}or 'my\.name', {2}or '123-abc', regex used/;
const VALUE = /^a valid label must be an empty string or consist of .* \(e\.g\. 'MyValue', {2}or 'my_value'/;

type Rule = (name: string) => readonly string[];

/** Each with the rules that k8s.io/apimachinery 0.34.4 says it breaks. */
const CASES: readonly (readonly [Rule, string, readonly (string | RegExp)[]])[] = [
  [dnsLabelProblems, '1-a', []],
  [dnsLabelProblems, 'a.b', ['must not contain dots']],
  [dnsLabelProblems, '-a', [LABEL]],
  [dnsLabelProblems, '', [LABEL]],
  [dnsLabelProblems, 'a'.repeat(64), ['must be no more than 63 characters']],
  [dnsLabelProblems, 'é'.repeat(32), ['must be no more than 63 characters', LABEL]],
  [dnsSubdomainProblems, 'a.b', []],
  [dnsSubdomainProblems, 'a..b', [SUBDOMAIN]],
  [dnsSubdomainProblems, 'a.'.repeat(127), ['must be no more than 253 characters', SUBDOMAIN]],
  [dns1035LabelProblems, 'a1', []],
  [dns1035LabelProblems, '1a', [LABEL_1035]],
  [qualifiedNameProblems, 'example.com/Name_1.x', []],
  [qualifiedNameProblems, '/a', ['prefix part must be non-empty']],
  [qualifiedNameProblems, 'a/', ['name part must be non-empty', NAME_PART]],
  [qualifiedNameProblems, 'A/a', [/^prefix part a lowercase RFC 1123 subdomain must/]],
  [qualifiedNameProblems, `a/${'a'.repeat(64)}`, ['name part must be no more than 63 characters']],
  [
    qualifiedNameProblems,
    'a/b/c',
    [/^a qualified name must .*with an optional DNS subdomain prefix and '\/' \(e\.g\. 'example\.com\/MyName'\)$/],
  ],
  [labelValueProblems, '', []],
  [labelValueProblems, 'a_', [VALUE]],
  [labelValueProblems, 'a'.repeat(64), ['must be no more than 63 characters']],
  [pathSegmentProblems, '..', ["may not be '..'"]],
  [pathSegmentProblems, 'a/%', ["may not contain '/'", "may not contain '%'"]],
];

describe('name rules', () => {
  for (const [rule, name, expected] of CASES) {
    test(`${rule.name} of ${JSON.stringify(name)} are those of API servers`, () => {
      const problems = rule(name);
      assert.equal(problems.length, expected.length, problems.join('\n'));
      for (const [index, text] of expected.entries()) {
        const problem = problems[index] ?? '';
        assert.ok(typeof text === 'string' ? problem === text : text.test(problem), problem);
      }
    });
  }
});
