// How policies are rolled out, as annotations of policies and PolicyServers say it.
import { ANNOTATIONS } from '../resources/index.ts';
import type { RolloutSettings } from './rollout/rollout-view.ts';

/** An annotation that cannot be read. It counts as absent. */
export interface AnnotationProblem {
  /** Its key. */
  readonly annotation: string;
  readonly message: string;
}

export interface RolloutAnnotations {
  /** What the annotations say; what they do not say is not there. */
  readonly settings: Partial<RolloutSettings>;
  readonly problems: readonly AnnotationProblem[];
}

/** Each is a small object; beyond these, a Git history is the better place. */
const MAX_HISTORY_LIMIT = 1000;
/** A progress deadline is long against fetching a module; a day is as good as never. Milliseconds. */
const MAX_DEADLINE_MS = 24 * 60 * 60 * 1000;

const DURATION = /^(?:(\d{1,6})h)?(?:(\d{1,6})m)?(?:(\d{1,6})s)?$/;

/** Reads the annotations of a policy or a PolicyServer. Others are passed over. */
export function parseRolloutAnnotations(annotations: Readonly<Record<string, string>> = {}): RolloutAnnotations {
  const problems: AnnotationProblem[] = [];
  const read = <T>(annotation: string, parse: (text: string) => T | undefined, expected: string): T | undefined => {
    const text = Object.hasOwn(annotations, annotation) ? annotations[annotation] : undefined;
    const value = text === undefined ? undefined : parse(text);
    if (text !== undefined && value === undefined) {
      problems.push({ annotation, message: `expected ${expected}` });
    }
    return value;
  };
  const strategy = read(ANNOTATIONS.rolloutStrategy, parseStrategy, '"Available" or "AllReplicas"');
  const progressDeadlineMs = read(
    ANNOTATIONS.progressDeadline,
    parseDeadline,
    'a time from "1s" to "24h", as "90s", "5m" or "1h30m"',
  );
  const historyLimit = read(
    ANNOTATIONS.revisionHistoryLimit,
    parseLimit,
    `a number of revisions from "0" to "${MAX_HISTORY_LIMIT}"`,
  );
  const settings = {
    ...(strategy === undefined ? {} : { strategy }),
    ...(progressDeadlineMs === undefined ? {} : { progressDeadlineMs }),
    ...(historyLimit === undefined ? {} : { historyLimit }),
  };
  return { settings, problems };
}

function parseStrategy(text: string): RolloutSettings['strategy'] | undefined {
  return text === 'Available' || text === 'AllReplicas' ? text : undefined;
}

function parseDeadline(text: string): number | undefined {
  const [, hours = '0', minutes = '0', seconds = '0'] = DURATION.exec(text) ?? [];
  const ms = ((Number(hours) * 60 + Number(minutes)) * 60 + Number(seconds)) * 1000;
  return ms > 0 && ms <= MAX_DEADLINE_MS ? ms : undefined;
}

function parseLimit(text: string): number | undefined {
  const limit = /^(?:0|[1-9]\d{0,3})$/.test(text) ? Number(text) : undefined;
  return limit !== undefined && limit <= MAX_HISTORY_LIMIT ? limit : undefined;
}
