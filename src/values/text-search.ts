// Searches of texts in time that is linear in both lengths (Knuth, Morris and Pratt). That of V8, and of Buffer, takes their product
// for texts that nearly match, in native code that neither a deadline nor the end of a thread interrupts.

/** Up to here V8's search is used, which compares each character with so many others at most. */
const SHORT_PART = 8;

/** Whether the text has the part. */
export function hasPart(text: string, part: string): boolean {
  return indexOfPart(text, part) >= 0;
}

/** As `String.indexOf`. */
export function indexOfPart(text: string, part: string, from = 0): number {
  if (isSimple(text, part)) {
    return text.indexOf(part, from);
  }
  for (const at of positionsOf(text, part, from)) {
    return at;
  }
  return -1;
}

/** As `String.lastIndexOf`: the last position that is at most `from`. */
export function lastIndexOfPart(text: string, part: string, from = text.length): number {
  if (isSimple(text, part)) {
    return text.lastIndexOf(part, from);
  }
  let last = -1;
  for (const at of positionsOf(text.slice(0, from + part.length), part)) {
    last = at;
  }
  return last;
}

/** As `String.split` with a separator that is not empty. */
export function splitAtParts(text: string, separator: string): string[] {
  if (isSimple(text, separator)) {
    return text.split(separator);
  }
  const parts: string[] = [];
  let from = 0;
  for (const at of positionsOf(text, separator)) {
    if (at >= from) {
      parts.push(text.slice(from, at));
      from = at + separator.length;
    }
  }
  parts.push(text.slice(from));
  return parts;
}

/** All positions of a part that is not empty, those included where it overlaps with itself. */
export function* positionsOf(text: string, part: string, from = 0): Generator<number, void, undefined> {
  if (part.length > text.length - from) {
    return;
  }
  const borders = bordersOf(part);
  let matched = 0;
  for (let at = Math.max(0, from); at < text.length; at++) {
    const code = text.charCodeAt(at);
    while (matched > 0 && (matched === part.length || part.charCodeAt(matched) !== code)) {
      matched = borders[matched - 1] ?? 0;
    }
    if (part.charCodeAt(matched) === code) {
      matched++;
    }
    if (matched === part.length) {
      yield at + 1 - matched;
    }
  }
}

function isSimple(text: string, part: string): boolean {
  return part.length <= SHORT_PART || part.length > text.length;
}

/** For each length of a beginning of the part, less one: the longest shorter beginning with which it ends. */
function bordersOf(part: string): Uint32Array {
  const borders = new Uint32Array(part.length);
  let border = 0;
  for (let at = 1; at < part.length; at++) {
    const code = part.charCodeAt(at);
    while (border > 0 && part.charCodeAt(border) !== code) {
      border = borders[border - 1] ?? 0;
    }
    if (part.charCodeAt(border) === code) {
      border++;
    }
    borders[at] = border;
  }
  return borders;
}
