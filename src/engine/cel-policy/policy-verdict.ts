import type { GuestVerdict } from '../verdict/guest-verdict.ts';
import { REASON_CODES } from './policy-spec.ts';
import type { ValidationDecision } from './validate.ts';

export const ACCEPTED: GuestVerdict = { accepted: true, auditAnnotations: null, warnings: null };

export function denied(message: string, code: number = REASON_CODES.Invalid): GuestVerdict {
  return { accepted: false, message, code, auditAnnotations: null, warnings: null };
}

/** The verdict for failed validations: each message once, and the code of the first. */
export function verdictOf(
  denials: readonly Pick<ValidationDecision, 'message' | 'reason'>[],
  auditAnnotations: GuestVerdict['auditAnnotations'] = null,
): GuestVerdict {
  const [first] = denials;
  if (first === undefined) {
    return auditAnnotations === null ? ACCEPTED : { ...ACCEPTED, auditAnnotations };
  }
  const message = [...new Set(denials.map((denial) => denial.message))].join('; ');
  return { ...denied(message, REASON_CODES[first.reason]), auditAnnotations };
}
