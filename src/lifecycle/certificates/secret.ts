// Secrets, as far as they matter for certificates.
import { isJsonObject, type JsonObject, type KubernetesObject, type ResourceType } from '../../resources/index.ts';
import { MANAGED_BY } from '../managed-by.ts';

/** core/v1 */
export interface Secret extends KubernetesObject {
  readonly type?: unknown;
  /** Values are base64. */
  readonly data?: unknown;
}

export const SECRETS: ResourceType<Secret> = {
  group: '',
  version: 'v1',
  resource: 'secrets',
  kind: 'Secret',
  namespaced: true,
};

/** On every Secret that we write. */
export const SECRET_LABELS = {
  ...MANAGED_BY,
  'app.kubernetes.io/name': 'portcullis',
  'app.kubernetes.io/part-of': 'portcullis',
} as const;

/** Whether a Secret is one that we write: by its label, so that nobody's is overwritten because of its name. */
export function isOurs({ metadata }: KubernetesObject): boolean {
  return Object.entries(MANAGED_BY).every(([key, value]) => metadata.labels?.[key] === value);
}

/** The texts in a Secret. What is none, or no base64, is left out. */
export function dataOf({ data }: Secret): Readonly<Record<string, string | undefined>> {
  const texts = Object.create(null) as Record<string, string | undefined>;
  for (const [key, value] of Object.entries(isJsonObject(data) ? data : {})) {
    if (typeof value === 'string') {
      texts[key] = Buffer.from(value, 'base64').toString();
    }
  }
  return texts;
}

/** The data of a Secret with some texts set, and those that are undefined taken out; others stay. */
export function withTexts(
  { data }: Pick<Secret, 'data'>,
  texts: Readonly<Record<string, string | undefined>>,
): JsonObject {
  const values = Object.entries(texts).map(
    ([key, text]) => [key, text === undefined ? undefined : Buffer.from(text).toString('base64')] as const,
  );
  return changed(isJsonObject(data) ? data : {}, Object.fromEntries(values));
}

/** Values set, those that are undefined taken out, others left. */
export function changed<T>(
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
