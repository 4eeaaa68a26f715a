const BACKSLASH = 0x5c;

/** A set of field names, compared with the bytes of JSON, so that no string is built for other keys. */
export class FieldNames {
  readonly #byLength: (readonly { readonly name: string; readonly bytes: Uint8Array }[] | undefined)[] = [];

  constructor(names: Iterable<string>) {
    for (const name of names) {
      const bytes = new Uint8Array(Buffer.from(name));
      this.#byLength[bytes.length] = [...(this.#byLength[bytes.length] ?? []), { name, bytes }];
    }
  }

  /** The name that equals the bytes from `start` to `end`, if any. Escapes are not decoded. */
  find(source: Uint8Array, start: number, end: number): string | undefined {
    for (const { name, bytes } of this.#byLength[end - start] ?? []) {
      if (hasBytes(source, start, bytes)) {
        return name;
      }
    }
    return undefined;
  }
}

function hasBytes(source: Uint8Array, start: number, bytes: Uint8Array): boolean {
  for (let index = 0; index < bytes.length; index++) {
    if (source[start + index] !== bytes[index]) {
      return false;
    }
  }
  return true;
}

/** Whether a key contains escapes. */
export function hasEscape(source: Uint8Array, start: number, end: number): boolean {
  for (let at = start; at < end; at++) {
    if (source[at] === BACKSLASH) {
      return true;
    }
  }
  return false;
}
