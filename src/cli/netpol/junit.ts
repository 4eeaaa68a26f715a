// Results as JUnit XML: a test suite per policy, a test case per provider.
import { element, escapeText } from '../junit-xml.ts';
import type { CheckResult } from './check-policies.ts';

export function junitText(results: readonly CheckResult[]): string {
  const suites = results.map(({ policy, verdicts }) => {
    const cases = verdicts.map(({ provider, version = '', accepted, message, reason }) => {
      const body = [escapeText(message)];
      const outcome = {
        True: [],
        False: [element('failure', { message, type: reason }, body)],
        Unknown: [element('skipped', { message }, body)],
      }[accepted];
      return element(
        'testcase',
        { name: version === '' ? provider : `${provider}@${version}`, classname: policy },
        outcome,
      );
    });
    const failures = verdicts.filter(({ accepted }) => accepted === 'False').length;
    const skipped = verdicts.filter(({ accepted }) => accepted === 'Unknown').length;
    return element('testsuite', { name: policy, tests: cases.length, failures, skipped }, cases);
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element('testsuites', { name: 'portcullis netpol' }, suites)}\n`;
}
