import { parseAdmissionReview, parseRawReview } from './review/admission-review.ts';
import type { Review } from './review/admission-review.ts';
import { Evaluator } from './evaluator.ts';
import type { JudgeOptions, OnUnitStart, RefusedUnit } from './evaluator.ts';
import type { SettingsVerdict } from './verdict/guest-verdict.ts';
import type { LoadedPolicy } from './loaded-policy.ts';
import type { ObjectLookup } from './review/object-lookup.ts';
import { monitoredVerdict } from './monitored-verdict.ts';
import type { MonitoredVerdict } from './monitored-verdict.ts';
import { countedUses } from './exceptions/counted-uses.ts';
import { observe } from './verdict/observation.ts';
import type { Observation, Route } from './verdict/observation.ts';
import { type PodTemplate, podTemplateOf, writtenWorkload } from './pod-templates/pod-template.ts';
import { inTemplate, templateVerdict, withTemplatePatch } from './pod-templates/template-verdict.ts';
import type { PodTemplatesAction } from '../resources/index.ts';
import { allowed } from './verdict/verdict.ts';
import type { Verdict } from './verdict/verdict.ts';

/** A policy's verdict, and its observation for metrics. */
export interface PolicyEvaluationResult {
  readonly verdict: Verdict;
  readonly observation: Observation;
  readonly monitored: MonitoredVerdict | undefined;
  /** See {@link countedUses}. */
  readonly uses: readonly string[];
}

export interface EvaluateOptions extends Omit<JudgeOptions, 'leftMs'> {
  readonly route: Route;
}

/** Parses the body of a request. Throws ReviewError. */
export function readReview(route: Route, body: Uint8Array): Review {
  return route === 'validate_raw' ? parseRawReview(body) : parseAdmissionReview(body);
}

/**
 * Evaluates a review by one policy. Synchronous; throws only for faults of the engine itself, and UnknownObject for a
 * policy with parameters.
 */
export function evaluate(policy: LoadedPolicy, review: Review, options: EvaluateOptions): PolicyEvaluationResult {
  const { target } = review;
  if (policy.podTemplates !== undefined && target !== undefined && writtenWorkload(target) !== undefined) {
    return evaluateTemplate(policy, policy.podTemplates, podTemplateOf(review, target), review, options);
  }
  const { route } = options;
  const evaluator = new Evaluator(policy.options);
  const judgement = evaluator.judge(policy, review, options);
  const observation = observe(policy, review, route, judgement);
  return route === 'audit'
    ? { verdict: judgement.verdict, observation, monitored: undefined, uses: [] }
    : {
        verdict: evaluator.apply(policy, judgement),
        observation,
        monitored: monitoredVerdict(policy, review, judgement, observation),
        uses: countedUses(review, judgement),
      };
}

/** Evaluates a workload by its pod template. Without a template to check, the workload is admitted. */
function evaluateTemplate(
  policy: LoadedPolicy,
  action: PodTemplatesAction,
  template: PodTemplate | undefined,
  review: Review,
  options: EvaluateOptions,
): PolicyEvaluationResult {
  const { route } = options;
  const observed = inTemplate(policy, action);
  if (template === undefined) {
    const verdict = allowed();
    const observation = observe(observed, review, route, { outcome: 'verdict', verdict });
    return { verdict, observation, monitored: undefined, uses: [] };
  }
  const evaluator = new Evaluator(policy.options);
  const judgement = evaluator.judge(policy, template.pod, { ...options, workload: review });
  const observation = observe(observed, review, route, judgement);
  const isAudit = route === 'audit';
  const verdict = isAudit
    ? templateVerdict(judgement.verdict, template, 'Enforce')
    : templateVerdict(evaluator.apply(policy, judgement), template, action);
  return {
    verdict: withTemplatePatch(verdict, template, judgement.mutatedObject),
    observation,
    monitored: isAudit ? undefined : monitoredVerdict(policy, review, judgement, observation),
    uses: isAudit ? [] : countedUses(review, judgement),
  };
}

/**
 * Checks the protocol of a policy's guests, and lets them validate its settings. Throws `protocol-unsupported`, and
 * `guest-error` or `guest-timeout` when a guest fails.
 */
export function checkSettings(policy: LoadedPolicy, onUnitStart?: OnUnitStart): SettingsVerdict {
  return new Evaluator(policy.options).checkSettings(policy, onUnitStart);
}

/** Which units of a policy would refuse the requests of a namespace for their parameters. Unknown objects refuse nothing. */
export function refusedParameters(
  policy: LoadedPolicy,
  namespace: string,
  objects: ObjectLookup,
  onUnitStart?: OnUnitStart,
): readonly RefusedUnit[] {
  return new Evaluator(policy.options).refusedParameters(policy, namespace, objects, onUnitStart);
}
