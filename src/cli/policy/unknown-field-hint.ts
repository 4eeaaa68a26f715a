import type { OwnKind } from '../../resources/index.ts';
import { unknownKeyHint } from '../../values/index.ts';

/** What an unknown field probably means. Only for fields of the spec itself, where most are. */
export function unknownFieldHint(field: string, { schema }: OwnKind): string {
  const [, key] = /^spec\.([^.[]+)$/.exec(field) ?? [];
  const known = Object.keys(schema().properties?.['spec']?.properties ?? {});
  return key === undefined ? '' : `, ${unknownKeyHint(key, known)}`;
}
