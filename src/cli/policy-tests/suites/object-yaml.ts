import type { JsonValue } from '../../../engine/index.ts';
import { yamlText } from '../../yaml-text.ts';

/** A value as YAML with sorted keys, for people and for comparisons. */
export function objectYaml(value: JsonValue): string {
  return yamlText(value, { sortKeys: true });
}
