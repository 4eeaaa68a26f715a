// Formats in schemas of CustomResourceDefinitions that API servers ignore.
import { isJsonObject } from '../../../resources/index.ts';
import { formatCheck } from '../../../resources/validation/index.ts';
import { at, listAt, textOf } from './fields.ts';

/** Each unknown format of a version once, in alphabetical order. */
export function formatWarnings(definition: unknown): readonly string[] {
  return listAt(definition, 'spec', 'versions').flatMap((version) =>
    [...unknownFormats(at(version, 'schema', 'openAPIV3Schema'))]
      .sort()
      .map((format) => `unrecognized format ${JSON.stringify(format)}`),
  );
}

/** Not recursive, because schemas may nest deeply. */
function unknownFormats(root: unknown): ReadonlySet<string> {
  const formats = new Set<string>();
  const open = [root];
  while (open.length > 0) {
    const schema = open.pop();
    const format = textOf(at(schema, 'format'));
    if (at(schema, 'type') === 'string' && format !== '' && formatCheck(format) === undefined) {
      formats.add(format);
    }
    const properties = at(schema, 'properties');
    const inner = [
      ...(isJsonObject(properties) ? Object.values(properties) : []),
      at(schema, 'items'),
      at(schema, 'additionalProperties'),
    ];
    open.push(...inner.filter(isJsonObject));
  }
  return formats;
}
