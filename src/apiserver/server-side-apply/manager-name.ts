/** Bytes of the name of a manager (`FieldManagerMaxLength` of Kubernetes). */
export const MAX_MANAGER_LENGTH = 128;

/** Letters, marks, numbers, punctuation, symbols and the space: what Go calls printable. */
const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/** Who writes: the field manager that the request names, or else what its user agent begins with, up to the first slash. */
export function managerOf(fieldManager: string | undefined, userAgent: string | undefined): string {
  if (fieldManager !== undefined && fieldManager !== '') {
    return fieldManager;
  }
  const [prefix = ''] = (userAgent ?? '').split('/', 1);
  let name = '';
  let bytes = 0;
  for (const character of prefix.toWellFormed().replaceAll(UNPRINTABLE, '')) {
    bytes += Buffer.byteLength(character);
    if (bytes > MAX_MANAGER_LENGTH) {
      break;
    }
    name += character;
  }
  return name;
}
