import { MAX_LABEL_LENGTH } from '../../names/index.ts';
import { createHash } from 'node:crypto';
import type { Verdict } from '../verdict/verdict.ts';
import { listed } from '../../values/index.ts';

/** The verdict of one policy, with its settings applied. */
export interface PolicyVerdict {
  readonly id: string;
  readonly verdict: Verdict;
}

/** Maximum number of denials in one message; each may be long. */
export const MAX_SHOWN_DENIALS = 20;

/**
 * One verdict for all policies: allowed when all of them allow. Messages and warnings name their policy. Patches are
 * ignored.
 */
export function mergeVerdicts(answers: readonly PolicyVerdict[]): Verdict {
  const denials = answers.filter(({ verdict }) => !verdict.allowed);
  const warnings = answers.flatMap(({ id, verdict }) =>
    (verdict.warnings ?? []).map((warning) => `${shownName(id)}: ${warning}`),
  );
  return {
    allowed: denials.length === 0,
    ...(denials.length === 0 ? {} : mergeDenials(denials)),
    auditAnnotations: mergeAnnotations(answers),
    warnings: warnings.length === 0 ? null : warnings,
  };
}

function mergeDenials(denials: readonly PolicyVerdict[]): Pick<Verdict, 'message' | 'causes' | 'code'> {
  const shown = denials.slice(0, MAX_SHOWN_DENIALS);
  const texts = shown.map(({ id, verdict: { message = '' } }) =>
    message === '' ? shownName(id) : `${shownName(id)}: ${message}`,
  );
  const message =
    denials.length === 1
      ? (texts[0] ?? '')
      : `${denials.length} policies: ${listed(texts, texts.length, '; ', denials.length)}`;
  const causes = shown.flatMap(({ verdict }) => verdict.causes ?? []);
  const code = denials[0]?.verdict.code;
  return { message, ...(causes.length === 0 ? {} : { causes }), ...(code === undefined ? {} : { code }) };
}

function mergeAnnotations(answers: readonly PolicyVerdict[]): Record<string, string> | null {
  const entries = answers.flatMap(({ id, verdict }) =>
    Object.entries(verdict.auditAnnotations ?? {}).map(([key, value]) => [annotationKey(id, key), value] as const),
  );
  return entries.length === 0 ? null : Object.fromEntries(entries);
}

/** Length of the hash that replaces the cut part of an id. */
const CUT_DIGITS = 8;

/** `<policy id>.<key>`. API servers drop annotations whose key is longer than a label's name, so ids are cut to fit. */
function annotationKey(id: string, key: string): string {
  const room = MAX_LABEL_LENGTH - key.length - 1;
  if (id.length <= room) {
    return `${id}.${key}`;
  }
  const digest = createHash('sha256').update(id).digest('hex').slice(0, CUT_DIGITS);
  return `${id.slice(0, Math.max(0, room - digest.length - 1))}-${digest}.${key}`.replace(/^-/, '');
}

const ID_PREFIX = 'kw';
const KINDS_IN_NAMESPACES: readonly string[] = ['ap', 'apg'];

/** A policy as `kubectl` names it: `cap/name` for `kw.cap.name`. */
function shownName(id: string): string {
  const [prefix, kind = '', ...rest] = id.split('.');
  if (prefix !== ID_PREFIX || rest.length === 0) {
    return id;
  }
  // A namespace has no dots. It is omitted, because it is the request's.
  const name = KINDS_IN_NAMESPACES.includes(kind) ? rest.slice(1) : rest;
  return `${kind}/${name.join('.')}`;
}
