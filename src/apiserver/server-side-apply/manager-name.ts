/** Longest name of a manager (`FieldManagerMaxLength` of Kubernetes). Bytes. */
const MAX_MANAGER_LENGTH = 128;

/** Characters that Go's `unicode.IsPrint` rejects: all but letters, marks, numbers, punctuation, symbols and the space. */
const UNPRINTABLE = /[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/** The manager of a request: its `fieldManager`, or else the start of its user agent, up to the first slash. */
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
