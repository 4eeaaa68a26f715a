/** A JSON value as JSON.parse gives it. */
export type JsonValue = null | boolean | number | string | JsonValue[] | { [key: string]: JsonValue };
export type JsonObject = { [key: string]: JsonValue };

/**
 * The deepest nesting that is accepted from outside (reviews, guests' answers, settings).
 * The deepest Kubernetes objects (schemas of schemas in CRDs) stay below 100 and Go's decoder stops at 10,000;
 * 1,000 recursive frames of the differ or of JSON.stringify fit the smallest stack (measured: they need about 200 KiB).
 */
export const MAX_NESTING = 1_000;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Index just behind the string that opens at `open`, or the text's length when it never ends. */
export function endOfString(text: string, open: number): number {
  for (let at = open + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      return at + 1;
    }
    if (code === BACKSLASH) {
      at++;
    }
  }
  return text.length;
}

/** Whether the text opens more than `limit` brackets at once. One pass, no recursion; any text, JSON or not. */
export function isNestedDeeper(text: string, limit: number): boolean {
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      at = endOfString(text, at) - 1;
    } else if (code === 0x7b || code === 0x5b) {
      if (++depth > limit) {
        return true;
      }
    } else if (code === 0x7d || code === 0x5d) {
      depth--;
    }
  }
  return false;
}

/** JSON with the keys of every object in code unit order: equal values have equal texts, so that it can be hashed. */
export function canonicalJson(value: unknown): string {
  if (Array.isArray(value)) {
    return `[${value.map(canonicalJson).join(',')}]`;
  }
  if (typeof value === 'object' && value !== null) {
    const members = Object.entries(value)
      .filter(([, member]) => member !== undefined)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([key, member]) => `${JSON.stringify(key)}:${canonicalJson(member)}`);
    return `{${members.join(',')}}`;
  }
  return JSON.stringify(value);
}

const NUMBER = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;

/**
 * Index just behind the JSON string that opens at `open`; undefined when there is none, or an invalid one. No regular
 * expression: those need stack for every character of a long string.
 */
function endOfValidString(text: string, open: number): number | undefined {
  if (text.charCodeAt(open) !== QUOTE) {
    return undefined;
  }
  for (let at = open + 1; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === QUOTE) {
      return at + 1;
    }
    if (code < 0x20) {
      return undefined;
    }
    if (code === BACKSLASH) {
      const escape = text.charAt(++at);
      if (escape === 'u' && /^[0-9a-fA-F]{4}$/.test(text.slice(at + 1, at + 5))) {
        at += 4;
      } else if (!'"\\/bfnrt'.includes(escape) || escape === '') {
        return undefined;
      }
    }
  }
  return undefined;
}

/**
 * Where a text stops being JSON (its length when it ends too early), for error messages: the engine's own message does
 * not always say where, and quotes the text, which may hold a Secret. Linear, no recursion.
 * Undefined when the text is JSON.
 */
export function findJsonError(text: string): number | undefined {
  let at = 0;
  const open: ('{' | '[')[] = [];
  const match = (pattern: RegExp): boolean => {
    pattern.lastIndex = at;
    if (!pattern.test(text)) {
      return false;
    }
    at = pattern.lastIndex;
    return true;
  };
  const take = (token: string): boolean => {
    if (!text.startsWith(token, at)) {
      return false;
    }
    at += token.length;
    return true;
  };
  const string = (): boolean => {
    const end = endOfValidString(text, at);
    at = end ?? at;
    return end !== undefined;
  };
  /** A key and its colon, when the innermost bracket wants one. */
  const key = (): boolean => {
    match(SPACE);
    if (open.at(-1) !== '{') {
      return true;
    }
    if (!string()) {
      return false;
    }
    match(SPACE);
    return take(':');
  };
  /** Closing brackets and the comma behind a value; false when something else follows. */
  const afterValue = (): boolean => {
    for (;;) {
      match(SPACE);
      const innermost = open.at(-1);
      if (innermost === undefined) {
        return at === text.length;
      }
      if (take(',')) {
        return key();
      }
      if (!take(innermost === '{' ? '}' : ']')) {
        return false;
      }
      open.pop();
    }
  };
  for (;;) {
    match(SPACE);
    if (take('{')) {
      match(SPACE);
      if (!take('}')) {
        open.push('{');
        if (!key()) {
          return at;
        }
        continue;
      }
    } else if (take('[')) {
      match(SPACE);
      if (!take(']')) {
        open.push('[');
        continue;
      }
    } else if (!(string() || match(NUMBER) || take('true') || take('false') || take('null'))) {
      return at;
    }
    if (!afterValue()) {
      return at;
    }
    if (open.length === 0) {
      return undefined;
    }
  }
}
