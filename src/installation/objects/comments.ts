// Comments for readers of manifests. They are fields of the objects until the manifests are written.

/** The name of the field with the comment of an object. */
export const COMMENT = '#';

/** An object with a comment of one line, which manifests have above it. */
export function commented<T extends object>(comment: string, object: T): T {
  return { [COMMENT]: comment, ...object };
}

/** A copy of a value without comments. */
export function withoutComments<T>(value: T): T {
  if (Array.isArray(value)) {
    return value.map(withoutComments) as T;
  }
  if (typeof value !== 'object' || value === null) {
    return value;
  }
  const fields = Object.entries(value).filter(([name]) => name !== COMMENT);
  return Object.fromEntries(fields.map(([name, field]) => [name, withoutComments<unknown>(field)])) as T;
}
