import { shortened } from '../../values/index.ts';
import { describeValue } from '../values/field-reader.ts';
import type { FieldReader } from '../values/field-reader.ts';
import type { JsonObject } from '../values/json-text.ts';
import { readTexts } from './read-list.ts';

/** The seccomp or AppArmor profiles that pods may use, as texts of {@link parseProfile}. */
export interface ProfileRule {
  /** Undefined: any. */
  readonly allowed: ReadonlySet<string> | undefined;
  /** Whether every container needs a profile. */
  readonly isRequired: boolean;
  /** The profile of pods that set none. */
  readonly defaultProfile: string | undefined;
}

/** A profile in a security context. */
export interface ProfileField {
  readonly type?: string | null;
  readonly localhostProfile?: string | null;
}

const ANY_PROFILE = '*';
const LOCALHOST = 'localhost/';

/** Spellings of annotations and of fields. */
const SPELLINGS: ReadonlyMap<string, string> = new Map([
  ['runtime/default', 'RuntimeDefault'],
  ['docker/default', 'RuntimeDefault'],
  ['RuntimeDefault', 'RuntimeDefault'],
  ['unconfined', 'Unconfined'],
  ['Unconfined', 'Unconfined'],
]);

/** Longest text of profiles in a message. */
const MAX_PROFILES_TEXT = 200;

/** `RuntimeDefault`, `Unconfined` or `localhost/PROFILE`, for any spelling; undefined for other texts. */
function parseProfile(text: string): string | undefined {
  return text.startsWith(LOCALHOST) && text.length > LOCALHOST.length ? text : SPELLINGS.get(text);
}

/** The text of a field. Unknown types are not allowed by any rule but that for all. */
export function profileOfField({ type, localhostProfile }: ProfileField): string {
  return type === 'Localhost' ? LOCALHOST + (localhostProfile ?? '') : (type ?? '');
}

/** The text of an annotation; undefined when it is absent or empty. */
export function profileOfAnnotation(annotation: string | null | undefined): string | undefined {
  return annotation === undefined || annotation === null || annotation === ''
    ? undefined
    : (parseProfile(annotation) ?? annotation);
}

/** The field for a profile. */
export function fieldOfProfile(profile: string): JsonObject {
  return profile.startsWith(LOCALHOST)
    ? { type: 'Localhost', localhostProfile: profile.slice(LOCALHOST.length) }
    : { type: profile };
}

/** Why the rule forbids a profile, or its absence. */
export function profileProblem({ allowed, isRequired }: ProfileRule, profile: string | undefined): string | undefined {
  if (profile === undefined ? !isRequired : (allowed?.has(profile) ?? true)) {
    return undefined;
  }
  const expected = [...(allowed ?? [])].join(' or ') || 'no profile';
  const got = profile === undefined ? 'nothing' : profile || 'no type';
  return `expected ${shortened(expected, MAX_PROFILES_TEXT)}, got ${shortened(got, MAX_PROFILES_TEXT)}`;
}

/** Profiles of seccomp; without a list, RuntimeDefault is allowed, and not required. */
export function readSeccompRule(fields: FieldReader): ProfileRule {
  return readRule(fields, 'allowedSeccompProfiles', 'defaultSeccompProfile', {
    allowed: new Set(['RuntimeDefault']),
    isRequired: false,
  });
}

/** Profiles of AppArmor; without a list, any is allowed. */
export function readAppArmorRule(fields: FieldReader): ProfileRule {
  return readRule(fields, 'allowedAppArmorProfiles', 'defaultAppArmorProfile', {
    allowed: undefined,
    isRequired: false,
  });
}

function readRule(
  fields: FieldReader,
  allowedKey: string,
  defaultKey: string,
  fallback: Pick<ProfileRule, 'allowed' | 'isRequired'>,
): ProfileRule {
  const texts = readTexts(fields, allowedKey, (text) =>
    text === ANY_PROFILE || parseProfile(text) !== undefined
      ? undefined
      : `${EXPECTED} or "*", got ${describeValue(text)}`,
  );
  const rule = texts === undefined ? fallback : ruleFor(texts);
  const text = fields.text(defaultKey);
  const defaultProfile = text === undefined ? undefined : parseProfile(text);
  if (text !== undefined && defaultProfile === undefined) {
    fields.fault(defaultKey, `${EXPECTED}, got ${describeValue(text)}`);
  } else if (rule.allowed !== undefined && defaultProfile !== undefined && !rule.allowed.has(defaultProfile)) {
    fields.fault(defaultKey, `expected one of the allowed profiles, got ${describeValue(text)}`);
  }
  return { ...rule, defaultProfile };
}

const EXPECTED = 'expected RuntimeDefault, Unconfined, "localhost/PROFILE"';

function ruleFor(texts: readonly string[]): Pick<ProfileRule, 'allowed' | 'isRequired'> {
  return texts.includes(ANY_PROFILE)
    ? { allowed: undefined, isRequired: false }
    : { allowed: new Set(texts.map((text) => parseProfile(text) ?? text)), isRequired: texts.length > 0 };
}
