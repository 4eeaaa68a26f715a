// Parses rollout annotations. Those of a policy override those of its PolicyServer, which override the controller's flags.
import { ANNOTATIONS } from '../resources/index.ts';
import type { RolloutSettings, RolloutStrategy } from './rollout-view.ts';

type Annotations = Readonly<Record<string, string>>;

/** An invalid annotation. */
export interface AnnotationProblem {
  readonly annotation: string;
  /** The expected value. */
  readonly message: string;
}

export interface RolloutAnnotations {
  /** Settings from the valid annotations. */
  readonly settings: Partial<RolloutSettings>;
  readonly problems: readonly AnnotationProblem[];
}

/** More than three years of daily changes. Each is an object of the size of the policy's spec. */
export const MAX_HISTORY_LIMIT = 1_000;
/** Enough to fetch a module from a nearby source. Milliseconds. */
export const MIN_PROGRESS_DEADLINE_MS = 1_000;
/** One day: a longer wait is as good as endless. Milliseconds. */
export const MAX_PROGRESS_DEADLINE_MS = 86_400_000;

/** Length of the reason for which a policy is disarmed: a sentence, which messages repeat. Characters. */
export const MAX_DISARM_REASON = 200;
const DISARM_REASON = new RegExp(String.raw`^(?=.*\S)[^\p{Cc}\p{Bidi_Control}]{1,${MAX_DISARM_REASON}}$`, 'u');

const STRATEGIES: readonly RolloutStrategy[] = ['Available', 'AllReplicas'];

const UNITS: ReadonlyMap<string, number> = new Map([
  ['h', 3_600_000],
  ['m', 60_000],
  ['s', 1_000],
]);

/** Parses the rollout annotations of a policy or a PolicyServer. Never throws. */
export function parseRolloutAnnotations(annotations: Annotations = {}): RolloutAnnotations {
  const problems: AnnotationProblem[] = [];
  const read = <T>(annotation: string, parse: (text: string) => T | undefined, message: string): T | undefined => {
    if (!Object.hasOwn(annotations, annotation)) {
      return undefined;
    }
    const value = parse(annotations[annotation] ?? '');
    if (value === undefined) {
      problems.push({ annotation, message });
    }
    return value;
  };
  const historyLimit = read(
    ANNOTATIONS.revisionHistoryLimit,
    parseHistoryLimit,
    `expected a whole number from 0 to ${MAX_HISTORY_LIMIT}, such as "10"`,
  );
  const strategy = read(
    ANNOTATIONS.rolloutStrategy,
    (text) => STRATEGIES.find((one) => one === text),
    `expected ${STRATEGIES.map((one) => `"${one}"`).join(' or ')}`,
  );
  const progressDeadlineMs = read(
    ANNOTATIONS.progressDeadline,
    parseDeadline,
    'expected a duration from 1s to 24h, such as "90s", "5m" or "1m30s"',
  );
  const disarmed = read(
    ANNOTATIONS.disarmed,
    (text) => (DISARM_REASON.test(text) ? text : undefined),
    `expected the reason, 1 to ${MAX_DISARM_REASON} printable characters`,
  );
  return {
    settings: {
      ...(disarmed === undefined ? {} : { disarmed }),
      ...(historyLimit === undefined ? {} : { historyLimit }),
      ...(strategy === undefined ? {} : { strategy }),
      ...(progressDeadlineMs === undefined ? {} : { progressDeadlineMs }),
    },
    problems,
  };
}

/** Undefined if the text is no revision number. */
export function parseRevisionNumber(text: string): number | undefined {
  return /^[1-9][0-9]{0,14}$/.test(text) ? Number(text) : undefined;
}

function parseHistoryLimit(text: string): number | undefined {
  const limit = /^[0-9]{1,9}$/.test(text) ? Number(text) : undefined;
  return limit !== undefined && limit <= MAX_HISTORY_LIMIT ? limit : undefined;
}

/** Durations as in `kubectl`: `1h`, `5m`, `90s`, or several of these. */
function parseDeadline(text: string): number | undefined {
  if (!/^(?:[0-9]{1,6}[hms]){1,3}$/.test(text)) {
    return undefined;
  }
  const ms = [...text.matchAll(/([0-9]+)([hms])/g)].reduce(
    (sum, [, digits = '', unit = '']) => sum + Number(digits) * (UNITS.get(unit) ?? 0),
    0,
  );
  return ms >= MIN_PROGRESS_DEADLINE_MS && ms <= MAX_PROGRESS_DEADLINE_MS ? ms : undefined;
}
