// Limits of what a policy says about a request. It goes to API servers, their clients, events, statuses and logs.
import { inertText, shortened } from '../../values/index.ts';
import { EngineError } from '../values/errors.ts';
import type { GuestVerdict } from './guest-verdict.ts';
import type { JsonValue } from '../values/json-text.ts';
import type { Verdict } from './verdict.ts';

/** Longest text of a policy: its message, a warning, the value of an audit annotation. Characters, as below. */
export const MAX_VERDICT_TEXT = 8_192;
/** Length of all texts of one answer together. */
export const MAX_VERDICT_TEXTS = 131_072;
/** Size of a mutated object as JSON. API servers accept requests of at most 3 MiB. */
export const MAX_MUTATED_OBJECT = 3 * 1024 * 1024;

/** What JSON adds to a text at most, so that many empty texts count as well. */
const AROUND_TEXT = 8;
/** Room for the texts that say how many others are missing. */
const FOR_SIGNS = 256;

type Texts = Pick<Verdict, 'message' | 'causes' | 'auditAnnotations' | 'warnings'>;

/**
 * The answer of a guest with texts of bounded length, which control no terminal.
 * @throws EngineError `guest-error` when the mutated object is too large
 */
export function boundedAnswer(verdict: GuestVerdict): GuestVerdict {
  const { mutatedObject, patch } = verdict;
  const problem =
    mutatedObject === undefined ? lengthProblem('patch', patch?.length ?? 0) : mutatedProblem(mutatedObject);
  if (problem !== undefined) {
    throw new EngineError('guest-error', problem);
  }
  return inert(withTexts(verdict, MAX_VERDICT_TEXT));
}

/** What is wrong with the size of a mutated object. */
export function mutatedProblem(object: JsonValue): string | undefined {
  return lengthProblem('mutated object', JSON.stringify(object).length);
}

/** A verdict whose texts have a bounded length together. The message comes first, then causes, warnings and annotations. */
export function boundedVerdict(verdict: Verdict): Verdict {
  return withTexts(verdict, MAX_VERDICT_TEXTS);
}

/** A text about a policy that may come from its guest. */
export function boundedText(text: string): string {
  return inertText(shortened(text, MAX_VERDICT_TEXT));
}

/** The verdict without characters that control the terminals of those who read it, such as an administrator's kubectl. */
function inert(verdict: GuestVerdict): GuestVerdict {
  const { message, warnings, auditAnnotations } = verdict;
  const texts = [message ?? '', ...(warnings ?? []), ...Object.values(auditAnnotations ?? {})];
  if (texts.every((text) => inertText(text) === text)) {
    return verdict;
  }
  const annotations = auditAnnotations && Object.entries(auditAnnotations).map(([key, text]) => [key, inertText(text)]);
  return {
    ...verdict,
    ...(message === undefined ? {} : { message: inertText(message) }),
    warnings: warnings && warnings.map(inertText),
    auditAnnotations: annotations && Object.fromEntries(annotations),
  };
}

function lengthProblem(what: string, length: number): string | undefined {
  return length <= MAX_MUTATED_OBJECT
    ? undefined
    : `the ${what} of the policy is too large: expected at most ${MAX_MUTATED_OBJECT} characters, got ${length}`;
}

function withTexts<V extends Texts>(verdict: V, longest: number): V {
  if (lengthOf(verdict) <= longest) {
    return verdict;
  }
  const { message, causes, warnings, auditAnnotations } = verdict;
  const room = new TextRoom(longest);
  const cut = {
    ...(message === undefined ? {} : { message: room.keep(message) ?? '' }),
    ...(causes === undefined
      ? {}
      : {
          causes: room.first(
            causes,
            (cause) => {
              const kept = room.keep(cause.message ?? '');
              return kept === undefined
                ? undefined
                : { ...cause, ...(cause.message === undefined ? {} : { message: kept }) };
            },
            (missing) => ({ message: `… and ${missing} more` }),
          ),
        }),
  };
  const keptWarnings = room.first(
    warnings ?? [],
    (text) => room.keep(text),
    (missing) => `… and ${missing} more warnings`,
  );
  const annotations = Object.entries(auditAnnotations ?? {});
  const keptAnnotations = annotations.flatMap(([key, text]) => {
    const kept = key.length > longest ? undefined : room.keep(text, key.length);
    return kept === undefined ? [] : [[key, kept] as const];
  });
  const missing = annotations.length - keptAnnotations.length;
  const signs = missing === 0 ? [] : [`… ${missing} audit annotations are missing: they are too long`];
  const allWarnings = [...keptWarnings, ...signs];
  return {
    ...verdict,
    ...cut,
    warnings: allWarnings.length === 0 ? null : allWarnings,
    auditAnnotations: auditAnnotations === null ? null : Object.fromEntries(keptAnnotations),
  };
}

function lengthOf({ message = '', causes = [], warnings, auditAnnotations }: Texts): number {
  let length = message.length;
  for (const cause of causes) {
    length += (cause.message?.length ?? 0) + AROUND_TEXT;
  }
  for (const warning of warnings ?? []) {
    length += warning.length + AROUND_TEXT;
  }
  for (const key in auditAnnotations) {
    length += key.length + (auditAnnotations[key]?.length ?? 0) + AROUND_TEXT;
  }
  return length;
}

/** The room that is left for the texts of an answer. */
class TextRoom {
  readonly #longest: number;
  #left = MAX_VERDICT_TEXTS - FOR_SIGNS;

  constructor(longest: number) {
    this.#longest = longest;
  }

  /** The text, or its beginning; undefined without any room. */
  keep(text: string, around = 0): string | undefined {
    const room = this.#left - AROUND_TEXT - around;
    if (room <= 0) {
      return undefined;
    }
    const kept = shortened(text, Math.min(room, this.#longest));
    this.#left -= kept.length + AROUND_TEXT + around;
    return kept;
  }

  /** The first entries of a list, and one that says how many are missing. */
  first<T>(entries: readonly T[], keep: (entry: T) => T | undefined, sign: (missing: number) => T): readonly T[] {
    const kept: T[] = [];
    for (const entry of entries) {
      const one = keep(entry);
      if (one === undefined) {
        return [...kept, sign(entries.length - kept.length)];
      }
      kept.push(one);
    }
    return kept;
  }
}
