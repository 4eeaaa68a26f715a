// Formats in schemas of CustomResourceDefinitions that API servers ignore.
import { textOf, valueAt } from '../../../values/index.ts';
import { isJsonObject } from '../../../resources/index.ts';
import { formatCheck } from '../../../resources/validation/index.ts';
import { listAt } from './fields.ts';

/** Each unknown format of a version once, in alphabetical order. */
export function formatWarnings(definition: unknown): readonly string[] {
  return listAt(definition, 'spec', 'versions').flatMap((version) =>
    [...unknownFormats(valueAt(version, 'schema', 'openAPIV3Schema'))]
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
    const format = textOf(valueAt(schema, 'format'));
    if (valueAt(schema, 'type') === 'string' && format !== '' && formatCheck(format) === undefined) {
      formats.add(format);
    }
    const properties = valueAt(schema, 'properties');
    const inner = [
      ...(isJsonObject(properties) ? Object.values(properties) : []),
      valueAt(schema, 'items'),
      valueAt(schema, 'additionalProperties'),
    ];
    open.push(...inner.filter(isJsonObject));
  }
  return formats;
}
