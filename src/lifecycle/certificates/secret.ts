// Secrets of certificates as Kubernetes objects.
import { isJsonObject, type JsonObject, knownKind, type KubernetesObject, MANAGED_BY } from '../../resources/index.ts';

/** `v1` Secret. */
export interface Secret extends KubernetesObject {
  readonly type?: unknown;
  /** Values are base64. */
  readonly data?: unknown;
}

export const SECRETS = knownKind<Secret>('v1', 'Secret');

/** Labels of every Secret that we write. */
export const SECRET_LABELS = {
  ...MANAGED_BY,
  'app.kubernetes.io/name': 'portcullis',
  'app.kubernetes.io/part-of': 'portcullis',
} as const;

/** Whether a Secret has our label. A foreign Secret of the same name must not be overwritten. */
export function isOurs({ metadata }: KubernetesObject): boolean {
  return Object.entries(MANAGED_BY).every(([key, value]) => metadata.labels?.[key] === value);
}

/** The decoded data of a Secret, without values that are no strings. */
export function dataOf({ data }: Secret): Readonly<Record<string, string | undefined>> {
  const texts = Object.create(null) as Record<string, string | undefined>;
  for (const [key, value] of Object.entries(isJsonObject(data) ? data : {})) {
    if (typeof value === 'string') {
      texts[key] = Buffer.from(value, 'base64').toString();
    }
  }
  return texts;
}

/** The data of a Secret with changed texts; undefined removes one. */
export function withTexts(
  { data }: Pick<Secret, 'data'>,
  texts: Readonly<Record<string, string | undefined>>,
): JsonObject {
  const values = Object.entries(texts).map(
    ([key, text]) => [key, text === undefined ? undefined : Buffer.from(text).toString('base64')] as const,
  );
  return withChanges(isJsonObject(data) ? data : {}, Object.fromEntries(values));
}

/** A copy with changed values; undefined removes one. */
export function withChanges<T>(
  values: Readonly<Record<string, T>>,
  changes: Readonly<Record<string, T | undefined>>,
): Record<string, T> {
  const all = new Map(Object.entries(values));
  for (const [key, value] of Object.entries(changes)) {
    if (value === undefined) {
      all.delete(key);
    } else {
      all.set(key, value);
    }
  }
  return Object.fromEntries(all);
}
