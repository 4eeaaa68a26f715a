// Results as JUnit XML: a test suite per file, a test case per case. https://github.com/testmoapp/junitxml
import { element, escapeText } from '../junit-xml.ts';
import { summarize } from './summary.ts';
import type { CaseResult, SuiteResult } from './suite-runner.ts';
import { failureText } from './text-report.ts';

export function junitReport(suites: readonly SuiteResult[]): string {
  const { durationMs } = summarize(suites);
  const total = countsOf(suites);
  const children = suites.map(suiteElement);
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element('testsuites', { name: 'portcullis', ...total, time: seconds(durationMs) }, children)}\n`;
}

function suiteElement(suite: SuiteResult): string {
  const { name, file, durationMs, problem } = suite;
  const cases =
    problem === undefined
      ? suite.cases.map((result) => caseElement(suite, result))
      : [
          element('testcase', { name: 'the file can be run', classname: name, file, time: seconds(0) }, [
            element('error', { message: firstLine(problem), type: 'problem' }, [escapeText(problem)]),
          ]),
        ];
  return element('testsuite', { name, file, ...countsOf([suite]), time: seconds(durationMs) }, cases);
}

function caseElement(suite: SuiteResult, result: CaseResult): string {
  const { test, status, error, mismatches, log } = result;
  const attributes = {
    name: test.name,
    classname: suite.name,
    file: suite.file,
    line: test.line,
    time: seconds(result.durationMs),
  };
  const children: string[] = [];
  if (status === 'error') {
    const body = escapeText(failureText(result));
    children.push(element('error', { message: firstLine(error ?? ''), type: 'error' }, [body]));
  } else if (status === 'failed') {
    const message = mismatches
      .map(({ field, expected, actual }) => `${field}: expected ${firstLine(expected)}, got ${firstLine(actual)}`)
      .join('; ');
    children.push(element('failure', { message, type: 'failure' }, [escapeText(failureText(result))]));
  }
  if (log.length > 0) {
    children.push(
      element('system-out', {}, [escapeText(log.map(({ level, message }) => `${level} ${message}`).join('\n'))]),
    );
  }
  return element('testcase', attributes, children);
}

/** A file that could not be run, as a case with an error. */
function countsOf(suites: readonly SuiteResult[]): { tests: number; failures: number; errors: number } {
  const { cases, failed, errors, problems } = summarize(suites);
  return { tests: cases + problems, failures: failed, errors: errors + problems };
}

function seconds(ms: number): string {
  return (ms / 1_000).toFixed(3);
}

function firstLine(text: string): string {
  const [line = ''] = text.split('\n', 1);
  return line;
}
