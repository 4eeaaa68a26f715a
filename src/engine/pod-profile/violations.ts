import { shortened } from '../../values/index.ts';

/** Maximum length of the message of a denial: about forty violations, a screen and a half. */
export const MAX_MESSAGE = 4_000;

/** Maximum length of one violation in it: names of containers, and keys of annotations, are not validated yet. */
const MAX_VIOLATION = 600;

/** A field that the profile forbids. */
export interface ProfileViolation {
  /** `spec.containers[0].securityContext.runAsUser`. */
  readonly field: string;
  /** `expected 1000, got 0`. */
  readonly problem: string;
}

/** Collects violations in the order of the checks. */
export class Violations {
  readonly all: ProfileViolation[] = [];

  /** Nothing when there is no problem. */
  add(field: string, problem: string | undefined): void {
    if (problem !== undefined) {
      this.all.push({ field, problem });
    }
  }
}

export function violationText({ field, problem }: ProfileViolation): string {
  return `${field}: ${problem}`;
}

/** As many violations as the message has room for, at least one, and the number of the others. */
export function violationsMessage(violations: readonly ProfileViolation[]): string {
  let message = 'violates the pod profile';
  let separator = ': ';
  for (const [index, violation] of violations.entries()) {
    const text = separator + shortened(violationText(violation), MAX_VIOLATION);
    if (index > 0 && message.length + text.length > MAX_MESSAGE) {
      return `${message}; and ${violations.length - index} more`;
    }
    message += text;
    separator = '; ';
  }
  return message;
}
