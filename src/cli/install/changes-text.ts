import type { KubernetesObject } from '../../resources/index.ts';
import { diffHunks } from '../diff-hunks.ts';
import { dataText } from '../output.ts';
import { VALUES_ANNOTATION } from './kept-values.ts';

/** The lines that differ between two states of an object, without what API servers write. */
export function changesText(before: KubernetesObject, after: KubernetesObject): string {
  const [from, to] = [before, after].map(({ metadata, status: _status, ...rest }) => {
    const { managedFields: _fields, resourceVersion: _version, generation: _generation, ...shown } = metadata;
    // It repeats in one line what the other lines say.
    const { [VALUES_ANNOTATION]: _values, ...annotations } = shown.annotations ?? {};
    return dataText({ ...rest, metadata: { ...shown, annotations } }, 'yaml');
  });
  return diffHunks(from ?? '', to ?? '')
    .flatMap(({ lines }) => lines.map((line) => `  ${line}\n`))
    .join('');
}
