// What threads evaluate: jobs and results are plain data.
import type { CertificatePolicy, ConfigurationPolicy, Readiness } from '../../resources/index.ts';
import { knownKind, Selector } from '../../resources/index.ts';
import {
  type CertificateEvaluation,
  type CompliancyDetails,
  evaluateCertificates,
} from '../certificates/evaluate-certificates.ts';
import {
  NamespaceSelectorError,
  ObjectReadError,
  planEvaluation,
  selectNamespaces,
  type ObjectPlan,
  type ObjectTemplatePlan,
} from '../configuration/index.ts';
import { type AskedObjects, templateObjects } from './asked-objects.ts';
import { type ConfigurationStatus, evaluatedStatus, type EvaluationReport } from './configuration-status.ts';
import { type HubTemplateInput, type ResolvedTemplate, resolvedTemplates } from './hub-templates-evaluation.ts';
import { resolvedPolicy } from './resolved-policy.ts';

/** The plans of a policy. The main thread has the live objects. */
export type PlannedEvaluation =
  | {
      readonly plans: readonly (Omit<ObjectTemplatePlan, 'objects'> & { readonly objects: readonly PlannedObject[] })[];
    }
  | { readonly failure: string };

export type PlannedObject = Omit<ObjectPlan, 'live'> & { readonly isLive: boolean };

/** The certificates of a CertificatePolicy, or why they are unknown. */
export type EvaluatedCertificates =
  | CertificateEvaluation
  | { readonly invalidSelector: string }
  | { readonly unreadable: string };

/** Inputs and results by type of job. */
export interface EvaluationJobs {
  /** Resolves the templates of a ConfigurationPolicy, and compares its objects with those of the cluster. */
  readonly plan: {
    readonly input: { readonly policy: ConfigurationPolicy; readonly hasFullDiffs: boolean };
    readonly result: PlannedEvaluation;
  };
  /** The status after an evaluation, with its custom message. */
  readonly status: {
    readonly input: {
      readonly policy: ConfigurationPolicy;
      readonly evaluation: EvaluationReport;
      readonly readiness: Readiness;
      readonly now: number;
    };
    readonly result: ConfigurationStatus;
  };
  /** Resolves the templates of the hub in a Policy. */
  readonly hubTemplates: { readonly input: HubTemplateInput; readonly result: readonly ResolvedTemplate[] };
  readonly certificates: {
    readonly input: {
      readonly spec: CertificatePolicy['spec'];
      readonly before: CompliancyDetails;
      readonly now: number;
    };
    readonly result: EvaluatedCertificates;
  };
}

export type JobType = keyof EvaluationJobs;

/** What runs a job of each type. @throws NotYetRead */
export const EVALUATIONS: {
  readonly [Type in JobType]: (
    input: EvaluationJobs[Type]['input'],
    objects: AskedObjects,
  ) => EvaluationJobs[Type]['result'];
} = {
  plan: ({ policy, hasFullDiffs }, objects) => {
    const resolved = resolvedPolicy(policy, templateObjects(objects));
    return 'failure' in resolved
      ? resolved
      : { plans: planEvaluation({ ...resolved.policy, hasFullDiffs }, objects).map(withoutLive) };
  },
  status: ({ policy, evaluation, readiness, now }) => evaluatedStatus(policy, evaluation, readiness, now),
  hubTemplates: (input, objects) => resolvedTemplates(input, objects),
  certificates: evaluatedCertificates,
};

function withoutLive({
  objects,
  ...plan
}: ObjectTemplatePlan): ObjectTemplatePlan & { readonly objects: readonly PlannedObject[] } {
  return { ...plan, objects: objects.map(({ live, ...object }) => ({ ...object, isLive: live !== undefined })) };
}

/** Secrets, whose values stay in the main thread. */
const SECRETS = knownKind('v1', 'Secret');

function evaluatedCertificates(
  { spec, before, now }: EvaluationJobs['certificates']['input'],
  objects: AskedObjects,
): EvaluatedCertificates {
  try {
    const selected = selectNamespaces(spec.namespaceSelector ?? {}, objects.namespaces()).map((namespace) => ({
      namespace,
      secrets: objects.certificates(SECRETS, namespace, Selector.EVERYTHING),
    }));
    return evaluateCertificates(spec, selected, now, before);
  } catch (error) {
    if (error instanceof NamespaceSelectorError) {
      return { invalidSelector: error.message };
    }
    if (error instanceof ObjectReadError) {
      return { unreadable: error.message };
    }
    throw error;
  }
}
