import { parseAdmissionReview, parseRawReview } from './admission-review.ts';
import { Evaluator } from './evaluator.ts';
import type { Asking, Entering } from './evaluator.ts';
import type { LoadedPolicy } from './loaded-policy.ts';
import { observe } from './observation.ts';
import type { Observation, Route } from './observation.ts';
import { httpError, internalFailure, rawAnswer, reviewAnswer } from './response.ts';
import { ReviewError } from './review-body.ts';
import type { SettingsVerdict } from './verdict.ts';

/** An HTTP answer and what to note about it. No observation when no policy was asked. */
export interface Evaluation {
  readonly status: number;
  readonly body: string;
  readonly observation: Observation | null;
}

export interface EvaluateOptions extends Omit<Asking, 'leftMs'> {
  readonly route: Route;
}

/** Answers one request. Synchronous, keeps nothing, never throws. */
export function evaluate(policy: LoadedPolicy, body: Uint8Array, options: EvaluateOptions): Evaluation {
  const { route } = options;
  const isRaw = route === 'validate_raw';
  const evaluator = new Evaluator(policy.options);
  try {
    const review = isRaw ? parseRawReview(body) : parseAdmissionReview(body);
    const judgement = evaluator.judge(policy, review, options);
    const response = route === 'audit' ? judgement.response : evaluator.apply(policy, judgement);
    const answer = isRaw ? rawAnswer(response) : reviewAnswer(response);
    return { ...answer, observation: observe(policy, review, route, judgement) };
  } catch (error) {
    if (error instanceof ReviewError) {
      return { ...httpError(error.status, error.message), observation: null };
    }
    evaluator.logFailure(policy.id, error);
    return { ...internalFailure(), observation: null };
  }
}

/**
 * Asks the guests of a policy for their protocol, and for their opinion of its settings. Throws `protocol-unsupported`,
 * and `guest-error` or `guest-timeout` when a guest gives no opinion.
 */
export function checkSettings(policy: LoadedPolicy, entering?: Entering): SettingsVerdict {
  return new Evaluator(policy.options).checkSettings(policy, entering);
}
