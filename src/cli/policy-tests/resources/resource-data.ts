import type { JsonValue } from '../../../engine/index.ts';
import { own, textOf, valueAt } from '../../../values/index.ts';
import { type WarningData, warningData } from '../suites/policy-warnings.ts';
import type { FieldLines } from './field-lines.ts';
import {
  countOutcomes,
  type Outcome,
  type OutcomeCounts,
  type PolicyResult,
  type ResourceReport,
  type ResourceResult,
} from './resource-report.ts';

/** The output of `test -p -o json` and `yaml`. Times in milliseconds. */
interface ResourceData {
  readonly summary: OutcomeCounts & {
    readonly resources: number;
    readonly policies: number;
    /** Policies that cannot be evaluated. */
    readonly problems: number;
    readonly durationMs: number;
  };
  readonly policies: readonly {
    readonly name: string;
    readonly file: string;
    readonly line: number;
    /** Why it cannot be evaluated. */
    readonly problem?: string;
  }[];
  /** About the policies; absent without any. */
  readonly warnings?: readonly WarningData[];
  readonly resources: readonly ResourceEntry[];
}

interface ResourceEntry {
  readonly apiVersion: string;
  readonly kind: string;
  readonly namespace?: string;
  readonly name: string;
  readonly file: string;
  readonly line: number;
  /** The template that Helm rendered. */
  readonly template?: string;
  readonly results: readonly ResultEntry[];
  /** As policies changed it; absent when none did. */
  readonly mutated?: JsonValue;
}

interface ResultEntry extends Pick<PolicyResult, 'message' | 'code'> {
  readonly policy: string;
  readonly result: Outcome;
  /** Of the field that the message names, or of the object. */
  readonly line: number;
  readonly warnings?: readonly string[];
  readonly auditAnnotations?: Readonly<Record<string, string>>;
  readonly isMutated?: true;
  readonly durationMs: number;
}

export function resourceData(report: ResourceReport, lines: FieldLines): ResourceData {
  const { policies, problems, resources, warnings } = report;
  return {
    summary: {
      resources: resources.length,
      policies: policies.length,
      ...countOutcomes(report),
      problems: problems.length,
      durationMs: rounded(report.durationMs),
    },
    policies: policies.map((policy) => {
      const problem = problems.find((one) => one.policy === policy);
      const { name, file, line } = policy;
      return { name, file, line, ...(problem === undefined ? {} : { problem: problem.message }) };
    }),
    ...(warnings.length === 0 ? {} : { warnings: warnings.map(warningData) }),
    resources: resources.map((tested) => entryOf(tested, lines)),
  };
}

function entryOf({ resource, results, before, after }: ResourceResult, lines: FieldLines): ResourceEntry {
  const { object, file, line, template } = resource;
  const metadata = (field: string): string => textOf(valueAt(object, 'metadata', field));
  const namespace = metadata('namespace') || textOf(valueAt(before, 'metadata', 'namespace'));
  return {
    apiVersion: textOf(own(object, 'apiVersion')),
    kind: textOf(own(object, 'kind')),
    ...(namespace === '' ? {} : { namespace }),
    name: metadata('name') || metadata('generateName'),
    file: file.name,
    line,
    ...(template === undefined ? {} : { template }),
    results: results.map((result) => resultOf(result, lines.lineOf(resource, result))),
    ...(before === after ? {} : { mutated: after }),
  };
}

function resultOf(result: PolicyResult, line: number): ResultEntry {
  const { policy, outcome, message, code, warnings, auditAnnotations, isMutated, durationMs } = result;
  return {
    policy: policy.name,
    result: outcome,
    line,
    ...(message === undefined ? {} : { message }),
    ...(code === undefined ? {} : { code }),
    ...(warnings.length === 0 ? {} : { warnings }),
    ...(Object.keys(auditAnnotations).length === 0 ? {} : { auditAnnotations }),
    ...(isMutated ? { isMutated } : {}),
    durationMs: rounded(durationMs),
  };
}

function rounded(ms: number): number {
  return Math.round(ms * 1_000) / 1_000;
}
