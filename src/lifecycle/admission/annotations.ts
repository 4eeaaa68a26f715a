import { nearestKey } from '../../engine/index.ts';
import { ANNOTATIONS, invalid } from '../../resources/index.ts';
import { type AnnotationProblem, parseRolloutAnnotations } from '../rollout-settings.ts';
import { webhookAnnotationProblems } from '../webhooks/own-webhook.ts';
import type { Findings } from './findings.ts';

type Annotations = Readonly<Record<string, string>>;

const { pin, rollbackTo, webhook: _, ...ROLLOUT } = ANNOTATIONS;
/** What is for PolicyServers only. */
const { takeOver: __, ...OF_POLICIES } = ANNOTATIONS;
const PREFIX = 'portcullis.dev/';

/** A number of a revision. Fifteen digits are exact in JSON. */
const REVISION = /^[1-9][0-9]{0,14}$/;

/** Our annotations on a policy, if they differ from those that it had. */
export function checkPolicyAnnotations(annotations: Annotations, before: Annotations, findings: Findings): void {
  const isPinned = textOf(annotations, pin);
  if (isPinned !== undefined && isPinned !== textOf(before, pin) && !REVISION.test(isPinned)) {
    const detail = 'expected the number of a revision, such as "3": `portcullis rollout history` lists them';
    findings.reject('annotation', invalid(fieldOf(pin), isPinned, detail));
  }
  const back = textOf(annotations, rollbackTo);
  if (back !== undefined && back !== textOf(before, rollbackTo)) {
    if (back !== 'previous' && !REVISION.test(back)) {
      const detail = 'expected the number of a revision, such as "3", or "previous"';
      findings.reject('annotation', invalid(fieldOf(rollbackTo), back, detail));
    } else if (isPinned !== undefined) {
      const text = `the spec is written back, but revision ${isPinned} goes on serving until the annotation ${pin} is removed`;
      findings.warn('pin-outlasts-rollback', fieldOf(rollbackTo), text);
    }
  }
  checkRollout(annotations, before, findings);
  rejectProblems(webhookAnnotationProblems(annotations), annotations, before, findings);
  warnOfUnknown(annotations, before, Object.values(OF_POLICIES), findings);
}

/** Our annotations on a PolicyServer: how all of its policies are rolled out. */
export function checkServerAnnotations(annotations: Annotations, before: Annotations, findings: Findings): void {
  checkRollout(annotations, before, findings);
  warnOfUnknown(annotations, before, Object.values(ROLLOUT), findings);
}

function checkRollout(annotations: Annotations, before: Annotations, findings: Findings): void {
  rejectProblems(parseRolloutAnnotations(annotations).problems, annotations, before, findings);
}

function rejectProblems(
  problems: readonly AnnotationProblem[],
  annotations: Annotations,
  before: Annotations,
  findings: Findings,
): void {
  for (const { annotation, message } of problems) {
    const value = textOf(annotations, annotation);
    if (value !== textOf(before, annotation)) {
      findings.reject('annotation', invalid(fieldOf(annotation), value ?? '', message));
    }
  }
}

/** Annotations under our name that nobody reads: only where it is clear what was meant. */
function warnOfUnknown(
  annotations: Annotations,
  before: Annotations,
  known: readonly string[],
  findings: Findings,
): void {
  for (const key of Object.keys(annotations)) {
    if (!key.startsWith(PREFIX) || known.includes(key) || Object.hasOwn(before, key)) {
      continue;
    }
    const nearest = nearestKey(
      key.slice(PREFIX.length),
      known.map((one) => one.slice(PREFIX.length)),
    );
    if (nearest !== undefined) {
      findings.warn(
        'annotation-unknown',
        fieldOf(key),
        `nothing reads this annotation: did you mean ${PREFIX}${nearest}?`,
      );
    }
  }
}

function fieldOf(annotation: string): string {
  return `metadata.annotations[${annotation}]`;
}

function textOf(annotations: Annotations, key: string): string | undefined {
  return Object.hasOwn(annotations, key) ? annotations[key] : undefined;
}
