// What an audit found, in an order that does not depend on time.
import { type AuditPart, type AuditResult, type Coverage, isIncomplete } from '../../audit/index.ts';
import { compareStrings } from '../../go/index.ts';
import { apiVersionOf } from '../../resources/index.ts';
import { EXIT } from '../errors.ts';
import type { ProblemPlace } from '../problems/problem.ts';

/** Which results make the command fail. */
export const FAIL_ON = ['finding', 'protect', 'not-auditable', 'never'] as const;
export type AuditFailOn = (typeof FAIL_ON)[number];

/** All that an audit found. */
export interface AuditReport {
  readonly results: readonly AuditResult[];
  readonly coverage: readonly Coverage[];
  /** Where an object stands. Undefined: it is in no file. */
  readonly placeOf: (object: AuditResult['object']) => ProblemPlace | undefined;
}

/** Counts of a report. */
export interface AuditSummary {
  /** Policies that judged objects. */
  readonly policies: number;
  readonly kinds: number;
  readonly objects: number;
  readonly findings: number;
  /** Findings of policies in monitor mode, which reject nothing. */
  readonly monitored: number;
  readonly wouldChange: number;
  /** Verdicts that exceptions apply to. */
  readonly excepted: number;
  /** Verdicts that are missing. */
  readonly unjudged: number;
  /** Kinds and policies of which not everything is known that an audit could know. */
  readonly incomplete: number;
  /** Policies, or rules of them, that existing objects cannot be judged by. */
  readonly notAuditable: number;
}

/** A report of the parts of an audit. */
export function auditReport(parts: readonly AuditPart[], placeOf: AuditReport['placeOf']): AuditReport {
  return {
    results: parts
      .flatMap(({ results }) => results)
      .toSorted((one, other) => compareStrings(textOfResult(one), textOfResult(other))),
    coverage: parts
      .flatMap(({ coverage }) => coverage)
      .toSorted((one, other) => compareStrings(textOfCoverage(one), textOfCoverage(other))),
    placeOf,
  };
}

function textOfResult({ policy, object: { apiVersion, kind, namespace = '', name } }: AuditResult): string {
  return [policy, kind, apiVersion, namespace, name].join('\n');
}

function textOfCoverage({ policy, kind, namespace = '', state, message = '' }: Coverage): string {
  return [policy, kind === undefined ? '' : `${kind.kind} ${apiVersionOf(kind)}`, namespace, state, message].join('\n');
}

export function summaryOf({ results, coverage }: AuditReport): AuditSummary {
  const judged = coverage.filter(({ state }) => state === 'Scanned' || state === 'Partial');
  const findings = results.filter(({ result }) => result === 'fail');
  const scanned = new Map<string, number>();
  for (const { kind, namespace = '', counts } of judged) {
    const key = `${kind?.resource ?? ''}.${kind?.group ?? ''} ${namespace}`;
    scanned.set(key, Math.max(scanned.get(key) ?? 0, counts.scanned));
  }
  return {
    policies: new Set(judged.map(({ policy }) => policy)).size,
    kinds: new Set(judged.map(({ kind }) => `${kind?.resource ?? ''}.${kind?.group ?? ''}`)).size,
    objects: sum([...scanned.values()]),
    findings: findings.length,
    monitored: findings.filter(({ mode }) => mode === 'monitor').length,
    wouldChange: sum(coverage.map(({ counts }) => counts.wouldChange)),
    excepted: sum(coverage.map(({ counts }) => counts.skipped)),
    unjudged: sum(coverage.map(({ counts }) => counts.unjudged)),
    incomplete: coverage.filter(isIncomplete).length,
    notAuditable: coverage.filter(({ state }) => state === 'NotAuditable').length,
  };
}

/** What is not known weighs more than what was found: it may hide more. */
export function exitCodeOfAudit(report: AuditReport, failOn: AuditFailOn): number {
  const { incomplete, findings, monitored, notAuditable } = summaryOf(report);
  if (incomplete > 0) {
    return EXIT.incomplete;
  }
  const failures = {
    finding: findings,
    protect: findings - monitored,
    'not-auditable': findings + notAuditable,
    never: 0,
  }[failOn];
  return failures > 0 ? EXIT.failed : EXIT.ok;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, one) => total + one, 0);
}
