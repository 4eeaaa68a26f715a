import type { Labels } from '../../resources/index.ts';
import { isJsonObject } from './json-text.ts';

/** `metadata.labels`; undefined for what has no metadata. */
export function labelsOf(object: unknown): Labels | undefined {
  const metadata = isJsonObject(object) && Object.hasOwn(object, 'metadata') ? object.metadata : undefined;
  if (!isJsonObject(metadata)) {
    return undefined;
  }
  const labels = Object.hasOwn(metadata, 'labels') ? metadata.labels : undefined;
  return isJsonObject(labels) ? (labels as Labels) : {};
}
