import { describeValue } from '../values/field-reader.ts';
import type { FieldReader } from '../values/field-reader.ts';

/** Most elements of a list in the settings, which every container may be compared with. The longest known have 20. */
export const MAX_LIST = 256;

/** The texts of a list, each without a problem; undefined when the list is absent. */
export function readTexts(
  fields: FieldReader,
  key: string,
  problemOf: (text: string) => string | undefined,
): readonly string[] | undefined {
  return readElements(fields, key)?.filter((element, index) => {
    const problem = typeof element === 'string' ? problemOf(element) : `expected text, got ${describeValue(element)}`;
    if (problem !== undefined) {
      fields.fault(key, problem, index);
    }
    return typeof element === 'string';
  });
}

/** The mappings of a list with the given keys; undefined when the list is absent. */
export function readMappings(
  fields: FieldReader,
  key: string,
  known: readonly string[],
): readonly FieldReader[] | undefined {
  if (readElements(fields, key) === undefined) {
    return undefined;
  }
  const mappings = fields.each(key);
  for (const mapping of mappings) {
    mapping.knownKeys(known);
  }
  return mappings;
}

function readElements(fields: FieldReader, key: string): ReturnType<FieldReader['list']> {
  const elements = fields.list(key);
  if (elements !== undefined && elements.length > MAX_LIST) {
    fields.fault(key, `expected at most ${MAX_LIST} elements, got ${elements.length}`);
    return [];
  }
  return elements;
}

/** For lists of texts that must not be empty. */
export function emptyProblem(text: string): string | undefined {
  return text === '' ? 'expected some text, got ""' : undefined;
}
