// The cases of dryrun.yaml, and what the dry run prints for them.
import { readFileSync } from 'node:fs';
import { pino } from 'pino';
import { compareStatus } from '../../../src/cli/governance/dryrun/compare-status.ts';
import {
  comparisonText,
  type ReportFormat,
  reportsText,
  templateReports,
  wholeStatus,
} from '../../../src/cli/governance/dryrun/dryrun-report.ts';
import { type EvaluatedPolicies, evaluatePolicies } from '../../../src/cli/governance/dryrun/evaluate-policies.ts';
import { InputCluster } from '../../../src/cli/governance/dryrun/input-cluster.ts';
import { triedPolicies } from '../../../src/cli/governance/dryrun/tried-policies.ts';
import { parseYaml } from '../../../src/values/yaml/index.ts';
import type { JsonObject, JsonValue, KubernetesObject } from '../../../src/resources/index.ts';

const CLUSTER_NAME = 'local-cluster';
const FORMAT: ReportFormat = { hasDiffs: true, hasMessages: true, hasColors: false };

export interface DryrunCase {
  readonly name: string;
  /** The folder of upstream's tests that shows the same. */
  readonly upstream: string;
  readonly policyName?: string;
  readonly remediationAction?: string;
  readonly namespaceSelector?: JsonObject;
  /** `object-templates`, or `object-templates-raw`. */
  readonly policy: JsonValue;
  readonly objects: readonly KubernetesObject[];
  /** What the status must contain. */
  readonly status?: JsonObject;
  /** Whole output. */
  readonly output?: string;
  /** Instead of the output: part of the message of a template that cannot be resolved. */
  readonly error?: string;
  /** Why this is not what upstream prints. */
  readonly differs?: string;
}

export function dryrunCases(): readonly DryrunCase[] {
  const [cases] = parseYaml(readFileSync(new URL('dryrun.yaml', import.meta.url), 'utf8'));
  return cases as readonly DryrunCase[];
}

/** The policies after a dry run on a cluster of these objects. */
export async function evaluated(
  manifests: readonly KubernetesObject[],
  objects: readonly KubernetesObject[],
): Promise<EvaluatedPolicies> {
  return await evaluatePolicies({
    policies: triedPolicies(manifests, CLUSTER_NAME).policies,
    cluster: new InputCluster(objects, []),
    clusterName: CLUSTER_NAME,
    fullDiffs: false,
    log: pino({ level: 'silent' }),
  });
}

/** What `portcullis dryrun -p POLICY OBJECTS --no-colors` prints, with `-c STATUS` if the case has one. */
export async function dryrunOutput({ status, ...one }: DryrunCase): Promise<string> {
  const templates = typeof one.policy === 'string' ? 'object-templates-raw' : 'object-templates';
  const policy = {
    apiVersion: 'policy.open-cluster-management.io/v1',
    kind: 'ConfigurationPolicy',
    metadata: { name: one.policyName ?? 'tried' },
    spec: {
      remediationAction: one.remediationAction ?? 'inform',
      ...(one.namespaceSelector === undefined ? {} : { namespaceSelector: one.namespaceSelector }),
      [templates]: one.policy,
    },
  };
  const policies = await evaluated([policy], one.objects);
  const reports = templateReports(policies);
  const comparison =
    status === undefined ? '' : comparisonText(compareStatus(status, wholeStatus(policies, reports)), FORMAT);
  return `${comparison}${reportsText(reports, FORMAT)}`;
}
