import { MAX_LABEL_LENGTH } from '../../resources/index.ts';
import { createHash } from 'node:crypto';
import type { Verdict } from '../verdict.ts';

/** What one policy answered, its settings applied. */
export interface PolicyVerdict {
  readonly id: string;
  readonly verdict: Verdict;
}

/** Denials that are told, of all: nobody reads more, and each may be long. */
export const MAX_TOLD_DENIALS = 20;

/** One answer for all policies: allowed when all of them allow. Says which policy said what. The patch is not looked at. */
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
  const told = denials.slice(0, MAX_TOLD_DENIALS);
  const texts = told.map(({ id, verdict: { message = '' } }) =>
    message === '' ? shownName(id) : `${shownName(id)}: ${message}`,
  );
  if (denials.length > told.length) {
    texts.push(`and ${denials.length - told.length} more`);
  }
  const message = denials.length === 1 ? (texts[0] ?? '') : `${denials.length} policies: ${texts.join('; ')}`;
  const causes = told.flatMap(({ verdict }) => verdict.causes ?? []);
  const code = denials[0]?.verdict.code;
  return { message, ...(causes.length === 0 ? {} : { causes }), ...(code === undefined ? {} : { code }) };
}

function mergeAnnotations(answers: readonly PolicyVerdict[]): Record<string, string> | null {
  const entries = answers.flatMap(({ id, verdict }) =>
    Object.entries(verdict.auditAnnotations ?? {}).map(([key, value]) => [annotationKey(id, key), value] as const),
  );
  return entries.length === 0 ? null : Object.fromEntries(entries);
}

/** Hexadecimal digits that stand for the part of an id that is cut off. */
const CUT_DIGITS = 8;

/** `<policy id>.<key>`. API servers drop annotations whose key is longer than a label's: ids are cut to fit. */
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
  // A namespace has no dots; it is the request's.
  const name = KINDS_IN_NAMESPACES.includes(kind) ? rest.slice(1) : rest;
  return `${kind}/${name.join('.')}`;
}
