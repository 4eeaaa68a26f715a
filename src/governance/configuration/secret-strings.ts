// The field `stringData` of Secrets, which API servers encode into `data` and never return.
import { isBase64, isJsonObject, setOwn } from '../../values/index.ts';
import type { JsonObject, JsonValue } from '../../values/index.ts';

/** The data of a Secret as strings, or why there are none. */
export type DecodedData = { readonly strings: JsonObject } | { readonly error: string };

/** Decodes the field `data` of the Secret with a name. */
export function decodeData(data: JsonValue | undefined, name: string): DecodedData {
  const strings: JsonObject = {};
  if (data === undefined || data === null) {
    return { strings };
  }
  if (!isJsonObject(data)) {
    return { error: 'Error accessing encoded data' };
  }
  for (const [key, value] of Object.entries(data)) {
    if (typeof value !== 'string') {
      return { error: 'Error accessing encoded data' };
    }
    // As Go, which ignores line breaks.
    const encoded = value.replace(/[\r\n]/g, '');
    if (!isBase64(encoded)) {
      return { error: `Error decoding secret: ${name}` };
    }
    setOwn(strings, key, utf8Text(encoded));
  }
  return { strings };
}

/** The encoded text; null if it is not UTF-8, since then it equals no string of a template. */
function utf8Text(encoded: string): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(Buffer.from(encoded, 'base64'));
  } catch {
    return null;
  }
}
