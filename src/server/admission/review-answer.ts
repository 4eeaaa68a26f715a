// Converts evaluation results to HTTP answers. The texts are those of Kubewarden's policy server.
import type { ReviewErrorCode } from '../../engine/index.ts';
import type { ReviewResult, ReviewRoute } from '../../evaluation/index.ts';
import type { AdmissionTarget } from './admission-targets.ts';

/** An HTTP answer in JSON. */
export interface HttpAnswer {
  readonly status: number;
  readonly body: string;
}

/** Statuses for invalid bodies (RFC 9110). */
const REFUSED: Readonly<Record<ReviewErrorCode, number>> = {
  'review-too-large': 413,
  'review-malformed': 400,
  'review-wrong-shape': 422,
  'nested-too-deep': 422,
};

/** The answer to a review. */
export function reviewAnswer(
  { route, name }: Pick<AdmissionTarget, 'route' | 'name'>,
  result: ReviewResult,
): HttpAnswer {
  switch (result.kind) {
    case 'response':
      return { status: 200, body: envelope(route, result.response) };
    case 'refused':
      return errorAnswer(REFUSED[result.code], result.message);
    case 'unknown-target':
      return errorAnswer(404, route === 'admit' ? `unknown bucket: ${name}` : `unknown policy: ${name}`);
    case 'failed':
    // Only objects are judged, which come by no request.
    case 'judged':
      return errorAnswer(500, 'Something went wrong');
    default:
      return result satisfies never;
  }
}

/** Wraps an AdmissionResponse in an AdmissionReview, except for raw requests. */
function envelope(route: ReviewRoute, response: string): string {
  return route === 'validate_raw'
    ? `{"response":${response}}`
    : `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":${response}}`;
}

function errorAnswer(status: number, message: string): HttpAnswer {
  return { status, body: JSON.stringify({ message, status }) };
}
