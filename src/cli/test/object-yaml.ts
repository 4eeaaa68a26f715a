import { dump } from 'js-yaml';
import type { JsonValue } from '../../engine/index.ts';
import { EXACT_SCHEMA } from '../output.ts';

/** A value as YAML with sorted keys, for people and for comparisons. */
export function objectYaml(value: JsonValue): string {
  return dump(value, { schema: EXACT_SCHEMA, lineWidth: -1, noRefs: true, sortKeys: true });
}
