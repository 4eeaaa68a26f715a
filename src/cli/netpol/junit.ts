// Results as JUnit XML: a test suite per policy, a test case for the API server and per provider.
import { element, escapeText } from '../junit-xml.ts';
import type { CheckResult, CheckVerdict } from './check-policies.ts';

export function junitText(results: readonly CheckResult[]): string {
  const suites = results.map((result) => {
    const { policy, verdicts, refusals } = result;
    const cases = [...apiServerCases(result), ...verdicts.map((verdict) => verdictCase(verdict, result))];
    const failures = verdicts.filter(({ accepted }) => accepted === 'False').length + (refusals.length > 0 ? 1 : 0);
    const skipped = verdicts.filter(({ accepted }) => accepted === 'Unknown').length;
    return element('testsuite', { name: policy, tests: cases.length, failures, skipped }, cases);
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element('testsuites', { name: 'portcullis netpol' }, suites)}\n`;
}

/** A case for what API servers refuse, or for mistakes whatever the provider. */
function apiServerCases({ policy, refusals, mistakes, placeOf }: CheckResult): readonly string[] {
  const attributes = (path: string): Readonly<Record<string, string | number>> => ({
    name: 'API server',
    classname: policy,
    ...placeOf?.(path),
  });
  const [refusal] = refusals;
  if (refusal !== undefined) {
    const text = refusals.map(({ message }) => message).join('\n');
    const failure = element('failure', { message: refusal.message, type: 'Refused' }, [escapeText(text)]);
    return [element('testcase', attributes(refusal.path), [failure])];
  }
  const texts = mistakes.map(({ message }) => `warning: this policy ${message}`);
  const path = mistakes[0]?.paths[0] ?? '';
  return mistakes.length === 0 ? [] : [element('testcase', attributes(path), [output(texts)])];
}

function verdictCase(
  { provider, version = '', accepted, message, reason, path, warnings }: CheckVerdict,
  { policy, placeOf }: CheckResult,
): string {
  const body = [escapeText(message)];
  const outcome = {
    True: [],
    False: [element('failure', { message, type: reason }, body)],
    Unknown: [element('skipped', { message }, body)],
  }[accepted];
  const name = version === '' ? provider : `${provider}@${version}`;
  const texts = warnings.map((warning) => `warning: ${warning.message}`);
  return element('testcase', { name, classname: policy, ...placeOf?.(path ?? warnings[0]?.paths[0] ?? '') }, [
    ...outcome,
    ...(texts.length === 0 ? [] : [output(texts)]),
  ]);
}

/** What a test case prints: reports have no other place for warnings of a case that passes. */
function output(lines: readonly string[]): string {
  return element('system-out', {}, [escapeText(lines.join('\n'))]);
}
