// Reports of audits as JUnit XML: a test suite for each policy, a test case for each kind and for each object that does not pass.
import { type AuditResult, type Coverage, isIncomplete } from '../../audit/index.ts';
import { element, escapeText } from '../junit-xml.ts';
import type { AuditReport } from './audit-report.ts';
import { kindOf, messageOf, objectOf, resultText } from './report-text.ts';

export function auditJunit(report: AuditReport): string {
  const policies = Map.groupBy(report.coverage, ({ policy }) => policy);
  const suites = [...policies].map(([policy, coverage]) => {
    const results = report.results.filter((one) => one.policy === policy);
    const cases = [...coverage.map(kindCase), ...results.map((result) => objectCase(result, report))];
    return element(
      'testsuite',
      {
        name: policy,
        tests: cases.length,
        failures: results.filter(({ result }) => result === 'fail').length,
        errors: results.filter(({ result }) => result === 'error').length + coverage.filter(isIncomplete).length,
        skipped: coverage.filter(isSkipped).length + results.filter(({ result }) => result === 'skip').length,
      },
      cases,
    );
  });
  return `<?xml version="1.0" encoding="UTF-8"?>\n${element('testsuites', { name: 'portcullis audit' }, suites)}\n`;
}

/** Nothing is wrong with it, and nothing was judged. */
function isSkipped(entry: Coverage): boolean {
  return entry.state !== 'Scanned' && !isIncomplete(entry);
}

function kindCase(entry: Coverage): string {
  const { policy, state, reason = state, message = '', counts } = entry;
  const text = escapeText(message);
  const outcome = isIncomplete(entry)
    ? [element('error', { message, type: reason }, [text])]
    : isSkipped(entry)
      ? [element('skipped', { message }, [text])]
      : [element('system-out', {}, [escapeText(`${counts.passed} of ${counts.matched} objects pass`)])];
  return element('testcase', { name: kindOf(entry), classname: policy }, outcome);
}

function objectCase(result: AuditResult, { placeOf }: AuditReport): string {
  const { policy, object, message = '', reason = '' } = result;
  const text = [escapeText(message)];
  const outcome = {
    fail: () => element('failure', { message, type: reason }, text),
    error: () => element('error', { message, type: reason }, text),
    skip: () => element('skipped', { message: messageOf(result) }, []),
    // A case that passes has no other place for what there is to say.
    wouldChange: () => element('system-out', {}, [resultText(result)]),
  }[result.result]();
  const { file, line } = placeOf(object) ?? {};
  const place = file === undefined || line === undefined ? {} : { file, line };
  return element('testcase', { name: objectOf(object), classname: policy, ...place }, [outcome]);
}
