/**
 * A small JSON reader and writer for policies.
 *
 * Numbers keep the text that they were written with, so that a policy which changes one field of an object gives back
 * all the others exactly as it got them.
 */

/** Deeper documents are refused: the reader is recursive, and a Kubernetes object is never this deep. */
export const MAX_DEPTH: i32 = 256;

export const enum Kind {
  Null,
  Bool,
  Number,
  String,
  Array,
  Object,
}

/** What the many values without members share: two arrays for each of them would be most of the work of reading. */
const NO_ITEMS: Json[] = [];
const NO_NAMES: string[] = [];

/** One JSON value. Which of the fields mean something is told by `kind`. */
export class Json {
  /** The value of a boolean. */
  flag: bool = false;
  /** The characters of a string, or the source text of a number. */
  text: string = '';
  /** The items of an array, or the values of an object in the order of `names`; only these two kinds have their own. */
  items: Json[] = NO_ITEMS;
  /** The member names of an object. */
  names: string[] = NO_NAMES;

  constructor(public kind: Kind) {}

  static nothing(): Json {
    return new Json(Kind.Null);
  }

  static bool(flag: bool): Json {
    const json = new Json(Kind.Bool);
    json.flag = flag;
    return json;
  }

  static integer(value: i64): Json {
    const json = new Json(Kind.Number);
    json.text = value.toString();
    return json;
  }

  static string(text: string): Json {
    const json = new Json(Kind.String);
    json.text = text;
    return json;
  }

  static array(): Json {
    const json = new Json(Kind.Array);
    json.items = [];
    return json;
  }

  static object(): Json {
    const json = new Json(Kind.Object);
    json.items = [];
    json.names = [];
    return json;
  }

  isObject(): bool {
    return this.kind == Kind.Object;
  }

  isArray(): bool {
    return this.kind == Kind.Array;
  }

  isString(): bool {
    return this.kind == Kind.String;
  }

  has(name: string): bool {
    return this.names.includes(name);
  }

  /** The member of that name; a null value when there is none or when this is no object. */
  get(name: string): Json {
    const at = this.names.indexOf(name);
    return at < 0 ? Json.nothing() : this.items[at];
  }

  /** Sets a member of an object, in its place when it is already there. */
  set(name: string, value: Json): Json {
    const at = this.names.indexOf(name);
    if (at < 0) {
      this.names.push(name);
      this.items.push(value);
    } else {
      this.items[at] = value;
    }
    return this;
  }

  /** The member of that name, which becomes an empty object when it is missing or null. */
  ensureObject(name: string): Json {
    const found = this.get(name);
    if (found.kind != Kind.Null) {
      return found;
    }
    const created = Json.object();
    this.set(name, created);
    return created;
  }

  push(value: Json): Json {
    this.items.push(value);
    return this;
  }

  toString(): string {
    const out: string[] = [];
    write(this, out);
    return out.join('');
  }
}

/** Reads one JSON document; null when the text is not one, or is nested deeper than `MAX_DEPTH`. */
export function parseJson(text: string): Json | null {
  const reader = new Reader(text);
  const value = reader.value(0);
  reader.space();
  return value !== null && reader.at == text.length ? value : null;
}

class Reader {
  at: i32 = 0;

  constructor(public text: string) {}

  /** The code unit at the cursor; -1 at the end. */
  @inline
  peek(): i32 {
    return this.at < this.text.length ? this.text.charCodeAt(this.at) : -1;
  }

  space(): void {
    while (true) {
      const c = this.peek();
      if (c != 0x20 && c != 0x0a && c != 0x0d && c != 0x09) {
        return;
      }
      this.at++;
    }
  }

  take(c: i32): bool {
    if (this.peek() != c) {
      return false;
    }
    this.at++;
    return true;
  }

  word(word: string, value: Json): Json | null {
    if (!this.text.startsWith(word, this.at)) {
      return null;
    }
    this.at += word.length;
    return value;
  }

  value(depth: i32): Json | null {
    if (depth > MAX_DEPTH) {
      return null;
    }
    this.space();
    switch (this.peek()) {
      case 0x7b /* { */:
        return this.object(depth);
      case 0x5b /* [ */:
        return this.array(depth);
      case 0x22 /* " */: {
        const text = this.string();
        return text === null ? null : Json.string(text);
      }
      case 0x74 /* t */:
        return this.word('true', Json.bool(true));
      case 0x66 /* f */:
        return this.word('false', Json.bool(false));
      case 0x6e /* n */:
        return this.word('null', Json.nothing());
      default:
        return this.number();
    }
  }

  object(depth: i32): Json | null {
    this.at++;
    const object = Json.object();
    this.space();
    if (this.take(0x7d)) {
      return object;
    }
    do {
      this.space();
      const name = this.string();
      if (name === null) {
        return null;
      }
      this.space();
      if (!this.take(0x3a)) {
        return null;
      }
      const value = this.value(depth + 1);
      if (value === null) {
        return null;
      }
      object.set(name, value);
      this.space();
    } while (this.take(0x2c));
    return this.take(0x7d) ? object : null;
  }

  array(depth: i32): Json | null {
    this.at++;
    const array = Json.array();
    this.space();
    if (this.take(0x5d)) {
      return array;
    }
    do {
      const value = this.value(depth + 1);
      if (value === null) {
        return null;
      }
      array.push(value);
      this.space();
    } while (this.take(0x2c));
    return this.take(0x5d) ? array : null;
  }

  digits(): bool {
    const start = this.at;
    while (this.peek() >= 0x30 && this.peek() <= 0x39) {
      this.at++;
    }
    return this.at > start;
  }

  number(): Json | null {
    const start = this.at;
    this.take(0x2d);
    if (!this.take(0x30) && !this.digits()) {
      return null;
    }
    if (this.take(0x2e) && !this.digits()) {
      return null;
    }
    if (this.take(0x65) || this.take(0x45)) {
      if (!this.take(0x2b)) {
        this.take(0x2d);
      }
      if (!this.digits()) {
        return null;
      }
    }
    const json = new Json(Kind.Number);
    json.text = this.text.substring(start, this.at);
    return json;
  }

  string(): string | null {
    if (!this.take(0x22)) {
      return null;
    }
    let out = '';
    let start = this.at;
    while (true) {
      const c = this.peek();
      if (c < 0x20) {
        return null;
      }
      if (c == 0x22) {
        out += this.text.substring(start, this.at);
        this.at++;
        return out;
      }
      if (c == 0x5c) {
        out += this.text.substring(start, this.at);
        const unit = this.escape();
        if (unit < 0) {
          return null;
        }
        out += String.fromCharCode(unit);
        start = this.at;
      } else {
        this.at++;
      }
    }
  }

  /** Reads an escape sequence; its UTF-16 code unit, or -1 when it is none. */
  escape(): i32 {
    this.at++;
    const c = this.peek();
    this.at++;
    switch (c) {
      case 0x22:
      case 0x5c:
      case 0x2f:
        return c;
      case 0x62:
        return 0x08;
      case 0x66:
        return 0x0c;
      case 0x6e:
        return 0x0a;
      case 0x72:
        return 0x0d;
      case 0x74:
        return 0x09;
      case 0x75:
        return this.hex4();
      default:
        return -1;
    }
  }

  hex4(): i32 {
    let unit = 0;
    for (let i = 0; i < 4; i++) {
      const c = this.peek();
      const lower = c | 0x20;
      if (c >= 0x30 && c <= 0x39) {
        unit = (unit << 4) | (c - 0x30);
      } else if (lower >= 0x61 && lower <= 0x66) {
        unit = (unit << 4) | (lower - 0x57);
      } else {
        return -1;
      }
      this.at++;
    }
    return unit;
  }
}

function write(json: Json, out: string[]): void {
  switch (json.kind) {
    case Kind.Null:
      out.push('null');
      break;
    case Kind.Bool:
      out.push(json.flag ? 'true' : 'false');
      break;
    case Kind.Number:
      out.push(json.text);
      break;
    case Kind.String:
      writeString(json.text, out);
      break;
    case Kind.Array:
      out.push('[');
      for (let i = 0; i < json.items.length; i++) {
        if (i > 0) {
          out.push(',');
        }
        write(json.items[i], out);
      }
      out.push(']');
      break;
    case Kind.Object:
      out.push('{');
      for (let i = 0; i < json.items.length; i++) {
        if (i > 0) {
          out.push(',');
        }
        writeString(json.names[i], out);
        out.push(':');
        write(json.items[i], out);
      }
      out.push('}');
      break;
  }
}

function writeString(text: string, out: string[]): void {
  out.push('"');
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c != 0x22 && c != 0x5c && c >= 0x20) {
      continue;
    }
    out.push(text.substring(start, i));
    out.push(c == 0x22 ? '\\"' : c == 0x5c ? '\\\\' : '\\u' + hex(c));
    start = i + 1;
  }
  out.push(start == 0 ? text : text.substring(start));
  out.push('"');
}

function hex(unit: i32): string {
  return unit.toString(16).padStart(4, '0');
}
