import { describeValue } from '../values/field-reader.ts';
import type { FieldReader } from '../values/field-reader.ts';
import { emptyProblem, readTexts } from './read-list.ts';

/** The runtime classes that pods may use. */
export interface RuntimeClassRule {
  /** Undefined: any. */
  readonly allowed: ReadonlySet<string> | undefined;
  /** The class of pods that name none. */
  readonly defaultClass: string | undefined;
}

/** Without the key, any class is allowed. */
export function readRuntimeClassRule(fields: FieldReader): RuntimeClassRule {
  const mapping = fields.inside('runtimeClass');
  if (mapping === undefined) {
    return { allowed: undefined, defaultClass: undefined };
  }
  mapping.knownKeys(['allowedRuntimeClassNames', 'defaultRuntimeClassName']);
  const names = readTexts(mapping, 'allowedRuntimeClassNames', emptyProblem) ?? [];
  const allowed = names.includes('*') ? undefined : new Set(names);
  const defaultClass = mapping.someText('defaultRuntimeClassName');
  if (defaultClass !== undefined && allowed !== undefined && !allowed.has(defaultClass)) {
    mapping.fault('defaultRuntimeClassName', `expected one of the allowed classes, got ${describeValue(defaultClass)}`);
  }
  return { allowed, defaultClass };
}
